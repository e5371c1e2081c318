//! How much of a work is done a second, and what it costs whom.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use super::Contestant;
use super::machine;
use super::running::Running;

/// Not counted: the first requests find cold caches and, in PostgreSQL, statements without a plan.
pub const WARMING: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
pub struct Rate {
    pub a_second: f64,
    pub server_cores: f64,
    pub load_cores: f64,
}

impl Rate {
    /// Of a work that says how much it did; gives what else the work gives.
    pub async fn of<K: Contestant, T>(
        running: &Running<K>,
        work: impl Future<Output = io::Result<(u64, T)>>,
    ) -> io::Result<(Rate, T)> {
        let cpu = (running.cpu(), machine::own_cpu());
        let started = Instant::now();
        let (done, result) = work.await?;
        let took = started.elapsed().as_secs_f64();
        let rate = Rate {
            a_second: done as f64 / took,
            server_cores: running.cpu().saturating_sub(cpu.0).as_secs_f64() / took,
            load_cores: (machine::own_cpu() - cpu.1).as_secs_f64() / took,
        };
        Ok((rate, result))
    }
}
