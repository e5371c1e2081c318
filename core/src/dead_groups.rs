//! Dead letters by what they have in common, counted by looking at each, the latest first, within a bound that is told.
//!
//! Notes differ in the numbers of orders and the addresses of machines, and are about the same all the same: they are
//! grouped by what is left of them without those ([`likeness`]).

use std::collections::BTreeMap;

use crate::name::Name;
use crate::scope::Scope;
use crate::state::Reason;
use crate::store::{Bodies, ShardId, Store, StoreError};
use crate::time::{Millis, Timestamp};
use crate::unit::Unit;
use crate::view::{Kept, Listing, TaskView};

/// How many rows are read at once.
const SLICE: usize = 1_024;
/// How many rows a read counts for at least: one that finds little has looked at many.
const LEAST: usize = 64;
/// How many of a group are named.
const SAMPLES: usize = 3;
/// How much of a note counts, in characters.
const NOTE: usize = 120;
/// Words up to this many characters are kept even with digits in them: they are rather codes than names.
const CODE: usize = 3;

/// What dead letters of one group have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InCommon {
    /// Their topic.
    pub topic: bool,
    /// Their queue.
    pub queue: bool,
    /// What they died of.
    pub reason: bool,
    /// What was said about it, more or less.
    pub note: bool,
}

/// What a group has in common, as far as it was asked for and there is such a thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trait {
    /// Their topic.
    pub topic: Option<Name>,
    /// Their queue.
    pub queue: Option<Name>,
    /// What they died of.
    pub reason: Option<Reason>,
    /// What their notes have alike.
    pub note: Option<String>,
}

/// Dead letters that have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many there are.
    pub count: u64,
    /// How many of them died within the last hour.
    pub last_hour: u64,
    /// How many of them died within the last day.
    pub last_day: u64,
    /// When the first of them died.
    pub first_at: Timestamp,
    /// When the last of them died.
    pub last_at: Timestamp,
    /// Some of them, the latest first.
    pub samples: Vec<TaskView>,
}

/// Groups of dead letters, and what was looked at for them.
#[derive(Clone, Debug)]
pub struct Groups {
    now: Timestamp,
    by: InCommon,
    of: Listing,
    groups: BTreeMap<Trait, Group>,
    /// How many rows of topics in the scope were looked at.
    pub looked_at: u64,
    /// Only those that died at this time or later are all counted.
    pub counted_since: Option<Timestamp>,
}

impl Groups {
    /// Groups of these dead letters by what they have in common. Nothing is counted yet.
    pub fn new(now: Timestamp, by: InCommon, of: Kept) -> Groups {
        let of = Listing::Kept(Kept { latest_first: true, ..of });
        Groups { now, by, of, groups: BTreeMap::new(), looked_at: 0, counted_since: None }
    }

    /// Counts the dead letters of a shard that are of topics in a scope, looking at no more rows than `budget`.
    pub fn count(
        &mut self,
        store: &dyn Store,
        shard: ShardId,
        within: &Scope,
        mut budget: usize,
    ) -> Result<(), StoreError> {
        let mut from = self.of.start();
        loop {
            let page = self.of.read(store, shard, from, SLICE.min(budget.max(1)), Bodies::Without)?;
            budget = budget.saturating_sub(page.rows.len().max(LEAST));
            for row in page.rows.iter().filter(|row| within.fits(row.key.topic())) {
                self.looked_at += 1;
                let task = TaskView::of(row, self.now);
                if self.of.fits(row, &task) {
                    self.add(task, row.at);
                }
            }
            let Some(next) = page.next else { return Ok(()) };
            if budget == 0 {
                // Who may not see all does not learn when a row of somebody else died, only about when.
                let since =
                    if within.is_all() { next.at } else { Unit::Minute.beginning(Unit::Minute.slot(next.at) + 1) };
                self.counted_since = self.counted_since.max(Some(since));
                return Ok(());
            }
            from = next;
        }
    }

    fn add(&mut self, task: TaskView, died_at: Timestamp) {
        let delivery = &task.delivery;
        let death = delivery.death.as_ref();
        let note = death.and_then(|death| death.note.as_deref()).map(likeness);
        let group = Trait {
            topic: self.by.topic.then(|| task.topic.clone()),
            queue: delivery.queue.clone().filter(|_| self.by.queue),
            reason: death.map(|death| death.reason).filter(|_| self.by.reason),
            note: note.filter(|_| self.by.note),
        };
        let age = self.now.since(died_at);
        let group = self.groups.entry(group).or_insert(Group {
            count: 0,
            last_hour: 0,
            last_day: 0,
            first_at: died_at,
            last_at: died_at,
            samples: Vec::new(),
        });
        group.count += 1;
        group.last_hour += u64::from(age <= Millis::from_hours(1));
        group.last_day += u64::from(age <= Millis::from_hours(24));
        (group.first_at, group.last_at) = (group.first_at.min(died_at), group.last_at.max(died_at));
        if group.samples.len() < SAMPLES {
            group.samples.push(task);
        }
    }

    /// The largest groups, so many at most, and how many dead letters are in the others.
    pub fn largest(self, most: usize) -> (Vec<(Trait, Group)>, u64) {
        let mut groups: Vec<(Trait, Group)> = self.groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        let others = groups.iter().skip(most).map(|(_, group)| group.count).sum();
        groups.truncate(most);
        (groups, others)
    }
}

/// What notes about the same thing have in common: every word of more than three characters with a digit in it is `*`.
///
/// `timeout after 3000 ms at 10.0.3.7:5432` is `timeout after * ms at *`, and `status 503` stays what it is.
pub fn likeness(note: &str) -> String {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let mut like = String::new();
    let mut rest = note;
    while let Some(first) = rest.chars().next() {
        let end = if is_of_word(first) { rest.find(|c| !is_of_word(c)) } else { rest.find(is_of_word) };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        let name = word.trim_end_matches(['.', ':']);
        if name.chars().count() > CODE && name.contains(|c: char| c.is_ascii_digit()) {
            like.push('*');
            like.push_str(&word[name.len()..]);
        } else {
            like.push_str(word);
        }
        rest = after;
    }
    match like.char_indices().nth(NOTE) {
        Some((end, _)) => like[..end].to_owned(),
        None => like,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_about_the_same_are_alike() {
        for (note, like) in [
            ("timeout after 3000 ms at 10.0.3.7:5432", "timeout after * ms at *"),
            ("no such order 48213.", "no such order *."),
            ("order a8f3-77b1: gone", "order *: gone"),
            ("status 503", "status 503"),
            ("订单 20261117 不存在", "订单 * 不存在"),
            ("", ""),
        ] {
            assert_eq!(likeness(note), like, "{note}");
            assert_eq!(likeness(like), like, "what is told finds its group again");
        }
        assert_eq!(likeness(&"é".repeat(500)).chars().count(), NOTE);
    }
}
