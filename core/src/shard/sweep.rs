//! What a sweep does to a row.

use std::collections::BTreeMap;

use super::Shard;
use super::desk::Slot;
use super::job::{Job, Work};
use crate::answer::{Refused, Standing};
use crate::command::Shift;
use crate::dead_groups::likeness;
use crate::event::What;
use crate::name::Name;
use crate::state::{Ending, Phase};
use crate::store::Table;
use crate::sweep::{Among, Matching, Select, Sweep, SweepAction};
use crate::time::{Millis, Timestamp};

impl<R> Shard<R> {
    /// Begins to change all that match; a delay counts `from` when that was asked for, however many steps it takes.
    pub(super) fn start_sweep(&mut self, mut sweep: Sweep, reply: R, from: Timestamp) {
        // What it has moved could come its way again, if it leaves no mark on it.
        let needs_number = matches!(sweep.matching, Matching::Tasks(_) | Matching::Changed { .. });
        let unnumbered = || Refused::BadSettings("a sweep over any tasks needs a number".into());
        if let Err(refused) = sweep.check().and(if needs_number { Err(unnumbered()) } else { Ok(()) }) {
            return self.draft.answer(reply, Err(refused));
        }
        if let SweepAction::Shift(shift @ Shift::In(_)) = &mut sweep.action {
            *shift = Shift::To(shift.apply(Timestamp::ZERO, self.now, from));
        }
        self.jobs.push(self.sweeping(sweep, vec![reply]));
    }

    /// Begins to count what a sweep would change.
    pub(super) fn start_preview(&mut self, sweep: Sweep, reply: R) {
        match sweep.check() {
            Ok(()) => self.jobs.push(self.sweeping(Sweep { dry_run: true, ..sweep }, vec![reply]).preview()),
            Err(refused) => self.draft.answer(reply, Err(refused)),
        }
    }

    pub(super) fn sweeping(&self, sweep: Sweep, replies: Vec<R>) -> Job<R> {
        let named = match &sweep.matching {
            Matching::Tasks(select) => select.keys(),
            _ => None,
        };
        let job = Job::new(Work::Sweep(sweep), replies, self.numbers.next_row(), self.now);
        let mut job = job.by(self.draft.acts_for());
        job.left = named.unwrap_or_default();
        job
    }

    pub(super) fn matches(&self, slot: Slot, sweep: &Sweep) -> bool {
        let row = &self.desk[slot];
        if !sweep.within.fits(row.key().topic()) {
            return false;
        }
        match &sweep.matching {
            Matching::Key { key, topic } => {
                let of_topic = topic.as_ref().is_none_or(|topic| row.key().topic() == topic.as_str());
                row.table() == Table::Live && row.group() == Some(key) && of_topic && !row.is_part()
            }
            Matching::Dead { topic, queue, died } => {
                let of_topic = topic.as_ref().is_none_or(|topic| row.key().topic() == topic.as_str());
                let of_queue = queue.as_ref().is_none_or(|queue| row.state.queue.as_ref() == Some(queue));
                row.table() == Table::Dead && of_topic && of_queue && (died.from..died.until).contains(&row.at())
            }
            Matching::History { topic, finished, ending } => {
                let in_time = (finished.from..finished.until).contains(&row.at());
                let ended_so = ending.is_none_or(|ending| row.state.phase == Phase::Finished(ending));
                row.table() == Table::History && row.key().topic() == topic.as_str() && in_time && ended_so
            }
            Matching::Tasks(select) => self.fits(slot, select),
            Matching::Changed { by } => self.is_changed(slot, *by),
        }
    }

    fn fits(&self, slot: Slot, select: &Select) -> bool {
        let row = &self.desk[slot];
        let ready_in = row.ready_in().map(|queue| &self.directory.queue(queue).name);
        let queue = ready_in.or(row.state.queue.as_ref());
        let is_due = row.at() <= self.now;
        row.table() == select.table()
            && select.time.has(row.at())
            && select.topic.as_ref().is_none_or(|topic| row.key().topic() == topic.as_str())
            && select.key.as_ref().is_none_or(|key| row.group() == Some(key))
            && select.queue.as_ref().is_none_or(|wanted| queue == Some(wanted))
            && match (&select.among, &row.state.phase) {
                (Among::Live, _) => !row.is_part(),
                (Among::Scheduled, phase) => !row.is_part() && *phase == Phase::Waiting && !is_due,
                (Among::Ready, phase) => !row.is_part() && *phase == Phase::Waiting && is_due,
                (Among::Dead { reason, note, note_prefix }, Phase::Dead(death)) => {
                    let said = death.note.as_deref().unwrap_or_default();
                    reason.is_none_or(|reason| death.reason == reason)
                        && note.as_ref().is_none_or(|note| likeness(said) == *note)
                        && note_prefix.as_ref().is_none_or(|prefix| said.starts_with(prefix.as_str()))
                }
                (Among::History { ending }, phase) => ending.is_none_or(|ending| *phase == Phase::Finished(ending)),
                (Among::Dead { .. }, _) => false,
            }
    }

    /// Between which times a task stands: where it stands itself, or its deliveries.
    pub(super) fn stands_between(&self, slot: Slot) -> (Timestamp, Timestamp) {
        let own = self.desk[slot].at();
        let parts = self.open_part_keys(slot);
        let parts = parts.iter().filter_map(|key| self.desk.by_key(key)).map(|part| self.desk[part].at());
        let (first, last) = (parts.clone().min(), parts.max());
        (first.unwrap_or(own), last.unwrap_or(own))
    }

    pub(super) fn would_change(&self, slot: Slot, sweep: &Sweep, promised: &mut BTreeMap<Name, u64>) -> Outcome {
        let Ok(open) = self.open_parts(slot) else {
            return match sweep.action {
                SweepAction::Purge => Outcome::Changed,
                SweepAction::Replay if self.is_orphan(slot) => Outcome::TooLate,
                SweepAction::Replay if self.promise_return(slot, promised).is_err() => Outcome::NoRoom,
                SweepAction::Replay => Outcome::Changed,
                _ => Outcome::TooLate,
            };
        };
        let Some(shift) = self.shift(slot, sweep) else { return Outcome::Changed };
        if let Matching::Key { .. } = sweep.matching {
            let has_room = self.check_moved(&open, shift, self.now).is_ok();
            return if has_room { Outcome::Changed } else { Outcome::NoRoom };
        }
        let coming = self.coming_due(&open, shift);
        if sweep.action == SweepAction::Hasten && coming.is_empty() {
            return Outcome::TooLate;
        }
        match coming.into_iter().try_for_each(|part| self.promise_return(part, promised)) {
            Ok(()) => Outcome::Changed,
            Err(_) => Outcome::NoRoom,
        }
    }

    pub(super) fn sweep_one(&mut self, slot: Slot, sweep: &Sweep, number: Option<u64>) -> Outcome {
        match sweep.action {
            SweepAction::Cancel => {
                let Ok(open) = self.open_parts(slot) else { return Outcome::TooLate };
                if let Some(by) = number {
                    let row = &self.desk[slot];
                    // That of a task with several deliveries sleeps, and they wake with it when it is due.
                    let at = if row.is_waiting() { row.at() } else { Timestamp::ZERO };
                    self.mark(slot, by, Some((row.state.due, at)));
                }
                open.into_iter().for_each(|part| self.end(part, Ending::Cancelled));
                Outcome::Changed
            }
            SweepAction::Shift(_) | SweepAction::Spread(_) | SweepAction::Hasten => self.move_one(slot, sweep, number),
            SweepAction::Replay => match self.replay(slot) {
                Ok(Standing::Dead { .. }) | Err(Refused::QueueFull(_)) => Outcome::NoRoom,
                Ok(_) => Outcome::Changed,
                Err(_) => Outcome::TooLate,
            },
            SweepAction::Purge => {
                self.purge(slot);
                Outcome::Changed
            }
            SweepAction::Undo => self.undo_one(self.task_of(slot)),
        }
    }

    /// How a sweep moves a task, if it does.
    fn shift(&self, slot: Slot, sweep: &Sweep) -> Option<Shift> {
        match sweep.action {
            SweepAction::Shift(shift) => Some(shift),
            SweepAction::Spread(over) => Some(Shift::To(over.portion(self.desk[slot].seq()))),
            SweepAction::Hasten => Some(Shift::In(Millis::ZERO)),
            SweepAction::Cancel | SweepAction::Replay | SweepAction::Purge | SweepAction::Undo => None,
        }
    }

    /// Those that wait for their time, and that a shift makes due at once.
    fn coming_due(&self, open: &[Slot], shift: Shift) -> Vec<Slot> {
        let is_coming = |slot: &Slot| {
            let row = &self.desk[*slot];
            row.ready_in().is_none() && row.at() > self.now && shift.apply(row.at(), self.now, self.now) <= self.now
        };
        open.iter().copied().filter(is_coming).collect()
    }

    fn move_one(&mut self, slot: Slot, sweep: &Sweep, number: Option<u64>) -> Outcome {
        let Ok(open) = self.open_parts(slot) else { return Outcome::TooLate };
        let Some(shift) = self.shift(slot, sweep) else { return Outcome::Passed };
        let coming = self.coming_due(&open, shift);
        if sweep.action == SweepAction::Hasten && coming.is_empty() {
            return Outcome::TooLate;
        }
        let has_room = match sweep.matching {
            Matching::Key { .. } => self.check_moved(&open, shift, self.now).is_ok(),
            // Of many that come due at once none pushes anything out: each would push out the one before.
            _ => coming.into_iter().all(|part| self.check_return(part).is_ok()),
        };
        if !has_room {
            return Outcome::NoRoom;
        }
        if let Some(by) = number {
            // On the task too, if it has several deliveries. Whatever comes of a row on its way takes its mark along.
            for row in open.iter().chain(Some(&slot).filter(|slot| !open.contains(slot))) {
                let before = (self.desk[*row].state.due, self.desk[*row].at());
                self.mark(*row, by, sweep.action.is_undoable().then_some(before));
            }
        }
        for part in open {
            if sweep.action == SweepAction::Hasten {
                self.touch(part);
                let state = &mut self.desk.edit(part).state;
                state.keep_delay();
                state.past_mut().replays += 1;
            }
            self.change(part, Some(shift), None, self.now);
        }
        Outcome::Changed
    }

    /// Makes a task again what it was before a sweep changed it, unless that is not possible any more.
    fn undo_one(&mut self, slot: Slot) -> Outcome {
        let row = &self.desk[slot];
        let Some(mark) = row.state.swept.as_deref() else { return Outcome::TooLate };
        match (mark.before, &row.state.phase) {
            (Some((_, at)), Phase::Finished(Ending::Cancelled)) => match self.restore_one(slot, at) {
                Ok(()) => Outcome::Changed,
                Err(_) => Outcome::NoRoom,
            },
            (Some((due, _)), _) => self.move_back(slot, mark.by, due),
            (None, _) => Outcome::TooLate,
        }
    }

    /// A task is due when it was due before, and each of its deliveries wakes when it was to wake then, or now.
    fn move_back(&mut self, slot: Slot, by: u64, due: Timestamp) -> Outcome {
        let Ok(open) = self.open_parts(slot) else { return Outcome::TooLate };
        let before = |part: &Slot| self.before(*part, by);
        // One of several may have been with a consumer, or somebody has changed it alone.
        let Some(before) = open.iter().map(before).collect::<Option<Vec<_>>>() else { return Outcome::TooLate };
        let comes_back = |(part, (_, at)): (&Slot, &(Timestamp, Timestamp))| {
            self.coming_due(&[*part], Shift::To(*at)).into_iter().all(|part| self.check_return(part).is_ok())
        };
        if !open.iter().zip(&before).all(comes_back) {
            return Outcome::NoRoom;
        }
        self.outdate_mark(slot);
        self.touch(slot);
        self.desk.edit(slot).state.due = due;
        for (part, (due, at)) in open.into_iter().zip(before) {
            self.leave_ready(part);
            self.outdate_mark(part);
            self.touch(part);
            self.desk.edit(part).state.due = due;
            self.happens(part, What::Rescheduled { due });
            self.wait_until(part, at.max(self.now));
        }
        Outcome::Changed
    }
}

/// What a sweep did to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Changed,
    TooLate,
    NoRoom,
    /// It was not meant.
    Passed,
}
