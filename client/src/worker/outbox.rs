//! What is to be said to the server about deliveries: one request at a time, with all that has come up meanwhile.
//!
//! What could not be said is said again, as long as the lease lasts under which it may be said.

use std::collections::VecDeque;

use punctual_wire::{Action, Actions, Answer, Do, Settled};
use tokio::time::Instant;

use crate::leases::{ACTIONS, look_again};

/// Something to say about one delivery.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub number: u64,
    pub action: Action,
    /// After this there is no point in saying it.
    pub ends_at: Instant,
    /// It may have been heard already.
    pub repeated: bool,
    /// The worker leaves; the handler did not fail.
    pub given_back: bool,
}

impl Note {
    pub fn new(number: u64, action: Action, ends_at: Instant) -> Note {
        Note { number, action, ends_at, repeated: false, given_back: false }
    }
}

/// What became of a note.
#[derive(Debug)]
pub(crate) enum Word {
    /// The server heard it and answers.
    Answered(Note, Answer<Settled>),
    /// It was not heard and the lease is over.
    TooLate(Note),
    /// An extension was not heard; whether it is still wanted, the leases know.
    NotExtended(Note),
}

/// The notes that wait.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Note>,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a note.
    pub fn push(&mut self, note: Note) {
        self.waiting.push_back(note);
    }

    /// All that waits, as far as it fits into one request. To extend what is not held any more is pointless.
    pub fn take(&mut self, is_held: impl Fn(u64) -> bool) -> Vec<Note> {
        let notes = self.waiting.len().min(ACTIONS);
        let notes = self.waiting.drain(..notes);
        notes.filter(|note| note.action.what != Do::Extend || is_held(note.number)).collect()
    }

    /// The request was not answered: what can be said later goes back to where it was.
    pub fn unheard(&mut self, notes: Vec<Note>, may_have_happened: bool, now: Instant) -> Vec<Word> {
        let mut words = Vec::new();
        for mut note in notes.into_iter().rev() {
            note.repeated |= may_have_happened;
            if note.action.what == Do::Extend {
                words.push(Word::NotExtended(note));
            } else if note.ends_at <= now {
                words.push(Word::TooLate(note));
            } else {
                self.waiting.push_front(note);
            }
        }
        words
    }

    /// The request was answered: what the server had no room for goes back, the rest is answered.
    pub fn heard(&mut self, notes: Vec<Note>, answers: Vec<Answer<Settled>>, now: Instant) -> Vec<Word> {
        let mut words = Vec::new();
        for (note, answer) in notes.into_iter().zip(answers) {
            match answer {
                Answer::Refused { problem } if problem.is_passing() => {
                    words.extend(self.unheard(vec![note], problem.may_have_happened(), now));
                }
                answer if note.repeated => {
                    let answer = look_again(note.action.what, answer);
                    words.push(Word::Answered(note, answer));
                }
                answer => words.push(Word::Answered(note, answer)),
            }
        }
        words
    }
}

/// The request that says all of these.
pub(crate) fn request(notes: &[Note]) -> Actions {
    Actions { actions: notes.iter().map(|note| note.action.clone()).collect() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_wire::{Ending, Problem, SettledOutcome, Standing, Time};

    use super::*;

    fn note(number: u64, what: Do, ends_at: Instant) -> Note {
        Note::new(number, Action::new(what, format!("lease-{number}")), ends_at)
    }

    fn numbers(notes: &[Note]) -> Vec<u64> {
        notes.iter().map(|note| note.number).collect()
    }

    #[test]
    fn what_was_not_heard_is_said_again_before_what_came_later() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut outbox = Outbox::default();
        outbox.push(note(1, Do::Acknowledge, later));
        outbox.push(note(2, Do::Reject, later));
        let sent = outbox.take(|_| true);
        outbox.push(note(3, Do::Acknowledge, later));
        assert!(outbox.unheard(sent, true, now).is_empty());
        let again = outbox.take(|_| true);
        assert_eq!(numbers(&again), [1, 2, 3]);
        assert_eq!(again.iter().map(|note| note.repeated).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn there_is_no_point_in_saying_it_after_the_lease() {
        let now = Instant::now();
        let mut outbox = Outbox::default();
        outbox.push(note(1, Do::Acknowledge, now));
        let sent = outbox.take(|_| true);
        assert!(matches!(&outbox.unheard(sent, true, now)[..], [Word::TooLate(note)] if note.number == 1));
        assert!(outbox.is_empty());
    }

    #[test]
    fn what_is_not_held_any_more_is_not_extended() {
        let later = Instant::now() + Duration::from_secs(1);
        let mut outbox = Outbox::default();
        outbox.push(note(1, Do::Extend, later));
        outbox.push(note(2, Do::Extend, later));
        outbox.push(note(1, Do::Acknowledge, later));
        let sent = outbox.take(|number| number == 2);
        assert_eq!(numbers(&sent), [2, 1]);
    }

    #[test]
    fn a_repeated_acknowledgement_that_finds_it_done_was_heard_before() {
        let now = Instant::now();
        let done = Standing::Finished { ending: Ending::Done, at: Time(1) };
        let lost = Problem { code: "lease-lost".into(), status: 409, standing: Some(done), ..Problem::default() };
        let mut outbox = Outbox::default();
        outbox.push(note(1, Do::Acknowledge, now + Duration::from_secs(1)));
        let sent = outbox.take(|_| true);
        outbox.unheard(sent, true, now);
        let again = outbox.take(|_| true);
        let words = outbox.heard(again, vec![Answer::Refused { problem: lost.clone() }], now);
        assert!(
            matches!(&words[..], [Word::Answered(_, Answer::Done(s))] if s.outcome == SettledOutcome::Acknowledged)
        );
        // Said for the first time, the same answer means that somebody else was quicker.
        let first = vec![note(2, Do::Acknowledge, now)];
        assert!(matches!(
            &outbox.heard(first, vec![Answer::Refused { problem: lost }], now)[..],
            [Word::Answered(_, Answer::Refused { .. })]
        ));
    }

    #[test]
    fn what_the_server_has_no_room_for_is_said_again() {
        let now = Instant::now();
        let busy = Problem { code: "overloaded".into(), status: 503, ..Problem::default() };
        let mut outbox = Outbox::default();
        outbox.push(note(1, Do::Acknowledge, now + Duration::from_secs(1)));
        let sent = outbox.take(|_| true);
        assert!(outbox.heard(sent, vec![Answer::Refused { problem: busy.clone() }], now).is_empty());
        assert_eq!(outbox.len(), 1);
        let again = outbox.take(|_| true);
        assert!(!again[0].repeated, "it was surely not heard");
        let unknown = Problem { code: "outcome-unknown".into(), ..busy };
        assert!(outbox.heard(again, vec![Answer::Refused { problem: unknown }], now).is_empty());
        assert!(outbox.take(|_| true)[0].repeated);
    }
}
