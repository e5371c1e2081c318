//! Calls to the server: one round trip each, with a deadline, tried again on another connection as long as there is time.
//!
//! The store's callers block, and may be anybody's threads. What is asynchronous runs on threads of our own, and the caller
//! waits on a channel.

use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_core::store::StoreError;
use punctual_database::{Counters, Hardships, Pauses, Status, Threads};
use tokio::time::{sleep, timeout_at};
use tokio_postgres::Row;

use crate::error::Trouble;
use crate::pool::Pool;
use crate::statement::Query;
use crate::target::Target;

/// What our threads may be behind the deadline before the caller stops waiting for them.
const GRACE: Duration = Duration::from_millis(500);

/// What the server said to each query, or why it did not carry it out.
pub(crate) struct Answer {
    pub(crate) results: Vec<Result<Vec<Row>, Trouble>>,
    /// Whether the queries had been sent before, and may have happened then.
    pub(crate) is_repeated: bool,
}

/// The way to the server.
pub(crate) struct Courier {
    target: Arc<Target>,
    calls: Arc<Pool>,
    beats: Arc<Pool>,
    counters: Counters,
    pub(crate) hardships: Hardships,
}

impl Courier {
    pub(crate) fn new(connections: usize, target: Target) -> Arc<Courier> {
        let target = Arc::new(target);
        Arc::new(Courier {
            calls: Pool::new(Arc::clone(&target), connections),
            // Its own, so that a busy pool does not delay it.
            beats: Pool::new(Arc::clone(&target), 1),
            target,
            counters: Counters::default(),
            hardships: Hardships::default(),
        })
    }

    /// Sends queries in one go.
    pub(crate) fn call(self: &Arc<Courier>, threads: &Threads, queries: Vec<Query>) -> Result<Answer, StoreError> {
        let (courier, patience) = (Arc::clone(self), self.target.patience);
        let call = async move { courier.within(&courier.calls, &queries, patience).await };
        self.wait(threads, patience, call)
    }

    /// The same for a beat, which is given up before the others.
    pub(crate) fn beat(
        self: &Arc<Courier>,
        threads: &Threads,
        queries: Vec<Query>,
        patience: Duration,
    ) -> Result<Answer, StoreError> {
        let (courier, patience) = (Arc::clone(self), self.target.patience.min(patience));
        let call = async move { courier.within(&courier.beats, &queries, patience).await };
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

    /// What was done so far, on how many connections.
    pub(crate) fn status(&self) -> Status {
        let ((open, busy), (beats, beating)) = (self.calls.usage(), self.beats.usage());
        self.counters.status((open + beats, busy + beating))
    }

    fn wait(
        &self,
        threads: &Threads,
        patience: Duration,
        call: impl Future<Output = Result<Answer, Trouble>> + Send + 'static,
    ) -> Result<Answer, StoreError> {
        let answer = threads.begin(call).wait_until(Instant::now() + patience + GRACE);
        answer.unwrap_or_else(|| Err(Trouble::late(patience))).map_err(|trouble| {
            self.counters.count_failure();
            StoreError::Unavailable(format!("{}: {}", self.target.place(), trouble.text()))
        })
    }

    /// Tries until the server has answered, or says what no other attempt would change, or time is up.
    async fn within(&self, pool: &Arc<Pool>, queries: &[Query], patience: Duration) -> Result<Answer, Trouble> {
        let deadline = Instant::now() + patience;
        let mut pauses = Pauses::default();
        let mut is_sent = false;
        let mut last: Option<Trouble> = None;
        loop {
            let is_repeated = is_sent;
            let attempt = timeout_at(deadline.into(), self.once(pool, queries, &mut is_sent)).await;
            let trouble = match attempt {
                Ok(Ok(results)) => return Ok(Answer { results, is_repeated }),
                Ok(Err(trouble)) => trouble,
                Err(_) => return Err(last.unwrap_or_else(|| Trouble::late(patience))),
            };
            trouble.hardship().into_iter().for_each(|hardship| self.hardships.note(hardship));
            let is_hopeless = matches!(trouble, Trouble::Refused(_) | Trouble::NoRoom(_));
            let Some(pause) = pauses.next(deadline).filter(|_| !is_hopeless) else { return Err(trouble) };
            last = Some(trouble);
            self.counters.count_retry();
            sleep(pause).await;
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
        self.counters.count_round_trip();
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
