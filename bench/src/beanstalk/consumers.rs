//! Consumers that wait in reserve, and send each delete together with the next reserve.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::answer::Answer;
use super::connection::{Connection, MICROS};
use super::contestants::Kind;
use crate::arena::crew::Crew;
use crate::arena::running::Running;
use crate::arena::tally::Tally;
use crate::arena::task::now_us;

const CONSUMERS: usize = 16;

/// Punctual counts in whole milliseconds and begins with the one in which the put came.
const EARLY_AT_MOST_US: u64 = 1_000;

/// What the consumers have seen.
pub struct Consumers {
    pub tally: Arc<Tally>,
    first_us: AtomicU64,
    last_us: AtomicU64,
}

impl Consumers {
    pub fn of(jobs: u64) -> Arc<Consumers> {
        let (first_us, last_us) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Arc::new(Consumers { tally: Tally::new(jobs), first_us, last_us })
    }

    pub async fn attend(self: &Arc<Self>, running: &Running<Kind>) -> io::Result<Crew<()>> {
        let mut crew = Crew::new();
        for connection in running.connect(CONSUMERS).await? {
            crew.add(self.clone().consume(connection));
        }
        Ok(crew)
    }

    /// Who does not get through in time is too slow if jobs still come; if not, they are lost, and that is an error.
    pub async fn all_deleted(&self, crew: &mut Crew<()>, at_most: Duration) -> io::Result<()> {
        let ended = self.tally.all_finished(crew, at_most).await;
        let quiet_us = now_us().saturating_sub(self.last_us.load(Relaxed));
        match ended {
            Err(error) if quiet_us > 5 * MICROS => Err(io::Error::other(format!("{error}, and none comes any more"))),
            other => other,
        }
    }

    /// When the first and the last were received.
    pub fn received_us(&self) -> (u64, u64) {
        (self.first_us.load(Relaxed), self.last_us.load(Relaxed))
    }

    /// Takes and deletes for as long as it is let.
    async fn consume(self: Arc<Self>, mut connection: Connection) -> io::Result<()> {
        connection.reserve();
        loop {
            match connection.next().await? {
                Answer::Reserved(job, body) => {
                    self.came(connection.due_us(body)?)?;
                    connection.delete(job);
                    connection.reserve();
                }
                Answer::Deleted => self.tally.finished(1),
                _ => return Err(out_of_turn()),
            }
        }
    }

    fn came(&self, due_us: u64) -> io::Result<()> {
        let now = now_us();
        self.first_us.fetch_min(now, Relaxed);
        self.last_us.fetch_max(now, Relaxed);
        if now + EARLY_AT_MOST_US < due_us {
            return Err(io::Error::other(format!("a job came {} µs early", due_us - now)));
        }
        self.tally.came([Ok(now.saturating_sub(due_us))])
    }
}

pub fn out_of_turn() -> io::Error {
    io::Error::other("an answer came out of turn")
}
