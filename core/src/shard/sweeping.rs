//! Sweeps that go on by themselves: each has a number and a note among the settings, which says how far it is.
//!
//! **Invariant**: the note is durable with what it tells of. So a sweep goes on after a crash where it was, what it has changed
//! is counted once, and one that is begun again under the same number changes nothing.
//!
//! The notes of the latest ones are kept: they tell what came of them, and where that is to be found which can be taken back.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Shard;
use super::course::Course;
use super::job::{Job, Work};
use crate::answer::{Answer, Refused, Reply, Swept};
use crate::name::Name;
use crate::scope::Scope;
use crate::store::{Key, Position, Row, Table};
use crate::stored;
use crate::sweep::{Matching, NumberedSweep, Sweep, SweepAction, SweepEnd, SweepProgress};
use crate::time::Timestamp;

/// How many notes are kept.
const KEPT: usize = 128;

/// What a row of settings has for an id that is the note of a sweep; its number stands for a queue.
const SWEEP: &str = "sweep";

fn note_key(number: u64) -> Key {
    Key::new("", SWEEP, &number.to_string())
}

/// What is known of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SweepNote {
    matching: Matching,
    within: Scope,
    action: SweepAction,
    last_seq: u64,
    started_at: Timestamp,
    cursor: Position,
    is_beyond: bool,
    left: Vec<Key>,
    swept: Swept,
    span: Option<(Timestamp, Timestamp)>,
    ended: Option<SweepEnd>,
    by: Option<Name>,
}

/// The stored form. It is never changed again: a next version is this one with something behind it.
#[derive(Serialize, Deserialize)]
struct Note1 {
    matching: Matching,
    within: Option<Vec<String>>,
    action: SweepAction,
    last_seq: u64,
    started_at: Timestamp,
    cursor: (Timestamp, u64),
    is_beyond: bool,
    left: Vec<(String, String, String)>,
    swept: Swept,
    span: Option<(Timestamp, Timestamp)>,
    ended: Option<SweepEnd>,
    by: Option<Name>,
}

impl SweepNote {
    /// Whether a row of settings is the note of a sweep.
    pub fn is_in(row: &Row) -> bool {
        row.table == Table::Settings && row.key.topic().is_empty() && row.key.id() == SWEEP
    }

    fn lay(&self) -> Bytes {
        let SweepNote { matching, within, action, last_seq, started_at, is_beyond, swept, span, ended, by, .. } =
            self.clone();
        let within = (!within.is_all()).then(|| within.patterns().to_vec());
        let part = |part: &str| part.to_owned();
        let left = self.left.iter().map(|key| (part(key.topic()), part(key.id()), part(key.queue()))).collect();
        let cursor = (self.cursor.at, self.cursor.seq);
        let note =
            Note1 { matching, within, action, last_seq, started_at, cursor, is_beyond, left, swept, span, ended, by };
        stored::lay(1, &note)
    }

    fn read(bytes: &[u8]) -> SweepNote {
        let note: Note1 = match stored::version(bytes) {
            (1, fields) => stored::read(fields),
            _ => stored::newer("the note of a sweep"),
        };
        let Note1 { matching, within, action, last_seq, started_at, is_beyond, swept, span, ended, by, .. } = note;
        let within = within.map_or(Scope::ALL, Scope::of);
        let left = note.left.iter().filter_map(|(topic, id, queue)| Key::read_back(topic, id, queue)).collect();
        let cursor = Position { at: note.cursor.0, seq: note.cursor.1 };
        SweepNote { matching, within, action, last_seq, started_at, cursor, is_beyond, left, swept, span, ended, by }
    }

    fn of<R>(job: &Job<R>, sweep: &Sweep, ended: Option<SweepEnd>) -> SweepNote {
        let (matching, within, action) = (sweep.matching.clone(), sweep.within.clone(), sweep.action);
        let Job { last_seq, started_at, cursor, is_beyond, swept, span, .. } = *job;
        let (left, by) = (job.left.clone(), job.by.clone());
        let mut note = SweepNote {
            matching,
            within,
            action,
            last_seq,
            started_at,
            cursor,
            is_beyond,
            left,
            swept,
            span,
            ended,
            by,
        };
        // They are among those that are left, as long as they are.
        if let Matching::Tasks(select) = &mut note.matching
            && let Some(ids) = &mut select.ids
        {
            ids.clear();
        }
        note
    }

    fn sweep(&self) -> Sweep {
        let (matching, within, action) = (self.matching.clone(), self.within.clone(), self.action);
        Sweep { matching, within, action, dry_run: false }
    }
}

/// The note of a sweep without what it counted, for the second and further shards that one is divided into; nothing if a row
/// of settings is something else.
pub fn uncounted(row: &Row) -> Option<Row> {
    let note = SweepNote::is_in(row).then(|| SweepNote::read(&row.state))?;
    Some(Row { state: SweepNote { swept: Swept::default(), ..note }.lay(), ..row.clone() })
}

/// The sweeps that a shard knows, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    notes: BTreeMap<u64, SweepNote>,
}

impl Sweeps {
    /// How far all of them are.
    pub fn progress(&self) -> Vec<SweepProgress> {
        let progress = |(number, note): (&u64, &SweepNote)| SweepProgress {
            number: *number,
            swept: note.swept,
            ended: note.ended,
        };
        self.notes.iter().map(progress).collect()
    }

    /// Whether one is not through yet.
    pub fn is_under_way(&self, number: u64) -> bool {
        self.notes.get(&number).is_some_and(|note| note.ended.is_none())
    }

    /// Whether one has begun, now or so long ago that nobody knows.
    fn has_begun(&self, number: u64) -> bool {
        let oldest = self.notes.keys().next().filter(|_| self.notes.len() >= KEPT);
        self.notes.contains_key(&number) || oldest.is_some_and(|oldest| number < *oldest)
    }

    /// The oldest one that is over, if there are too many.
    fn outlived(&self) -> Option<u64> {
        let undone = |number: u64| {
            let is_of = |note: &SweepNote| note.ended.is_none() && note.matching == Matching::Changed { by: number };
            self.notes.values().any(is_of)
        };
        let mut over = self.notes.iter().filter(|(number, note)| note.ended.is_some() && !undone(**number));
        over.next().map(|(number, _)| *number).filter(|_| self.notes.len() > KEPT)
    }

    /// On which course a sweep comes to what another one has changed.
    fn course_to(&self, by: u64) -> Option<Course> {
        let note = self.notes.get(&by)?;
        Some(Course::to_changed(note.action, note.sweep().topic().cloned(), note.span?))
    }
}

impl<R> Shard<R> {
    /// Begins a sweep, unless it has begun.
    pub(super) fn begin_sweep(&mut self, numbered: NumberedSweep) -> Reply {
        let NumberedSweep { number, sweep } = numbered;
        sweep.check()?;
        if !self.sweeps.has_begun(number) {
            let mut job = self.sweeping(Sweep { dry_run: false, ..sweep }, Vec::new());
            job.number = Some(number);
            self.lead_to_changed(&mut job);
            job.cursor = job.course.start();
            self.note_progress(&job, None);
            self.jobs.push(job);
            if let Some(outlived) = self.sweeps.outlived() {
                self.sweeps.notes.remove(&outlived);
                self.catalogue.remove(note_key(outlived));
            }
        }
        Ok(Answer::Noted)
    }

    /// Ends a sweep. It may be over already.
    pub(super) fn stop_sweep(&mut self, number: u64) -> Reply {
        if !self.sweeps.notes.contains_key(&number) {
            return Err(Refused::NothingThere);
        }
        if let Some(job) = self.jobs.iter_mut().find(|job| job.number == Some(number)) {
            job.is_stopped = true;
        }
        Ok(Answer::Noted)
    }

    /// Gives a sweep that takes back another one its course.
    fn lead_to_changed(&self, job: &mut Job<R>) {
        if let Work::Sweep(Sweep { matching: Matching::Changed { by }, .. }) = &job.work
            && let Some(course) = self.sweeps.course_to(*by)
        {
            job.course = course;
        }
    }

    /// Notes how far a numbered sweep is.
    pub(super) fn note_progress(&mut self, job: &Job<R>, ended: Option<SweepEnd>) {
        if let (Some(number), Work::Sweep(sweep)) = (job.number, &job.work) {
            let note = SweepNote::of(job, sweep, ended);
            self.catalogue.put(note_key(number), note.lay());
            self.sweeps.notes.insert(number, note);
        }
    }

    /// Goes on with the sweeps that a crash, or a change of the shard's owner, has cut short.
    pub(super) fn go_on_sweeping(&mut self, notes: &[Row]) {
        for row in notes {
            self.catalogue.restore(row.key.clone(), row.seq);
            if let Ok(number) = row.key.queue().parse() {
                self.sweeps.notes.insert(number, SweepNote::read(&row.state));
            }
        }
        let under_way = self.sweeps.notes.iter().filter(|(_, note)| note.ended.is_none());
        let under_way: Vec<(u64, SweepNote)> = under_way.map(|(number, note)| (*number, note.clone())).collect();
        for (number, note) in under_way {
            let mut job = Job::new(Work::Sweep(note.sweep()), Vec::new(), 0, note.started_at);
            self.lead_to_changed(&mut job);
            job.number = Some(number);
            (job.last_seq, job.cursor, job.is_beyond) = (note.last_seq, note.cursor, note.is_beyond);
            (job.left, job.swept, job.span, job.by) = (note.left, note.swept, note.span, note.by);
            self.jobs.push(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Among, Select, TimeRange};

    fn note() -> SweepNote {
        let name = |text| Name::new(text).expect("a name");
        let among = Among::Dead { reason: None, note: None, note_prefix: Some("no".into()) };
        let (topic, key, queue) = (Some(name("t")), None, Some(name("q")));
        let select = Select { among, topic, key, queue, time: TimeRange::ALL, ids: None };
        SweepNote {
            matching: Matching::Tasks(Box::new(select)),
            within: Scope::of(["t*".to_owned()]),
            action: SweepAction::Purge,
            last_seq: 7,
            started_at: Timestamp::from_millis(5),
            cursor: Position { at: Timestamp::from_millis(4), seq: 3 },
            is_beyond: false,
            left: vec![Key::new("t", "i", "q")],
            swept: Swept { matched: 3, changed: 1, too_late: 2, no_room: 0 },
            span: Some((Timestamp::from_millis(5), Timestamp::from_millis(6))),
            ended: Some(SweepEnd { at: Timestamp::from_millis(6), is_stopped: true }),
            by: Some(name("amy")),
        }
    }

    /// The bytes of a note, as they stand in stores that exist.
    #[test]
    fn notes_of_sweeps_stay_readable() {
        let select = [3, 3, 0, 0, 1, 2, b'n', b'o', 1, 1, b't', 0, 1, 1, b'q', 0];
        let never = [255, 255, 255, 255, 255, 255, 255, 15];
        let rest =
            [0, 1, 1, 2, b't', b'*', 3, 7, 5, 4, 3, 0, 1, 1, b't', 1, b'i', 1, b'q', 3, 1, 2, 0, 1, 5, 6, 1, 6, 1];
        let by = [1, 3, b'a', b'm', b'y'];
        let bytes = [&[1], &select[..], &never[..], &rest[..], &by[..]].concat();
        assert_eq!(note().lay(), bytes);
        assert_eq!(SweepNote::read(&bytes), note());
    }

    #[test]
    #[should_panic(expected = "a newer version of Punctual wrote the note of a sweep")]
    fn a_newer_note_is_not_guessed_at() {
        SweepNote::read(&[2, 0]);
    }

    #[test]
    fn a_shard_that_comes_of_a_division_goes_on_without_what_was_counted() {
        let (key, at, group) = (note_key(9), Timestamp::ZERO, None);
        let row = Row { table: Table::Settings, key, seq: 1, at, group, state: note().lay(), body: Bytes::new() };
        let divided = uncounted(&row).expect("it is a note");
        assert_eq!(SweepNote::read(&divided.state), SweepNote { swept: Swept::default(), ..note() });
        assert_eq!(uncounted(&Row { key: Key::new("", "", "q"), ..row }), None);
    }
}
