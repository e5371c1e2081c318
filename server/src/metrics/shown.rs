//! Which topics or queues are shown by name. Their number is bounded, because whoever collects the numbers pays
//! for each name, and because clients make names up.

use std::collections::BTreeSet;

use punctual_core::Name;

/// The name under which all that are not shown are summed up.
pub const OTHER: &str = "other";

/// Who is shown by name. Whoever is stays so as long as it exists: a name that came and went would make the sums
/// of the others jump, which looks like a burst to whoever draws them.
#[derive(Debug)]
pub struct Shown {
    most: usize,
    names: BTreeSet<Name>,
}

impl Shown {
    /// At most so many.
    pub fn new(most: usize) -> Shown {
        Shown { most, names: BTreeSet::new() }
    }

    /// Chooses among those that exist.
    pub fn choose<'a>(&mut self, existing: impl Iterator<Item = &'a Name>) -> BTreeSet<Name> {
        let existing: BTreeSet<&Name> = existing.collect();
        self.names.retain(|name| existing.contains(name));
        for name in existing {
            if self.names.len() >= self.most {
                break;
            }
            self.names.insert(name.clone());
        }
        self.names.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_shown_stays_so_as_long_as_it_exists() {
        let name = |text: &str| Name::new(text).unwrap();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(name);
        let mut shown = Shown::new(2);
        assert_eq!(shown.choose([&b, &c, &d].into_iter()), BTreeSet::from([b.clone(), c.clone()]));
        assert_eq!(shown.choose([&a, &b, &c, &d].into_iter()), BTreeSet::from([b.clone(), c.clone()]));
        assert_eq!(shown.choose([&a, &c, &d].into_iter()), BTreeSet::from([a, c]));
    }
}
