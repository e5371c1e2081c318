//! Replicas that take over: what they did not have yet is noticed, and with enough of them nothing is missing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::owner::{Owner, SHARD, held, numbers, open};
use punctual_core::store::{Refusal, StoreError};
use punctual_engines::{Proxy, Redis, RedisSentinels};
use punctual_redis::{Config, Database, RedisStore};

/// A master, and a replica that can be cut off from it.
struct Pair {
    master: Redis,
    link: Proxy,
    replica: Redis,
}

impl Pair {
    fn start() -> Pair {
        let master = Redis::start();
        let link = Proxy::to(master.port());
        let replica = Redis::replica_of(link.port(), &["--appendfsync", "always"]);
        Pair { master, link, replica }
    }

    /// The replica takes the master's place, with what it has.
    fn fail_over(&mut self) {
        self.master.kill();
        self.replica.take_over(self.master.port());
    }

    fn waiting_for_replica(&self) -> Arc<RedisStore> {
        let url = format!("{}?wait_ms=2000", self.master.url());
        let config = Config { replicas: 1, patience: Duration::from_secs(10), ..Config::new(url) };
        Arc::new(RedisStore::open(config).unwrap())
    }
}

#[test]
fn commits_that_a_failover_lost_are_noticed() {
    let mut pair = Pair::start();
    let store = open(&pair.master.url(), 10_000);
    let mut owner = Owner::of(&store, "a");
    (1..=3).for_each(|seq| owner.insert(seq).unwrap().unwrap());
    pair.master.wait_for(&pair.replica);
    pair.link.refuse();
    (4..=6).for_each(|seq| owner.insert(seq).unwrap().unwrap());
    pair.fail_over();

    let lost = Refusal::Lost { expected: 6, found: 3 };
    assert_eq!(owner.insert(7).unwrap(), Err(lost.clone()));
    assert_eq!(owner.read(), Err(lost.into()));

    let mut owner = Owner::of(&store, "a");
    assert_eq!(owner.tenure.serial, 3);
    owner.insert(7).unwrap().unwrap();
    assert_eq!(numbers(&store, SHARD), [1, 2, 3, 7]);
}

#[test]
fn a_claim_that_a_failover_lost_is_noticed_and_its_fence_not_granted_again() {
    let mut pair = Pair::start();
    let store = open(&pair.master.url(), 10_000);
    let first = Owner::of(&store, "a");
    pair.master.wait_for(&pair.replica);
    pair.link.refuse();
    let mut second = Owner::of(&store, "b");
    second.insert(1).unwrap().unwrap();
    pair.fail_over();

    assert_eq!(held(&store).unwrap().fence, first.tenure.fence, "the claim is forgotten");
    assert_eq!(second.insert(2).unwrap(), Err(Refusal::Lost { expected: 1, found: 0 }));
    let third = Owner::of(&store, "a");
    assert!(third.tenure.fence > second.tenure.fence, "{:?} is not {:?}", third.tenure, second.tenure);
    assert_eq!(second.insert(2).unwrap(), Err(Refusal::Fenced { current: third.tenure.fence }));
}

#[test]
fn a_redis_that_comes_back_empty_has_lost_everything() {
    let mut redis = Redis::start_with(&["--appendonly", "no"]);
    let store = open(&redis.url(), 10_000);
    assert!(store.to_string().contains("kept in memory only"), "{store}");
    let mut owner = Owner::of(&store, "a");
    owner.insert(1).unwrap().unwrap();
    redis.kill();
    redis.start_again();
    assert_eq!(owner.insert(2).unwrap(), Err(Refusal::Lost { expected: 1, found: 0 }));
}

#[test]
fn a_commit_that_too_few_replicas_have_is_not_confirmed() {
    let pair = Pair::start();
    let store = pair.waiting_for_replica();
    assert!(store.to_string().contains("at 1 replica"), "{store}");
    let mut owner = Owner::of(&store, "a");
    owner.insert(1).unwrap().unwrap();
    // The replica is still there for the master, and hears nothing.
    pair.link.hang();
    let refused = owner.insert(2);
    assert!(matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("0 of 1 replicas")), "{refused:?}");

    // On another connection too, though the batch is there already.
    let another = pair.waiting_for_replica();
    let mut again = Owner { store: Arc::clone(&another), ..owner.clone() };
    assert!(matches!(again.insert(2), Err(StoreError::Unavailable(_))));

    pair.link.pass();
    let began = Instant::now();
    while owner.insert(2).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the replica is back");
    }
    assert_eq!((numbers(&store, SHARD), owner.counted()), (vec![1, 2], 2));
}

#[test]
fn what_a_replica_was_waited_for_survives_the_loss_of_the_master() {
    let mut pair = Pair::start();
    let store = pair.waiting_for_replica();
    let mut owner = Owner::of(&store, "a");
    (1..=50).for_each(|seq| owner.insert(seq).unwrap().unwrap());
    pair.fail_over();
    // The new master has no replica, so that nothing is confirmed; what was is there.
    owner.read().unwrap();
    assert_eq!(numbers(&store, SHARD), (1..=50).collect::<Vec<_>>());
}

#[test]
fn a_master_that_wants_replicas_takes_nothing_without_them() {
    let redis = Redis::start_with(&["--min-replicas-to-write", "1"]);
    let url = redis.url();
    let patience = Duration::from_millis(500);
    let refused = RedisStore::open(Config { patience, ..Config::new(url) }).map(drop).unwrap_err();
    assert!(refused.to_string().contains("NOREPLICAS"), "{refused}");
}

#[test]
fn a_store_follows_the_sentinels_to_the_new_master() {
    let mut set = RedisSentinels::start();
    let store = open(&set.url(), 5_000);
    let mut owner = Owner::of(&store, "a");
    (1..=20).for_each(|seq| owner.insert(seq).unwrap().unwrap());
    set.master.wait_for(&set.replica);
    set.master.kill();

    let began = Instant::now();
    while let Err(trouble) = owner.insert(21) {
        assert!(began.elapsed() < Duration::from_secs(60), "no new master: {trouble}");
    }
    assert_eq!(set.replica.info("role").as_deref(), Some("master"));

    // The old one comes back as a master that nobody follows, until the sentinels make it a replica.
    set.master.start_again();
    (22..=40).for_each(|seq| owner.insert(seq).unwrap().unwrap());
    assert_eq!(numbers(&store, SHARD), (1..=40).collect::<Vec<_>>());
    assert_eq!(owner.counted(), 40);
}
