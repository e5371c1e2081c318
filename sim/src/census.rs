//! How often everything happened, so that a check that never had anything to check is seen.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by what happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census(BTreeMap<&'static str, u64>);

impl Census {
    /// It happened once more.
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// It happened so many times more.
    pub fn add(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    /// Both together.
    pub fn join(&mut self, other: &Census) {
        for (what, times) in &other.0 {
            self.add(what, *times);
        }
    }

    /// How often it happened.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(what, times)| format!("{what} {times}")).collect();
        f.write_str(&parts.join(", "))
    }
}
