//! What is wrong with a configuration, where, and what to write instead.

use std::fmt;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of a file.
    File {
        /// The file, as it was named.
        file: String,
        /// The line, from 1 on.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
            Origin::Variable(variable) => f.write_str(variable),
            Origin::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}

/// One thing that is wrong. The text says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub origin: Origin,
    /// What, and the way out.
    pub what: String,
}

/// Everything that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Notes one more.
    pub fn add(&mut self, origin: &Origin, what: impl Into<String>) {
        self.0.push(Problem { origin: origin.clone(), what: what.into() });
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is not valid; nothing was started")?;
        for Problem { origin, what } in &self.0 {
            write!(f, "\n  {origin}: {what}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The known name that somebody may have meant.
pub fn nearest<'a>(meant: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|name| (distance(meant, name), name)).min()?;
    // Beyond a third of the letters it would be a guess, not a slip.
    (near.0 <= (meant.len() / 3).max(2)).then_some(near.1)
}

/// How many letters are to be added, dropped, changed or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                let swapped = if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                    rows[i - 2][j - 2] + 1
                } else {
                    usize::MAX
                };
                changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(swapped)
            };
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognized_and_a_guess_is_not_made() {
        let known = ["store.memory", "store.sync", "listen"];
        assert_eq!(nearest("store.memry", known), Some("store.memory"));
        assert_eq!(nearest("sotre.sync", known), Some("store.sync"));
        assert_eq!(nearest("lisen", known), Some("listen"));
        assert_eq!(nearest("colour", known), None);
    }
}
