//! What must hold of changes of settings: numbers and revisions are never given twice, none is replaced before all shards have adopted it, what
//! is said to be made is made in all shards, what amends something amends what is there, and in the end all shards agree.
//!
//! A store that goes back to an older state may leave a change half made that was written down before. Those after that must
//! be whole.

use std::collections::{BTreeMap, BTreeSet};

use punctual_center::Changes;
use punctual_core::shard::settings_of;
use punctual_core::store::{ShardId, Store};
use punctual_core::{Adjustment, Answer, Command, Refused, Subject};

use super::{Auditor, Promise};
use crate::record::StepRecord;

/// What is known of changes.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Those that were written down, by their numbers.
    changes: BTreeMap<u64, Adjustment>,
    /// Deletions that a shard refused, so that all was made as it was.
    taken_back: BTreeSet<u64>,
    /// The revisions that their entry has had.
    revisions: BTreeSet<u64>,
    /// Those up to this one were written before the store went back.
    doubtful: u64,
}

/// The changes that a step has its shard adopt: those that are above the latest one. Gives the number and the adjustment.
pub(super) fn adopted(record: &StepRecord, mut latest: u64) -> Vec<(u64, Adjustment)> {
    let mut adopted = Vec::new();
    for (tag, command) in &record.requests {
        let Command::Adopt(adopt) = command else { continue };
        let is_adopted = match record.answers.get(tag) {
            Some(Ok(Answer::Noted | Answer::Deleted(_))) => true,
            Some(Err(Refused::NoSuchTopic(_) | Refused::NoSuchQueue(_))) => true,
            // Its end is awaited.
            None => adopt.to_its_end,
            Some(_) => false,
        };
        if is_adopted && adopt.number > latest {
            latest = adopt.number;
            adopted.push((adopt.number, adopt.adjustment.clone()));
        }
    }
    adopted
}

impl Auditor {
    /// The entry was written, and has got this revision. Whoever has seen one that was lost must not take what came instead
    /// for what it has seen.
    pub fn gave_revision(&mut self, revision: u64) {
        if !self.written.revisions.insert(revision) {
            let what = format!("the entry of changes is at revision {revision}, which it was at before");
            self.accuse(Promise::SettingsAgree, "", what);
        }
    }

    /// The entry was written.
    pub fn wrote(&mut self, before: &Changes, after: &Changes, shards: u16) {
        let (old, new) = (before.under_way(), after.under_way());
        if old == new {
            return;
        }
        let is_taken_back =
            new.is_some_and(|new| old.is_some_and(|old| old.otherwise.as_ref() == Some(&new.adjustment)));
        if let Some(old) = old {
            if is_taken_back {
                self.written.taken_back.insert(old.number);
            } else {
                self.is_whole(old.number, shards, "is replaced");
            }
        }
        if let Some(new) = new {
            let latest = old.map_or(0, |old| old.number);
            let given = self.written.changes.insert(new.number, new.adjustment.clone());
            if new.number <= latest || given.is_some_and(|given| given != new.adjustment) {
                let what = format!("the number {} is given to {:?}, and was given before", new.number, new.adjustment);
                self.accuse(Promise::SettingsAgree, "", what);
            }
        }
    }

    /// Somebody is told that a change is made.
    pub fn told_made(&mut self, number: u64, shards: u16) {
        self.is_whole(number, shards, "is said to be made");
    }

    fn is_whole(&mut self, number: u64, shards: u16, why: &str) {
        let has_it = |shard: &ShardId| self.ledgers.get(shard).is_some_and(|ledger| ledger.adopted.contains(&number));
        let lacking = (0..shards).map(ShardId).find(|shard| !has_it(shard));
        if let Some(shard) = lacking.filter(|_| number > self.written.doubtful) {
            let what = format!("change {number} {why}, but shard {} has not adopted it", shard.0);
            self.accuse(Promise::SettingsAgree, "", what);
        }
    }

    /// A change was written that amends these settings: they are those that all shards have.
    pub fn amended(&mut self, as_it_was: &Adjustment) {
        if self.written.doubtful > 0 {
            return;
        }
        let differs = |settings: &super::ledger::Settings| match as_it_was {
            Adjustment::PutTopic { name, settings: was } => settings.topic(name).last() != Some(&**was),
            Adjustment::PutQueue { name, settings: was } => settings.queue(name).last() != Some(&**was),
            Adjustment::Delete { .. } => false,
        };
        let differing = self.ledgers.iter().find(|(_, ledger)| differs(&ledger.settings)).map(|(shard, _)| shard.0);
        if let Some(shard) = differing {
            let what = format!("a change amends {as_it_was:?}, which is not what shard {shard} has");
            self.accuse(Promise::SettingsAgree, "", what);
        }
    }

    /// The store went back: what was written down before may be half made.
    pub fn doubt_changes(&mut self) {
        self.written.doubtful = self.written.changes.keys().next_back().copied().unwrap_or(0);
    }

    /// In the end all shards have all changes, and the settings that were put last.
    pub(super) fn compare_changes(&mut self, store: &dyn Store, shards: u16) {
        let of_all: BTreeSet<u64> = self.ledgers.values().flat_map(|ledger| ledger.adopted.iter().copied()).collect();
        let mut last: BTreeMap<Subject, u64> = BTreeMap::new();
        let doubtful = self.written.doubtful;
        for number in of_all.into_iter().filter(|number| *number > doubtful) {
            if !self.written.taken_back.contains(&number) {
                self.is_whole(number, shards, "was made in some shards");
            }
            if let Some(adjustment) = self.written.changes.get(&number) {
                last.insert(adjustment.subject(), number);
            }
        }
        for shard in (0..shards).map(ShardId) {
            let stored = settings_of(store, shard).expect("the store is well at the end");
            for number in last.values() {
                let put = &self.written.changes[number];
                let is_there = match put {
                    Adjustment::PutTopic { name, settings } => stored.topics.get(name) == Some(&**settings),
                    Adjustment::PutQueue { name, settings } => stored.queues.get(name) == Some(&**settings),
                    Adjustment::Delete { .. } => true,
                };
                if !is_there {
                    let what =
                        format!("shard {} does not have what was put last, as change {number}: {put:?}", shard.0);
                    self.violation.get_or_insert(super::Violation {
                        promise: Promise::SettingsAgree,
                        subject: String::new(),
                        what,
                    });
                }
            }
        }
        self.census.add("settings compared", last.len() as u64);
    }
}
