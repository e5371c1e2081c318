//! Connections at rest, and what happens to them when the server was away.
//!
//! Invariant: a connection that rests has no transaction open, but for the one of a pool that sees one moment. One that failed in the middle of something either rolls it
//! back or is closed, and the server rolls back what a closed connection leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::store::StoreError;
use punctual_database::{Counters, Pauses, Threads};

use crate::answer::Answer;
use crate::connection::{Connection, Stopped};
use crate::login::{Login, SERVER_WAITS};
use crate::sql::Sql;
use crate::trouble::Trouble;

/// From here on a connection sees one moment.
const SNAPSHOT: &str = ";SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;\
                        START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

/// We close a connection that rests before the server does.
const RESTS: Duration = Duration::from_secs(40);

/// Connections to one server, at most so many at a time.
pub(crate) struct Pool {
    threads: Arc<Threads>,
    login: Login,
    limit: usize,
    patience: Duration,
    held: Mutex<Held>,
    freed: Condvar,
    /// Whether the connection sees the tables as they are at one moment. Only one can, and here is whether it was made.
    moment: Option<AtomicBool>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Held {
    resting: Vec<(Connection, Instant)>,
    busy: usize,
}

impl Pool {
    pub(crate) fn new(threads: Arc<Threads>, login: Login, limit: usize, patience: Duration) -> Pool {
        let (held, freed, counters) = Default::default();
        Pool { threads, login, limit, patience, held, freed, moment: None, counters }
    }

    /// Another one, to the same server and counted with this one.
    pub(crate) fn beside(&self, limit: usize) -> Pool {
        let (held, freed) = Default::default();
        let (threads, counters) = (Arc::clone(&self.threads), Arc::clone(&self.counters));
        let (login, patience) = (self.login.clone(), self.patience);
        Pool { threads, login, limit, patience, held, freed, moment: None, counters }
    }

    /// Another one, for work that takes long.
    pub(crate) fn patient(&self, patience: Duration) -> Pool {
        Pool { patience, ..self.beside(1) }
    }

    /// Another one, which sees the tables as they are at one moment.
    pub(crate) fn frozen(&self) -> Pool {
        Pool { moment: Some(AtomicBool::new(false)), ..self.beside(1) }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn login(&self) -> &Login {
        &self.login
    }

    /// Until when a call that begins now may take.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// How many connections there are, and how many of them are busy.
    pub(crate) fn size(&self) -> (usize, usize) {
        let held = self.held();
        (held.busy + held.resting.len(), held.busy)
    }

    /// A connection, as soon as one is free.
    pub(crate) fn take(&self, deadline: Instant) -> Result<Line<'_>, Trouble> {
        let mut held = self.held();
        while held.busy >= self.limit {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Trouble::Away("no connection was free in time".to_owned()));
            }
            held = self.freed.wait_timeout(held, left).expect("nothing panics under it").0;
        }
        held.resting.retain(|(_, since)| since.elapsed() < RESTS);
        held.busy += 1;
        let rested = held.resting.pop().map(|(connection, _)| connection);
        drop(held);
        // From here on the line gives back what was taken.
        let mut line = Line { pool: self, is_new: rested.is_none(), connection: rested, is_soiled: false };
        if line.is_new {
            line.connection = Some(self.connect(deadline)?);
        }
        Ok(line)
    }

    /// Does something until it succeeds, fails for good or the time is over. It has to be harmless when done twice.
    pub(crate) fn retry<T>(
        &self,
        attempt: impl FnMut(&mut Line<'_>, Instant) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        self.retry_for(self.patience, attempt)
    }

    /// The same for no longer than this.
    pub(crate) fn retry_for<T>(
        &self,
        patience: Duration,
        mut attempt: impl FnMut(&mut Line<'_>, Instant) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + self.patience.min(patience);
        let mut pauses = Pauses::default();
        loop {
            let done = self.take(deadline).and_then(|mut line| {
                let until = line.deadline(deadline);
                attempt(&mut line, until)
            });
            let trouble = match done {
                Ok(done) => return Ok(done),
                Err(trouble) => trouble,
            };
            let Some(pause) = pauses.next(deadline).filter(|_| trouble.passes()) else {
                self.counters.count_failure();
                return Err(StoreError::Unavailable(format!("{}: {trouble}", self.login.place)));
            };
            self.counters.count_retry();
            thread::sleep(pause);
        }
    }

    fn connect(&self, deadline: Instant) -> Result<Connection, Trouble> {
        if self.moment.as_ref().is_some_and(|is_seen| is_seen.swap(true, Ordering::Relaxed)) {
            return Err(Trouble::Foreign("the connection that saw one moment is lost".to_owned()));
        }
        let mut connection = Connection::open(&self.threads, &self.login, deadline)?;
        self.counters.count_round_trip();
        let moment = self.moment.as_ref().map_or("", |_| SNAPSHOT);
        let text = format!("{}{moment}", session(self.patience));
        connection.ask(text.into_bytes(), deadline).map_err(|stopped| stopped.why)?;
        Ok(connection)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nothing panics under it")
    }
}

/// What every connection begins with, so that nothing depends on how the server is set up. What stands behind `M!` is
/// for MariaDB alone: there what the caller has given up does not go on for ever.
fn session(patience: Duration) -> String {
    let (lock_wait, at_most) = ((patience.as_secs() / 2).max(1), 2.0 * patience.as_secs_f64());
    format!(
        "SET SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',time_zone='+00:00',autocommit=1,\
         unique_checks=1,sql_safe_updates=0,sql_select_limit=DEFAULT,completion_type='NO_CHAIN',\
         innodb_lock_wait_timeout={lock_wait},wait_timeout={}/*M! ,max_statement_time={at_most} */;\
         SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
        SERVER_WAITS.as_secs()
    )
}

/// A connection that is in use.
pub(crate) struct Line<'p> {
    pool: &'p Pool,
    connection: Option<Connection>,
    is_new: bool,
    /// A statement has failed, maybe in a transaction.
    is_soiled: bool,
}

impl Line<'_> {
    /// Has statements carried out in one round trip.
    pub(crate) fn ask(&mut self, sql: &Sql, deadline: Instant) -> Result<Vec<Answer>, Stopped> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(Stopped { after: 0, why: Trouble::Away("the connection is closed".to_owned()) });
        };
        self.pool.counters.count_round_trip();
        let asked = connection.ask(sql.as_bytes().to_vec(), deadline);
        if let Err(stopped) = &asked {
            self.is_soiled = true;
            let is_broken = !matches!(stopped.why, Trouble::Server { .. });
            if is_broken || stopped.why.is_read_only() {
                self.connection = None;
                // The others lead to the same server, and will hardly fare better.
                self.pool.held().resting.clear();
            }
        }
        asked
    }

    /// Rolls back what failed, and asks for something more in the same round trip.
    pub(crate) fn roll_back_and_ask(&mut self, sql: &Sql, deadline: Instant) -> Result<Vec<Answer>, Trouble> {
        let mut text = Sql::from("ROLLBACK");
        text.then(sql);
        let mut answers = self.ask(&text, deadline).map_err(|stopped| stopped.why)?;
        self.is_soiled = false;
        answers.remove(0);
        Ok(answers)
    }

    /// Until when to wait for this connection. One that has rested may be dead without a word, so it gets half of the time.
    fn deadline(&self, deadline: Instant) -> Instant {
        let left = deadline.saturating_duration_since(Instant::now());
        if self.is_new { deadline } else { deadline - left / 2 }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut held = self.pool.held();
        held.busy -= 1;
        if let Some(connection) = self.connection.take().filter(|_| !self.is_soiled) {
            held.resting.push((connection, Instant::now()));
        }
        drop(held);
        self.pool.freed.notify_one();
    }
}
