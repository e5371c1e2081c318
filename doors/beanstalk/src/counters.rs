//! What the door counts: commands and answers since the start, and connections by what they do.
//!
//! A connection counts into a [`Tally`] of its own, which is added to the shared [`Counters`] once in a while:
//! shared memory is not touched for each command. Before `stats` is answered its tally has to be added, since a
//! `stats` counts itself.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::answer::Word;
use crate::kind::Kind;

/// What one connection counted and has not yet added to the [`Counters`].
#[derive(Clone, Debug, Default)]
pub struct Tally {
    commands: [u64; Kind::COUNT],
    answers: [u64; Word::COUNT],
}

impl Tally {
    /// Counts a command. `quit` is none that anybody asks for.
    pub fn command(&mut self, kind: Kind) {
        if kind != Kind::Quit {
            self.commands[kind as usize] += 1;
        }
    }

    /// Counts an answer.
    pub fn answer(&mut self, word: Word) {
        self.answers[word as usize] += 1;
    }

    /// How many commands of a kind are in it.
    pub fn commands(&self, kind: Kind) -> u64 {
        self.commands[kind as usize]
    }

    /// How many answers of a word are in it.
    pub fn answers(&self, word: Word) -> u64 {
        self.answers[word as usize]
    }
}

/// How many connections there are, and what for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Those that are open.
    pub current: u64,
    /// Those of them that ever put a job.
    pub producers: u64,
    /// Those of them that ever reserved one.
    pub workers: u64,
    /// Those of them that wait for a job.
    pub waiting: u64,
    /// All that there ever were.
    pub total: u64,
}

/// What all connections counted.
#[derive(Debug, Default)]
pub struct Counters {
    commands: [AtomicU64; Kind::COUNT],
    answers: [AtomicU64; Word::COUNT],
    current: AtomicU64,
    producers: AtomicU64,
    workers: AtomicU64,
    waiting: AtomicU64,
    total: AtomicU64,
}

impl Counters {
    /// All at zero.
    pub fn new() -> Counters {
        Counters::default()
    }

    /// Adds a connection's tally, and empties it.
    pub fn add(&self, tally: &mut Tally) {
        let commands = self.commands.iter().zip(&mut tally.commands);
        let answers = self.answers.iter().zip(&mut tally.answers);
        for (counter, counted) in commands.chain(answers).filter(|(_, counted)| **counted > 0) {
            counter.fetch_add(*counted, Ordering::Relaxed);
            *counted = 0;
        }
    }

    /// How many commands of each kind there were, by `kind as usize`.
    pub fn commands(&self) -> [u64; Kind::COUNT] {
        array::from_fn(|kind| self.commands[kind].load(Ordering::Relaxed))
    }

    /// How often a word was answered.
    pub fn answers(&self, word: Word) -> u64 {
        self.answers[word as usize].load(Ordering::Relaxed)
    }

    /// How many connections there are.
    pub fn connections(&self) -> Connections {
        Connections {
            current: self.current.load(Ordering::Relaxed),
            producers: self.producers.load(Ordering::Relaxed),
            workers: self.workers.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }

    /// Counts a connection for as long as its [`Presence`] lives.
    pub fn enter(self: &Arc<Counters>) -> Presence {
        self.current.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
        Presence { counters: Arc::clone(self), is_producer: false, is_worker: false, is_waiting: false }
    }
}

/// One open connection among those that are counted.
#[derive(Debug)]
pub struct Presence {
    counters: Arc<Counters>,
    is_producer: bool,
    is_worker: bool,
    is_waiting: bool,
}

impl Presence {
    /// It put a job, and is a producer until it ends.
    pub fn produces(&mut self) {
        set(&mut self.is_producer, true, &self.counters.producers);
    }

    /// It reserved a job or tried to, and is a worker until it ends.
    pub fn works(&mut self) {
        set(&mut self.is_worker, true, &self.counters.workers);
    }

    /// It begins or ends to wait for a job.
    pub fn waits(&mut self, waits: bool) {
        set(&mut self.is_waiting, waits, &self.counters.waiting);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        set(&mut self.is_producer, false, &self.counters.producers);
        set(&mut self.is_worker, false, &self.counters.workers);
        set(&mut self.is_waiting, false, &self.counters.waiting);
        self.counters.current.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Changes the flag, and the counter with it if it was not so already.
fn set(flag: &mut bool, to: bool, counter: &AtomicU64) {
    match (*flag, to) {
        (false, true) => counter.fetch_add(1, Ordering::Relaxed),
        (true, false) => counter.fetch_sub(1, Ordering::Relaxed),
        _ => return,
    };
    *flag = to;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_added_once() {
        let counters = Counters::new();
        let mut tally = Tally::default();
        tally.command(Kind::Put);
        tally.command(Kind::Put);
        tally.command(Kind::ReserveJob);
        tally.answer(Word::BadFormat);
        counters.add(&mut tally);
        counters.add(&mut tally);
        assert_eq!(counters.commands()[Kind::Put as usize], 2);
        assert_eq!(counters.commands()[Kind::ReserveJob as usize], 1);
        assert_eq!(counters.commands().iter().sum::<u64>(), 3);
        assert_eq!(counters.answers(Word::BadFormat), 1);
        assert_eq!(counters.answers(Word::JobTooBig), 0);
    }

    #[test]
    fn quitting_is_not_counted() {
        let mut tally = Tally::default();
        tally.command(Kind::Quit);
        assert_eq!(tally.commands(Kind::Quit), 0);
    }

    #[test]
    fn a_connection_is_counted_once_for_each_thing_it_does_and_until_it_ends() {
        let counters = Arc::new(Counters::new());
        let mut first = counters.enter();
        let second = counters.enter();
        first.produces();
        first.produces();
        first.works();
        first.waits(true);
        first.waits(true);
        let both = Connections { current: 2, producers: 1, workers: 1, waiting: 1, total: 2 };
        assert_eq!(counters.connections(), both);
        first.waits(false);
        assert_eq!(counters.connections(), Connections { waiting: 0, ..both });
        first.waits(true);
        drop(first);
        assert_eq!(counters.connections(), Connections { current: 1, total: 2, ..Connections::default() });
        drop(second);
        assert_eq!(counters.connections(), Connections { total: 2, ..Connections::default() });
    }
}
