//! Who takes part in a comparison, in what, and how large it is: from the command line, then from the environment.

use std::env;
use std::path::PathBuf;

use super::Contestant;

pub struct Plan<K, S> {
    /// Where each server's directory is made, and removed afterwards.
    pub directory: PathBuf,
    pub kinds: Vec<K>,
    lines: Vec<String>,
    pub size: S,
}

/// What can be chosen from.
pub struct Choice<S: 'static> {
    pub lines: &'static [&'static str],
    pub full: S,
    pub small: S,
}

impl<K: Contestant, S: Copy> Plan<K, S> {
    pub fn new(options: &[String], choice: &Choice<S>) -> Result<Plan<K, S>, String> {
        let mut plan = Plan {
            directory: env::var_os("PUNCTUAL_BENCH_DIR").map_or_else(env::temp_dir, PathBuf::from),
            kinds: K::ALL.to_vec(),
            lines: choice.lines.iter().copied().map(str::to_owned).collect(),
            size: choice.full,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut words = || -> Result<Vec<String>, String> {
                let value = options.next().ok_or(format!("{option} wants a value"))?;
                Ok(value.split(',').map(str::to_owned).collect())
            };
            match option.as_str() {
                "--small" => plan.size = choice.small,
                "--only" => plan.kinds = kinds(&words()?)?,
                "--lines" => plan.lines = words()?,
                unknown => return Err(format!("unknown option {unknown}")),
            }
        }
        match plan.lines.iter().find(|line| !choice.lines.contains(&line.as_str())) {
            Some(stranger) => Err(format!("there is no line {stranger}")),
            None => Ok(plan),
        }
    }
}

impl<K, S> Plan<K, S> {
    pub fn measures(&self, line: &str) -> bool {
        self.lines.iter().any(|chosen| chosen == line)
    }
}

/// In the order of the table, whatever the order of the names.
fn kinds<K: Contestant>(names: &[String]) -> Result<Vec<K>, String> {
    let goes_by = |kind: &K, name: &str| kind.name() == name || kind.name().split('-').next() == Some(name);
    if let Some(stranger) = names.iter().find(|name| !K::ALL.iter().any(|kind| goes_by(kind, name))) {
        return Err(format!("there is no contestant {stranger}"));
    }
    Ok(K::ALL.iter().copied().filter(|kind| names.iter().any(|name| goes_by(kind, name))).collect())
}
