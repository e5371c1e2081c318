//! An order that is not paid within 15 minutes is closed; and whoever pays at the very last moment gets a certain
//! answer: paid or too late, never both and never neither.
//!
//! Needs a server: `punctual serve`, or one at PUNCTUAL_URL. A minute takes 100 ms here, or PUNCTUAL_MINUTE_MS.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use punctual_client::{Client, Job, Ruling, Task, Time, Worker};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

/// So many orders are paid around the moment they are closed.
const RACES: usize = 200;

fn minutes(minutes: u32) -> Duration {
    let millis = std::env::var("PUNCTUAL_MINUTE_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    Duration::from_millis(millis) * minutes
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("PUNCTUAL_URL").unwrap_or_else(|_| "http://127.0.0.1:7400".into());
    let client = Client::new(&url)?;
    // A topic of its own, so that it can be run again.
    let topic = format!("order-unpaid-{}", Time::now().0);

    // The worker closes what comes due, and tells us.
    let (closed, mut closings) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::builder(client.clone())
        .handle(&topic, move |job: Job| {
            let closed = closed.clone();
            async move {
                let late = Time::now().0.saturating_sub(job.due.0);
                closed.send((job.id.clone(), late))?;
                Ok(())
            }
        })
        .build()?;
    let working = tokio::spawn(worker.run(async { stopped.await.unwrap_or_default() }));

    for id in ["order-1", "order-2"] {
        client.schedule(Task::new(&topic).id(id).after(minutes(15)).json(&["close", id])?).await?;
        println!("{id}: to be closed in 15 minutes");
    }

    sleep(minutes(5)).await;
    let ruling = client.cancel(&topic, "order-1").await?;
    println!("order-1: paid after 5 minutes: {ruling:?}");
    assert!(matches!(ruling, Ruling::Done(_)));

    let (id, late) = closings.recv().await.ok_or("the worker ended")?;
    println!("{id}: not paid, closed {late} ms after it was due");
    assert_eq!(id, "order-2", "the order that was paid must not be closed");

    let ruling = client.cancel(&topic, "order-2").await?;
    println!("order-2: paid too late: {ruling:?}");
    assert!(matches!(ruling, Ruling::TooLate(_)));

    // Now the race: all of these come due at the same moment, and are paid from just before to just after it.
    let batcher = client.batcher();
    let due = Time(Time::now().0 + 500);
    let mut scheduling = Vec::new();
    for number in 0..RACES {
        let (batcher, task) = (batcher.clone(), Task::new(&topic).id(format!("race-{number}")).at(due));
        scheduling.push(tokio::spawn(async move { batcher.schedule(task).await }));
    }
    for scheduled in scheduling {
        scheduled.await??;
    }
    let mut paying = Vec::new();
    for number in 0..RACES {
        let (client, topic) = (client.clone(), topic.clone());
        paying.push(tokio::spawn(async move {
            let id = format!("race-{number}");
            let moment = due.0 - 10 + (number * 20 / RACES) as u64;
            sleep(Duration::from_millis(moment.saturating_sub(Time::now().0))).await;
            client.cancel(&topic, &id).await.map(|ruling| (id, ruling))
        }));
    }
    let (mut paid, mut too_late) = (BTreeSet::new(), BTreeSet::new());
    for payment in paying {
        match payment.await?? {
            (id, Ruling::Done(_)) => paid.insert(id),
            (id, Ruling::TooLate(_)) => too_late.insert(id),
            (id, Ruling::Unknown) => return Err(format!("{id} is not known").into()),
        };
    }
    let mut closed = BTreeSet::new();
    while closed.len() < too_late.len() {
        let (id, _) =
            tokio::time::timeout(Duration::from_secs(10), closings.recv()).await?.ok_or("the worker ended")?;
        closed.insert(id);
    }
    // A little longer, in case that something is closed that must not be.
    sleep(Duration::from_millis(300)).await;
    while let Ok((id, _)) = closings.try_recv() {
        closed.insert(id);
    }
    let both = paid.intersection(&closed).count();
    println!(
        "{RACES} paid at the last moment: {} in time, {} too late and closed, {both} both",
        paid.len(),
        closed.len()
    );
    assert_eq!(closed, too_late, "what was told to be too late is closed, and nothing else is");
    assert_eq!(paid.len() + closed.len(), RACES, "each order is either paid or closed");

    stop.send(()).map_err(|()| "the worker ended")?;
    let summary = working.await??;
    println!("the worker: {summary:?}");
    assert_eq!(summary.done as usize, 1 + closed.len());
    client.delete_topic(&topic, true).await?;
    client.delete_queue(&topic, true).await?;
    Ok(())
}
