//! Facts about who owns a shard: claims, releases, fences. The second node comes by a handle of its own where stores are
//! shared.

use std::sync::Arc;

use punctual_core::Millis;
use punctual_core::store::{
    Batch, Beat, Bodies, Claim, Fence, Found, Held, Key, Refusal, Roll, ShardId, Store, StoreError, Table, Tenure, Want,
};

use crate::stage::{
    Difference, Outcome, SHARD, Stage, claim, granted, holds, insert, life, row, same, same_rows, whole,
};

crate::listed![
    a_free_shard_is_granted,
    a_claim_with_an_outdated_fence_is_outrun_and_changes_nothing,
    a_claim_that_is_outrun_puts_no_shard_on_the_roll,
    shards_claimed_together_are_granted_each_by_itself,
    a_node_claims_its_own_shard_again_under_a_higher_fence,
    a_claim_tells_the_latest_commit,
    after_a_takeover_the_old_fence_is_good_for_nothing,
    an_owner_whose_lease_is_over_stays_until_another_claims,
    a_released_fence_is_good_for_nothing,
    a_released_shard_has_no_owner_until_it_is_claimed,
    a_shard_that_is_released_to_a_node_is_its_on_the_roll,
    releasing_under_an_old_fence_is_refused,
    the_roll_names_all_shards_in_order,
    a_takeover_finds_what_was_committed,
    fences_rise_with_every_claim_and_release,
    fences_are_not_behind_the_clock,
    fences_rise_also_when_the_store_is_reopened,
    nodes_that_share_a_store_see_each_other,
];

/// A lease short enough to wait for, long enough to do something within.
const SHORT: Millis = Millis(1_000);
/// More than the short lease.
const OVER: Millis = Millis(1_100);

/// A shard that is not claimed at the beginning.
const FREE: ShardId = ShardId(3);

/// The first claim of the free shard.
fn take(store: &Arc<dyn Store>, node: &str) -> Result<Tenure, Difference> {
    take_from(store, node, Fence::default())
}

/// A claim of the free shard by one who has seen this fence.
fn take_from(store: &Arc<dyn Store>, node: &str, seen: Fence) -> Result<Tenure, Difference> {
    granted(claim(store, &life(node, 1), FREE, seen)?)
}

/// A beat of a node that owns nothing: only the roll is of interest.
pub(crate) fn roll(store: &Arc<dyn Store>) -> Result<Roll, StoreError> {
    store.beat(&Beat { who: life("onlooker", 1), address: String::new(), lease: SHORT })
}

fn held(store: &Arc<dyn Store>) -> Result<Option<Held>, StoreError> {
    Ok(roll(store)?.held(FREE).cloned())
}

fn commit(store: &Arc<dyn Store>, fence: Fence) -> Result<Result<(), Refusal>, StoreError> {
    let batch = Batch { shard: FREE, fence, serial: 0, changes: vec![], tallies: vec![] };
    Ok(store.commit(vec![batch])?.remove(0))
}

fn read(store: &Arc<dyn Store>, fence: Fence) -> Result<Vec<Found>, StoreError> {
    let keys = [Key::new("orders", "none", "")];
    store.read(FREE, Tenure { fence, serial: 0 }, &[Want::Keys(&keys, Bodies::With)])
}

/// Requires that the owner can do what owners do.
fn in_force(store: &Arc<dyn Store>, fence: Fence) -> Outcome {
    same("a commit of the owner", commit(store, fence)?, Ok(()))?;
    same("a read of the owner", read(store, fence)?, vec![Found::Each(vec![None])])
}

/// Requires that nothing can be done under this fence any more, because another is in force.
fn outdated(store: &Arc<dyn Store>, fence: Fence, current: Fence) -> Outcome {
    let fenced = Refusal::Fenced { current };
    same("a commit under an old fence", commit(store, fence)?, Err(fenced.clone()))?;
    same("a read under an old fence", read(store, fence), Err(fenced.clone().into()))?;
    same("a release under an old fence", store.release(FREE, fence, None), Err(fenced.into()))?;
    let claim = claim(store, &life("late", 1), FREE, fence)?;
    same("a claim by one who has seen an old fence", claim, Claim::Outrun(current))
}

fn a_free_shard_is_granted(stage: &mut Stage<'_>) -> Outcome {
    let tenure = take(stage.store(), "a")?;
    same("the latest commit of a new shard", tenure.serial, 0)?;
    in_force(stage.store(), tenure.fence)
}

fn a_claim_with_an_outdated_fence_is_outrun_and_changes_nothing(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = take(here, "a")?.fence;
    let current = take_from(here, "a", first)?.fence;
    for seen in [Fence::default(), first, Fence(current.0 + 1), Fence(current.0 - 1)] {
        let answer = claim(&there, &life("b", 1), FREE, seen)?;
        same(format_args!("a claim by one who has seen {seen:?}"), answer, Claim::Outrun(current))?;
    }
    let expected = Held { shard: FREE, fence: current, by: Some(life("a", 1)) };
    same("the owner", held(&there)?, Some(expected))?;
    in_force(here, current)
}

fn a_claim_that_is_outrun_puts_no_shard_on_the_roll(stage: &mut Stage<'_>) -> Outcome {
    let answer = claim(stage.store(), &life("a", 1), FREE, Fence(7))?;
    same("a claim by one who has seen a fence that never was", answer, Claim::Outrun(Fence::default()))?;
    same("how it stands with a shard that nobody ever had", held(&stage.other())?, None)?;
    stage.reopen()?;
    same("the same when the store is reopened", held(stage.store())?, None)?;
    take(stage.store(), "b").map(drop)
}

fn shards_claimed_together_are_granted_each_by_itself(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let ours = take(here, "a")?.fence;
    // Not in order, and with one among them that is another's.
    let wanted = [ShardId(30), FREE, ShardId(2)].map(|shard| (shard, Fence::default()));
    let claims = there.claim(&life("b", 1), &wanted)?;
    let [Claim::Granted(_), Claim::Outrun(current), Claim::Granted(_)] = claims[..] else {
        return holds(format_args!("two of three are granted, not {claims:?}"), false);
    };
    same("the fence in force", current, ours)?;
    let roll = roll(here)?;
    for (shard, owner) in [(ShardId(2), "b"), (FREE, "a"), (ShardId(30), "b")] {
        let by = roll.held(shard).and_then(|held| held.by.clone());
        same(format_args!("the owner of {shard:?}"), by, Some(life(owner, 1)))?;
    }
    same("the answers to no claim", there.claim(&life("b", 1), &[])?, vec![])
}

fn a_node_claims_its_own_shard_again_under_a_higher_fence(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = take(store, "a")?.fence;
    let second = take_from(store, "a", first)?.fence;
    holds(format_args!("{first:?} is lower than {second:?}"), first < second)?;
    outdated(store, first, second)?;
    in_force(store, second)
}

fn a_claim_tells_the_latest_commit(stage: &mut Stage<'_>) -> Outcome {
    for n in 1..=3 {
        stage.commit(vec![insert(&row(Table::Live, &n.to_string(), n, n))])?;
    }
    let answer = claim(&stage.other(), &life("b", 1), SHARD, stage.fence(SHARD))?;
    same("the latest commit", granted(answer)?.serial, 3)
}

fn after_a_takeover_the_old_fence_is_good_for_nothing(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = take(here, "a")?.fence;
    let second = take_from(&there, "b", first)?.fence;
    outdated(here, first, second)?;
    in_force(&there, second)
}

fn an_owner_whose_lease_is_over_stays_until_another_claims(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    here.beat(&Beat { who: life("a", 1), address: String::new(), lease: SHORT })?;
    let fence = take(here, "a")?.fence;
    same("the keeper", roll(&there)?.keeper(FREE).map(|node| node.who.clone()), Some(life("a", 1)))?;
    stage.subject.pass(OVER);
    let late = roll(&there)?;
    same("the keeper, whose lease is over", late.keeper(FREE), None)?;
    same("the owner", held(&there)?, Some(Held { shard: FREE, fence, by: Some(life("a", 1)) }))?;
    in_force(here, fence)?;
    let second = take_from(&there, "b", fence)?.fence;
    outdated(here, fence, second)
}

fn a_released_fence_is_good_for_nothing(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let fence = take(store, "a")?.fence;
    let current = store.release(FREE, fence, None)?;
    holds(format_args!("{fence:?} is lower than {current:?}"), fence < current)?;
    outdated(store, fence, current)
}

fn a_released_shard_has_no_owner_until_it_is_claimed(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = take(here, "a")?.fence;
    let between = here.release(FREE, first, None)?;
    same("the shard on the roll", held(&there)?, Some(Held { shard: FREE, fence: between, by: None }))?;
    let second = take_from(&there, "b", between)?.fence;
    holds(format_args!("{between:?} is lower than {second:?}"), between < second)?;
    outdated(here, first, second)?;
    in_force(&there, second)
}

fn a_shard_that_is_released_to_a_node_is_its_on_the_roll(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = take(here, "a")?.fence;
    let between = here.release(FREE, first, Some(&life("b", 7)))?;
    let expected = Held { shard: FREE, fence: between, by: Some(life("b", 7)) };
    same("the shard on the roll", held(&there)?, Some(expected))?;
    let second = granted(claim(&there, &life("b", 7), FREE, between)?)?.fence;
    in_force(&there, second)
}

fn releasing_under_an_old_fence_is_refused(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = take(here, "a")?.fence;
    let current = take_from(&there, "b", first)?.fence;
    let answer = here.release(FREE, first, Some(&life("c", 1)));
    same("the answer", answer, Err(Refusal::Fenced { current }.into()))?;
    same("the owner", held(here)?.and_then(|held| held.by), Some(life("b", 1)))?;
    in_force(&there, current)
}

fn the_roll_names_all_shards_in_order(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let mut expected = vec![Held { shard: SHARD, fence: stage.fence(SHARD), by: Some(Stage::who()) }];
    for (shard, node) in [(ShardId(300), "b"), (ShardId(2), "a"), (ShardId(u16::MAX), "c"), (ShardId(30), "a")] {
        let fence = granted(claim(store, &life(node, u64::MAX), shard, Fence::default())?)?.fence;
        expected.push(Held { shard, fence, by: Some(life(node, u64::MAX)) });
    }
    expected.sort_by_key(|held| held.shard);
    same("the shards", roll(&stage.other())?.shards, expected)
}

fn a_takeover_finds_what_was_committed(stage: &mut Stage<'_>) -> Outcome {
    let new = row(Table::Live, "1", 1, 10);
    stage.commit(vec![insert(&new)])?;
    let there = stage.other();
    let tenure = granted(claim(&there, &life("b", 1), SHARD, stage.fence(SHARD))?)?;
    let scan = whole(Table::Live);
    let page = there.read(SHARD, tenure, &[Want::Scan(&scan)])?.remove(0).span();
    same_rows("rows for the new owner", &page.rows, &[new])
}

fn fences_rise_with_every_claim_and_release(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let mut last = Fence::default();
    for turn in 0..20 {
        let store = if turn % 2 == 0 { here } else { &there };
        let claimed = take_from(store, "a", last)?.fence;
        let released = store.release(FREE, claimed, None)?;
        holds(format_args!("{last:?}, {claimed:?}, {released:?} rise"), last < claimed && claimed < released)?;
        last = released;
    }
    Ok(())
}

fn fences_are_not_behind_the_clock(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    stage.subject.pass(Millis(50));
    let before = roll(store)?.micros;
    let claimed = take(store, "a")?.fence;
    holds(format_args!("{claimed:?} was granted when {before} µs had passed"), claimed.0 >= before)?;
    stage.subject.pass(Millis(50));
    let before = roll(store)?.micros;
    let released = store.release(FREE, claimed, None)?;
    holds(format_args!("{released:?} came in force when {before} µs had passed"), released.0 >= before)
}

fn fences_rise_also_when_the_store_is_reopened(stage: &mut Stage<'_>) -> Outcome {
    let mut highest = stage.fence(SHARD);
    for _ in 0..3 {
        stage.reopen()?;
        let fence = stage.fence(SHARD);
        holds(format_args!("{highest:?} from before is lower than {fence:?}"), highest < fence)?;
        let batch = Batch { fence: highest, ..stage.batch(SHARD, vec![]) };
        let answers = stage.try_commit(vec![batch])?;
        same("a commit under a fence from before", answers, vec![Err(Refusal::Fenced { current: fence })])?;
        highest = fence;
    }
    let released = stage.store().release(SHARD, highest, None)?;
    stage.reopen()?;
    let fence = stage.fence(SHARD);
    holds(format_args!("{released:?}, of a release, is lower than {fence:?}"), released < fence)
}

fn nodes_that_share_a_store_see_each_other(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    here.beat(&Beat { who: life("a", 1), address: "there:7".to_owned(), lease: SHORT })?;
    let first = take(here, "a")?;
    let roll = roll(&there)?;
    same("the owner's address", roll.keeper(FREE).map(|node| &*node.address), Some("there:7"))?;
    let new = row(Table::Live, "1", 1, 10);
    let batch = Batch { shard: FREE, fence: first.fence, serial: 1, changes: vec![insert(&new)], tallies: vec![] };
    same("the answers", here.commit(vec![batch])?, vec![Ok(())])?;
    let seen = there.look(&[(FREE, Want::Numbers(&[1], Bodies::With))])?.remove(0);
    same("a row seen from there", seen, Found::Each(vec![Some(new)]))?;
    let second = take_from(&there, "b", roll.fence(FREE))?;
    same("the latest commit", second.serial, 1)?;
    outdated(here, first.fence, second.fence)
}
