//! The work, the same for all who are measured through connections: schedules of tasks that are due in days, and whole
//! lives of tasks that are due at once.

use std::io;
use std::time::{Duration, Instant};

use super::contestants::Client;
use super::measured::Done;
use crate::arena::crew::Crew;
use crate::arena::task::{far_due, now_ms};

/// How many tasks are in one call where they come in batches, and how many callers there are then.
pub const BATCH: usize = 256;
pub const CALLERS: usize = 8;
/// How many callers there are where each schedules one task at a time.
pub const IN_FLIGHT: usize = 64;

/// When callers stop.
#[derive(Clone, Copy)]
pub struct Until {
    pub time: Duration,
    /// Each makes so many calls at most.
    pub calls: u64,
}

impl Until {
    pub fn time(time: Duration) -> Until {
        Until { time, calls: u64::MAX }
    }

    /// Enough calls of a batch each that there are at least so many tasks.
    pub fn tasks(tasks: u64) -> Until {
        Until { time: Duration::MAX, calls: tasks.div_ceil((BATCH * CALLERS) as u64) }
    }
}

/// What a caller does over and over.
#[derive(Clone, Copy)]
pub enum Work {
    /// Schedules so many tasks in one call, none due while it is measured. A call's time is until it is confirmed.
    Schedules(usize),
    /// Schedules a batch, takes as many and acknowledges them; what it takes may be another's. A call's time is that of
    /// the whole round.
    Lives,
}

impl Work {
    /// Has all clients do this until the end.
    pub async fn run(self, clients: Vec<Client>, until: Until) -> io::Result<Done> {
        let mut crew = Crew::new();
        let started = Instant::now();
        for mut client in clients {
            crew.add(async move {
                let mut done = Done::nothing();
                let mut calls = 0;
                while started.elapsed() < until.time && calls < until.calls {
                    let began = Instant::now();
                    let count = self.once(&mut client).await?;
                    done.add(count, began.elapsed())?;
                    calls += 1;
                }
                Ok(done)
            });
        }
        let mut all = Done::nothing();
        for done in crew.finish().await? {
            all.join(&done)?;
        }
        Ok(all)
    }

    async fn once(self, client: &mut Client) -> io::Result<usize> {
        match self {
            Work::Schedules(together) => {
                let due: Vec<u64> = (0..together).map(|_| far_due()).collect();
                client.schedule(&due).await?;
                Ok(together)
            }
            Work::Lives => {
                client.schedule(&[now_ms(); BATCH]).await?;
                let mut taken = 0;
                while taken < BATCH {
                    taken += client.take(BATCH - taken).await?.len();
                    client.acknowledge().await?;
                }
                Ok(BATCH)
            }
        }
    }
}
