//! What the answers to commands about one row by its number say of it, and what it is after them.

use punctual_core::{Answer, Ending, Millis, Phase, Refused, Reply, Shift, Take};

use super::deletions::Deletion;
use super::guess::{Candidate, Guess, Shadow};
use super::rules::Context;
use super::standing::is_true;

impl Context<'_> {
    pub(super) fn removed(&self, guess: &Guess, number: u64, token: Option<u64>, reply: &Reply) -> Vec<Guess> {
        let row = guess.numbered(number);
        let phase = row.map(|row| &row.state.phase);
        let is_held = row.is_some_and(|row| row.is_held(token) && self.now < row.at);
        match (reply, row, phase) {
            (Ok(Answer::Removed(Ending::Done)), Some(row), _) if is_held => self.end(row, Ending::Done),
            (Ok(Answer::Removed(Ending::Cancelled)), Some(row), Some(Phase::Waiting | Phase::Spread(_))) => {
                self.end(row, Ending::Cancelled)
            }
            (Ok(Answer::Removed(Ending::Purged)), Some(_), Some(Phase::Dead(_))) => vec![Guess::Gone],
            (Ok(Answer::Removed(Ending::Purged)), Some(row), Some(Phase::Forwarding { .. })) => {
                self.end(row, Ending::Purged)
            }
            (
                Err(Refused::LeaseLost { now: Some(standing) }),
                Some(row),
                Some(Phase::Leased { .. } | Phase::Spread(_)),
            ) if !is_held && is_true(standing, row, self.now) => {
                vec![guess.clone()]
            }
            (Err(Refused::NothingThere), _, None | Some(Phase::Finished(_))) => vec![guess.clone()],
            (Err(Refused::NothingThere), ..) if guess.is_unnumbered() => vec![guess.clone()],
            _ => Vec::new(),
        }
    }

    pub(super) fn hastened(&self, guess: &Guess, number: u64, reply: &Reply) -> Vec<Guess> {
        let row = guess.numbered(number);
        let dead = row.filter(|row| matches!(row.state.phase, Phase::Dead(_)));
        let early = row.filter(|row| row.is_waiting() && row.latest > self.now);
        match (reply, dead, early) {
            (Ok(Answer::Hastened(standing)), Some(row), _) => self.stands(vec![self.replayed(row)], standing),
            (Ok(Answer::Hastened(standing)), _, Some(row)) => {
                let mut row = row.clone();
                row.keep_delay();
                row.state.past_mut().replays += 1;
                self.stands(vec![self.shifted(&row, Shift::In(Millis::ZERO), None, self.now)], standing)
            }
            (Err(Refused::QueueFull(_)), Some(row), _) | (Err(Refused::QueueFull(_)), _, Some(row))
                if self.may_be_full(row) =>
            {
                vec![guess.clone()]
            }
            (Err(Refused::NothingThere), None, None) => vec![guess.clone()],
            (Err(Refused::NothingThere), ..) if guess.is_unnumbered() => vec![guess.clone()],
            (Err(Refused::NothingThere), Some(_), _) if self.is_closing() => vec![guess.clone()],
            _ => Vec::new(),
        }
    }

    pub(super) fn taken(&self, guess: &Guess, take: &Take, reply: &Reply, task: Option<&Shadow>) -> Vec<Guess> {
        let row = guess.numbered(take.row.number);
        let dead = row.filter(|row| matches!(row.state.phase, Phase::Dead(_)));
        let waiting = row.filter(|row| row.is_waiting() && self.now < row.state.expires_at());
        let free = dead.or(waiting);
        match (reply, free) {
            (Ok(Answer::Reserved(deliveries)), Some(row)) => {
                let [delivery] = deliveries.as_slice() else { return Vec::new() };
                let ready = Guess::row(self.called_up(row));
                self.delivered(&ready, delivery, Some(&take.consumer), task).into_iter().collect()
            }
            (Err(Refused::NothingThere), None) => vec![guess.clone()],
            (Err(Refused::NothingThere), Some(_)) if guess.is_unnumbered() => vec![guess.clone()],
            (Err(Refused::NothingThere), Some(row)) if self.has_no_queue(row) => vec![guess.clone()],
            (Err(Refused::NothingThere), Some(_)) if dead.is_some() && self.is_closing() => vec![guess.clone()],
            (Err(Refused::BeingDeleted(_)), Some(row)) if self.has_no_queue(row) => vec![guess.clone()],
            _ => Vec::new(),
        }
    }

    /// A row that is about to be handed out although it was dead, or its time had not come: it is due now.
    fn called_up(&self, row: &Candidate) -> Candidate {
        let was_dead = matches!(row.state.phase, Phase::Dead(_));
        let mut row = row.clone();
        if was_dead {
            row.begin_anew();
        }
        if was_dead || row.at > self.now {
            row.keep_delay();
            row.state.due = self.now;
            row.set_at(self.now);
        }
        (row.table, row.state.phase) = (punctual_core::store::Table::Live, Phase::Waiting);
        row
    }

    /// Whether there may be no one queue from which it could be handed out.
    fn has_no_queue(&self, row: &Candidate) -> bool {
        let takes = |topic: &punctual_core::TopicSettings| {
            let feeds = topic.feeds.iter().flatten();
            let takers = feeds.filter(|binding| binding.pattern.fits(row.state.routing())).count();
            topic.feeds.is_none() || takers == 1
        };
        let goes = |deletion: &&Deletion| matches!(deletion, Deletion::Queue(_));
        self.deletions.iter().any(goes) || !self.topic().iter().all(takes)
    }
}
