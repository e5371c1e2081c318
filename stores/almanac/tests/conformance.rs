//! The conformance suite against almanacs of several kinds: with tiny runs that are written all the time,
//! on a simulated disk and on a real one.

use std::sync::{Arc, Mutex, Weak};

use punctual_almanac::{Almanac, Config, Directory, Disk, Tending};
use punctual_core::Millis;
use punctual_core::store::Store;
use punctual_simulated_disk::SimulatedDisk;

use crate::stage::{ManualClock, tiny};

/// Almanacs of one kind.
struct Kind {
    config: Config,
    clock: Arc<ManualClock>,
    make_disk: fn(&tempfile::TempDir) -> Arc<dyn Disk>,
    /// The directory and disk of the almanac that was made last, to open it again.
    last: Mutex<Option<(tempfile::TempDir, Arc<dyn Disk>)>>,
    alive: Mutex<Weak<dyn Store>>,
}

impl Kind {
    fn new(config: Config, make_disk: fn(&tempfile::TempDir) -> Arc<dyn Disk>) -> Kind {
        let alive: Weak<Almanac> = Weak::new();
        Kind { config, clock: Arc::default(), make_disk, last: Mutex::default(), alive: Mutex::new(alive) }
    }

    fn open(&self, disk: Arc<dyn Disk>) -> Arc<dyn Store> {
        let almanac = Almanac::open(disk, self.config.clone(), Arc::clone(&self.clock) as _).unwrap();
        let store: Arc<dyn Store> = Arc::new(crate::stage::Tended::new(almanac, self.config.tending));
        *self.alive.lock().unwrap() = Arc::downgrade(&store);
        store
    }
}

impl punctual_conformance::Subject for Kind {
    fn fresh(&self) -> Arc<dyn Store> {
        let directory = tempfile::tempdir().unwrap();
        let disk = (self.make_disk)(&directory);
        *self.last.lock().unwrap() = Some((directory, Arc::clone(&disk)));
        self.open(disk)
    }

    fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        assert!(self.alive.lock().unwrap().upgrade().is_none(), "the store was given up");
        let disk = Arc::clone(&self.last.lock().unwrap().as_ref().unwrap().1);
        self.open(disk)
    }

    fn pass(&self, time: Millis) {
        self.clock.pass(time);
    }

    /// What it notices, and what not, is in `contract.rs`.
    fn tells_astray(&self) -> bool {
        false
    }
}

fn simulated(_: &tempfile::TempDir) -> Arc<dyn Disk> {
    Arc::new(SimulatedDisk::new(1))
}

fn real(directory: &tempfile::TempDir) -> Arc<dyn Disk> {
    Arc::new(Directory::open(directory.path()).unwrap())
}

#[test]
fn an_almanac_that_keeps_all_rows_recent_conforms() {
    punctual_conformance::run(&Kind::new(
        Config { tending: Tending::Manual, segment: 64 << 10, ..Config::default() },
        simulated,
    ));
}

#[test]
fn an_almanac_that_writes_a_run_after_every_few_commits_conforms() {
    punctual_conformance::run(&Kind::new(tiny(), simulated));
}

#[test]
fn an_almanac_with_a_keeper_of_its_own_on_a_real_disk_conforms() {
    let config = Config { tending: Tending::Thread, reserve: 64 << 10, ..tiny() };
    punctual_conformance::run(&Kind::new(config, real));
}
