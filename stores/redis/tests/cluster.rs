//! A Redis Cluster whose slots move and whose masters come and go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::owner::{Owner, SHARD, insert, numbers, open, row};
use punctual_core::store::{Batch, Fence, ShardId, Store};
use punctual_engines::RedisCluster;
use punctual_redis::Database;

#[test]
fn a_shard_moves_to_another_master_while_it_is_written() {
    let cluster = RedisCluster::start();
    let store = open(&cluster.url(), 20_000);
    let mut owner = Owner::of(&store, "a");
    let slot = cluster.slot("{punctual:7}:own");
    let from = cluster.home(slot);
    let to = (from + 1) % 3;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut seq = 0;
            while !is_over.load(Ordering::SeqCst) {
                seq += 1;
                // Bodies that lie apart, so that there is one more key.
                owner.commit(vec![insert(row(seq, 300))]).unwrap().unwrap();
                owner.read().unwrap();
            }
            seq
        });
        thread::sleep(Duration::from_millis(300));
        cluster.begin_move(slot, from, to);
        // Key by key: in between, a part of the shard is here and a part there.
        while cluster.move_keys(slot, from, to, 1) > 0 {
            thread::sleep(Duration::from_millis(100));
        }
        cluster.end_move(slot, to);
        thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::SeqCst);
        let last = writer.join().unwrap();
        assert_eq!(numbers(&store, SHARD), (1..=last).collect::<Vec<_>>());
    });
    assert_eq!(owner.counted() as u64, owner.tenure.serial);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_master_that_was_killed_is_found_again() {
    let mut cluster = RedisCluster::start();
    let store = open(&cluster.url(), 10_000);
    let mut owner = Owner::of(&store, "a");
    owner.insert(1).unwrap().unwrap();
    let home = cluster.home(cluster.slot("{punctual:7}:own"));
    cluster.server(home).kill();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let began = Instant::now();
            while let Err(trouble) = owner.insert(2) {
                assert!(began.elapsed() < Duration::from_secs(60), "it does not come back: {trouble}");
            }
        });
        thread::sleep(Duration::from_millis(300));
        cluster.server(home).start_again();
        writer.join().unwrap();
    });
    assert_eq!((numbers(&store, SHARD), owner.counted()), (vec![1, 2], 2));
}

#[test]
fn shards_of_all_masters_commit_in_one_call() {
    let cluster = RedisCluster::start();
    let store = open(&cluster.url(), 5_000);
    let shards: Vec<ShardId> = (0..16).map(ShardId).collect();
    let owners: Vec<Owner> =
        shards.iter().map(|shard| Owner::claiming(&store, *shard, "a", Fence::default())).collect();
    let homes = shards.iter().map(|shard| cluster.home(cluster.slot(&format!("{{punctual:{}}}:own", shard.0))));
    assert_eq!(homes.collect::<std::collections::BTreeSet<_>>().len(), 3, "every master has some");
    let batches: Vec<Batch> = owners.iter().map(|owner| owner.batch(vec![insert(row(1, 20))])).collect();
    let before = store.status().round_trips;
    assert_eq!(store.commit(batches).unwrap(), vec![Ok(()); 16]);
    assert_eq!(store.status().round_trips - before, 3, "one for each master");
    for shard in shards {
        assert_eq!(numbers(&store, shard), [1]);
    }
    assert!(cluster.servers().iter().all(|server| server.command(&["DBSIZE"]) != "0"));
}
