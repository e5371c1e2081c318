//! A worker: takes what is due, calls handlers, and tells the server what became of it.
//!
//! ```text
//!            reserve                     free place                    done, failed
//!  server ───────────► backlog (heap) ───────────────► handler tasks ───────────────► outbox ──► server
//!                         │                                 │               extend       ▲
//!                         └──────────── held leases ────────┴────────────────────────────┘
//! ```
//! `run.rs` is the loop over all of this, `leave.rs` its end. `backlog.rs`, `held.rs`, `outbox.rs` and `pace.rs` hold
//! one decision each and know neither network nor clock.

mod backlog;
mod failure;
mod handler;
mod held;
mod job;
mod leave;
mod outbox;
mod pace;
mod run;

use std::future::Future;
use std::time::Duration;

use punctual_wire::{Delivery, Span};
use serde::de::DeserializeOwned;

pub use failure::Failure;
pub use job::Job;

use crate::client::Client;
use crate::error::Error;
use handler::Handlers;
use run::Run;

/// A consumer may name so many queues: the server's limit.
const QUEUES: usize = 64;

/// Works on deliveries of queues until it is told to stop.
///
/// ```no_run
/// use punctual_client::{Client, Failure, Job, Worker};
///
/// # async fn example() -> Result<(), punctual_client::Error> {
/// let client = Client::new("http://127.0.0.1:7400")?;
/// let worker = Worker::builder(client)
///     .handle("order-unpaid", |job: Job| async move {
///         println!("closing {}", job.id);
///         Ok(())
///     })
///     .concurrency(16)
///     .build()?;
/// let summary = worker.run(async { /* until a signal comes */ }).await?;
/// println!("{summary:?}");
/// # Ok(())
/// # }
/// ```
///
/// # What it promises
/// - A delivery is acknowledged after its handler succeeded, not before. So a handler runs **at least** once for each
///   task: a process that dies between the work and the acknowledgement leaves it to be done again.
/// - Leases are extended at a third of their time, for as long as a handler runs or a delivery waits here. If one is
///   lost nevertheless, the handler is told ([`Job::lease_lost`]) and its outcome is not sent.
/// - A handler that panics has failed; the worker goes on.
/// - While the server cannot be reached or is overloaded the worker waits and tries again, for as long as it
///   takes. Acknowledgements are repeated until their leases end.
/// - Handlers run as tasks of the runtime, so they must not block its threads; leases could not be extended either.
/// - Whoever drops the future of [`run`](Worker::run) stops all at once, as a crash would.
#[derive(Debug)]
pub struct Worker {
    client: Client,
    handlers: Handlers,
    settings: Settings,
}

/// A worker in the making.
#[derive(Debug)]
pub struct WorkerBuilder {
    client: Client,
    handlers: Handlers,
    settings: Settings,
    prefetch: Option<usize>,
}

/// How a worker works.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    concurrency: usize,
    prefetch: usize,
    /// What is asked for; without, as long as the task or its queue gives.
    lease: Option<Duration>,
    wait: Duration,
    grace: Duration,
    consumer: String,
}

/// How long a lease lasts if nothing says: what a queue gives unless it is told otherwise.
pub(crate) const USUAL_LEASE: Duration = Duration::from_secs(30);

impl Settings {
    /// How long the lease on a delivery was granted for. Servers of old do not say.
    fn lease_of(&self, delivery: &Delivery) -> Duration {
        match delivery.lease_time {
            Span(0) => self.lease.unwrap_or(USUAL_LEASE),
            time => time.as_duration(),
        }
    }
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The handler succeeded, and the server knows.
    pub done: u64,
    /// The handler failed or panicked, and the delivery was given back to be tried again.
    pub failed: u64,
    /// So many of the failed ones panicked.
    pub panicked: u64,
    /// The handler gave it up, and it is a dead letter.
    pub rejected: u64,
    /// The lease was lost before the server was told what became of it.
    pub lost: u64,
    /// At the end: fetched and not begun, or not finished within the grace period, and given back at once.
    pub given_back: u64,
    /// At the end: a handler that would not stop, or an outcome that the server could not be told. These are
    /// handed out again when their leases end.
    pub left: u64,
}

impl Worker {
    /// A worker that takes deliveries from this server.
    pub fn builder(client: Client) -> WorkerBuilder {
        let settings = Settings {
            concurrency: 16,
            prefetch: 0,
            lease: None,
            wait: Duration::from_secs(20),
            grace: Duration::from_secs(30),
            consumer: default_consumer(),
        };
        WorkerBuilder { client, handlers: Handlers::default(), settings, prefetch: None }
    }

    /// Works until `shutdown` comes, and then leaves in order: it stops fetching, gives back what was not begun, waits
    /// for running handlers up to the grace period, and tells the server all that is to be told.
    ///
    /// That the server cannot be reached is no reason to end. An error is one that waiting does not mend, such as a
    /// token that is not accepted; it also comes after leaving in order.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Summary, Error> {
        Run::new(self.client, self.handlers, self.settings).until(shutdown).await
    }
}

impl WorkerBuilder {
    /// What to do with deliveries of a queue. A topic feeds the queue of its own name unless told otherwise.
    pub fn handle<H, F>(mut self, queue: impl Into<String>, handler: H) -> WorkerBuilder
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handlers.insert(queue.into(), handler);
        self
    }

    /// The same for bodies of one type, read from JSON. A body that cannot be read as such is rejected.
    pub fn handle_json<T, H, F>(mut self, queue: impl Into<String>, handler: H) -> WorkerBuilder
    where
        T: DeserializeOwned + Send + 'static,
        H: Fn(T, Job) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handlers.insert_json(queue.into(), handler);
        self
    }

    /// How many handlers run at the same time; 16 unless told otherwise.
    pub fn concurrency(mut self, handlers: usize) -> WorkerBuilder {
        self.settings.concurrency = handlers;
        self
    }

    /// How many deliveries are fetched ahead at most; as many as handlers run unless told otherwise. Slow work
    /// is fetched ahead less or not at all, so that it does not wait here while another worker has time.
    pub fn prefetch(mut self, deliveries: usize) -> WorkerBuilder {
        self.prefetch = Some(deliveries);
        self
    }

    /// How long a lease lasts; unless told otherwise as long as the task says or, if it does not, its queue. Since leases
    /// are extended, this is not how long a handler may take but how soon somebody else takes over if this process dies.
    pub fn lease(mut self, lease: Duration) -> WorkerBuilder {
        self.settings.lease = Some(lease);
        self
    }

    /// The name under which deliveries are held; from the machine and the process unless told otherwise.
    pub fn consumer(mut self, name: impl Into<String>) -> WorkerBuilder {
        self.settings.consumer = name.into();
        self
    }

    /// How long one request waits for deliveries; 20 seconds unless told otherwise. What comes due meanwhile is
    /// handed over at once.
    pub fn wait(mut self, wait: Duration) -> WorkerBuilder {
        self.settings.wait = wait;
        self
    }

    /// How long running handlers may go on after the shutdown came; 30 seconds unless told otherwise.
    pub fn grace(mut self, grace: Duration) -> WorkerBuilder {
        self.settings.grace = grace;
        self
    }

    /// The worker, unless it could not work so.
    pub fn build(self) -> Result<Worker, Error> {
        let WorkerBuilder { client, handlers, mut settings, prefetch } = self;
        let queues = handlers.queues().len();
        let wrong = |reason: &str| Err(Error::BadUse { reason: reason.into() });
        if queues == 0 || queues > QUEUES {
            return wrong("a worker needs 1 to 64 queues: add them with `handle`");
        }
        if settings.concurrency == 0 {
            return wrong("the concurrency is 0: a worker must be able to run at least one handler");
        }
        if settings.lease.is_some_and(|lease| lease < Duration::from_millis(100)) {
            return wrong("the lease is too short to be extended in time: use 100 ms or more");
        }
        if settings.wait < Duration::from_millis(100) {
            return wrong("the wait is so short that the worker would keep the server busy: use 100 ms or more");
        }
        settings.prefetch = prefetch.unwrap_or(settings.concurrency);
        Ok(Worker { client, handlers, settings })
    }
}

/// The machine and the process, as far as they are known.
fn default_consumer() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(200).collect();
    format!("{}-{}", if host.is_empty() { "worker" } else { &host }, std::process::id())
}
