//! What happens when commits, claims and attempts of the same commit meet in the server.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::ground::{MARIA, SHARD, batch, commit, config, hasty, insert, node, numbered, open, prefix, row, take};
use punctual_core::store::{Batch, Bodies, Claim, Fence, Refusal, ShardId, Store, StoreError, Tenure, Want};
use punctual_engines::{Maria, Proxy, Way};
use punctual_mysql::{Config, Database};

/// Holds the shard's row for a while, as a transaction of somebody else's does, and says it when it has it.
fn hold(prefix: &str, change: &str, seconds: f64) -> thread::JoinHandle<String> {
    let statements = format!(
        "USE punctual; BEGIN; UPDATE {prefix}shards SET {change} WHERE shard={}; SELECT SLEEP({seconds}); COMMIT",
        SHARD.0
    );
    let held = thread::spawn(move || MARIA.sql(&statements));
    until_runs(&format!("INFO LIKE 'SELECT SLEEP({seconds})%'"));
    held
}

/// Waits until the server runs such a statement.
fn until_runs(which: &str) {
    let running = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID<>CONNECTION_ID() AND {which}");
    let began = Instant::now();
    while MARIA.sql(&running) == "0" {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing like it runs: {which}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Such tests look at what the server runs, so there is one at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_commit_that_waits_behind_a_claim_is_refused_and_changes_nothing() {
    let _alone = ALONE.lock();
    let config = config(MARIA.url());
    let store = open(&config);
    let tenure = take(&store);
    let held = hold(prefix(&config), "fence=fence+1", 1.5);
    assert!(!held.is_finished());
    let answer = commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))])).unwrap();
    assert_eq!(answer, Err(Refusal::Fenced { current: Fence(tenure.fence.0 + 1) }));
    assert_eq!(numbered(&store, 1), None);
    held.join().unwrap();
}

#[test]
fn a_lock_that_is_held_for_long_is_waited_for_as_long_as_patience_lasts() {
    let _alone = ALONE.lock();
    let config = hasty(MARIA.url());
    let store = open(&config);
    let tenure = take(&store);
    let held = hold(prefix(&config), "node='b'", 5.0);
    let began = Instant::now();
    let failed = commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))]));
    assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    assert!(began.elapsed() < Duration::from_millis(2_500), "it did not wait for the lock to go");
    held.join().unwrap();
    assert_eq!(commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))])), Ok(Ok(())), "and then it goes on");
}

#[test]
fn a_retry_while_the_first_attempt_still_runs_makes_one_commit() {
    let _alone = ALONE.lock();
    let config = Config { patience: Duration::from_secs(10), ..config(MARIA.url()) };
    let setup = open(&config);
    let tenure = take(&setup);
    let proxy = Proxy::to(MARIA.port());
    let store = open(&Config { url: Maria::url_at(proxy.port()), ..config.clone() });
    let held = hold(prefix(&config), "node='b'", 2.5);
    let cut = thread::scope(|scope| {
        let committing = scope.spawn(|| commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))])));
        until_runs(&format!("TIME_MS>100 AND INFO LIKE '%{}shards%'", prefix(&config)));
        // The server goes on with what it has; the store tries again on another connection.
        proxy.cut();
        committing.join().unwrap()
    });
    assert_eq!(cut, Ok(Ok(())));
    held.join().unwrap();
    assert_eq!(numbered(&setup, 1), Some(row(1)));
    assert_eq!(MARIA.sql(&format!("SELECT serial FROM punctual.{}shards", prefix(&config))), "1");
    assert!(store.status().retries > 0);
}

#[test]
fn a_cut_off_commit_of_a_deposed_owner_has_an_unknown_outcome() {
    let _alone = ALONE.lock();
    let config = config(MARIA.url());
    let other = open(&config);
    let tenure = take(&other);
    let proxy = Proxy::to(MARIA.port());
    let store = open(&Config { url: Maria::url_at(proxy.port()), ..config.clone() });
    // The answer to the commit is lost, and before the store can ask again another has the shard.
    proxy.cut_after(Way::Back, 0);
    let answer = thread::scope(|scope| {
        let committing = scope.spawn(|| commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))])));
        while numbered(&other, 1).is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        proxy.refuse();
        take(&other);
        proxy.pass();
        committing.join().unwrap()
    });
    match answer {
        // It asked again before the claim.
        Ok(Ok(())) => {}
        Err(StoreError::Unavailable(_)) => {}
        wrong => panic!("it has happened, and the answer is {wrong:?}"),
    }
    assert_eq!(numbered(&other, 1), Some(row(1)));
}

#[test]
fn a_read_under_an_old_fence_is_refused() {
    let store = open(&config(MARIA.url()));
    let old = take(&store);
    assert_eq!(commit(&store, batch(old.fence, 1, vec![insert(&row(1))])), Ok(Ok(())));
    let read = |tenure| store.read(SHARD, tenure, &[Want::Numbers(&[1], Bodies::With)]);
    assert_eq!(read(Tenure { serial: 1, ..old }).unwrap().remove(0).each(), vec![Some(row(1))]);
    let gap = Refusal::Lost { expected: 2, found: 1 };
    assert_eq!(read(Tenure { serial: 2, ..old }), Err(gap.into()));
    let new = take(&store);
    assert_eq!(read(old), Err(Refusal::Fenced { current: new.fence }.into()));
}

#[test]
fn a_fence_is_unique_also_after_the_store_went_back() {
    let config = config(MARIA.url());
    let store = open(&config);
    let old = take(&store);
    let backup = format!("CREATE TABLE {0}kept AS SELECT * FROM {0}shards", prefix(&config));
    MARIA.sql(&format!("USE punctual; {backup}"));
    let lost = take(&store);
    assert_eq!(commit(&store, batch(lost.fence, 1, vec![insert(&row(1))])), Ok(Ok(())));
    // What happened since is undone, as by a failover to a copy that was behind.
    let restore =
        "DELETE FROM {0}shards; INSERT INTO {0}shards SELECT * FROM {0}kept; DELETE FROM {0}rows; DELETE FROM {0}names";
    MARIA.sql(&format!("USE punctual; {}", restore.replace("{0}", prefix(&config))));
    let next = commit(&store, batch(lost.fence, 2, vec![insert(&row(2))]));
    assert_eq!(next, Ok(Err(Refusal::Lost { expected: 1, found: 0 })), "the writer learns that it was undone");
    let read = store.read(SHARD, Tenure { serial: 1, ..lost }, &[]);
    assert_eq!(read, Err(Refusal::Lost { expected: 1, found: 0 }.into()));
    let new = take(&store);
    assert!(new.fence > lost.fence && lost.fence > old.fence, "{new:?} after {lost:?}");
}

#[test]
fn many_writers_of_other_shards_do_not_disturb_each_other() {
    let store = open(&config(MARIA.url()));
    thread::scope(|scope| {
        for shard in (0..6).map(ShardId) {
            let store = &store;
            scope.spawn(move || {
                let granted = store.claim(&node("a"), &[(shard, Fence::default())]).unwrap()[0];
                let Claim::Granted(tenure) = granted else { panic!("{granted:?}") };
                for serial in 1..=30 {
                    let changes = (0..20).map(|n| insert(&row(serial * 100 + n))).collect();
                    let batch = Batch { shard, fence: tenure.fence, serial, changes, tallies: vec![] };
                    assert_eq!(commit(store, batch), Ok(Ok(())));
                }
            });
        }
    });
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
