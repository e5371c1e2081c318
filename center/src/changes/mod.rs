//! Changes of settings: written down before they are made, in an entry of the store that all nodes share.
//!
//! The entry names the one change that is under way, with a number that rises, and the deletions that have begun in all
//! shards and may not be over in all of them. Whoever wants to change something first has all shards adopt what is under
//! way, whoever's it is, and then writes the own change in its place, if the entry is still as it was seen.
//!
//! **Invariant**: a change is replaced in the entry only by somebody to whom every shard has said that it adopted it. So
//! every shard adopts all changes in the order of their numbers, and none is half made for longer than it takes the next
//! node to come along.

mod seen;
mod undertaking;

use std::collections::BTreeMap;

use punctual_core::{Adjustment, Adopt, Subject};
use serde::{Deserialize, Serialize};

pub use seen::{Heeded, KnownChanges, Seen};
pub use undertaking::{End, Next, Undertaking, Verdict, is_gone, rows_gone, told};

/// How many deletions are under way at once, at most: the entry is to stay small.
const MOST_DELETIONS: usize = 64;

/// The form of the entry that is written.
const VERSION: u8 = 1;

/// What the entry says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The number of the latest change that was written down.
    last: u64,
    under_way: Option<WrittenChange>,
    /// Deletions that have begun in all shards, by their numbers.
    clearing: BTreeMap<u64, Subject>,
}

/// A change that was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenChange {
    /// Greater than that of every change before it.
    pub number: u64,
    /// What all shards are to do.
    pub adjustment: Adjustment,
    /// What they are to do instead if one of them holds tasks of what was to be deleted: make it as it was.
    pub otherwise: Option<Adjustment>,
}

/// The entry was written by a newer version, or by something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a newer version of Punctual changes the settings of this store, which this one cannot do meanwhile")]
pub struct UnreadableChanges;

/// So many deletions are under way that no other can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MOST_DELETIONS} deletions are under way")]
pub struct TooManyDeletions;

#[derive(Serialize, Deserialize)]
struct Changes1 {
    last: u64,
    under_way: Option<(u64, Vec<u8>, Option<Vec<u8>>)>,
    clearing: Vec<(u64, Subject)>,
}

impl Changes {
    /// The key of the entry.
    pub const KEY: &str = "changes";

    /// Reads the entry.
    pub fn read(bytes: &[u8]) -> Result<Changes, UnreadableChanges> {
        let Some((&VERSION, fields)) = bytes.split_first() else { return Err(UnreadableChanges) };
        let Changes1 { last, under_way, clearing } = postcard::from_bytes(fields).map_err(|_| UnreadableChanges)?;
        let adjustment = |bytes: Vec<u8>| Adjustment::read(&bytes).ok_or(UnreadableChanges);
        let written = |(number, bytes, otherwise): (u64, Vec<u8>, Option<Vec<u8>>)| {
            let otherwise = otherwise.map(adjustment).transpose()?;
            Ok(WrittenChange { number, adjustment: adjustment(bytes)?, otherwise })
        };
        let under_way = under_way.map(written).transpose()?;
        Ok(Changes { last, under_way, clearing: clearing.into_iter().collect() })
    }

    /// The entry's bytes.
    pub fn lay(&self) -> Vec<u8> {
        let written = |WrittenChange { number, adjustment, otherwise }: &WrittenChange| {
            (*number, adjustment.lay().to_vec(), otherwise.as_ref().map(|otherwise| otherwise.lay().to_vec()))
        };
        let clearing = self.clearing.iter().map(|(number, subject)| (*number, subject.clone())).collect();
        let form = Changes1 { last: self.last, under_way: self.under_way.as_ref().map(written), clearing };
        postcard::to_extend(&form, vec![VERSION]).expect("changes can be laid out as bytes")
    }

    /// The change that all shards are to adopt before another one is written down.
    pub fn under_way(&self) -> Option<&WrittenChange> {
        self.under_way.as_ref()
    }

    /// The deletions that are under way, as shards are asked for their end.
    pub fn deletions(&self) -> impl Iterator<Item = Adopt> + '_ {
        let to_its_end = |(number, adjustment)| Adopt { number, adjustment, to_its_end: true };
        // Those have begun everywhere, for good: nothing that came in since keeps them.
        let delete = |subject: &Subject| Adjustment::Delete { subject: subject.clone(), force: true };
        let begun = self.clearing.iter().map(move |(number, subject)| (*number, delete(subject)));
        let beginning = self.under_way.iter().filter(|change| change.adjustment.is_deletion());
        begun.chain(beginning.map(|change| (change.number, change.adjustment.clone()))).map(to_its_end)
    }

    /// The deletion of a topic or queue, if it is being deleted.
    pub fn deletion_of(&self, subject: &Subject) -> Option<Adopt> {
        self.deletions().find(|deletion| deletion.adjustment.subject() == *subject)
    }

    /// Another change is written down: all shards have adopted what is under way. Its number is not below the time, in
    /// microseconds, so that no number is given twice by a store that went back to an older state.
    pub fn followed_by(
        &self,
        adjustment: Adjustment,
        otherwise: Option<Adjustment>,
        micros: u64,
    ) -> Result<Changes, TooManyDeletions> {
        let mut changes = self.settled();
        if adjustment.is_deletion() && changes.clearing.len() >= MOST_DELETIONS {
            return Err(TooManyDeletions);
        }
        changes.write(adjustment, otherwise, micros);
        Ok(changes)
    }

    /// All shards have adopted what is under way.
    pub fn settled(&self) -> Changes {
        let mut changes = self.clone();
        if let Some(change) = changes.under_way.take().filter(|change| change.adjustment.is_deletion()) {
            changes.clearing.insert(change.number, change.adjustment.subject());
        }
        changes
    }

    /// A shard holds tasks of what was to be deleted without force: it is made as it was where it has gone. `None` if
    /// nothing of this kind is under way.
    pub fn kept(&self, micros: u64) -> Option<Changes> {
        let otherwise = self.under_way.as_ref()?.otherwise.clone()?;
        let mut changes = self.clone();
        changes.write(otherwise, None, micros);
        Some(changes)
    }

    /// A deletion is over in all shards; `None` if it was not under way any more.
    pub fn over(&self, number: u64) -> Option<Changes> {
        let mut changes = self.clone();
        match &self.under_way {
            Some(change) if change.number == number => changes.under_way = None,
            _ => _ = changes.clearing.remove(&number)?,
        }
        Some(changes)
    }

    fn write(&mut self, adjustment: Adjustment, otherwise: Option<Adjustment>, micros: u64) {
        self.last = micros.max(self.last + 1);
        self.under_way = Some(WrittenChange { number: self.last, adjustment, otherwise });
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Name;

    use super::*;

    fn queue(name: &str) -> Subject {
        Subject::Queue(Name::new(name).unwrap())
    }

    fn put(name: &str) -> Adjustment {
        Adjustment::PutQueue { name: Name::new(name).unwrap(), settings: Box::default() }
    }

    fn delete(name: &str) -> Adjustment {
        Adjustment::Delete { subject: queue(name), force: true }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let unforced = Adjustment::Delete { subject: queue("b"), force: false };
        let changes = Changes::default().followed_by(delete("a"), None, 7).unwrap();
        let changes = changes.followed_by(unforced, Some(put("b")), 0).unwrap();
        for changes in [Changes::default(), changes.settled(), changes] {
            assert_eq!(Changes::read(&changes.lay()), Ok(changes));
        }
    }

    /// The bytes of an entry, as they stand in stores that exist.
    #[test]
    fn entries_stay_readable() {
        let delete_b = [1, 2, 1, 1, b'b', 1];
        let bytes = [&[1, 9, 1, 9, 6], &delete_b[..], &[0], &[1, 7, 1, 1, b'a']].concat();
        let changes = Changes::default().followed_by(delete("a"), None, 7).unwrap();
        let changes = changes.followed_by(delete("b"), None, 9).unwrap();
        assert_eq!(Changes::read(&bytes), Ok(changes.clone()));
        assert_eq!(changes.lay(), bytes);
    }

    #[test]
    fn what_a_newer_version_wrote_is_not_guessed_at() {
        assert_eq!(Changes::read(&[]), Err(UnreadableChanges));
        assert_eq!(Changes::read(&[2, 0, 0, 0]), Err(UnreadableChanges));
        assert_eq!(Changes::read(&[1, 1, 1, 1, 1, 9, 0, 0]), Err(UnreadableChanges), "a change of a newer form");
    }

    #[test]
    fn numbers_rise_whatever_the_time_is() {
        let mut changes = Changes::default();
        let mut numbers = Vec::new();
        for micros in [100, 50, 50, 300] {
            changes = changes.followed_by(put("a"), None, micros).unwrap();
            numbers.push(changes.under_way().unwrap().number);
        }
        assert_eq!(numbers, [100, 101, 102, 300]);
        assert_eq!(changes.settled().followed_by(put("a"), None, 0).unwrap().under_way().unwrap().number, 301);
    }

    #[test]
    fn a_deletion_is_known_until_it_is_over() {
        let begun = Changes::default().followed_by(delete("a"), None, 1).unwrap();
        let deletion = Adopt { number: 1, adjustment: delete("a"), to_its_end: true };
        assert_eq!(begun.deletion_of(&queue("a")), Some(deletion));
        let next = begun.followed_by(put("b"), None, 2).unwrap();
        assert_eq!(next.deletion_of(&queue("a")).map(|deletion| deletion.number), Some(1));
        assert_eq!(next.deletion_of(&queue("b")), None);
        for (changes, after) in [(begun, None), (next, Some(2))] {
            let over = changes.over(1).unwrap();
            assert_eq!(over.deletion_of(&queue("a")), None);
            assert_eq!(over.under_way().map(|change| change.number), after);
            assert_eq!(over.over(1), None);
        }
    }

    #[test]
    fn what_is_kept_is_made_as_it_was_under_a_number_of_its_own() {
        let unforced = Adjustment::Delete { subject: queue("a"), force: false };
        let changes = Changes::default().followed_by(unforced, Some(put("a")), 5).unwrap();
        let kept = changes.kept(0).unwrap();
        assert_eq!(kept.under_way(), Some(&WrittenChange { number: 6, adjustment: put("a"), otherwise: None }));
        assert_eq!(kept.deletion_of(&queue("a")), None);
        assert_eq!(kept.kept(0), None);
    }

    #[test]
    fn deletions_are_bounded_and_other_changes_go_on() {
        let mut changes = Changes::default();
        for number in 0..MOST_DELETIONS {
            changes = changes.followed_by(delete(&number.to_string()), None, 0).unwrap();
        }
        changes = changes.settled();
        assert_eq!(changes.followed_by(delete("more"), None, 0), Err(TooManyDeletions));
        changes = changes.followed_by(put("more"), None, 0).unwrap();
        let first = changes.deletions().next().unwrap().number;
        assert!(changes.over(first).unwrap().followed_by(delete("more"), None, 0).is_ok());
    }
}
