//! The marks of sweeps on the rows that they came to: what they are known by, and what can be taken back.
//!
//! **Invariant**: a row has the number of every numbered sweep that came to it among unfinished tasks and is not through
//! yet, whatever else has happened to the row. So each comes to it once, also if it moves ahead of the sweep again.

use super::Shard;
use super::desk::Slot;
use crate::state::{Phase, SweepMark};
use crate::store::Table;
use crate::sweep::{Sweep, SweepAction};
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// A sweep changes a row, and may have to take that back.
    pub(super) fn mark(&mut self, slot: Slot, by: u64, before: Option<(Timestamp, Timestamp)>) {
        let others = self.under_way_on(slot).into_iter().filter(|other| *other != by).collect();
        self.set_mark(slot, Some(SweepMark { by, before, others }));
    }

    /// Somebody else changes a row: what a sweep did to it cannot be taken back any more.
    pub(super) fn outdate_mark(&mut self, slot: Slot) {
        if self.desk[slot].state.swept.is_some() {
            let mut others = self.under_way_on(slot);
            let by = others.pop();
            self.set_mark(slot, by.map(|by| SweepMark { by, before: None, others }));
        }
    }

    /// A sweep came to a row and left it as it was.
    pub(super) fn note_met(&mut self, slot: Slot, sweep: &Sweep, number: Option<u64>) {
        let row = &self.desk[slot];
        let Some(by) = number.filter(|_| sweep.action != SweepAction::Undo) else { return };
        if row.is_gone() || row.table() != Table::Live {
            return;
        }
        let mut others = self.under_way_on(slot);
        let mark = match self.desk[slot].state.swept.as_deref() {
            // What another one did can be taken back all the same.
            Some(mark) if mark.before.is_some() => {
                others.retain(|other| *other != mark.by);
                others.push(by);
                SweepMark { others, ..mark.clone() }
            }
            _ => SweepMark { by, before: None, others },
        };
        self.set_mark(slot, Some(mark));
    }

    /// Whether a sweep has come to a task before.
    pub(super) fn was_met(&self, slot: Slot, number: Option<u64>) -> bool {
        let mark = self.desk[slot].state.swept.as_deref();
        number.zip(mark).is_some_and(|(number, mark)| mark.numbers().any(|by| by == number))
    }

    /// Whether it was this sweep that changed a task, and nobody else since. A task with several deliveries is known by the
    /// first of them, so that it is met once.
    pub(super) fn is_changed(&self, slot: Slot, by: u64) -> bool {
        let (row, task) = (&self.desk[slot], self.task_of(slot));
        let stands_for_task = match row.is_part() {
            true => self.open_part_keys(task).first() == Some(row.key()),
            false => !matches!(row.state.phase, Phase::Spread(_)),
        };
        stands_for_task && self.before(task, by).is_some()
    }

    /// When a row was due and was to wake before this sweep changed it, if nobody else has since.
    pub(super) fn before(&self, slot: Slot, by: u64) -> Option<(Timestamp, Timestamp)> {
        self.desk[slot].state.swept.as_deref().filter(|mark| mark.by == by)?.before
    }

    /// The task that a row belongs to, if it is one of several deliveries; else the row itself.
    pub(super) fn task_of(&self, slot: Slot) -> Slot {
        let row = &self.desk[slot];
        let task = row.is_part().then(|| self.desk.by_key(&row.key().of_task())).flatten();
        task.unwrap_or(slot)
    }

    /// The sweeps that came to a row and are not through yet.
    fn under_way_on(&self, slot: Slot) -> Vec<u64> {
        let numbers = self.desk[slot].state.swept.iter().flat_map(|mark| mark.numbers());
        numbers.filter(|number| self.sweeps.is_under_way(*number)).collect()
    }

    fn set_mark(&mut self, slot: Slot, mark: Option<SweepMark>) {
        self.touch(slot);
        self.desk.edit(slot).state.swept = mark.map(Box::new);
    }
}
