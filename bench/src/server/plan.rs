//! How large the run is, who takes part and in what: from the command line, then from the environment.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use super::contestants::Kind;

pub struct Plan {
    /// Where each server's directory is made, and removed afterwards.
    pub directory: PathBuf,
    pub kinds: Vec<Kind>,
    lines: Vec<String>,
    pub size: Size,
}

/// How much of everything.
#[derive(Clone, Copy)]
pub struct Size {
    /// How often the short measurements are repeated, contestants taking turns; the median counts.
    pub rounds: usize,
    /// For how long schedules are counted, and at most how many in batches.
    pub scheduling: Duration,
    pub in_batches: u64,
    /// For how long the steady load lasts.
    pub steady: Duration,
    pub herd: u64,
    /// How long before it is due the herd begins to be scheduled.
    pub herd_ahead: Duration,
    pub pending: u64,
}

const FULL: Size = Size {
    rounds: 3,
    scheduling: Duration::from_secs(5),
    in_batches: 1_000_000,
    steady: Duration::from_secs(20),
    herd: 100_000,
    herd_ahead: Duration::from_secs(12),
    pending: 1_000_000,
};

const SMALL: Size = Size {
    rounds: 1,
    scheduling: Duration::from_secs(1),
    in_batches: 100_000,
    steady: Duration::from_secs(4),
    herd: 10_000,
    herd_ahead: Duration::from_secs(4),
    pending: 50_000,
};

const LINES: [&str; 5] = ["single", "batches", "lateness", "herd", "pending"];

pub const USAGE: &str = "  --only a,b      of punctual, redis (both), redis-everysec, redis-always, postgres
  --lines a,b     of single, batches, lateness, herd, pending
  --small         three minutes instead of a quarter of an hour, to see that it works
  PUNCTUAL_BIN names the punctual to measure; else the one of the root's release build
  PUNCTUAL_BENCH_DIR says where the servers keep their data; else in the system's directory for temporary files";

impl Plan {
    pub fn new(options: &[String]) -> Result<Plan, String> {
        let mut plan = Plan {
            directory: env::var_os("PUNCTUAL_BENCH_DIR").map_or_else(env::temp_dir, PathBuf::from),
            kinds: Kind::ALL.to_vec(),
            lines: LINES.map(str::to_owned).to_vec(),
            size: FULL,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut words = || -> Result<Vec<String>, String> {
                let value = options.next().ok_or(format!("{option} wants a value"))?;
                Ok(value.split(',').map(str::to_owned).collect())
            };
            match option.as_str() {
                "--small" => plan.size = SMALL,
                "--only" => plan.kinds = kinds(&words()?)?,
                "--lines" => plan.lines = words()?,
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        match plan.lines.iter().find(|line| !LINES.contains(&line.as_str())) {
            Some(stranger) => Err(format!("there is no line {stranger}")),
            None => Ok(plan),
        }
    }

    pub fn measures(&self, line: &str) -> bool {
        self.lines.iter().any(|chosen| chosen == line)
    }
}

/// In the order of the table, whatever the order of the names.
fn kinds(names: &[String]) -> Result<Vec<Kind>, String> {
    let goes_by = |kind: &Kind, name: &str| kind.name() == name || kind.name().split('-').next() == Some(name);
    if let Some(stranger) = names.iter().find(|name| !Kind::ALL.iter().any(|kind| goes_by(kind, name))) {
        return Err(format!("there is no contestant {stranger}"));
    }
    Ok(Kind::ALL.into_iter().filter(|kind| names.iter().any(|name| goes_by(kind, name))).collect())
}
