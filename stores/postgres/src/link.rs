//! Calls to the server: one round trip each, with a deadline, tried again on another connection as long as there is time.
//!
//! The store's callers block, and may be anybody's threads. What is asynchronous runs on threads of our own, and the caller
//! waits on a channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use punctual_core::store::StoreError;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::Row;

use crate::config::{Config, Target};
use crate::error::{OpenError, Trouble};
use crate::hardship::Hardships;
use crate::pool::Pool;
use crate::statement::Query;

/// The pause before the second attempt; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// A beat that comes late is worth nothing, so it is given up early.
const BEAT_PATIENCE: Duration = Duration::from_secs(2);
/// What our threads may be behind the deadline before the caller stops waiting for them.
const GRACE: Duration = Duration::from_millis(500);

/// What the server said to each query, or why it did not carry it out.
pub(crate) struct Answer {
    pub(crate) results: Vec<Result<Vec<Row>, Trouble>>,
    /// Whether the queries had been sent before, and may have happened then.
    pub(crate) is_repeated: bool,
}

/// The way to the server.
pub(crate) struct Link {
    target: Arc<Target>,
    calls: Arc<Pool>,
    beats: Arc<Pool>,
    round_trips: AtomicU64,
    retries: AtomicU64,
    failures: AtomicU64,
    pub(crate) hardships: Hardships,
}

impl Link {
    pub(crate) fn new(config: &Config, target: Target) -> Arc<Link> {
        let target = Arc::new(target);
        Arc::new(Link {
            calls: Pool::new(Arc::clone(&target), config.connections),
            // Its own, so that a busy pool does not delay it.
            beats: Pool::new(Arc::clone(&target), 1),
            target,
            round_trips: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            hardships: Hardships::default(),
        })
    }

    /// Sends queries in one go.
    pub(crate) fn call(self: &Arc<Link>, threads: &Threads, queries: Vec<Query>) -> Result<Answer, StoreError> {
        let (link, patience) = (Arc::clone(self), self.target.patience);
        let call = async move { link.within(&link.calls, &queries, patience).await };
        self.wait(threads, patience, call)
    }

    /// The same for a beat.
    pub(crate) fn beat(self: &Arc<Link>, threads: &Threads, queries: Vec<Query>) -> Result<Answer, StoreError> {
        let (link, patience) = (Arc::clone(self), self.target.patience.min(BEAT_PATIENCE));
        let call = async move { link.within(&link.beats, &queries, patience).await };
        self.wait(threads, patience, call)
    }

    /// Sends queries in one go, from one of our own threads.
    pub(crate) async fn ask(&self, queries: &[Query]) -> Result<Answer, Trouble> {
        self.within(&self.calls, queries, self.target.patience).await
    }

    /// Where the server is and how it is worked with.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// How many round trips, attempts again and failures there were.
    pub(crate) fn counts(&self) -> [u64; 3] {
        [&self.round_trips, &self.retries, &self.failures].map(|count| count.load(Ordering::Relaxed))
    }

    /// How many connections there are, and how many are in use.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let ((open, busy), (beats, beating)) = (self.calls.usage(), self.beats.usage());
        (open + beats, busy + beating)
    }

    fn wait(
        &self,
        threads: &Threads,
        patience: Duration,
        call: impl Future<Output = Result<Answer, Trouble>> + Send + 'static,
    ) -> Result<Answer, StoreError> {
        let (send, receive) = mpsc::channel();
        threads.handle().spawn(async move {
            // Who does not wait any more has told its caller so.
            let _ = send.send(call.await);
        });
        let answer = receive.recv_timeout(patience + GRACE);
        let answer = answer.unwrap_or_else(|_| Err(Trouble::Away(no_answer(patience))));
        answer.map_err(|trouble| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            StoreError::Unavailable(format!("{}: {}", self.target.place(), trouble.text()))
        })
    }

    /// Tries until the server has answered, or says what no other attempt would change, or time is up.
    async fn within(&self, pool: &Arc<Pool>, queries: &[Query], patience: Duration) -> Result<Answer, Trouble> {
        let deadline = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        let mut is_sent = false;
        let mut last: Option<Trouble> = None;
        loop {
            let is_repeated = is_sent;
            let attempt = timeout_at(deadline, self.once(pool, queries, &mut is_sent)).await;
            let trouble = match attempt {
                Ok(Ok(results)) => return Ok(Answer { results, is_repeated }),
                Ok(Err(trouble)) => trouble,
                Err(_) => return Err(last.unwrap_or_else(|| Trouble::Away(no_answer(patience)))),
            };
            self.hardships.note(&trouble);
            let is_hopeless = matches!(trouble, Trouble::Refused(_) | Trouble::NoRoom(_));
            if is_hopeless || Instant::now() + pause >= deadline {
                return Err(trouble);
            }
            last = Some(trouble);
            self.retries.fetch_add(1, Ordering::Relaxed);
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn once(
        &self,
        pool: &Arc<Pool>,
        queries: &[Query],
        is_sent: &mut bool,
    ) -> Result<Vec<Result<Vec<Row>, Trouble>>, Trouble> {
        let taken = pool.take().await?;
        *is_sent = true;
        let results = taken.session().ask(queries).await;
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let results: Vec<_> = results.into_iter().map(|result| result.map_err(|error| Trouble::of(&error))).collect();
        let troubles = || results.iter().filter_map(|result| result.as_ref().err());
        if troubles().all(Trouble::spares_connection) {
            taken.keep();
        }
        // What rows stand in the way of is for the caller to judge; all else is trouble of the call.
        match troubles().find(|trouble| !matches!(trouble, Trouble::Astray(_))) {
            Some(trouble) => Err(trouble.clone()),
            None => Ok(results),
        }
    }
}

fn no_answer(patience: Duration) -> String {
    format!("no answer within {patience:?}")
}

/// The threads on which the asynchronous work is done.
pub(crate) struct Threads(Option<Runtime>);

impl Threads {
    pub(crate) fn start() -> Result<Threads, OpenError> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).thread_name("postgres").enable_io().enable_time();
        let runtime = builder.build().map_err(|error| OpenError::Away(format!("no thread can be started: {error}")))?;
        Ok(Threads(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("they run until they are dropped").handle()
    }

    /// Runs something to its end, while the caller waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (send, receive) = mpsc::channel();
        self.handle().spawn(async move {
            let _ = send.send(work.await);
        });
        receive.recv().unwrap_or_else(|_| Err(Trouble::Refused("the work was broken off".to_owned())))
    }

    /// The same, for no longer than this.
    pub(crate) fn within<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    ) -> Result<T, Trouble> {
        let bounded = async move { timeout(patience, work).await };
        self.run(async move { bounded.await.unwrap_or_else(|_| Err(Trouble::Away(no_answer(patience)))) })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // The last handle may be dropped by a thread that must not block.
            runtime.shutdown_background();
        }
    }
}
