//! How far a move is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::MoveError;

/// How far a move is, for whoever watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many rows there are, by the counts that are kept beside them: nearly all.
    pub expected: u64,
    /// How many rows are in the target.
    pub copied: u64,
    /// How many rows were read back from there.
    pub verified: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many shards there are.
    pub shards: u64,
    /// How many of them are done.
    pub done: u64,
}

/// Counts what is done, from several threads, and tells who watches.
pub(crate) struct Counting<'a> {
    expected: AtomicU64,
    shards: AtomicU64,
    copied: AtomicU64,
    verified: AtomicU64,
    bytes: AtomicU64,
    done: AtomicU64,
    watch: &'a (dyn Fn(Progress) + Sync),
    /// Set when what is under way is to end early.
    halted: Option<&'a AtomicBool>,
}

impl<'a> Counting<'a> {
    pub fn new(watch: &'a (dyn Fn(Progress) + Sync)) -> Counting<'a> {
        let zero = || AtomicU64::new(0);
        Counting {
            expected: zero(),
            shards: zero(),
            copied: zero(),
            verified: zero(),
            bytes: zero(),
            done: zero(),
            watch,
            halted: None,
        }
    }

    /// The same, and what is under way ends early when this is set.
    pub fn until(self, halted: &'a AtomicBool) -> Counting<'a> {
        Counting { halted: Some(halted), ..self }
    }

    /// What is to be done.
    pub fn expect(&self, shards: usize, rows: u64) {
        self.shards.store(shards as u64, Ordering::Relaxed);
        self.expected.store(rows, Ordering::Relaxed);
        self.tell();
    }

    pub fn copied(&self, rows: usize, bytes: usize) -> Result<(), MoveError> {
        self.copied.fetch_add(rows as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.tell();
        self.check()
    }

    pub fn verified(&self, rows: usize) -> Result<(), MoveError> {
        self.verified.fetch_add(rows as u64, Ordering::Relaxed);
        self.tell();
        self.check()
    }

    pub fn done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }

    fn check(&self) -> Result<(), MoveError> {
        match self.halted {
            Some(halted) if halted.load(Ordering::Relaxed) => Err(MoveError::Halted),
            _ => Ok(()),
        }
    }

    fn tell(&self) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (self.watch)(Progress {
            expected: read(&self.expected),
            copied: read(&self.copied),
            verified: read(&self.verified),
            bytes: read(&self.bytes),
            shards: read(&self.shards),
            done: read(&self.done),
        });
    }
}
