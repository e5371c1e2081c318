//! How large the run is and who takes part: from the command line, then from the environment.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use super::contestants::{ENTRANTS, Entrant, Kind};
use super::report::grouped;

pub struct Plan {
    /// How many rows are pending while most is measured.
    rows: usize,
    /// The same for peers, where it differs.
    peer_rows: Option<usize>,
    /// Where the stores are made, and removed afterwards.
    pub directory: PathBuf,
    /// Who takes part; nobody named means all.
    only: Vec<String>,
}

/// What ends a measurement, whichever comes first.
#[derive(Clone, Copy)]
pub struct Limit {
    pub count: usize,
    pub time: Duration,
}

pub const USAGE: &str = "  --rows N        rows pending (or PUNCTUAL_BENCH_ROWS; 10,000,000)
  --peer-rows N   the same for fjall and redb, when time is short (or PUNCTUAL_BENCH_PEER_ROWS)
  --small         100,000 rows, to see that it works
  --only a,b      of raw, almanac, fjall, fjall-blobs, redb, node
  PUNCTUAL_BENCH_DIR says where the stores are made; else in the system's directory for temporary files";

impl Plan {
    pub fn new(options: &[String]) -> Result<Plan, String> {
        let mut plan = Plan {
            rows: number_from_environment("PUNCTUAL_BENCH_ROWS")?.unwrap_or(10_000_000),
            peer_rows: number_from_environment("PUNCTUAL_BENCH_PEER_ROWS")?,
            directory: env::var_os("PUNCTUAL_BENCH_DIR").map_or_else(env::temp_dir, PathBuf::from),
            only: Vec::new(),
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut value = || options.next().ok_or(format!("{option} wants a value"));
            match option.as_str() {
                "--rows" => plan.rows = number(option, value()?)?,
                "--peer-rows" => plan.peer_rows = Some(number(option, value()?)?),
                "--small" => plan.rows = 100_000,
                "--only" => plan.only = value()?.split(',').map(str::to_owned).collect(),
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        let known = |name: &String| name == "node" || ENTRANTS.iter().any(|entrant| entrant.name == name);
        match plan.only.iter().find(|name| !known(name)) {
            Some(stranger) => Err(format!("there is no contestant {stranger}")),
            None => Ok(plan),
        }
    }

    pub fn takes_part(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// How many rows are pending in our own store.
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn rows_of(&self, entrant: &Entrant) -> usize {
        match entrant.kind {
            Kind::Peer(_) => self.peer_rows.unwrap_or(self.rows),
            Kind::Raw(_) | Kind::Own(_) => self.rows,
        }
    }

    /// The name in the tables: it tells if a contestant had another number of rows than ours.
    pub fn label(&self, entrant: &Entrant) -> String {
        let name = entrant.name;
        match self.rows_of(entrant) {
            rows if rows == self.rows => name.to_owned(),
            rows => format!("{name} ({} rows)", grouped(rows as u64)),
        }
    }
}

impl Limit {
    /// A share of the pending rows, but enough to measure and no more than that takes.
    pub fn share(rows: usize, part: usize, at_most: usize, seconds: u64) -> Limit {
        Limit { count: (rows / part).clamp(20_000, at_most), time: Duration::from_secs(seconds) }
    }

    pub fn without_time(count: usize) -> Limit {
        Limit { count, time: Duration::MAX }
    }
}

fn number(option: &str, text: &str) -> Result<usize, String> {
    let digits: String = text.chars().filter(|character| !matches!(character, '_' | ',')).collect();
    digits.parse().map_err(|_| format!("{option} wants a number, not {text}"))
}

fn number_from_environment(name: &str) -> Result<Option<usize>, String> {
    env::var(name).ok().map(|text| number(name, &text)).transpose()
}
