//! What runs have told that never changes, such as which rows of a group they have: they are asked without the lock, and
//! an attempt counts once all that are on the shelf by then have been asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::ReadError;
use crate::run::Run;
use crate::shelf::Shelf;

pub(super) struct Told<A> {
    by_run: BTreeMap<u64, A>,
    unasked: Vec<Arc<Run>>,
}

impl<A> Default for Told<A> {
    fn default() -> Told<A> {
        Told { by_run: BTreeMap::new(), unasked: Vec::new() }
    }
}

impl<A> Told<A> {
    /// Whether all runs on the shelf were asked; otherwise the others are to be.
    pub fn is_complete(&mut self, shelf: &Shelf) -> bool {
        let unasked = shelf.runs().map(|(_, shelved)| &shelved.run);
        self.unasked = unasked.filter(|run| !self.by_run.contains_key(&run.number())).cloned().collect();
        self.unasked.is_empty()
    }

    /// Asks those that were not yet asked.
    pub fn ask(&mut self, ask: impl Fn(&Run) -> Result<A, ReadError>) -> Result<(), ReadError> {
        for run in std::mem::take(&mut self.unasked) {
            self.by_run.insert(run.number(), ask(&run)?);
        }
        Ok(())
    }

    /// What the run with this number has told.
    pub fn by(&self, run: u64) -> &A {
        &self.by_run[&run]
    }
}
