//! Threads that read from the store for those who only look, so that no async thread blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_core::store::Store;

use crate::errands::Errands;
use crate::error::Error;

/// What is to be read, and who wants to know.
pub(crate) type Errand = Box<dyn FnOnce(&dyn Store) + Send>;

pub(crate) struct Readers {
    errands: Errands<Errand>,
    room: usize,
}

impl Readers {
    pub fn new(room: usize) -> Readers {
        Readers { errands: Errands::default(), room }
    }

    pub fn push(&self, errand: Errand) -> Result<(), Error> {
        self.errands.push(errand, self.room)
    }

    /// What waits is still read, but nothing more is taken.
    pub fn close(&self) {
        self.errands.close();
    }

    /// What each of the threads does.
    pub fn run(&self, store: &dyn Store) {
        while let Some(errand) = self.errands.next() {
            // Who asked finds out by the lack of an answer; the thread goes on with the others.
            _ = catch_unwind(AssertUnwindSafe(|| errand(store)));
        }
    }
}
