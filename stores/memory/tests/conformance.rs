//! The memory store passes the suite that every store must pass.
#![allow(clippy::unwrap_used, reason = "it is a test")]

mod bench;

use std::sync::{Arc, Mutex};

use bench::TestClock;
use punctual_conformance::Subject;
use punctual_core::Millis;
use punctual_core::store::Store;
use punctual_memory::MemoryStore;

#[derive(Default)]
struct InMemory {
    clock: Arc<TestClock>,
    seed: u64,
    newest: Mutex<Option<Arc<MemoryStore>>>,
}

impl Subject for InMemory {
    fn fresh(&self) -> Arc<dyn Store> {
        let store = Arc::new(MemoryStore::new(self.clock.clone()));
        *self.newest.lock().unwrap() = Some(Arc::clone(&store));
        store
    }

    fn mark<'a>(&'a self, _: &Arc<dyn Store>) -> Option<Box<dyn FnOnce() + 'a>> {
        let newest = self.newest.lock().unwrap().clone()?;
        newest.hold();
        Some(Box::new(move || newest.fail_over()))
    }

    fn share(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        Some(Arc::clone(store))
    }

    fn pass(&self, time: Millis) {
        self.clock.pass(time);
    }

    fn tells_astray(&self) -> bool {
        // It panics instead and says what was expected.
        false
    }

    fn seed(&self) -> u64 {
        self.seed
    }
}

#[test]
fn the_memory_store_conforms() {
    for seed in 1..=3 {
        punctual_conformance::run(&InMemory { seed, ..InMemory::default() });
    }
}
