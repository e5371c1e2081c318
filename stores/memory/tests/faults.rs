//! What goes wrong when the store is told so, and nothing else.

mod bench;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use bench::{Bench, SHARD, claim, insert};
use punctual_core::store::{
    Beat, Bodies, Fence, Hardship, Incarnation, Look, Refusal, ShardId, Store, StoreError, Tenure,
};
use punctual_core::{Millis, Name};
use punctual_memory::Fate;

fn is_unavailable<T>(answer: Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unavailable(_)))
}

#[test]
fn a_lost_commit_fails_without_effect_and_the_next_one_succeeds() {
    let bench = Bench::new();
    bench.store.faults().fail_next_commit(Fate::Lost);
    assert!(is_unavailable(bench.commit(vec![insert("a", 1)])));
    assert!(bench.ids(SHARD).is_empty());
    assert_eq!(bench.commit(vec![insert("a", 1)]), Ok(vec![Ok(())]));
    assert_eq!(bench.ids(SHARD), ["a"]);
}

#[test]
fn a_kept_commit_fails_after_its_effect() {
    let bench = Bench::new();
    bench.store.faults().fail_next_commit(Fate::Kept);
    assert!(is_unavailable(bench.commit(vec![insert("a", 1)])));
    assert_eq!(bench.ids(SHARD), ["a"]);
}

#[test]
fn a_partly_kept_commit_has_the_effect_of_its_first_batches() {
    let bench = Bench::new();
    bench.store.faults().fail_next_commit(Fate::Partly(1));
    let batches = [SHARD, ShardId(2)].map(|shard| bench.batch(shard, vec![insert("a", 1)]));
    assert!(is_unavailable(bench.store.commit(batches.into())));
    assert_eq!(bench.ids(SHARD), ["a"]);
    assert!(bench.ids(ShardId(2)).is_empty());
}

#[test]
fn a_cut_off_store_answers_nothing_until_it_is_healed() {
    let bench = Bench::new();
    bench.store.faults().cut();
    assert!(is_unavailable(bench.commit(vec![insert("a", 1)])));
    assert!(is_unavailable(bench.store.get(SHARD, &[], Bodies::With)));
    let who = Incarnation { node: Name::new("node").unwrap(), number: 1 };
    assert!(is_unavailable(bench.store.read(SHARD, Tenure { fence: bench.fence, serial: 0 }, &[])));
    assert!(is_unavailable(bench.store.claim(&who, &[])));
    assert!(is_unavailable(bench.store.beat(&Beat { who, address: String::new(), lease: Millis(1) })));
    assert!(is_unavailable(bench.store.release(SHARD, bench.fence, None)));
    assert!(is_unavailable(bench.store.cluster_get("level")));
    assert!(is_unavailable(bench.store.cluster_put("level", 0, b"1")));
    bench.store.faults().heal();
    assert!(bench.ids(SHARD).is_empty());
    assert_eq!(bench.commit(vec![insert("a", 1)]), Ok(vec![Ok(())]));
}

#[test]
fn a_poisoned_store_says_so_in_every_answer() {
    let bench = Bench::new();
    bench.store.faults().poison("a sync failed");
    let poisoned = StoreError::Poisoned("a sync failed".to_owned());
    assert_eq!(bench.commit(vec![insert("a", 1)]), Err(poisoned.clone()));
    assert_eq!(bench.store.tallies(SHARD), Err(poisoned));
}

#[test]
fn an_old_fence_is_refused_after_a_claim_under_the_same_name() {
    let bench = Bench::new();
    let current = claim(&*bench.store, SHARD);
    assert_eq!(bench.commit(vec![insert("a", 1)]), Ok(vec![Err(Refusal::Fenced { current })]));
    assert_eq!(current, Fence(bench.fence.0 + 1));
}

#[test]
fn a_crash_forgets_the_commits_that_were_held_and_no_others() {
    let bench = Bench::new();
    bench.commit(vec![insert("before", 1)]).unwrap();
    bench.store.hold();
    bench.commit(vec![insert("synced", 2)]).unwrap();
    bench.store.sync();
    bench.commit(vec![insert("held", 3)]).unwrap();
    assert_eq!(bench.ids(SHARD), ["before", "synced", "held"]);
    bench.store.crash();
    assert_eq!(bench.ids(SHARD), ["before", "synced"]);
}

#[test]
fn a_crash_does_not_lower_fences() {
    let bench = Bench::new();
    bench.store.hold();
    let fence = claim(&*bench.store, SHARD);
    bench.store.crash();
    assert!(claim(&*bench.store, SHARD) > fence);
}

#[test]
fn without_holding_a_crash_forgets_nothing_committed() {
    let bench = Bench::new();
    bench.commit(vec![insert("a", 1)]).unwrap();
    bench.store.crash();
    assert_eq!(bench.ids(SHARD), ["a"]);
}

#[test]
fn a_slow_commit_holds_up_no_reads_and_a_crash_loses_it() {
    let bench = Arc::new(Bench::new());
    let (begun, has_begun) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    bench.store.faults().slow_down(move || {
        begun.send(()).unwrap();
        may_go_on.lock().unwrap().recv().unwrap();
    });
    let committer = thread::spawn({
        let bench = Arc::clone(&bench);
        move || [insert("slow", 1), insert("lost", 2)].map(|change| bench.commit(vec![change]))
    });
    has_begun.recv().unwrap();
    assert!(bench.ids(SHARD).is_empty());
    go_on.send(()).unwrap();
    has_begun.recv().unwrap();
    assert_eq!(bench.ids(SHARD), ["slow"]);
    bench.store.crash();
    go_on.send(()).unwrap();
    let [slow, lost] = committer.join().unwrap();
    assert_eq!(slow, Ok(vec![Ok(())]));
    assert!(is_unavailable(lost));
    assert_eq!(bench.ids(SHARD), ["slow"]);
}

#[test]
fn a_full_store_says_so_until_it_is_healed_and_commits_go_on() {
    let bench = Bench::new();
    assert_eq!(bench.store.hardship(), None);
    bench.store.faults().fill("too many rows: remove some");
    assert_eq!(bench.store.hardship(), Some(Hardship::NoRoom("too many rows: remove some".to_owned())));
    assert_eq!(bench.commit(vec![insert("a", 1)]), Ok(vec![Ok(())]));
    bench.store.faults().heal();
    assert_eq!(bench.store.hardship(), None);
}
