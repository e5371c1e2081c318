//! The load itself: producers and consumers, and what each of them measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use punctual_client::{Client, Error};
use punctual_wire::{Action, Delivery, Do, NewTask, Reserve, Span};
use tokio::task::JoinSet;

use super::super::failure::Failure;
use super::{now_micros, server_micros};

/// How many deliveries a consumer takes at once at least, if so many are ready. A worker does so too, and one at
/// a time it would fall behind the producers.
const TAKE: u32 = 100;

/// How long a consumer waits for deliveries before it looks whether all are done.
const WAIT: Span = Span::from_secs(1);

/// How long nothing may come before the rest is given up for lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to do.
#[derive(Debug)]
pub struct Plan {
    pub topic: String,
    pub tasks: u64,
    pub batch: u32,
    pub rate: Option<u32>,
    pub body: String,
    pub delay: Span,
    /// By how much the server's clock is ahead.
    pub skew_micros: i64,
}

/// What was measured, in microseconds.
pub struct Measured {
    /// A request that schedules.
    pub schedule: Histogram<u64>,
    /// From the due time to the consumer.
    pub lateness: Histogram<u64>,
    /// A request that acknowledges.
    pub acknowledge: Histogram<u64>,
    /// Tasks that the server did not take.
    pub refused: u64,
    /// Deliveries that came before their time, which must never happen.
    pub early: u64,
    /// How long scheduling took.
    pub scheduling: Duration,
    /// How long everything took, up to the last acknowledgement.
    pub all: Duration,
    /// How many were acknowledged.
    pub done: u64,
}

impl Measured {
    fn new() -> Measured {
        let histogram = || Histogram::new(3).expect("three digits are within what a histogram can do");
        Measured {
            schedule: histogram(),
            lateness: histogram(),
            acknowledge: histogram(),
            refused: 0,
            early: 0,
            scheduling: Duration::ZERO,
            all: Duration::ZERO,
            done: 0,
        }
    }

    fn add(&mut self, other: &Measured) {
        self.schedule += &other.schedule;
        self.lateness += &other.lateness;
        self.acknowledge += &other.acknowledge;
        self.refused += other.refused;
        self.early += other.early;
        self.done += other.done;
        self.scheduling = self.scheduling.max(other.scheduling);
        self.all = self.all.max(other.all);
    }
}

/// A load on its way.
pub struct Load {
    client: Client,
    plan: Plan,
    begun: Instant,
    /// The next task to schedule.
    next: AtomicU64,
    /// Tasks that are acknowledged, or that the server did not take.
    settled: AtomicU64,
    bar: ProgressBar,
}

impl Load {
    pub fn new(client: Client, plan: Plan, bar: ProgressBar) -> Load {
        Load { client, plan, begun: Instant::now(), next: AtomicU64::new(0), settled: AtomicU64::new(0), bar }
    }

    /// Schedules everything and consumes everything.
    pub async fn run(self: Arc<Load>, connections: u32) -> Result<Measured, Failure> {
        let mut parts = JoinSet::new();
        for _ in 0..connections {
            parts.spawn(Arc::clone(&self).produce());
            parts.spawn(Arc::clone(&self).consume());
        }
        let mut all = Measured::new();
        while let Some(part) = parts.join_next().await {
            let part = part.map_err(|error| Failure::local("a part of the load crashed", error))?;
            all.add(&part?);
        }
        Ok(all)
    }

    async fn produce(self: Arc<Load>) -> Result<Measured, Error> {
        let mut measured = Measured::new();
        let batch = u64::from(self.plan.batch);
        loop {
            let from = self.next.fetch_add(batch, Ordering::Relaxed);
            let until = (from + batch).min(self.plan.tasks);
            if from >= until {
                measured.scheduling = self.begun.elapsed();
                return Ok(measured);
            }
            // With a rate, a request that had to wait for the one before it took that much longer.
            let begun = match self.plan.rate {
                None => Instant::now(),
                Some(rate) => {
                    let at = self.begun + Duration::from_secs_f64(from as f64 / f64::from(rate));
                    tokio::time::sleep_until(at.into()).await;
                    at
                }
            };
            let refused = self.schedule(from, until).await?;
            record(&mut measured.schedule, begun.elapsed().as_micros() as u64);
            measured.refused += refused;
            self.settle(refused);
        }
    }

    /// Schedules the tasks of a range, and answers how many were refused.
    async fn schedule(&self, from: u64, until: u64) -> Result<u64, Error> {
        let task = |number: u64| NewTask {
            topic: self.plan.topic.clone(),
            id: Some(number.to_string()),
            delay: Some(self.plan.delay),
            text: Some(self.plan.body.clone()),
            ..NewTask::default()
        };
        if until - from == 1 {
            self.client.schedule(task(from)).await?;
            return Ok(0);
        }
        let answers = self.client.schedule_many((from..until).map(task).collect()).await?;
        Ok(answers.iter().filter(|answer| answer.is_err()).count() as u64)
    }

    async fn consume(self: Arc<Load>) -> Result<Measured, Error> {
        let mut measured = Measured::new();
        let mut quiet_since = Instant::now();
        let reserve = Reserve {
            queues: vec![self.plan.topic.clone()],
            max: Some(self.plan.batch.max(TAKE)),
            lease: None,
            wait: Some(WAIT),
            consumer: Some("punctual-bench".into()),
        };
        while self.settled.load(Ordering::Relaxed) < self.plan.tasks {
            let deliveries = self.client.reserve(reserve.clone()).await?;
            let received = now_micros() + self.plan.skew_micros;
            if deliveries.is_empty() {
                let is_over = self.next.load(Ordering::Relaxed) >= self.plan.tasks;
                if is_over && quiet_since.elapsed() > PATIENCE + self.plan.delay.as_duration() {
                    break;
                }
                continue;
            }
            quiet_since = Instant::now();
            for delivery in &deliveries {
                measured.take(delivery, received, self.plan.skew_micros != 0);
            }
            let begun = Instant::now();
            let acknowledge = |delivery: &Delivery| Action::new(Do::Acknowledge, delivery.lease.clone());
            let answers = self.client.settle(deliveries.iter().map(acknowledge).collect()).await?;
            record(&mut measured.acknowledge, begun.elapsed().as_micros() as u64);
            let done = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
            measured.done += done;
            measured.all = self.begun.elapsed();
            self.settle(done);
        }
        Ok(measured)
    }

    fn settle(&self, tasks: u64) {
        self.settled.fetch_add(tasks, Ordering::Relaxed);
        self.bar.inc(tasks);
    }
}

impl Measured {
    /// Notes how late a delivery is. Between clocks that differ, a little early may be the reckoning.
    fn take(&mut self, delivery: &Delivery, received_micros: i64, skewed: bool) {
        let late = received_micros - server_micros(delivery.due);
        if late < 0 && !skewed {
            self.early += 1;
        }
        record(&mut self.lateness, u64::try_from(late).unwrap_or(0));
    }
}

fn record(histogram: &mut Histogram<u64>, micros: u64) {
    // A histogram that grows by itself takes any value.
    let _ = histogram.record(micros);
}
