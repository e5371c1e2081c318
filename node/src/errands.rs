//! What waits for threads that do one thing after the other: bounded, and closed when the node stops.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::error::Error;
use crate::sync::{Condvar, Mutex, lock};

pub(crate) struct Errands<T> {
    pending: Mutex<Pending<T>>,
    bell: Condvar,
}

struct Pending<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

impl<T> Default for Errands<T> {
    fn default() -> Errands<T> {
        Errands { pending: Mutex::new(Pending { waiting: VecDeque::new(), is_closed: false }), bell: Condvar::new() }
    }
}

impl<T> Errands<T> {
    /// Takes one more, unless so many wait.
    pub fn push(&self, errand: T, most: usize) -> Result<(), Error> {
        let mut pending = lock(&self.pending);
        if pending.is_closed {
            return Err(Error::Stopping);
        }
        if pending.waiting.len() >= most {
            return Err(Error::Overloaded);
        }
        pending.waiting.push_back(errand);
        drop(pending);
        self.bell.notify_one();
        Ok(())
    }

    /// Waits for the next one; `None` when it is closed and nothing waits any more.
    pub fn next(&self) -> Option<T> {
        let mut pending = lock(&self.pending);
        loop {
            if let Some(errand) = pending.waiting.pop_front() {
                return Some(errand);
            }
            if pending.is_closed {
                return None;
            }
            pending = self.bell.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What waits is still done, but nothing more is taken.
    pub fn close(&self) {
        lock(&self.pending).is_closed = true;
        self.bell.notify_all();
    }

    /// Nothing more is taken, and what waits is dropped.
    pub fn abandon(&self) {
        self.close();
        // What they hold may look at the pending while it goes.
        let dropped = std::mem::take(&mut lock(&self.pending).waiting);
        drop(dropped);
    }
}
