//! How many puts, or whole lives, a second: each connection keeps a number of commands in flight, and every answer
//! brings forth the next command. With one in flight that is one at a time; with many, since answers come in the order
//! of the commands, it is a run of puts, then a run of reserves, then a run of deletes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::connection::{Census, Connection};
use super::contestants::Kind;
use crate::arena::crew::Crew;
use crate::arena::rate::{Rate, WARMING};
use crate::arena::running::Running;

/// How many commands a connection that pipelines keeps in flight.
pub const WINDOW: usize = 1_000;

#[derive(Clone, Copy)]
pub struct Flow {
    pub connections: usize,
    pub in_flight: usize,
    pub work: Work,
}

#[derive(Clone, Copy)]
pub enum Work {
    /// Puts that are far from due.
    Puts,
    /// Put, reserve, delete.
    Lives,
}

impl Flow {
    /// Until a time or a number is reached, after warming up; what is there afterwards is counted.
    pub async fn rate(self, running: &Running<Kind>, lasting: Duration, at_most: u64) -> io::Result<Rate> {
        let connections = running.connect(self.connections).await?;
        let (warming, connections) = self.through(connections, WARMING.min(lasting), at_most / 10).await?;
        let work = async {
            let (done, connections) = self.through(connections, lasting, at_most).await?;
            Ok((done, (done, connections)))
        };
        let (rate, (done, mut connections)) = Rate::of(running, work).await?;
        let delayed = match self.work {
            Work::Puts => warming + done,
            Work::Lives => 0,
        };
        connections[0].holds(&Census { delayed, ..Census::default() }).await?;
        Ok(rate)
    }

    /// Works over all connections until a time or a number is reached; gives how much was done, and the connections back.
    pub async fn through(
        self,
        connections: Vec<Connection>,
        lasting: Duration,
        at_most: u64,
    ) -> io::Result<(u64, Vec<Connection>)> {
        let quota = Arc::new(Quota { begun: AtomicU64::new(0), at_most, until: Instant::now().checked_add(lasting) });
        let mut crew = Crew::new();
        for connection in connections {
            crew.add(self.over(connection, quota.clone()));
        }
        let (done, connections): (Vec<u64>, _) = crew.finish().await?.into_iter().unzip();
        Ok((done.into_iter().sum(), connections))
    }

    async fn over(self, mut connection: Connection, quota: Arc<Quota>) -> io::Result<(u64, Connection)> {
        let mut done = 0;
        connection.enough = self.in_flight / 2;
        for _ in 0..self.in_flight {
            self.begin(&mut connection, &quota);
        }
        while connection.in_flight > 0 {
            match (connection.next().await?, self.work) {
                (Answer::Inserted, Work::Lives) => connection.reserve(),
                (Answer::Reserved(job, _), Work::Lives) => connection.delete(job),
                (Answer::Inserted, Work::Puts) | (Answer::Deleted, Work::Lives) => {
                    done += 1;
                    self.begin(&mut connection, &quota);
                }
                (other, _) => return Err(io::Error::other(format!("{other:?} out of turn"))),
            }
        }
        connection.enough = 0;
        Ok((done, connection))
    }

    fn begin(self, connection: &mut Connection, quota: &Quota) {
        if !quota.takes_one() {
            return;
        }
        match self.work {
            Work::Puts => connection.put_far(),
            Work::Lives => drop(connection.put(0)),
        }
    }
}

/// What all connections may begin together.
struct Quota {
    begun: AtomicU64,
    at_most: u64,
    until: Option<Instant>,
}

impl Quota {
    fn takes_one(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until) && self.begun.fetch_add(1, Relaxed) < self.at_most
    }
}
