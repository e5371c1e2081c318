//! Who works in the shop: some are quick, some slow, some fail in ways that repeat, and one takes things and never answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_chance::Chance;
use punctual_client::{Client, Error, Failure, Job, Reserve, Span, Worker};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// What becomes of a job, drawn for each of its attempts.
type Luck = fn(&mut Chance, &Job) -> Result<(), Failure>;

/// A consumer: the queue, its name, how many jobs it does at once, how long one takes in milliseconds, and how that ends.
type Post = (&'static str, &'static str, usize, (u64, u64), Luck);

const POSTS: &[Post] = &[
    ("order-unpaid", "closer-1", 4, (20, 200), closing),
    ("order-unpaid", "closer-2", 4, (20, 200), closing),
    ("coupon-end", "marketing-1", 16, (10, 80), |_, _| Ok(())),
    ("sms", "sms-gateway-1", 4, (80, 400), texting),
    ("sms", "sms-gateway-2", 4, (80, 400), texting),
    ("email", "mailer-1", 4, (30, 150), mailing),
    ("ticket-escalation", "support-1", 2, (6_000, 16_000), |_, _| Ok(())),
    ("ticket-escalation", "support-2", 2, (6_000, 16_000), |_, _| Ok(())),
    ("ticket-escalation", "support-3", 2, (6_000, 16_000), |_, _| Ok(())),
];

/// Sets all of them to work.
pub fn hire(client: &Client, going: &mut JoinSet<Result<(), Error>>) -> Result<(), Error> {
    let chance = Arc::new(Mutex::new(Chance::new(7)));
    for &(queue, name, at_once, takes, luck) in POSTS {
        let chance = Arc::clone(&chance);
        let work = move |job: Job| {
            let mut chance = chance.lock().unwrap_or_else(PoisonError::into_inner).fork();
            async move {
                sleep(Duration::from_millis(chance.between(takes.0, takes.1))).await;
                luck(&mut chance, &job)
            }
        };
        let worker = Worker::builder(client.clone()).handle(queue, work).consumer(name).concurrency(at_once).build()?;
        going.spawn(async move { worker.run(std::future::pending()).await.map(|_| ()) });
    }
    going.spawn(forget(client.clone()));
    Ok(())
}

fn closing(chance: &mut Chance, job: &Job) -> Result<(), Failure> {
    match chance.below(100) {
        0..4 => Err(Failure::retry(format!("stock: HTTP 503 after {} ms", chance.between(900, 1_100)))),
        4..6 => Err(Failure::reject(format!("no such order: {}", job.id))),
        _ => Ok(()),
    }
}

/// One gateway of eight is down. Others time out now and then.
fn texting(chance: &mut Chance, job: &Job) -> Result<(), Failure> {
    let gateway = job.headers.get("gateway").map_or("", String::as_str);
    match chance.below(100) {
        _ if gateway == "gateway-7" => Err(Failure::retry("connect 10.0.3.7:443: timed out after 5000 ms")),
        0..10 => Err(Failure::retry(format!("{gateway}: connection reset"))),
        10..14 => Err(Failure::reject(format!("no such number: +86 138 {:08}", chance.below(100_000_000)))),
        _ => Ok(()),
    }
}

fn mailing(chance: &mut Chance, job: &Job) -> Result<(), Failure> {
    match chance.below(100) {
        0..8 => Err(Failure::reject(format!("550 mailbox unavailable: {}", job.key.as_deref().unwrap_or("nobody")))),
        8..16 => Err(Failure::retry_after(Duration::from_secs(chance.between(5, 20))).because("greylisted")),
        _ => Ok(()),
    }
}

/// A consumer as after a crash: it takes something each few seconds, and says nothing more about it.
async fn forget(client: Client) -> Result<(), Error> {
    let reserve = Reserve {
        queues: vec!["sms".into()],
        max: Some(1),
        lease: Some(Span::from_secs(4)),
        wait: Some(Span::from_secs(20)),
        consumer: Some("sms-gateway-3".into()),
    };
    loop {
        match client.reserve(reserve.clone()).await {
            Err(error) if !error.is_retryable() && !error.may_have_happened() => return Err(error),
            _ => sleep(Duration::from_secs(5)).await,
        }
    }
}
