//! Sweeps: written down before they begin, in an entry of the store that all nodes share.
//!
//! The shards carry a sweep out by themselves, once they were told of it. The entry says which ones all shards are to be told of,
//! who began them, and what came of the latest that are over. Whoever reads it can go on where another node left off.
//!
//! **Invariant**: a sweep is over in the entry only when it is over in all shards.

use punctual_core::{Matching, NumberedSweep, Scope, Sweep, SweepAction, SweepEnd, Swept, Timestamp};
use serde::{Deserialize, Serialize};

/// How many run at once, at most.
const MOST_RUNNING: usize = 16;
/// How many that are over are remembered. Each shard remembers more.
const MOST_OVER: usize = 100;
/// How long the entry gets, at most: those that name tasks take as much as these names, until all shards know them.
const MOST_BYTES: usize = 2 << 20;

/// The form of the entry that is written.
const VERSION: u8 = 1;

/// What the entry says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweeps {
    /// The greatest number that was given.
    last: u64,
    /// In the order of their numbers.
    records: Vec<SweepRecord>,
}

/// What is known of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepRecord {
    /// Greater than that of every sweep before it.
    pub number: u64,
    /// Who began it, if that is known.
    pub who: Option<String>,
    /// When it was written down.
    pub begun_at: Timestamp,
    /// What it does, or what the one did that it takes back.
    pub sweep: Sweep,
    /// How many tasks it names. The names are forgotten when all shards know them.
    pub ids: u64,
    /// Whether all shards know of it.
    pub is_told: bool,
    /// Whether somebody wants it to end.
    pub is_stopped: bool,
    /// The sweep that it takes back.
    pub undoes: Option<u64>,
    /// The sweep that took it back, or does.
    pub undone_by: Option<u64>,
    /// How it ended and what it did.
    pub over: Option<(SweepEnd, Swept)>,
}

/// The entry was written by a newer version, or by something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a newer version of Punctual sweeps this store, which this one cannot do meanwhile")]
pub struct UnreadableSweeps;

/// So much is under way that no other sweep can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MOST_RUNNING} sweeps are running, or they name too many tasks: wait until one is done, or stop one")]
pub struct TooManySweeps;

/// Why a sweep cannot be taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotUndo {
    /// There is none of this number, or not any more.
    #[error("there is no such sweep, or it was too long ago")]
    Unknown,
    /// It is still running.
    #[error("it is still running: wait until it is done, or stop it")]
    Running,
    /// What it did cannot be taken back.
    #[error("{0}")]
    Lasting(&'static str),
    /// It was taken back before.
    #[error("it was undone already, by sweep {by}")]
    Undone {
        /// By this one.
        by: u64,
    },
    /// It has changed nothing.
    #[error("it changed nothing")]
    Unneeded,
    /// No other sweep can begin now.
    #[error(transparent)]
    TooMany(#[from] TooManySweeps),
}

#[derive(Serialize, Deserialize)]
struct Sweeps1 {
    last: u64,
    records: Vec<Record1>,
}

#[derive(Serialize, Deserialize)]
struct Record1 {
    number: u64,
    who: Option<String>,
    begun_at: Timestamp,
    sweep: Vec<u8>,
    ids: u64,
    is_told: bool,
    is_stopped: bool,
    undoes: Option<u64>,
    undone_by: Option<u64>,
    over: Option<(SweepEnd, Swept)>,
}

impl SweepRecord {
    /// What shards are told of it.
    pub fn numbered(&self) -> NumberedSweep {
        let mut sweep = self.sweep.clone();
        if let Some(by) = self.undoes {
            (sweep.matching, sweep.action) = (Matching::Changed { by }, SweepAction::Undo);
        }
        NumberedSweep { number: self.number, sweep }
    }

    /// Whether it can be taken back, as far as it says itself.
    pub fn check_undo(&self) -> Result<(), CannotUndo> {
        let over = self.over.as_ref();
        match (self.sweep.action, self.undoes, over, self.undone_by) {
            (_, Some(_), ..) => Err(CannotUndo::Lasting("this is an undo itself: do again what it has undone")),
            (SweepAction::Purge, ..) => Err(CannotUndo::Lasting("what was purged is gone")),
            (SweepAction::Replay, ..) => {
                Err(CannotUndo::Lasting("what was replayed is with consumers, or soon will be"))
            }
            (SweepAction::Hasten, ..) => {
                Err(CannotUndo::Lasting("what was hastened is with consumers, or soon will be"))
            }
            (_, _, None, _) => Err(CannotUndo::Running),
            (_, _, _, Some(by)) => Err(CannotUndo::Undone { by }),
            (_, _, Some((_, swept)), _) if swept.changed == 0 => Err(CannotUndo::Unneeded),
            _ => Ok(()),
        }
    }

    fn forget_ids(&mut self) {
        if let Matching::Tasks(select) = &mut self.sweep.matching
            && let Some(ids) = &mut select.ids
        {
            ids.clear();
        }
    }
}

impl Sweeps {
    /// The key of the entry.
    pub const KEY: &str = "sweeps";

    /// Reads the entry.
    pub fn read(bytes: &[u8]) -> Result<Sweeps, UnreadableSweeps> {
        let Some((&VERSION, fields)) = bytes.split_first() else { return Err(UnreadableSweeps) };
        let Sweeps1 { last, records } = postcard::from_bytes(fields).map_err(|_| UnreadableSweeps)?;
        let record = |record: Record1| {
            let Record1 { number, who, begun_at, sweep, ids, is_told, is_stopped, undoes, undone_by, over } = record;
            let sweep = Sweep::read(&sweep).ok_or(UnreadableSweeps)?;
            Ok(SweepRecord { number, who, begun_at, sweep, ids, is_told, is_stopped, undoes, undone_by, over })
        };
        Ok(Sweeps { last, records: records.into_iter().map(record).collect::<Result<_, _>>()? })
    }

    /// The entry's bytes.
    pub fn lay(&self) -> Vec<u8> {
        let record = |record: &SweepRecord| {
            let SweepRecord { number, who, begun_at, sweep, ids, is_told, is_stopped, undoes, undone_by, over } =
                record.clone();
            let sweep = sweep.lay().to_vec();
            Record1 { number, who, begun_at, sweep, ids, is_told, is_stopped, undoes, undone_by, over }
        };
        let form = Sweeps1 { last: self.last, records: self.records.iter().map(record).collect() };
        postcard::to_extend(&form, vec![VERSION]).expect("sweeps can be laid out as bytes")
    }

    /// All that are known, in the order of their numbers.
    pub fn records(&self) -> &[SweepRecord] {
        &self.records
    }

    /// One of them.
    pub fn record(&self, number: u64) -> Option<&SweepRecord> {
        self.records.iter().find(|record| record.number == number)
    }

    /// Those that are not over.
    pub fn running(&self) -> impl Iterator<Item = &SweepRecord> {
        self.records.iter().filter(|record| record.over.is_none())
    }

    /// Writes another one down, and says its number. That is not below the time, in microseconds, so that none is given twice by
    /// a store that went back to an older state.
    pub fn begin(
        &self,
        sweep: Sweep,
        who: Option<String>,
        now: Timestamp,
        micros: u64,
    ) -> Result<(Sweeps, u64), TooManySweeps> {
        if self.running().count() >= MOST_RUNNING {
            return Err(TooManySweeps);
        }
        let ids = match &sweep.matching {
            Matching::Tasks(select) => select.ids.as_ref().map_or(0, Vec::len),
            _ => 0,
        };
        let mut sweeps = self.clone();
        sweeps.last = micros.max(self.last + 1);
        sweeps.records.push(SweepRecord {
            number: sweeps.last,
            who,
            begun_at: now,
            sweep,
            ids: ids as u64,
            is_told: false,
            is_stopped: false,
            undoes: None,
            undone_by: None,
            over: None,
        });
        sweeps.forget_old();
        if ids > 0 && sweeps.lay().len() > MOST_BYTES {
            return Err(TooManySweeps);
        }
        let number = sweeps.last;
        Ok((sweeps, number))
    }

    /// Writes the one down that takes another back, of these topics only.
    pub fn undo(
        &self,
        number: u64,
        within: &Scope,
        who: Option<String>,
        now: Timestamp,
        micros: u64,
    ) -> Result<(Sweeps, u64), CannotUndo> {
        let undone = self.record(number).ok_or(CannotUndo::Unknown)?;
        undone.check_undo()?;
        let sweep = Sweep { within: within.clone(), ..undone.sweep.clone() };
        let (mut sweeps, by) = self.begin(sweep, who, now, micros)?;
        for record in &mut sweeps.records {
            if record.number == by {
                (record.undoes, record.ids) = (Some(number), undone.ids);
            } else if record.number == number {
                record.undone_by = Some(by);
            }
        }
        Ok((sweeps, by))
    }

    /// Somebody wants one to end; `None` if there is none that could.
    pub fn stop(&self, number: u64) -> Option<Sweeps> {
        self.changed(number, |record| record.over.is_none() && !std::mem::replace(&mut record.is_stopped, true))
    }

    /// All shards know of one; or one does not, or not any more, and all are to be told again.
    pub fn told(&self, number: u64, is_told: bool) -> Option<Sweeps> {
        self.changed(number, |record| {
            if is_told {
                record.forget_ids();
            }
            std::mem::replace(&mut record.is_told, is_told) != is_told
        })
    }

    /// One is over in all shards, which did this together.
    pub fn over(&self, number: u64, end: SweepEnd, swept: Swept) -> Option<Sweeps> {
        let swept = self.outcome(self.record(number)?, Some(end), swept);
        let mut sweeps = self.changed(number, |record| record.over.replace((end, swept)).is_none())?;
        // One that was taken back in part can be taken back once more.
        let is_in_part = end.is_stopped || swept.no_room > 0;
        let undone = sweeps.record(number)?.undoes.filter(|_| is_in_part);
        for record in sweeps.records.iter_mut().filter(|record| Some(record.number) == undone) {
            record.undone_by = None;
        }
        sweeps.forget_old();
        Some(sweeps)
    }

    /// What one did, given what all shards did. For one that took another back to its end, that is told of everything that the
    /// other one had changed: what was not there any more was changed by somebody else since.
    pub fn outcome(&self, record: &SweepRecord, end: Option<SweepEnd>, swept: Swept) -> Swept {
        let undone = record.undoes.and_then(|undone| self.record(undone)).and_then(|undone| undone.over);
        let (Some((_, undone)), Some(SweepEnd { is_stopped: false, .. })) = (undone, end) else { return swept };
        let earlier = self.records.iter().filter(|other| other.undoes == record.undoes && other.number < record.number);
        let earlier: u64 = earlier.filter_map(|other| other.over).map(|(_, swept)| swept.changed).sum();
        let matched = undone.changed.saturating_sub(earlier).max(swept.changed + swept.no_room);
        Swept { matched, too_late: matched - swept.changed - swept.no_room, ..swept }
    }

    /// Changes a record; `None` if it is not there, or stays as it is.
    fn changed(&self, number: u64, change: impl FnOnce(&mut SweepRecord) -> bool) -> Option<Sweeps> {
        let mut sweeps = self.clone();
        let record = sweeps.records.iter_mut().find(|record| record.number == number)?;
        change(record).then_some(sweeps)
    }

    /// Forgets the oldest that are over. One that is being taken back says what there is to be taken back.
    fn forget_old(&mut self) {
        let over = self.records.iter().filter(|record| record.over.is_some()).count();
        for _ in MOST_OVER..over {
            let needed: Vec<u64> = self.running().filter_map(|record| record.undoes).collect();
            let is_old = |record: &SweepRecord| record.over.is_some() && !needed.contains(&record.number);
            let Some(oldest) = self.records.iter().position(is_old) else { return };
            self.records.remove(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::{Among, Name, Select, Shift, TimeRange};

    use super::*;

    const NOW: Timestamp = Timestamp::ZERO;

    fn sweep(action: SweepAction, ids: Option<Vec<Name>>) -> Sweep {
        let topic = Some(Name::new("t").unwrap());
        let select = Select { among: Among::Live, topic, key: None, queue: None, time: TimeRange::ALL, ids };
        Sweep { matching: Matching::Tasks(Box::new(select)), within: Scope::ALL, action, dry_run: false }
    }

    fn cancel() -> Sweep {
        sweep(SweepAction::Cancel, None)
    }

    fn swept(matched: u64, changed: u64) -> Swept {
        Swept { matched, changed, too_late: matched - changed, no_room: 0 }
    }

    const DONE: SweepEnd = SweepEnd { at: Timestamp::ZERO, is_stopped: false };
    const STOPPED: SweepEnd = SweepEnd { is_stopped: true, ..DONE };

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let ids = Some(vec![Name::new("a").unwrap()]);
        let (sweeps, first) = Sweeps::default().begin(cancel(), Some("amy".into()), NOW, 7).unwrap();
        let sweeps = sweeps.over(first, DONE, swept(3, 2)).unwrap();
        let (sweeps, undo) = sweeps.undo(first, &Scope::of(["t".into()]), None, NOW, 0).unwrap();
        let (sweeps, _) = sweeps.begin(sweep(SweepAction::Shift(Shift::By(5)), ids), None, NOW, 0).unwrap();
        assert_eq!((first, undo), (7, 8));
        for sweeps in [Sweeps::default(), sweeps.stop(undo).unwrap(), sweeps] {
            assert_eq!(Sweeps::read(&sweeps.lay()), Ok(sweeps));
        }
    }

    /// The bytes of an entry, as they stand in stores that exist.
    #[test]
    fn entries_stay_readable() {
        let undo = Sweep {
            matching: Matching::Changed { by: 9 },
            within: Scope::ALL,
            action: SweepAction::Undo,
            dry_run: false,
        };
        let (sweeps, number) = Sweeps::default().begin(undo, Some("amy".into()), NOW, 7).unwrap();
        let sweeps = sweeps.over(number, STOPPED, swept(3, 2)).unwrap();
        let record = [7, 1, 3, b'a', b'm', b'y', 0, 5, 1, 4, 9, 0, 6, 0, 0, 0, 0, 0, 1, 0, 1, 3, 2, 1, 0];
        let bytes = [&[1, 7, 1], &record[..]].concat();
        assert_eq!(sweeps.lay(), bytes);
        assert_eq!(Sweeps::read(&bytes), Ok(sweeps));
        assert_eq!(Sweeps::read(&[2, 0, 0]), Err(UnreadableSweeps), "a newer version is not guessed at");
        assert_eq!(Sweeps::read(&[]), Err(UnreadableSweeps));
    }

    #[test]
    fn what_found_no_room_can_be_taken_back_once_more() {
        let (sweeps, first) = Sweeps::default().begin(cancel(), None, NOW, 7).unwrap();
        let sweeps = sweeps.over(first, DONE, swept(3, 3)).unwrap();
        let (sweeps, undo) = sweeps.undo(first, &Scope::ALL, None, NOW, 0).unwrap();
        let sweeps = sweeps.over(undo, DONE, Swept { matched: 3, changed: 2, too_late: 0, no_room: 1 }).unwrap();
        let (sweeps, again) = sweeps.undo(first, &Scope::ALL, None, NOW, 0).unwrap();
        let sweeps = sweeps.over(again, DONE, swept(1, 1)).unwrap();
        assert_eq!(sweeps.record(again).unwrap().over, Some((DONE, swept(1, 1))));
        assert_eq!(sweeps.undo(first, &Scope::ALL, None, NOW, 0), Err(CannotUndo::Undone { by: again }));
    }

    #[test]
    fn ids_are_kept_until_all_shards_know_them() {
        let ids = Some(vec![Name::new("a").unwrap(), Name::new("b").unwrap()]);
        let (sweeps, number) = Sweeps::default().begin(sweep(SweepAction::Cancel, ids), None, NOW, 1).unwrap();
        let named = |sweeps: &Sweeps| match &sweeps.record(number).unwrap().sweep.matching {
            Matching::Tasks(select) => select.ids.as_ref().map(Vec::len),
            _ => None,
        };
        assert_eq!(named(&sweeps), Some(2));
        let told = sweeps.told(number, true).unwrap();
        assert_eq!((named(&told), told.record(number).unwrap().ids), (Some(0), 2));
        assert_eq!(told.told(number, true), None);
    }

    #[test]
    fn what_runs_and_what_is_remembered_is_bounded() {
        let mut sweeps = Sweeps::default();
        for _ in 0..MOST_RUNNING {
            sweeps = sweeps.begin(cancel(), None, NOW, 0).unwrap().0;
        }
        assert_eq!(sweeps.begin(cancel(), None, NOW, 0), Err(TooManySweeps));
        for _ in 0..500 {
            let oldest = sweeps.running().next().unwrap().number;
            sweeps = sweeps.over(oldest, DONE, swept(1, 1)).unwrap();
            sweeps = sweeps.begin(cancel(), None, NOW, 0).unwrap().0;
        }
        assert_eq!(sweeps.records().len(), MOST_OVER + MOST_RUNNING);
        assert!(sweeps.records().is_sorted_by_key(|record| record.number));
        let long = Some((0..10_000).map(|number| Name::new(format!("{number:0>250}")).unwrap()).collect());
        let sweeps = Sweeps::default();
        assert_eq!(sweeps.begin(sweep(SweepAction::Cancel, long), None, NOW, 0), Err(TooManySweeps));
    }

    #[test]
    fn what_can_be_taken_back_is_once_and_when_it_is_over() {
        let (sweeps, number) = Sweeps::default().begin(cancel(), None, NOW, 1).unwrap();
        let undo = |sweeps: &Sweeps, number| sweeps.undo(number, &Scope::ALL, None, NOW, 0);
        assert_eq!(undo(&sweeps, number), Err(CannotUndo::Running));
        assert_eq!(undo(&sweeps, 99), Err(CannotUndo::Unknown));
        let sweeps = sweeps.over(number, DONE, swept(10, 8)).unwrap();
        let (undoing, by) = undo(&sweeps, number).unwrap();
        assert_eq!(undo(&undoing, number), Err(CannotUndo::Undone { by }));
        assert!(matches!(undo(&undoing, by), Err(CannotUndo::Lasting(_))));
        let told = undoing.record(by).unwrap().numbered();
        assert_eq!((told.sweep.matching, told.sweep.action), (Matching::Changed { by: number }, SweepAction::Undo));
        let (sweeps, number) = sweeps.begin(sweep(SweepAction::Hasten, None), None, NOW, 0).unwrap();
        let sweeps = sweeps.over(number, DONE, swept(1, 1)).unwrap();
        assert!(matches!(undo(&sweeps, number), Err(CannotUndo::Lasting(_))));
        let (sweeps, number) = sweeps.begin(cancel(), None, NOW, 0).unwrap();
        let sweeps = sweeps.over(number, DONE, swept(1, 0)).unwrap();
        assert_eq!(undo(&sweeps, number), Err(CannotUndo::Unneeded));
    }

    #[test]
    fn an_undo_tells_of_all_that_the_other_one_changed() {
        let (sweeps, number) = Sweeps::default().begin(cancel(), None, NOW, 1).unwrap();
        let sweeps = sweeps.over(number, DONE, swept(10, 8)).unwrap();
        let (sweeps, first) = sweeps.undo(number, &Scope::ALL, None, NOW, 0).unwrap();
        let sweeps = sweeps.over(first, STOPPED, swept(3, 3)).unwrap();
        assert_eq!(sweeps.record(first).unwrap().over, Some((STOPPED, swept(3, 3))));
        let (sweeps, second) = sweeps.undo(number, &Scope::ALL, None, NOW, 0).unwrap();
        let sweeps = sweeps.over(second, DONE, swept(4, 4)).unwrap();
        assert_eq!(sweeps.record(second).unwrap().over, Some((DONE, swept(5, 4))), "one of the other five has changed");
        assert_eq!(sweeps.record(number).unwrap().undone_by, Some(second));
    }

    #[test]
    fn stopping_what_is_over_changes_nothing() {
        let (sweeps, number) = Sweeps::default().begin(cancel(), None, NOW, 1).unwrap();
        let stopped = sweeps.stop(number).unwrap();
        assert_eq!((stopped.stop(number), stopped.stop(9)), (None, None));
        assert_eq!(sweeps.over(number, DONE, swept(1, 1)).unwrap().stop(number), None);
    }
}
