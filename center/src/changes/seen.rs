//! The entry of changes as a node has seen it last, and what is left to be done about it.
//!
//! Times are in microseconds of a clock that nobody sets.

use punctual_core::store::Entry;

use super::{Changes, UnreadableChanges};

/// How long something stands in the entry before others than who wrote it see to it.
const GRACE: u64 = 2_000_000;

/// The entry, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The revision that the entry had, zero if there was none.
    pub revision: u64,
    /// What it said.
    pub changes: Changes,
    /// Whether all shards are known to have adopted what is under way.
    pub is_adopted: bool,
}

/// What a node knows of the entry.
#[derive(Debug, Default)]
pub struct KnownChanges {
    seen: Option<Seen>,
    /// Whether the store has been asked for a roll since the entry was seen so.
    is_asked: bool,
    /// The revision that the latest roll told, and since when it does.
    told: Option<(u64, u64)>,
    /// The revision at which nothing is left to be done here.
    tidied: Option<u64>,
}

/// What follows from what a roll says of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heeded {
    /// Others have changed something: what was known of queues may not be true any more.
    pub is_news: bool,
    /// What stands there is to be finished and struck off here, now.
    pub is_left: bool,
}

impl KnownChanges {
    /// The entry as it is known, if nothing is left to be done about it. What is written goes by the revision, so it does
    /// not matter if others have written since.
    pub fn quiet(&self) -> Option<Seen> {
        let is_quiet = |seen: &&Seen| seen.is_adopted && seen.changes.deletions().next().is_none();
        self.seen.as_ref().filter(is_quiet).cloned()
    }

    /// The entry as the store has it.
    pub fn read(&mut self, entry: Option<&Entry>) -> Result<Seen, UnreadableChanges> {
        let revision = entry.map_or(0, |entry| entry.revision);
        let changes = entry.map_or(Ok(Changes::default()), |entry| Changes::read(&entry.value))?;
        // A node of a version that counts revisions may give one again after the store went back, and never the number of a
        // change.
        let is_same = |seen: &Seen| seen.revision == revision && seen.changes.under_way() == changes.under_way();
        let was_adopted = self.seen.as_ref().is_some_and(|seen| seen.is_adopted && is_same(seen));
        let is_adopted = was_adopted || changes.under_way().is_none();
        Ok(self.see(Seen { revision, changes, is_adopted }))
    }

    /// Changes were written in place of those that were seen, at this revision.
    pub fn written(&mut self, before: &Seen, changes: Changes, revision: u64) -> Seen {
        // What was under way before and still is, is no less adopted.
        let was_adopted = before.is_adopted && changes.under_way() == before.changes.under_way();
        let is_adopted = was_adopted || changes.under_way().is_none();
        self.see(Seen { revision, changes, is_adopted })
    }

    fn see(&mut self, seen: Seen) -> Seen {
        self.is_asked = false;
        self.seen.insert(seen).clone()
    }

    /// The entry is not as it was seen, or nobody knows.
    pub fn forget(&mut self) {
        self.seen = None;
    }

    /// All shards have adopted what was under way when the entry was seen so.
    pub fn adopted(&mut self, revision: u64) {
        if let Some(seen) = self.seen.as_mut().filter(|seen| seen.revision == revision) {
            seen.is_adopted = true;
        }
    }

    /// Nothing is left to be done here about the entry at this revision; or something could not be done, and is tried
    /// again after a while.
    pub fn tidied(&mut self, revision: Option<u64>, now: u64) {
        self.tidied = revision;
        if let (None, Some((_, since))) = (revision, &mut self.told) {
            *since = now;
        }
    }

    /// The store is about to be asked for a roll.
    pub fn ask(&mut self) {
        self.is_asked = true;
    }

    /// A roll names this revision of the entry. What somebody has begun and does not go on with is finished by the owner
    /// of the first shard, which this node is or is not.
    pub fn heed(&mut self, revision: u64, has_first_shard: bool, now: u64) -> Heeded {
        let (is_news, since) = match self.told {
            Some((told, since)) if told == revision => (false, since),
            _ => (true, now),
        };
        self.told = Some((revision, since));
        let seen = self.seen.as_ref().map_or(0, |seen| seen.revision);
        // Revisions rise, unless the store went back; who has written since the question is ahead of the answer.
        let is_news = is_news && (revision > seen || (revision < seen && self.is_asked));
        if is_news {
            self.seen = None;
        }
        let is_own = self.seen.as_ref().is_some_and(|seen| seen.revision == revision && seen.is_adopted);
        let is_left = has_first_shard && now.saturating_sub(since) > GRACE;
        let is_left = revision > 0 && self.tidied != Some(revision) && (is_own || is_left);
        if is_left {
            self.tidied = Some(revision);
        }
        Heeded { is_news, is_left }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::{Adjustment, Name};

    use super::*;

    fn put(micros: u64) -> Changes {
        let adjustment = Adjustment::PutQueue { name: Name::new("a").unwrap(), settings: Box::default() };
        Changes::default().followed_by(adjustment, None, micros).unwrap()
    }

    fn entry(revision: u64, changes: &Changes) -> Entry {
        Entry { revision, value: changes.lay().into() }
    }

    #[test]
    fn what_all_shards_have_adopted_is_known_until_something_else_is_there() {
        let mut known = KnownChanges::default();
        assert!(!known.read(Some(&entry(3, &put(5)))).unwrap().is_adopted);
        known.adopted(2);
        assert_eq!(known.quiet(), None, "that was about something else");
        known.adopted(3);
        assert_eq!(known.quiet().map(|seen| seen.revision), Some(3));
        assert!(known.read(Some(&entry(3, &put(5)))).unwrap().is_adopted);
        assert!(!known.read(Some(&entry(4, &put(6)))).unwrap().is_adopted);
    }

    #[test]
    fn a_store_that_gives_a_revision_again_is_not_taken_for_what_it_was() {
        let mut known = KnownChanges::default();
        known.read(Some(&entry(3, &put(5)))).unwrap();
        known.adopted(3);
        assert!(!known.read(Some(&entry(3, &put(9)))).unwrap().is_adopted, "it is another change");
        known.adopted(3);
        known.ask();
        assert!(known.heed(2, false, 0).is_news, "revisions fall only if the store went back");
        assert_eq!(known.quiet(), None);
    }

    #[test]
    fn a_roll_from_before_the_own_change_is_no_news() {
        let mut known = KnownChanges::default();
        known.ask();
        let before = known.read(None).unwrap();
        known.written(&before, put(5), 1);
        known.adopted(1);
        assert!(!known.heed(0, false, 0).is_news);
        assert!(known.quiet().is_some());
        known.ask();
        assert_eq!(known.heed(1, false, 0), Heeded { is_news: false, is_left: true }, "who made it strikes it off");
        assert!(!known.heed(1, false, 1).is_left, "once");
        known.tidied(None, 1);
        assert!(known.heed(1, false, 2).is_left, "and again if it could not");
    }

    #[test]
    fn what_others_left_is_seen_to_after_a_while_by_who_has_the_first_shard() {
        let mut known = KnownChanges::default();
        assert_eq!(known.heed(7, true, 0), Heeded { is_news: true, is_left: false });
        assert!(!known.heed(7, true, GRACE).is_left);
        assert!(!known.heed(7, false, GRACE + 1).is_left);
        assert!(known.heed(7, true, GRACE + 1).is_left);
        assert!(!known.heed(8, true, GRACE + 2).is_left, "that is new");
    }
}
