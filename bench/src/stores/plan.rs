//! How large the comparison is, and who takes part.

use std::time::Duration;

use super::contestants::Contestant;
use super::engine::Kind;

#[derive(Clone, Copy)]
pub struct Size {
    /// How long each rate is measured.
    pub lasting: Duration,
    /// The tasks that a peer with a runner of its own gets for each line.
    pub script: u64,
    /// How long the steady load lasts.
    pub steady: Duration,
    /// With how many pending tasks a node is started.
    pub pending: u64,
    /// Over how many lives the tables are watched.
    pub watched: u64,
}

const FULL: Size = Size {
    lasting: Duration::from_secs(8),
    script: 30_000,
    steady: Duration::from_secs(15),
    pending: 1_000_000,
    watched: 1_000_000,
};

const SMALL: Size = Size {
    lasting: Duration::from_millis(600),
    script: 1_000,
    steady: Duration::from_secs(3),
    pending: 5_000,
    watched: 5_000,
};

pub struct Plan {
    pub size: Size,
    only: Vec<String>,
}

pub const USAGE: &str =
    "  --only a,b      of postgres, mariadb, redis (both), redis-always, redis-everysec, or one contestant as
                  postgres/pgmq: punctual, raw, pgmq, table, graphile-worker, pg-boss, sorted-set, bullmq
  --small         two minutes instead of a quarter of an hour, to see that it works
  The peers from npm are installed once, in the system's directory for temporary files";

impl Plan {
    pub fn new(options: &[String]) -> Result<Plan, String> {
        let mut plan = Plan { size: FULL, only: Vec::new() };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match option.as_str() {
                "--small" => plan.size = SMALL,
                "--only" => {
                    let value = options.next().ok_or("--only wants a value")?;
                    plan.only = value.split(',').map(str::to_owned).collect();
                }
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        let all = || Kind::ALL.into_iter().flat_map(|kind| Contestant::on(kind).iter().map(move |who| (kind, *who)));
        match plan.only.iter().find(|name| !all().any(|(kind, who)| goes_by(kind, who, name))) {
            Some(stranger) => Err(format!("there is no contestant {stranger}")),
            None => Ok(plan),
        }
    }

    pub fn takes_part(&self, kind: Kind, contestant: Contestant) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| goes_by(kind, contestant, name))
    }
}

/// A database's name stands for all that is measured on it, and `redis` for both ways to sync.
fn goes_by(kind: Kind, contestant: Contestant, name: &str) -> bool {
    let (engine, own) = name.split_once('/').unwrap_or((name, contestant.name()));
    let is_engine = kind.name() == engine || kind.name().split('-').next() == Some(engine);
    is_engine && contestant.name() == own
}
