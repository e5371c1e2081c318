//! A node on the almanac: what a person sees of restarts, of a full disk and of a broken one.

use std::io;
use std::sync::Arc;

use punctual_almanac::{Almanac, Config, Directory, Disk, Tending};
use punctual_core::{Millis, Ruling};
use punctual_node::{Error, Handle, Node, SystemClock};
use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

use crate::stage::{config, eventually, finish, is_created, name, next, task};

/// Small, so that runs are written all the time.
fn small() -> Config {
    Config { memory: 128 << 10, segment: 16 << 10, journal: 64 << 10, reserve: 32 << 10, ..Config::default() }
}

fn start(disk: Arc<dyn Disk>, shards: u16) -> Node {
    let almanac = Almanac::open(disk, small(), Arc::new(SystemClock)).unwrap();
    // So that what is to be set aside for a full disk is there before the first commit.
    almanac.tend().unwrap();
    Node::start(config(shards), Arc::new(almanac), Arc::new(SystemClock)).unwrap()
}

/// Stops a node and gives its almanac back: handles keep it open.
fn stop(node: Node, handle: Handle) {
    node.stop();
    drop(handle);
}

#[tokio::test]
async fn tasks_outlive_their_node_on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let disk = || Arc::new(Directory::open(directory.path()).unwrap());
    let node = start(disk(), 2);
    let handle = node.handle();
    for number in 0..2_000 {
        let later = task("orders", &number.to_string()).after(Millis(if number % 2 == 0 { 1_500 } else { 3_600_000 }));
        assert!(is_created(&handle.schedule(later).await.unwrap()));
    }
    let again = task("orders", "7").after(Millis(3_600_000));
    assert!(!is_created(&handle.schedule(again).await.unwrap()), "the same id twice is one task");
    stop(node, handle);

    let node = start(disk(), 2);
    let handle = node.handle();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1_000 {
        let delivery = next(&handle, "orders").await;
        assert_eq!(delivery.body, delivery.id.as_str());
        assert!(seen.insert(delivery.id.clone()));
        finish(&handle, delivery.lease).await;
    }
    assert!(seen.iter().all(|id| id.parse::<u32>().unwrap() % 2 == 0), "nothing is early");
    stop(node, handle);

    let node = start(disk(), 2);
    let handle = node.handle();
    let too_late = handle.cancel(&name("orders"), &name("8")).await.unwrap();
    assert!(matches!(too_late, Ruling::TooLate(_)), "{too_late:?}");
    assert_eq!(handle.cancel(&name("orders"), &name("9")).await.unwrap(), Ruling::Done(()));
    stop(node, handle);
}

#[tokio::test]
async fn on_a_full_disk_scheduling_is_refused_and_acknowledging_goes_on_until_there_is_room() {
    let disk = SimulatedDisk::new(1);
    // It is small from the start, so that room to work with is set aside.
    disk.limit(64 << 20);
    let node = start(Arc::new(disk.clone()), 1);
    let handle = node.handle();
    handle.schedule(task("orders", "first")).await.unwrap();
    disk.limit(disk.used());
    let mut number = 0;
    let refused = loop {
        // Rows that no run has room for, until the keeper notices.
        match handle.schedule(task("orders", &format!("more-{number}")).after(Millis(3_600_000))).await {
            Ok(_) => number += 1,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(&refused, Error::Full(why) if why.contains("free some disk space")), "{refused}");
    finish(&handle, next(&handle, "orders").await.lease).await;
    for confirmed in 0..number.min(10) {
        let id = name(&format!("more-{confirmed}"));
        assert_eq!(handle.cancel(&name("orders"), &id).await.unwrap(), Ruling::Done(()));
    }

    disk.limit(u64::MAX);
    eventually("there is room again", async || handle.schedule(task("orders", "after")).await.is_ok()).await;
    for confirmed in number.min(10)..number {
        let id = name(&format!("more-{confirmed}"));
        assert!(handle.get(&name("orders"), &id).await.unwrap().is_some(), "{id} was confirmed");
    }
    node.stop();
}

#[tokio::test]
async fn after_a_failed_sync_the_node_refuses_everything_and_a_restart_has_what_was_confirmed() {
    let disk = SimulatedDisk::new(1);
    // Without a keeper: it syncs the segments that it makes, and one of these would meet the fault instead of a commit.
    let tended_by_nobody = Config { tending: Tending::Manual, ..small() };
    let almanac = Almanac::open(Arc::new(disk.clone()), tended_by_nobody, Arc::new(SystemClock)).unwrap();
    let node = Node::start(config(1), Arc::new(almanac), Arc::new(SystemClock)).unwrap();
    let handle = node.handle();
    handle.schedule(task("orders", "confirmed")).await.unwrap();
    let kind = io::ErrorKind::Other;
    disk.fail(Fault { call: Call::Sync, name_contains: "journal", after: 0, kind, lasting: false });
    let unknown = handle.schedule(task("orders", "unknown")).await.unwrap_err();
    assert!(unknown.to_string().contains("could not be synced"), "{unknown}");
    let refused = handle.schedule(task("orders", "refused")).await.unwrap_err();
    assert!(refused.to_string().contains("restart to continue"), "{refused}");
    node.stop();

    let node = start(Arc::new(disk.crash(7)), 1);
    let handle = node.handle();
    assert!(handle.get(&name("orders"), &name("confirmed")).await.unwrap().is_some());
    assert_eq!(handle.get(&name("orders"), &name("refused")).await.unwrap(), None);
    assert_eq!(next(&handle, "orders").await.id, name("confirmed"));
    node.stop();
}
