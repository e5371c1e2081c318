//! What a node tells about its own work: above all, how late deliveries were.

use std::sync::Mutex;
use std::time::Duration;

use hdrhistogram::Histogram;
use punctual_core::Delivery;

use crate::lock::lock;

/// How a node has been working since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// How late deliveries were handed over, in microseconds after they were due; at a further
    /// attempt, after they became available again.
    pub lateness_micros: Distribution,
    /// How long the store took to make a commit durable, in microseconds.
    pub commit_micros: Distribution,
    /// How many rows each commit changed.
    pub commit_changes: Distribution,
    /// How many commits failed or were refused, in part or wholly.
    pub failed_commits: u64,
    /// How many steps the shards took that had an outcome.
    pub steps: u64,
    /// How many answers were given.
    pub answers: u64,
    /// How many consumers wait.
    pub waiting_consumers: usize,
    /// How many requests wait in the inbox of each shard.
    pub inboxes: Vec<usize>,
}

/// How the values of a measurement are spread, to three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many values there are.
    pub count: u64,
    /// Their mean.
    pub mean: u64,
    /// Half of them are at most this.
    pub p50: u64,
    /// 90 percent of them are at most this.
    pub p90: u64,
    /// 99 percent of them are at most this.
    pub p99: u64,
    /// 999 of a thousand are at most this.
    pub p999: u64,
    /// The greatest of them.
    pub max: u64,
}

impl Distribution {
    fn of(histogram: &Histogram<u64>) -> Distribution {
        if histogram.is_empty() {
            return Distribution::default();
        }
        let at = |quantile| histogram.value_at_quantile(quantile);
        Distribution {
            count: histogram.len(),
            mean: histogram.mean() as u64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max(),
        }
    }
}

/// Where the committer writes its measurements, once a round.
pub(crate) struct Meter {
    state: Mutex<Measured>,
}

struct Measured {
    lateness: Histogram<u64>,
    commit_time: Histogram<u64>,
    commit_changes: Histogram<u64>,
    failed_commits: u64,
    steps: u64,
    answers: u64,
}

/// What one round of the committer adds.
#[derive(Default)]
pub(crate) struct Round {
    pub lateness: Vec<u64>,
    pub commit: Option<(Duration, usize)>,
    pub failed: bool,
    pub steps: usize,
    pub answers: usize,
}

impl Round {
    /// Notes a delivery that is handed over at this time.
    pub fn note(&mut self, delivery: &Delivery, micros: u64) {
        let since = if delivery.attempt == 1 { delivery.due } else { delivery.fired_at };
        self.lateness.push(micros.saturating_sub(since.as_millis() * 1_000));
    }
}

impl Meter {
    pub fn new() -> Meter {
        // A day of lateness, an hour of commit, a billion changes: what lies above is counted as that.
        let histogram = |max| Histogram::new_with_max(max, 3).expect("the bounds are in order");
        let state = Measured {
            lateness: histogram(86_400_000_000),
            commit_time: histogram(3_600_000_000),
            commit_changes: histogram(1_000_000_000),
            failed_commits: 0,
            steps: 0,
            answers: 0,
        };
        Meter { state: Mutex::new(state) }
    }

    pub fn add(&self, round: &Round) {
        let mut state = lock(&self.state);
        for micros in &round.lateness {
            state.lateness.saturating_record(*micros);
        }
        if let Some((time, changes)) = round.commit {
            state.commit_time.saturating_record(time.as_micros() as u64);
            state.commit_changes.saturating_record(changes as u64);
        }
        state.failed_commits += u64::from(round.failed);
        state.steps += round.steps as u64;
        state.answers += round.answers as u64;
    }

    pub fn read(&self, waiting_consumers: usize, inboxes: Vec<usize>) -> Stats {
        let state = lock(&self.state);
        Stats {
            lateness_micros: Distribution::of(&state.lateness),
            commit_micros: Distribution::of(&state.commit_time),
            commit_changes: Distribution::of(&state.commit_changes),
            failed_commits: state.failed_commits,
            steps: state.steps,
            answers: state.answers,
            waiting_consumers,
            inboxes,
        }
    }
}
