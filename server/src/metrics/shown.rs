//! Which topics or queues are shown by name. Their number is bounded, because whoever collects the numbers pays
//! for each name, and because clients make names up.

use std::collections::BTreeSet;

use punctual_core::Name;

/// The name under which all that are not shown are summed up.
pub const OTHER: &str = "other";

/// Who is shown by name. Whoever is stays so as long as it exists: a name that came and went would make the sums
/// of the others jump, which looks like a burst to whoever draws them.
#[derive(Clone, Debug)]
pub struct Shown {
    most: usize,
    names: BTreeSet<Name>,
}

impl Shown {
    /// At most so many.
    pub fn new(most: usize) -> Shown {
        Shown { most, names: BTreeSet::new() }
    }

    /// Those that were shown the last time.
    pub fn names(&self) -> Vec<Name> {
        self.names.iter().cloned().collect()
    }

    /// Whether it was shown the last time.
    pub fn contains(&self, name: &Name) -> bool {
        self.names.contains(name)
    }

    /// How many more may be shown if only so many of them are still there.
    pub fn room(&self, still_there: usize) -> usize {
        self.most.saturating_sub(still_there)
    }

    /// These are shown now.
    pub fn show<'a>(&mut self, names: impl Iterator<Item = &'a Name>) {
        self.names = names.cloned().collect();
    }
}
