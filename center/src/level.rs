//! The level of what is stored: new forms are written only when every node that is there can read them.
//!
//! Each node says which levels it can read and write. The level in force is an entry of the cluster; it rises by itself when all
//! nodes on the roll have been able to for a while, and never falls. A node that cannot read it does not start, and opens no
//! shard: it looks at the level after each claim, since what others have written there is of no higher one.

use std::ops::RangeInclusive;

use punctual_core::Millis;
use punctual_core::store::{Entry, Roll};

use crate::card::Card;

/// What a store has that nobody has raised, and what a node can that says nothing of it.
const FIRST: u32 = 1;

/// Whether the level in force can rise, as a node sees it.
#[derive(Clone, Debug)]
pub struct Levels {
    own: RangeInclusive<u32>,
    /// For how many microseconds all must have been able to.
    patience: u64,
    /// The level that all nodes could have, and since when by the store's time.
    possible: Option<(u32, u64)>,
}

impl Levels {
    /// The key of the entry. Its text is the number.
    pub const KEY: &'static str = "level";

    /// Those of a node that can read and write these, among nodes whose beats count for so long.
    pub fn new(own: RangeInclusive<u32>, lease: Millis) -> Levels {
        Levels { own, patience: 2 * lease.0 * 1_000, possible: None }
    }

    /// The level that an entry says is in force; nothing if it says nothing that can be understood.
    pub fn read(entry: Option<&Entry>) -> Option<u32> {
        let Some(entry) = entry else { return Some(FIRST) };
        std::str::from_utf8(&entry.value).ok()?.parse().ok()
    }

    /// Whether the node can work at a level.
    pub fn can(&self, level: u32) -> bool {
        self.own.contains(&level)
    }

    /// The levels of the node.
    pub fn own(&self) -> &RangeInclusive<u32> {
        &self.own
    }

    /// The level to put in force again, if the entry says less than this node has known: the store went back to an older
    /// state, and since then something may have been written that only those can read who could at the higher level.
    pub fn restore(known: u32, in_force: u32) -> Option<u32> {
        (in_force < known).then_some(known)
    }

    /// The level to which the one in force is to be raised now, if it is.
    pub fn rise(&mut self, in_force: u32, roll: &Roll) -> Option<u32> {
        let highest =
            roll.there().map(|present| Card::read(&present.address).levels.map_or(FIRST, |levels| *levels.end()));
        let level = highest.min().unwrap_or(FIRST).min(*self.own.end());
        if level <= in_force {
            self.possible = None;
            return None;
        }
        match self.possible {
            Some((possible, since)) if possible == level => {
                (roll.micros.saturating_sub(since) >= self.patience).then_some(level)
            }
            _ => {
                self.possible = Some((level, roll.micros));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::store::{Incarnation, Present};
    use punctual_core::{Name, Timestamp};

    use super::*;

    /// A roll at this many milliseconds, with a node for each of these levels; one without says nothing.
    fn roll(millis: u64, levels: &[Option<u32>]) -> Roll {
        let present = |(number, highest): (usize, &Option<u32>)| Present {
            who: Incarnation { node: Name::new(format!("n{number}")).unwrap(), number: 1 },
            address: Card { levels: highest.map(|highest| 1..=highest), ..Card::default() }.to_string(),
            until: Timestamp::from_millis(millis + 1),
        };
        Roll { micros: millis * 1_000, nodes: levels.iter().enumerate().map(present).collect(), ..Roll::default() }
    }

    #[test]
    fn it_rises_when_all_who_are_there_have_been_able_to_for_a_while() {
        let mut levels = Levels::new(1..=3, Millis(100));
        assert_eq!(levels.rise(1, &roll(0, &[Some(3), Some(2)])), None);
        assert_eq!(levels.rise(1, &roll(199, &[Some(3), Some(2)])), None);
        assert_eq!(levels.rise(1, &roll(200, &[Some(3), Some(2)])), Some(2));
        assert_eq!(levels.rise(2, &roll(300, &[Some(3), Some(2)])), None);
    }

    #[test]
    fn a_node_that_cannot_or_says_nothing_holds_it_and_the_while_begins_anew() {
        let mut levels = Levels::new(1..=2, Millis(100));
        for other in [Some(1), None] {
            assert_eq!(levels.rise(1, &roll(0, &[Some(2)])), None);
            assert_eq!(levels.rise(1, &roll(150, &[Some(2), other])), None);
            assert_eq!(levels.rise(1, &roll(300, &[Some(2)])), None);
            assert_eq!(levels.rise(1, &roll(500, &[Some(2)])), Some(2));
        }
    }

    #[test]
    fn nobody_raises_it_beyond_what_it_can_itself() {
        let mut levels = Levels::new(1..=2, Millis(0));
        levels.rise(1, &roll(0, &[Some(9)]));
        assert_eq!(levels.rise(1, &roll(1, &[Some(9)])), Some(2));
    }

    #[test]
    fn it_does_not_fall_with_a_store_that_goes_back() {
        assert_eq!(Levels::restore(2, 1), Some(2));
        assert_eq!(Levels::restore(2, 2), None);
        assert_eq!(Levels::restore(1, 2), None);
    }

    #[test]
    fn an_entry_says_which_is_in_force() {
        let entry = |text: &'static str| Entry { revision: 1, value: text.into() };
        assert_eq!(Levels::read(None), Some(1));
        assert_eq!(Levels::read(Some(&entry("7"))), Some(7));
        assert_eq!(Levels::read(Some(&entry("seven"))), None);
    }
}
