//! An animal in a game is fed 8 hours after the last meal; each card that a player lays shortens the time by two
//! hours. The task stays the same one and moves.
//!
//! Needs a server: `punctual serve`, or one at PUNCTUAL_URL. An hour takes 500 ms here, or PUNCTUAL_HOUR_MS.

use std::error::Error;
use std::time::Duration;

use punctual_client::{Client, Job, Reschedule, Ruling, Shift, Standing, Task, Time, Worker};
use tokio::sync::{mpsc, oneshot};

fn hours(hours: u32) -> Duration {
    let millis = std::env::var("PUNCTUAL_HOUR_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    Duration::from_millis(millis) * hours
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("PUNCTUAL_URL").unwrap_or_else(|_| "http://127.0.0.1:7400".into());
    let client = Client::new(&url)?;
    // A topic of its own, so that it can be run again.
    let topic = format!("feeding-{}", Time::now().0);

    let (fed, mut meals) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::builder(client.clone())
        .handle(&topic, move |job: Job| {
            let fed = fed.clone();
            async move {
                fed.send((job.id.clone(), job.due, Time::now()))?;
                Ok(())
            }
        })
        .build()?;
    let working = tokio::spawn(worker.run(async { stopped.await.unwrap_or_default() }));

    let scheduled = client.schedule(Task::new(&topic).id("rabbit").after(hours(8)).text("carrots")).await?;
    let first_due = scheduled.due.ok_or("a new task has a due time")?;
    println!("the rabbit is fed in 8 hours, at {first_due}");

    // Moving by a length must not happen twice, so the client does not repeat it once it may have been carried out.
    let two_hours = hours(2).as_millis() as i64;
    let card = || Reschedule { by: Some(Shift(-two_hours)), ..Reschedule::default() };
    let mut due = first_due;
    for cards in 1..=3 {
        match client.reschedule(&topic, "rabbit", card()).await? {
            Ruling::Done(now_due) => {
                println!("card {cards}: two hours sooner, at {now_due}");
                assert_eq!(now_due.0 as i64, due.0 as i64 - two_hours);
                due = now_due;
            }
            ruling => return Err(format!("it was not due yet: {ruling:?}").into()),
        }
    }

    let (animal, was_due, at) = meals.recv().await.ok_or("the worker ended")?;
    println!("the {animal} is fed, {} ms after it was due", at.0 - was_due.0);
    assert!(was_due == due && at >= due, "at its new time, and not early");
    assert!(at < first_due, "long before its first time");

    let ruling = client.reschedule(&topic, "rabbit", card()).await?;
    println!("card 4 comes too late: {ruling:?}");
    assert!(matches!(ruling, Ruling::TooLate(Standing::Finished { .. } | Standing::Leased { .. })));
    assert_eq!(client.reschedule(&topic, "tiger", card()).await?, Ruling::Unknown);

    stop.send(()).map_err(|()| "the worker ended")?;
    let summary = working.await??;
    println!("the worker: {summary:?}");
    assert_eq!(summary.done, 1, "it was fed once");
    client.delete_topic(&topic, true).await?;
    client.delete_queue(&topic, true).await?;
    Ok(())
}
