//! Work on many rows: stretch by stretch, one stretch of each job in a step, so that nothing else waits.

use std::collections::BTreeMap;

use super::Shard;
use super::desk::Slot;
use super::job::{Job, Work};
use crate::answer::{Refused, Standing};
use crate::command::{Matching, Shift, Sweep, SweepAction};
use crate::name::Name;
use crate::state::{Ending, Phase};
use crate::store::Table;
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// Begins to change all that match; a delay counts `from` when that was asked for, however many steps it takes.
    pub(super) fn start_sweep(&mut self, mut sweep: Sweep, reply: R, from: Timestamp) {
        let fits = matches!(
            (&sweep.matching, sweep.action),
            (Matching::Key { .. }, SweepAction::Cancel | SweepAction::Shift(_))
                | (Matching::Dead { .. }, SweepAction::Replay | SweepAction::Purge)
                | (Matching::History { .. }, SweepAction::Replay)
        );
        if !fits {
            let message = format!("{:?} does not apply to {:?}", sweep.action, sweep.matching);
            return self.draft.answer(reply, Err(Refused::BadSettings(message)));
        }
        if let SweepAction::Shift(shift @ Shift::In(_)) = &mut sweep.action {
            *shift = Shift::To(shift.apply(Timestamp::ZERO, self.now, from));
        }
        self.jobs.push(Job::new(Work::Sweep(sweep), vec![reply], self.numbers.next_row(), self.now));
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
        }
    }

    pub(super) fn would_change(&self, slot: Slot, sweep: &Sweep, promised: &mut BTreeMap<Name, u64>) -> Outcome {
        match sweep.action {
            SweepAction::Cancel | SweepAction::Shift(_) if !self.is_open(slot) => Outcome::TooLate,
            SweepAction::Replay if self.is_orphan(slot) => Outcome::TooLate,
            SweepAction::Replay if self.promise_return(slot, promised).is_err() => Outcome::NoRoom,
            _ => Outcome::Changed,
        }
    }

    pub(super) fn sweep_one(&mut self, slot: Slot, sweep: &Sweep) -> Outcome {
        match sweep.action {
            SweepAction::Cancel => self.change_by_key(slot, None, self.now),
            SweepAction::Shift(shift) => self.change_by_key(slot, Some(shift), self.now),
            SweepAction::Replay => match self.replay(slot) {
                Ok(Standing::Dead { .. }) | Err(Refused::QueueFull(_)) => Outcome::NoRoom,
                Ok(_) => Outcome::Changed,
                Err(_) => Outcome::TooLate,
            },
            SweepAction::Purge => {
                self.purge(slot);
                Outcome::Changed
            }
        }
    }

    /// Does to a task what a sweep over its key does; says whether it was in time.
    pub(super) fn change_by_key(&mut self, slot: Slot, shift: Option<Shift>, from: Timestamp) -> Outcome {
        let Ok(open) = self.open_parts(slot) else { return Outcome::TooLate };
        if shift.is_some_and(|shift| self.check_moved(&open, shift, from).is_err()) {
            return Outcome::NoRoom;
        }
        for part in open {
            match shift {
                Some(shift) => _ = self.change(part, Some(shift), None, from),
                None => self.end(part, Ending::Cancelled),
            }
        }
        Outcome::Changed
    }
}

/// What a sweep did to a row.
pub(super) enum Outcome {
    Changed,
    TooLate,
    NoRoom,
}
