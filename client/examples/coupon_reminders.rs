//! Each user is reminded 2 hours before a coupon ends. Who does not want reminders any more gets none: all tasks
//! of a user are found and cancelled by their key.
//!
//! Needs a server: `punctual serve`, or one at PUNCTUAL_URL. An hour takes 200 ms here, or PUNCTUAL_HOUR_MS.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, SystemTime};

use punctual_client::{Client, Job, List, Task, Time, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Coupon {
    user: String,
    name: String,
    percent: u8,
}

fn hours(hours: u32) -> Duration {
    let millis = std::env::var("PUNCTUAL_HOUR_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    Duration::from_millis(millis) * hours
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("PUNCTUAL_URL").unwrap_or_else(|_| "http://127.0.0.1:7400".into());
    let client = Client::new(&url)?;
    // A topic and keys of their own, so that it can be run again.
    let run = Time::now().0;
    let topic = format!("coupon-reminder-{run}");
    let key = |user: &str| format!("user-{user}-{run}");

    let (reminded, mut reminders) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::builder(client.clone())
        .handle_json(&topic, move |coupon: Coupon, job: Job| {
            let reminded = reminded.clone();
            async move {
                reminded.send((coupon, job.due, Time::now()))?;
                Ok(())
            }
        })
        .build()?;
    let working = tokio::spawn(worker.run(async { stopped.await.unwrap_or_default() }));

    let coupons =
        [("anna", "shoes", 10, 12), ("anna", "books", 20, 14), ("ben", "bread", 30, 10), ("ben", "wine", 5, 16)];
    let now = SystemTime::now();
    let mut due = BTreeMap::new();
    for (user, name, percent, ends_in) in coupons {
        let coupon = Coupon { user: user.into(), name: name.into(), percent };
        let remind_at = now + hours(ends_in) - hours(2);
        let task = Task::new(&topic).id(format!("{user}-{name}")).key(key(user)).at(remind_at).json(&coupon)?;
        let scheduled = client.schedule(task).await?;
        println!("{user}: {percent} % on {name} end in {ends_in} hours, a reminder comes 2 hours before");
        due.insert(name, scheduled.due.ok_or("a new task has a due time")?);
    }

    let page = client.list_key(&key("anna"), &List::default()).await?;
    let pending: Vec<&str> = page.tasks.iter().map(|task| task.id.as_str()).collect();
    println!("anna has {pending:?}");
    assert_eq!(pending, ["anna-shoes", "anna-books"], "in the order of their times");

    let counted = client.cancel_key(&key("anna"), None, true).await?;
    let swept = client.cancel_key(&key("anna"), Some(&topic), false).await?;
    println!("anna wants no more reminders: {} of {} cancelled", swept.changed, counted.matched);
    assert_eq!((counted.changed, swept.changed, swept.too_late), (2, 2, 0));

    for name in ["bread", "wine"] {
        let reminder = tokio::time::timeout(hours(20) + Duration::from_secs(10), reminders.recv()).await?;
        let (coupon, due_at, now) = reminder.ok_or("the worker ended")?;
        println!(
            "{}: your {} % on {} end in 2 hours ({} ms after it was due)",
            coupon.user,
            coupon.percent,
            coupon.name,
            now.0 - due_at.0
        );
        assert_eq!((coupon.user.as_str(), coupon.name.as_str()), ("ben", name));
        assert!(due_at == due[name] && now >= due_at, "never early");
    }
    assert!(reminders.try_recv().is_err(), "anna is not reminded");

    stop.send(()).map_err(|()| "the worker ended")?;
    let summary = working.await??;
    println!("the worker: {summary:?}");
    assert_eq!(summary.done, 2);
    client.delete_topic(&topic, true).await?;
    client.delete_queue(&topic, true).await?;
    Ok(())
}
