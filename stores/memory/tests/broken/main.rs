//! The suite is worth something: it fails for each of these broken stores, and names the fact. The same store with nothing
//! wrong passes.
#![allow(clippy::unwrap_used, reason = "it is a test")]

#[path = "../bench/mod.rs"]
mod bench;
mod cases;
mod commits;
mod members;
mod pages;
mod places;
mod reads;
mod rows;
mod store;

use std::sync::{Arc, Mutex};
use std::thread;

use bench::TestClock;
use cases::{Breakage, CASES};
use punctual_conformance::Subject;
use punctual_core::Millis;
use punctual_core::store::Store;
use store::Broken;

/// A kind of store with one thing wrong, or none.
struct Wrong {
    breakage: Option<Breakage>,
    clock: Arc<TestClock>,
    newest: Mutex<Option<Arc<Broken>>>,
}

impl Wrong {
    fn new(breakage: Option<Breakage>) -> Wrong {
        Wrong { breakage, clock: Arc::default(), newest: Mutex::default() }
    }
}

impl Subject for Wrong {
    fn fresh(&self) -> Arc<dyn Store> {
        let store = Arc::new(Broken::new(self.breakage, Arc::clone(&self.clock)));
        *self.newest.lock().unwrap() = Some(Arc::clone(&store));
        store
    }

    fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        match self.breakage {
            Some(Breakage::ForgetsEverythingWhenReopened) => return self.fresh(),
            Some(Breakage::ForgetsCommitsWhenReopened) => self.newest.lock().unwrap().as_ref().unwrap().good.crash(),
            _ => {}
        }
        store
    }

    fn share(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let is_apart = self.breakage == Some(Breakage::KeepsHandlesApart);
        Some(if is_apart { self.fresh() } else { Arc::clone(store) })
    }

    fn mark<'a>(&'a self, _: &Arc<dyn Store>) -> Option<Box<dyn FnOnce() + 'a>> {
        let newest = self.newest.lock().unwrap().clone()?;
        let back = newest.mark();
        Some(Box::new(back))
    }

    fn pass(&self, time: Millis) {
        self.clock.pass(time);
    }

    fn rounds(&self) -> u64 {
        200
    }
}

#[test]
fn the_store_with_nothing_wrong_passes() {
    punctual_conformance::run(&Wrong::new(None));
}

#[test]
fn the_suite_fails_for_every_broken_store_and_names_the_fact() {
    let half = CASES.len() / 2;
    thread::scope(|scope| {
        for part in [&CASES[..half], &CASES[half..]] {
            scope.spawn(move || part.iter().for_each(|(breakage, fact)| notice(*breakage, fact)));
        }
    });
}

#[test]
fn every_fact_is_missed_by_a_broken_store() {
    let unnamed: Vec<&str> =
        punctual_conformance::facts().filter(|fact| CASES.iter().all(|(_, named)| named != fact)).collect();
    assert!(unnamed.is_empty(), "no broken store shows that these can fail: {unnamed:?}");
}

fn notice(breakage: Breakage, fact: &str) {
    let failures = punctual_conformance::examine_only(&Wrong::new(Some(breakage)), fact);
    assert!(!failures.is_empty(), "{breakage:?} is not noticed by {fact}");
    println!("{breakage:?}: {}", failures[0]);
}
