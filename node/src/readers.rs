//! Threads that read from the store for those who only look, so that no async thread blocks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use punctual_core::store::Store;

use crate::error::Error;
use crate::lock::lock;

/// What is to be read, and who wants to know.
pub(crate) type Errand = Box<dyn FnOnce(&dyn Store) + Send>;

pub(crate) struct Readers {
    state: Mutex<Queue>,
    bell: Condvar,
    room: usize,
}

#[derive(Default)]
struct Queue {
    errands: VecDeque<Errand>,
    is_closed: bool,
}

impl Readers {
    pub fn new(room: usize) -> Readers {
        Readers { state: Mutex::default(), bell: Condvar::new(), room }
    }

    pub fn push(&self, errand: Errand) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(Error::Stopping);
        }
        if state.errands.len() >= self.room {
            return Err(Error::Overloaded);
        }
        state.errands.push_back(errand);
        drop(state);
        self.bell.notify_one();
        Ok(())
    }

    /// What waits is still read, but nothing more is taken.
    pub fn close(&self) {
        lock(&self.state).is_closed = true;
        self.bell.notify_all();
    }

    /// What each of the threads does.
    pub fn run(&self, store: &dyn Store) {
        while let Some(errand) = self.next() {
            // Who asked finds out by the lack of an answer; the thread goes on with the others.
            _ = catch_unwind(AssertUnwindSafe(|| errand(store)));
        }
    }

    fn next(&self) -> Option<Errand> {
        let mut state = lock(&self.state);
        loop {
            if let Some(errand) = state.errands.pop_front() {
                return Some(errand);
            }
            if state.is_closed {
                return None;
            }
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
