//! Two handles to one Redis, and who may do what with a shard.

use std::thread;
use std::time::{Duration, Instant};

use crate::owner::{Owner, SHARD, held, numbers, open};
use punctual_core::Millis;
use punctual_core::store::{Beat, Fence, Look, Refusal, Store, StoreError, Want};
use punctual_engines::{Proxy, Redis};
use punctual_redis::Database;

#[test]
fn a_commit_behind_a_claim_is_refused_and_a_read_too() {
    let redis = Redis::start();
    let (here, there) = (open(&redis.url(), 5_000), open(&redis.url(), 5_000));
    let mut first = Owner::of(&here, "a");
    first.insert(1).unwrap().unwrap();
    let second = Owner::of(&there, "b");
    let fenced = Refusal::Fenced { current: second.tenure.fence };
    assert_eq!(first.insert(2).unwrap(), Err(fenced.clone()));
    assert_eq!(first.read(), Err(fenced.clone().into()));
    assert_eq!(here.release(SHARD, first.tenure.fence, None), Err(fenced.into()));
    assert_eq!((numbers(&there, SHARD), second.tenure.serial), (vec![1], 1));
}

#[test]
fn the_same_batch_twice_is_one() {
    let redis = Redis::start();
    let store = open(&redis.url(), 5_000);
    let owner = Owner::of(&store, "a");
    let batch = owner.batch(vec![crate::owner::insert(crate::owner::row(1, 20))]);
    for _ in 0..2 {
        assert_eq!(store.commit(vec![batch.clone(), batch.clone()]).unwrap(), [Ok(()), Ok(())]);
    }
    assert_eq!((numbers(&store, SHARD), owner.counted()), (vec![1], 1));
}

#[test]
fn a_retry_while_the_first_attempt_is_under_way_happens_once() {
    let redis = Redis::start();
    let store = open(&redis.url(), 4_000);
    let mut owner = Owner::of(&store, "a");
    redis.pause();
    let writer = thread::spawn(move || {
        owner.insert(1).unwrap().unwrap();
        owner
    });
    // The second attempt begins after half of the patience.
    thread::sleep(Duration::from_millis(2_500));
    redis.go_on();
    let owner = writer.join().unwrap();
    assert!(store.status().retries > 0, "there were two attempts: {:?}", store.status());
    assert_eq!((numbers(&store, SHARD), owner.counted()), (vec![1], 1));
}

#[test]
fn a_commit_that_arrives_after_a_claim_comes_to_nothing() {
    let redis = Redis::start();
    let store = open(&redis.url(), 1_000);
    let mut first = Owner::of(&store, "a");
    redis.pause();
    assert!(matches!(first.insert(1), Err(StoreError::Unavailable(_))));
    // What was sent waits in the socket, and comes in before the claim or after it.
    redis.go_on();
    let second = Owner::of(&store, "b");
    let found = numbers(&store, SHARD);
    assert_eq!(found.len() as u64, second.tenure.serial, "what the claim saw is what is there");
    thread::sleep(Duration::from_millis(200));
    assert_eq!(numbers(&store, SHARD), found, "and nothing came after it");
}

#[test]
fn a_server_that_hangs_is_given_up_in_time() {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let store = open(&Redis::url_at(proxy.port()), 800);
    let mut owner = Owner::of(&store, "a");
    proxy.hang();
    let in_time = |what: &str, call: &dyn Fn() -> Result<(), StoreError>| {
        let began = Instant::now();
        assert!(matches!(call(), Err(StoreError::Unavailable(_))), "{what}");
        assert!(began.elapsed() < Duration::from_millis(2_500), "{what} took {:?}", began.elapsed());
    };
    in_time("commit", &|| owner.clone().insert(1).map(drop));
    in_time("read", &|| owner.read());
    in_time("look", &|| store.look_for(SHARD, Want::Tallies).map(drop));
    in_time("claim", &|| store.claim(&crate::owner::life("b"), &[(SHARD, Fence(1))]).map(drop));
    in_time("put", &|| store.cluster_put("key", 0, b"value").map(drop));
    assert_eq!(store.status().failures, 5);
    // The commit that hung may still arrive, and is the same one.
    proxy.pass();
    owner.insert(1).unwrap().unwrap();
    assert_eq!(numbers(&store, SHARD), [1]);
}

#[test]
fn a_beat_that_is_not_answered_leaves_time_for_another() {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let store = open(&Redis::url_at(proxy.port()), 20_000);
    proxy.hang();
    let began = Instant::now();
    let beat = Beat { who: crate::owner::life("a"), address: String::new(), lease: Millis::from_secs(3) };
    assert!(matches!(store.beat(&beat), Err(StoreError::Unavailable(_))));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    proxy.pass();
    store.beat(&beat).unwrap();
}

#[test]
fn calls_beyond_the_connections_wait_for_one() {
    let redis = Redis::start();
    let config = punctual_redis::Config { connections: 2, ..punctual_redis::Config::new(redis.url()) };
    let store = std::sync::Arc::new(punctual_redis::RedisStore::open(config).unwrap());
    let owner = Owner::of(&store, "a");
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..20).for_each(|_| owner.read().unwrap()));
        }
    });
    assert!(store.status().connections <= 2, "{:?}", store.status());
    assert_eq!(store.status().busy, 0);
}

#[test]
fn the_roll_names_no_shard_that_was_never_granted() {
    let redis = Redis::start();
    let store = open(&redis.url(), 5_000);
    // As if the claimer had ended between entering the shard and claiming it.
    redis.command(&["SADD", "{punctual}:shards", "7"]);
    assert_eq!(held(&store), None);
    Owner::of(&store, "a");
    assert!(held(&store).is_some());
}
