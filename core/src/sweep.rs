//! Changes to many tasks at once: what they go over, what they do, and what is told of them.
//!
//! The order of the variants in here is stored (`shard/sweeping.rs`) and never changes; new ones come last.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::answer::{Refused, Swept};
use crate::command::Shift;
use crate::name::Name;
use crate::scope::Scope;
use crate::state::{Ending, Reason};
use crate::store::{Key, Table};
use crate::stored;
use crate::time::{Millis, Timestamp};

/// A change to all that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// What matches.
    pub matching: Matching,
    /// Only of these topics.
    pub within: Scope,
    /// What happens to it.
    pub action: SweepAction,
    /// Only count.
    pub dry_run: bool,
}

/// What a sweep goes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Matching {
    /// The tasks with this key that are not finished, maybe of one topic only.
    Key {
        /// The key.
        key: Name,
        /// Only of this topic.
        topic: Option<Name>,
    },
    /// Dead letters.
    Dead {
        /// Only of this topic.
        topic: Option<Name>,
        /// Only of this queue.
        queue: Option<Name>,
        /// That died in this time.
        died: TimeRange,
    },
    /// Finished tasks.
    History {
        /// Of this topic.
        topic: Name,
        /// That finished in this time.
        finished: TimeRange,
        /// Only those that finished so; `None` means however they did.
        ending: Option<Ending>,
    },
    /// Tasks or deliveries that fit every filter.
    Tasks(Box<Select>),
    /// What another sweep has changed, and nobody else since.
    Changed {
        /// The number of that sweep.
        by: u64,
    },
}

/// Which tasks or deliveries: those that fit every filter that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Select {
    /// Of what kind they are.
    pub among: Among,
    /// Their topic.
    pub topic: Option<Name>,
    /// Their key.
    pub key: Option<Name>,
    /// The queue in which they are ready, died or were worked on. A task that was broadcast is in none.
    pub queue: Option<Name>,
    /// When they come due (again), died or finished. A task that was broadcast has no such time before it is finished.
    pub time: TimeRange,
    /// Their ids, if only some are meant; then there is a topic.
    pub ids: Option<Vec<Name>>,
}

/// What kind of tasks or deliveries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Among {
    /// Tasks that are not finished; for those with a consumer it is too late.
    Live,
    /// Tasks that wait for their time.
    Scheduled,
    /// Tasks that wait for a consumer.
    Ready,
    /// Dead letters.
    Dead {
        /// Only those that died of this.
        reason: Option<Reason>,
        /// Only those with notes like this; with an empty one, those without a note.
        note: Option<String>,
        /// Only those whose notes begin so.
        note_prefix: Option<String>,
    },
    /// Finished tasks.
    History {
        /// Only those that finished so.
        ending: Option<Ending>,
    },
}

impl Select {
    /// The table in which they stand.
    pub fn table(&self) -> Table {
        match self.among {
            Among::Live | Among::Scheduled | Among::Ready => Table::Live,
            Among::Dead { .. } => Table::Dead,
            Among::History { .. } => Table::History,
        }
    }

    /// The rows of the ids, if only some are meant.
    pub(crate) fn keys(&self) -> Option<Vec<Key>> {
        let (ids, topic) = (self.ids.as_ref()?, self.topic.as_ref()?);
        let own = ids.iter().map(|id| Key::task(topic, id));
        // One of several deliveries of a task that was broadcast is told by its queue.
        let in_queue = self.queue.iter().flat_map(|queue| ids.iter().map(move |id| Key::new(topic, id, queue)));
        Some(own.chain(in_queue).collect())
    }
}

/// From one instant to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// The first instant.
    pub from: Timestamp,
    /// The instant to stop before.
    pub until: Timestamp,
}

impl TimeRange {
    /// All of time.
    pub const ALL: TimeRange = TimeRange { from: Timestamp::ZERO, until: Timestamp::NEVER };

    /// Whether an instant is in it.
    pub fn has(&self, at: Timestamp) -> bool {
        (self.from..self.until).contains(&at)
    }

    /// The instant in it that belongs to a number: those of any numbers in a row lie evenly over all of it.
    pub fn portion(&self, number: u64) -> Timestamp {
        /// 2^64 divided by the golden ratio: its multiples leave no large gap, however many there are.
        const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;
        let length = self.until.since(self.from).0;
        let offset = (u128::from(number.wrapping_mul(STRIDE)) * u128::from(length)) >> 64;
        self.from.plus(Millis(offset as u64))
    }
}

/// What happens to all that a sweep goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SweepAction {
    /// Tasks are cancelled.
    Cancel,
    /// The due times of tasks move.
    Shift(Shift),
    /// Dead letters or finished tasks are handed out again.
    Replay,
    /// Dead letters are removed.
    Purge,
    /// The due times of tasks move to be evenly over this time.
    Spread(TimeRange),
    /// Tasks that wait for their time are due now.
    Hasten,
    /// What another sweep did is taken back.
    Undo,
}

impl SweepAction {
    /// Whether it can be taken back.
    pub fn is_undoable(self) -> bool {
        matches!(self, SweepAction::Cancel | SweepAction::Shift(_) | SweepAction::Spread(_))
    }
}

/// The stored form of what is to be done.
#[derive(Serialize, Deserialize)]
struct Sweep1 {
    matching: Matching,
    within: Option<Vec<String>>,
    action: SweepAction,
}

impl Sweep {
    /// The stored form of one that is not a dry run.
    pub fn lay(&self) -> Bytes {
        let within = (!self.within.is_all()).then(|| self.within.patterns().to_vec());
        stored::lay(1, &Sweep1 { matching: self.matching.clone(), within, action: self.action })
    }

    /// What was stored; `None` if a newer version wrote it, or something else.
    pub fn read(bytes: &[u8]) -> Option<Sweep> {
        let Some((1, fields)) = bytes.split_first() else { return None };
        let Sweep1 { matching, within, action } = postcard::from_bytes(fields).ok()?;
        Some(Sweep { matching, within: within.map_or(Scope::ALL, Scope::of), action, dry_run: false })
    }

    /// Whether what it does can be done to what it goes over.
    pub fn check(&self) -> Result<(), Refused> {
        let table = match &self.matching {
            Matching::Key { .. } => Table::Live,
            Matching::Dead { .. } => Table::Dead,
            Matching::History { .. } => Table::History,
            Matching::Tasks(select) => select.table(),
            // What the other one did says where it is.
            Matching::Changed { .. } => Table::Settings,
        };
        let fits = match self.action {
            SweepAction::Cancel | SweepAction::Shift(_) => table == Table::Live,
            SweepAction::Spread(_) => table == Table::Live,
            SweepAction::Hasten => table == Table::Live,
            SweepAction::Replay => matches!(table, Table::Dead | Table::History),
            SweepAction::Purge => table == Table::Dead,
            SweepAction::Undo => table == Table::Settings,
        };
        match fits {
            true => Ok(()),
            false => Err(Refused::BadSettings(format!("{:?} does not apply to {:?}", self.action, self.matching))),
        }
    }

    /// The one topic that it is about, if it is.
    pub fn topic(&self) -> Option<&Name> {
        match &self.matching {
            Matching::Key { topic, .. } | Matching::Dead { topic, .. } => topic.as_ref(),
            Matching::History { topic, .. } => Some(topic),
            Matching::Tasks(select) => select.topic.as_ref(),
            Matching::Changed { .. } => None,
        }
    }
}

/// A sweep that is known by a number, so that it begins once in each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedSweep {
    /// Later sweeps have greater ones.
    pub number: u64,
    /// What to do.
    pub sweep: Sweep,
}

/// How far a numbered sweep is in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepProgress {
    /// Its number.
    pub number: u64,
    /// What it has done so far.
    pub swept: Swept,
    /// How it ended, if it has.
    pub ended: Option<SweepEnd>,
}

/// The end of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepEnd {
    /// When.
    pub at: Timestamp,
    /// Somebody ended it before it was through.
    pub is_stopped: bool,
}

/// What a sweep would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// How many it would change.
    pub swept: Swept,
    /// There are more; counting ended before all were seen.
    pub more: bool,
    /// The rows of some that it would change.
    pub samples: Vec<Key>,
}

impl Preview {
    /// How many samples there are at most.
    pub const SAMPLES: usize = 5;

    /// Both together, for several shards.
    #[must_use]
    pub fn plus(mut self, other: Preview) -> Preview {
        self.samples.extend(other.samples);
        self.samples.truncate(Preview::SAMPLES);
        Preview { swept: self.swept.plus(other.swept), more: self.more || other.more, samples: self.samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_of_a_time_are_even_and_stay_in_it() {
        let over = TimeRange { from: Timestamp::from_millis(1_000_000), until: Timestamp::from_millis(1_600_000) };
        for first in [1, 77, u64::MAX - 500] {
            let mut slots = [0; 10];
            for number in (0..1_000).map(|number| u64::wrapping_add(first, number)) {
                let at = over.portion(number);
                assert!(over.has(at), "{at:?}");
                slots[(at.since(over.from).0 / 60_000) as usize] += 1;
            }
            assert!(slots.iter().all(|slot| (95..=105).contains(slot)), "{slots:?}");
        }
        let none = TimeRange { until: over.from, ..over };
        assert_eq!(none.portion(7), over.from, "no time at all is one instant");
    }

    #[test]
    fn what_is_done_has_to_fit_what_it_is_done_to() {
        let select = |among| Select { among, topic: None, key: None, queue: None, time: TimeRange::ALL, ids: None };
        let sweep = |among, action| Sweep {
            matching: Matching::Tasks(Box::new(select(among))),
            within: Scope::ALL,
            action,
            dry_run: false,
        };
        let dead = || Among::Dead { reason: None, note: None, note_prefix: None };
        assert_eq!(sweep(Among::Ready, SweepAction::Cancel).check(), Ok(()));
        assert_eq!(sweep(dead(), SweepAction::Purge).check(), Ok(()));
        assert_eq!(sweep(Among::History { ending: None }, SweepAction::Replay).check(), Ok(()));
        for (among, action) in [
            (Among::Live, SweepAction::Purge),
            (dead(), SweepAction::Cancel),
            (Among::History { ending: None }, SweepAction::Purge),
            (Among::Scheduled, SweepAction::Undo),
        ] {
            assert!(matches!(sweep(among, action).check(), Err(Refused::BadSettings(_))));
        }
    }

    /// The bytes of a sweep, as they stand in stores that exist.
    #[test]
    fn sweeps_stay_readable() {
        let within = Scope::of(["t*".to_owned()]);
        let (matching, action) = (Matching::Changed { by: 9 }, SweepAction::Undo);
        let sweep = Sweep { matching, within, action, dry_run: false };
        let bytes = [1, 4, 9, 1, 1, 2, b't', b'*', 6];
        assert_eq!(sweep.lay(), &bytes[..]);
        assert_eq!(Sweep::read(&bytes), Some(sweep));
        assert_eq!((Sweep::read(&[2, 4, 9, 0, 6]), Sweep::read(&[1, 77]), Sweep::read(&[])), (None, None, None));
    }
}
