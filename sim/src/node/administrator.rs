//! A node's administrator: the changes of settings that it makes, one after the other, and the deletions whose end it awaits.
//! What is to be done next about a change is decided by [`Undertaking`], as in the real node.

use std::collections::{BTreeMap, VecDeque};

use punctual_center::changes::{KnownChanges, Next, Undertaking};
use punctual_center::{Error, Outcome};
use punctual_core::{Adjustment, Adopt};

use crate::clock::Moment;
use crate::demand::Wish;
use crate::record::Tag;

/// A node's administrator.
#[derive(Debug, Default)]
pub struct Administrator {
    /// What is known of the entry of changes.
    pub known: KnownChanges,
    /// What waits for its turn.
    pub waiting: VecDeque<Work>,
    /// What has its turn.
    pub doing: Option<Doing>,
    /// Those who wait for the end of a deletion, by its number.
    pub followed: BTreeMap<u64, Vec<(Tag, Wish)>>,
    /// Questions to all shards that are under way, by their numbers.
    pub rounds: BTreeMap<u64, Round>,
    next_round: u64,
}

/// Something to do.
#[derive(Debug)]
pub enum Work {
    /// Somebody wants something changed.
    Change(Tag, Wish),
    /// Something is left in the entry.
    Tidy,
    /// All shards have said what came of a deletion.
    End(Adopt, Vec<Outcome>),
}

/// What is being done.
#[derive(Debug)]
pub struct Doing {
    /// Why.
    pub cause: Cause,
    /// How.
    pub undertaking: Undertaking,
    /// What is next.
    pub step: Next,
    /// Since when shards are asked.
    pub asks_since: Option<Moment>,
}

/// Why something is undertaken.
#[derive(Debug)]
pub enum Cause {
    /// Somebody wants this.
    Change {
        /// Who.
        tag: Tag,
        /// What.
        wish: Wish,
        /// The number of the change, once it is decided.
        number: Option<u64>,
        /// What it was decided on, if it only amends what is there.
        amends: Option<Adjustment>,
    },
    /// Something is left.
    Tidy,
    /// A shard has refused this deletion.
    Settle(Adopt),
    /// A deletion has ended so.
    StrikeOff(Adopt, Result<u64, Error>),
}

/// A question to all shards.
#[derive(Debug)]
pub struct Round {
    /// The deletion whose end is awaited; none if it belongs to what is being done.
    pub deletion: Option<Adopt>,
    /// How many have not answered.
    pub left: usize,
    /// What the others said.
    pub outcomes: Vec<Outcome>,
}

impl Administrator {
    /// A question to so many shards begins; gives its number.
    pub fn begin_round(&mut self, deletion: Option<Adopt>, shards: usize) -> u64 {
        self.next_round += 1;
        self.rounds.insert(self.next_round, Round { deletion, left: shards, outcomes: Vec::new() });
        self.next_round
    }

    /// A shard has answered; gives the whole round if it was the last.
    pub fn answered(&mut self, round: u64, outcome: Outcome) -> Option<Round> {
        let asked = self.rounds.get_mut(&round)?;
        asked.outcomes.push(outcome);
        asked.left -= 1;
        if asked.left == 0 { self.rounds.remove(&round) } else { None }
    }

    /// The process dies: those who wait will hear nothing.
    pub fn die(&mut self) -> Vec<Tag> {
        let died = std::mem::take(self);
        let waiting = died.waiting.into_iter().filter_map(|work| match work {
            Work::Change(tag, _) => Some(tag),
            Work::Tidy | Work::End(..) => None,
        });
        let doing = died.doing.and_then(|doing| match doing.cause {
            Cause::Change { tag, .. } => Some(tag),
            _ => None,
        });
        let followed = died.followed.into_values().flatten().map(|(tag, _)| tag);
        waiting.chain(doing).chain(followed).collect()
    }
}
