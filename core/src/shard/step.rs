//! The course of a step, and what comes out of it.

use super::{Output, Request, Shard};
use crate::board::Board;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// A whole step, for callers that hold store and board.
    pub fn step(
        &mut self,
        now: Timestamp,
        requests: Vec<Request<R>>,
        store: &dyn Store,
        board: &mut Board<R>,
    ) -> Result<Output<R>, StoreError> {
        let mut needs = self.prepare(now, requests, board);
        while !needs.is_empty() {
            needs = self.supply(needs.read(store, self.id(), self.tenure())?);
        }
        self.apply(now);
        self.serve(board, now);
        Ok(self.finish())
    }

    /// Everything happens: timers first, then requests in their order. Leases count from `hand_over_at`, when
    /// deliveries are thought to reach their consumers, rounded up to whole milliseconds.
    pub fn apply(&mut self, hand_over_at: Timestamp) {
        self.flight.expect_hand_over(hand_over_at.max(self.now));
        self.drop_absent();
        let mut agenda = std::mem::take(&mut self.agenda);
        // Before any row changes: what does is counted at the end of the step, by minute too if the horizon is past it.
        if let Some(stretch) = agenda.minutes.take() {
            self.count_minutes(stretch);
        }
        self.pass_kept(std::mem::take(&mut agenda.kept));
        // Time comes before requests, so that these find every row as it is at this instant.
        for position in agenda.due.drain(..) {
            self.fire(position);
        }
        for doomed in agenda.doomed.drain(..) {
            self.give_up(doomed);
        }
        if let Some(stretch) = agenda.slice.take() {
            self.take_slice(stretch);
        }
        self.draft.expect_answers(agenda.requests.len());
        for mut request in agenda.requests.drain(..) {
            self.draft.act_for(request.by.take());
            self.handle(request);
        }
        self.draft.act_for(None);
        self.go_on_with_jobs(std::mem::take(&mut agenda.jobs));
        self.directory.forget_pauses(self.now);
    }

    /// Ends the step.
    pub fn finish(&mut self) -> Output<R> {
        self.count_touched(1);
        let mut tallies = Vec::new();
        self.directory.take_tallies(&mut tallies);
        self.forecast.take_tallies(&mut tallies);
        // Only after the tallies: what is deleted still has some to tell.
        let detained = self.directory.remove_closed();
        self.set_free(detained);
        let step = self.flight.end_step();
        let mut changes = self.desk.take_changes(step);
        let changed = !changes.is_empty() || !tallies.is_empty() || self.catalogue.has_changed();
        if changed {
            self.catalogue.take_changes(&mut self.numbers, self.forecast.horizon(), &mut changes);
        }
        // What is said from memory is true only as long as the shard is ours: the store looks at the
        // fence of a batch that changes nothing, too.
        let batch = (changed || self.draft.says_something()).then(|| self.flight.seal(changes, tallies));
        if changed {
            self.flight.depart(self.now);
        }
        self.desk.trim();
        let wake = self.wake();
        self.draft.take(step, batch, wake)
    }

    /// When the next step is due.
    fn wake(&mut self) -> Timestamp {
        let more =
            self.timers.has_late() || !self.stock.giving().is_empty() || !self.jobs.is_empty() || self.agenda.is_any();
        if more {
            return self.now;
        }
        [
            self.timers.next_at(),
            self.expiry_wake(),
            self.held_up_wake(),
            self.directory.next_pause_end(),
            self.flight.wake(self.now),
            self.slice_wake(),
            self.retained.wake(),
            self.stock.wake(),
        ]
        .into_iter()
        .min()
        .expect("there are several")
    }
}
