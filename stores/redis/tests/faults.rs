//! Connections that are cut at every byte, and servers that are killed: nothing is lost, nothing happens twice, and the
//! same handle goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::owner::{Owner, SHARD, numbers, open};
use punctual_engines::{Proxy, Redis, Way};
use punctual_redis::Database;

/// Commits once with the connection cut after each of so many bytes; each commit has to succeed, and to be there once.
fn cut_at_each(way: Way) {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let store = open(&Redis::url_at(proxy.port()), 20_000);
    let mut owner = Owner::of(&store, "a");
    owner.insert(1).unwrap().unwrap();
    let before = proxy.passed(way);
    owner.insert(2).unwrap().unwrap();
    let bytes = proxy.passed(way) - before;
    assert!(bytes > 10, "a commit has {bytes} bytes");
    for cut in 0..bytes {
        proxy.cut_after(way, cut);
        owner.insert(3 + cut).unwrap().unwrap();
        assert!(!proxy.disarm(), "the connection was cut after {cut} bytes");
    }
    assert_eq!(numbers(&store, SHARD), (1..3 + bytes).collect::<Vec<_>>());
    assert_eq!(owner.counted() as u64, 2 + bytes, "each happened once");
    assert!(store.status().retries >= bytes);
}

#[test]
fn a_commit_survives_a_cut_at_every_byte_on_its_way() {
    cut_at_each(Way::There);
}

#[test]
fn a_commit_survives_a_cut_at_every_byte_of_its_answer() {
    cut_at_each(Way::Back);
}

#[test]
fn a_commit_survives_a_cut_while_it_connects() {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let store = open(&Redis::url_at(proxy.port()), 20_000);
    let mut owner = Owner::of(&store, "a");
    for (seq, cut) in (0..12_000).step_by(397).enumerate() {
        proxy.cut();
        proxy.cut_after(Way::There, cut);
        owner.insert(1 + seq as u64).unwrap().unwrap();
        proxy.disarm();
    }
    assert_eq!(owner.counted(), numbers(&store, SHARD).len() as i64);
}

#[test]
fn what_was_confirmed_survives_kill_9() {
    let mut redis = Redis::start();
    let store = open(&redis.url(), 20_000);
    let mut owner = Owner::of(&store, "a");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut seq = 0;
            while !is_over.load(Ordering::SeqCst) {
                seq += 1;
                owner.insert(seq).unwrap().unwrap();
            }
            seq
        });
        for pause in [50, 120, 33, 200, 75] {
            thread::sleep(Duration::from_millis(pause));
            redis.kill();
            thread::sleep(Duration::from_millis(100));
            redis.start_again();
        }
        is_over.store(true, Ordering::SeqCst);
        let last = writer.join().unwrap();
        assert_eq!(numbers(&store, SHARD), (1..=last).collect::<Vec<_>>());
    });
    assert_eq!(owner.counted() as u64, owner.tenure.serial);
    owner.read().unwrap();
}

#[test]
fn scripts_that_were_forgotten_are_brought_again() {
    let redis = Redis::start();
    let store = open(&redis.url(), 5_000);
    let mut owner = Owner::of(&store, "a");
    for seq in 1..=3 {
        redis.command(&["SCRIPT", "FLUSH"]);
        owner.insert(seq).unwrap().unwrap();
        redis.command(&["SCRIPT", "FLUSH"]);
        owner.read().unwrap();
    }
    // A first batch that finds no script must not make the second one, which does, look as if it had a gap before it.
    redis.command(&["SCRIPT", "FLUSH"]);
    let of_the_second = concat!("#!lua flags=allow-oom\n", include_str!("../src/lua/commit.lua"));
    redis.command(&["SCRIPT", "LOAD", of_the_second]);
    let first = owner.batch(vec![crate::owner::insert(crate::owner::row(4, 20))]);
    let second = punctual_core::store::Batch { serial: first.serial + 1, changes: vec![], ..first.clone() };
    use punctual_core::store::Store;
    assert_eq!(store.commit(vec![first, second]).unwrap(), [Ok(()), Ok(())]);
}

#[test]
fn a_redis_that_is_still_loading_is_waited_for() {
    let mut redis = Redis::start();
    let store = open(&redis.url(), 20_000);
    let mut owner = Owner::of(&store, "a");
    owner.insert(1).unwrap().unwrap();
    redis.kill();
    let writer = thread::spawn(move || owner.insert(2));
    thread::sleep(Duration::from_millis(500));
    redis.start_again();
    writer.join().unwrap().unwrap().unwrap();
    assert_eq!(numbers(&store, SHARD), [1, 2]);
}
