//! Two at once: whoever comes second finds what the first has done, and nothing happens twice.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use punctual_core::store::{Beat, Claim, Fence, Incarnation, Refusal, ShardId, Store, StoreError, Tenure, Want};
use punctual_core::{Millis, Name};
use punctual_engines::Postgres;
use punctual_postgres::Database;

use crate::lock;
use crate::owner::{Owner, SHARD, insert, life, open, open_with, row};

#[test]
fn a_commit_that_waits_behind_a_claim_is_refused() {
    let postgres = Postgres::start();
    let store = open(&postgres.url());
    let mut owner = Owner::of(&store, SHARD, "a");
    owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    thread::scope(|scope| {
        let claims = "UPDATE punctual.shards SET fence = fence + 1, node = 'b'";
        scope.spawn(|| lock::hold(&postgres, "postgres", claims, "COMMIT"));
        lock::wait_for_holder(&postgres, "postgres");
        let current = Fence(owner.tenure.fence.0 + 1);
        assert_eq!(owner.commit(vec![insert(row(2))]).unwrap(), Err(Refusal::Fenced { current }));
    });
    owner.expect(&[row(1)]);
}

#[test]
fn an_attempt_while_the_first_is_still_under_way_is_one_commit() {
    let postgres = Postgres::start();
    let (here, there) = (open(&postgres.url()), open(&postgres.url()));
    let owner = Owner::of(&here, SHARD, "a");
    let batch = owner.batch(vec![insert(row(1))]);
    thread::scope(|scope| {
        scope.spawn(|| lock::hold(&postgres, "postgres", "SELECT 1 FROM punctual.shards FOR UPDATE", "ROLLBACK"));
        lock::wait_for_holder(&postgres, "postgres");
        let first = scope.spawn(|| here.commit(vec![batch.clone()]));
        lock::wait_for_waiter(&postgres);
        let second = scope.spawn(|| there.commit(vec![batch.clone()]));
        for attempt in [first, second] {
            assert_eq!(attempt.join().unwrap(), Ok(vec![Ok(())]));
        }
    });
    assert_eq!(here.commit(vec![batch]), Ok(vec![Ok(())]), "and once more");
    owner.expect(&[row(1)]);
}

#[test]
fn of_many_claims_at_once_one_is_granted() {
    let postgres = Postgres::start();
    let stores: Vec<_> = (0..4).map(|_| open(&postgres.url())).collect();
    for round in 0..5 {
        let shards: Vec<(ShardId, Fence)> =
            (0..20).map(|shard| (ShardId(round * 20 + shard), Fence::default())).collect();
        let backwards: Vec<_> = shards.iter().rev().copied().collect();
        let claims: Vec<Vec<(ShardId, Claim)>> = thread::scope(|scope| {
            let claims = stores.iter().enumerate().map(|(index, store)| {
                let wanted = if index % 2 == 0 { &shards } else { &backwards };
                let who = Incarnation { node: Name::stored("n"), number: index as u64 };
                scope.spawn(move || {
                    let claims = store.claim(&who, wanted).unwrap();
                    wanted.iter().map(|(shard, _)| *shard).zip(claims).collect()
                })
            });
            claims.collect::<Vec<_>>().into_iter().map(|claim| claim.join().unwrap()).collect()
        });
        for (shard, _) in &shards {
            let granted = claims.iter().flatten().filter(|(claimed, _)| claimed == shard);
            assert_eq!(granted.filter(|(_, claim)| matches!(claim, Claim::Granted(_))).count(), 1, "{shard:?}");
        }
    }
}

#[test]
fn commits_of_many_shards_in_any_order_do_not_deadlock() {
    let postgres = Postgres::start();
    let (here, there) = (open(&postgres.url()), open(&postgres.url()));
    let shards: Vec<ShardId> = (0..16).map(ShardId).collect();
    // Both believe to own all: whoever claimed later does. So every batch is looked at under a lock, and some are refused.
    thread::scope(|scope| {
        for (store, node) in [(&here, "a"), (&there, "b")] {
            let mut shards = shards.clone();
            scope.spawn(move || {
                for round in 0..10 {
                    shards.rotate_left(round);
                    let owners: Vec<Owner> = shards.iter().map(|shard| Owner::of(store, *shard, node)).collect();
                    let batch = |owner: &Owner| owner.batch(vec![insert(row(owner.tenure.serial + 1))]);
                    store.commit(owners.iter().map(batch).collect()).unwrap();
                }
            });
        }
    });
    assert_eq!(
        here.status().retries + there.status().retries,
        0,
        "a deadlock is broken by the server, and tried again"
    );
    assert_eq!(here.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_read_beyond_what_is_there_or_under_an_old_fence_is_refused() {
    let postgres = Postgres::start();
    let (here, there) = (open(&postgres.url()), open(&postgres.url()));
    let mut owner = Owner::of(&here, SHARD, "a");
    owner.commit(vec![insert(row(1))]).unwrap().unwrap();
    let late = Tenure { serial: owner.tenure.serial + 1, ..owner.tenure };
    let lost = Refusal::Lost { expected: late.serial, found: owner.tenure.serial };
    assert_eq!(here.read(SHARD, late, &[Want::Tallies]), Err(StoreError::Refused(lost)));
    let new = Owner::of(&there, SHARD, "b");
    let fenced = Refusal::Fenced { current: new.tenure.fence };
    assert_eq!(here.read(SHARD, owner.tenure, &[Want::Tallies]), Err(StoreError::Refused(fenced)));
}

#[test]
fn a_beat_comes_through_while_all_other_connections_are_busy() {
    let postgres = Postgres::start();
    let store = open_with(&postgres.url(), |config| config.connections = 2);
    let owners: Vec<Owner> = (0..2).map(|shard| Owner::of(&store, ShardId(shard), "a")).collect();
    thread::scope(|scope| {
        let holding =
            scope.spawn(|| lock::hold(&postgres, "postgres", "SELECT 1 FROM punctual.shards FOR UPDATE", "COMMIT"));
        lock::wait_for_holder(&postgres, "postgres");
        let commits: Vec<_> = owners
            .iter()
            .map(|owner| {
                let (store, batch) = (Arc::clone(&store), owner.batch(vec![insert(row(1))]));
                scope.spawn(move || store.commit(vec![batch]))
            })
            .collect();
        lock::wait_for_waiter(&postgres);
        let began = Instant::now();
        let roll = store.beat(&Beat { who: life("a"), address: "here:1".to_owned(), lease: Millis(5_000) }).unwrap();
        assert!(!holding.is_finished(), "the beat took {:?}, and waited for the others", began.elapsed());
        assert_eq!(roll.node("a").unwrap().address, "here:1");
        for commit in commits {
            assert_eq!(commit.join().unwrap(), Ok(vec![Ok(())]));
        }
    });
}
