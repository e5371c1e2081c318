//! Seeded lives of almanacs that end at every kind of moment: after each, what was confirmed is there,
//! what was removed is not, and the commit on its way happened wholly or not at all.
//!
//! The seeds are the same in every run. `PUNCTUAL_CASES` says how many worlds each test makes, and then they
//! are new ones each time; a failure names its seed, and `PUNCTUAL_SEED` makes that world alone.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::time::{Duration, Instant, SystemTime};

use punctual_almanac::{SyncPolicy, Tending};
use punctual_simulated_disk::{Call, Fault};

use crate::stage::scene::Scene;
use crate::stage::tiny;
use crate::stage::world::{Deaths, World};

/// The first world. Some moments come once in hundreds of worlds; with those that follow this one each of them comes.
const FIRST: u64 = 100;

/// How often the almanac of a world is opened.
const LIVES: usize = 12;

const EVERY: SyncPolicy = SyncPolicy::Every(Duration::from_millis(2));

/// Says which world it was if something is wrong with it.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to make this world alone: PUNCTUAL_SEED={} and the name of this test", self.0);
        }
    }
}

/// Makes so many worlds, and tells at which moments their almanacs died.
fn run(worlds: u64, sync: SyncPolicy, tending: Tending) -> Deaths {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let fresh = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 >> 8 << 24;
    let seeds = match (number("PUNCTUAL_SEED"), number("PUNCTUAL_CASES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(cases)) => fresh..fresh + cases,
        (None, None) => FIRST..FIRST + worlds,
    };
    let begin = Instant::now();
    let mut deaths = Deaths::new();
    for seed in seeds {
        let seed = Seed(seed);
        let mut world = World::new(seed.0, sync, tending);
        (0..LIVES).for_each(|_| world.live());
        for (moment, count) in world.deaths {
            *deaths.entry(moment).or_default() += count;
        }
    }
    for (moment, count) in &deaths {
        println!("{count:6}  {moment}");
    }
    println!("{:6}  in {:?}", deaths.values().sum::<usize>(), begin.elapsed());
    deaths
}

/// The moments at which an almanac is to die at least once.
const MOMENTS: &[&str] = &[
    "Opening: List ",
    "Opening: Open journal",
    "Opening: Open manifest",
    "Opening: Open run",
    "Opening: Read journal",
    "Opening: Read manifest",
    "Opening: Read run",
    "Opening: SyncDirectory ",
    "Claiming: Write journal",
    "Claiming: Sync journal",
    "Committing: Write journal",
    "Committing: Sync journal",
    "Putting: Write journal",
    "Putting: Sync journal",
    "Committing: Create journal",
    "Committing: Allocate journal",
    "Committing: SyncDirectory ",
    "Tending: Create run",
    "Tending: Write run",
    "Tending: Sync run",
    "Tending: SyncDirectory ",
    "Tending: Create manifest.new",
    "Tending: Write manifest.new",
    "Tending: Sync manifest.new",
    "Tending: Rename manifest.new",
    "Tending: Remove run",
    "Tending: Remove journal",
    "Tending: Write journal",
    "Tending: Sync journal",
    "Closing: Write journal",
    "Closing: Sync journal",
];

fn check(deaths: &Deaths, least: usize) {
    if std::env::var_os("PUNCTUAL_SEED").is_some() || std::env::var_os("PUNCTUAL_CASES").is_some() {
        return;
    }
    for moment in MOMENTS {
        assert!(deaths.contains_key(*moment), "no almanac died at this moment: {moment}");
    }
    assert!(deaths.values().sum::<usize>() >= least);
}

#[test]
fn nothing_confirmed_is_lost_and_nothing_removed_comes_back_after_any_crash() {
    check(&run(400, SyncPolicy::Always, Tending::Manual), 4_000);
}

#[test]
fn a_power_loss_takes_only_the_last_commits_if_they_are_synced_later() {
    check(&run(600, EVERY, Tending::Manual), 6_000);
}

#[test]
fn an_opening_may_be_cut_short_at_any_call() {
    let mut scene = Scene::new(3, tiny());
    let almanac = scene.open();
    for number in 0..60 {
        scene.commit(&almanac).unwrap();
        if number % 20 == 0 {
            almanac.tend().unwrap();
        }
    }
    // A run that the manifest does not name yet, when the process is killed.
    let kind = ErrorKind::PermissionDenied;
    scene.disk.fail(Fault { call: Call::Rename, name_contains: "manifest", after: 0, kind, lasting: true });
    assert!(almanac.checkpoint().is_err());
    let killed = scene.disk.copy();
    drop(almanac);

    let (mut last_calls, confirmed) = (BTreeSet::new(), scene.model.clone());
    for call in 0.. {
        scene.disk = killed.copy();
        scene.disk.crash_at(scene.disk.calls() + 1 + call);
        let opened = scene.try_open();
        let Some((last, name)) = scene.disk.last_call() else { break };
        drop(opened);
        last_calls.insert(format!("{last:?} {}", name.split('-').next().unwrap_or_default()));
        let disk = scene.disk.crash(call);
        drop(scene.resume(disk, std::slice::from_ref(&confirmed)));
    }
    for call in ["Remove run", "Read journal", "Sync journal", "Open run"] {
        assert!(last_calls.contains(call), "{last_calls:?}");
    }
}

#[test]
fn nothing_is_lost_while_a_keeper_of_its_own_writes_runs() {
    run(30, SyncPolicy::Always, Tending::Thread);
    run(30, EVERY, Tending::Thread);
}
