//! Routing patterns: which of a topic's tasks go to a queue.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a binding asks of a task's routing key. Words are separated by dots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// Every task, whatever its routing key.
    All,
    /// Routing keys that fit: `*` stands for one word, `#` for any number of words, none included.
    /// Without them a pattern fits only itself. A task without a routing key has the empty one.
    Words(String),
}

impl Pattern {
    /// Whether a task with this routing key goes there.
    pub fn fits(&self, routing_key: &str) -> bool {
        match self {
            Pattern::All => true,
            Pattern::Words(pattern) => words_fit(pattern, routing_key),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::All => f.write_str("#"),
            Pattern::Words(pattern) => f.write_str(pattern),
        }
    }
}

/// Greedy matching with one way back: a later `#` makes every earlier choice final, so the time
/// is at most the product of the lengths, also for hostile patterns.
fn words_fit(pattern: &str, routing_key: &str) -> bool {
    let pattern: Vec<&str> = words(pattern);
    let key: Vec<&str> = words(routing_key);
    let (mut p, mut k) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while k < key.len() {
        if p < pattern.len() && pattern[p] == "#" {
            back = Some((p, k));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == "*" || pattern[p] == key[k]) {
            p += 1;
            k += 1;
        } else if let Some((hash, taken)) = back {
            back = Some((hash, taken + 1));
            p = hash + 1;
            k = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|word| *word == "#")
}

fn words(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('.').collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_wildcards_fits_only_itself() {
        let pattern = Pattern::Words("order.paid".into());
        assert!(pattern.fits("order.paid"));
        for other in ["", "order", "order.paid.late", "order.unpaid"] {
            assert!(!pattern.fits(other), "{other}");
        }
    }

    #[test]
    fn a_star_stands_for_exactly_one_word() {
        let pattern = Pattern::Words("order.*.late".into());
        assert!(pattern.fits("order.paid.late"));
        assert!(!pattern.fits("order.late"));
        assert!(!pattern.fits("order.a.b.late"));
    }

    #[test]
    fn a_hash_stands_for_any_number_of_words() {
        let pattern = Pattern::Words("order.#.late".into());
        for key in ["order.late", "order.a.late", "order.a.b.late", "order.late.late"] {
            assert!(pattern.fits(key), "{key}");
        }
        assert!(!pattern.fits("order.a"));
        assert!(Pattern::Words("#".into()).fits(""));
        assert!(Pattern::Words("#.a.#.a.#".into()).fits("x.a.y.a"));
    }

    #[test]
    fn a_hostile_pattern_takes_no_exponential_time() {
        let pattern = Pattern::Words(vec!["#.a"; 60].join("."));
        assert!(!pattern.fits(&vec!["a"; 59].join(".")));
        assert!(pattern.fits(&vec!["a"; 120].join(".")));
    }
}
