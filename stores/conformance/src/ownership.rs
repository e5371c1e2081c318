//! Facts about who owns a shard: claims, leases on shards, fences.

use std::sync::Arc;

use punctual_core::Millis;
use punctual_core::store::{Batch, Claim, Fence, Fenced, Owner, ShardId, Store, StoreError, Table};

use crate::stage::{LONG, Outcome, SHARD, Stage, granted, holds, insert, name, row, same, same_rows, whole};

crate::facts![
    a_free_shard_is_granted,
    a_held_shard_is_refused_with_its_owner,
    the_same_name_claims_again_under_a_higher_fence,
    nodes_whose_names_look_alike_are_different,
    a_shard_is_free_when_its_lease_is_over,
    after_a_takeover_the_old_fence_is_good_for_nothing,
    an_owner_whose_lease_is_over_stays_until_another_claims,
    renewing_keeps_a_shard,
    renewing_under_an_old_fence_is_refused,
    releasing_frees_a_shard_at_once,
    a_released_fence_is_good_for_nothing,
    releasing_under_an_old_fence_is_refused,
    owners_are_listed_in_order,
    a_takeover_finds_what_was_committed,
    fences_rise_also_when_the_store_is_reopened,
    nodes_that_share_a_store_see_each_other,
];

/// A lease short enough to wait for, long enough to do something within.
const SHORT: Millis = Millis(1_000);
/// More than half of the short lease, and not all of it.
const MOST: Millis = Millis(600);
/// More than the short lease.
const OVER: Millis = Millis(1_100);

/// A shard that is not claimed at the beginning.
const FREE: ShardId = ShardId(3);

fn claim(store: &Arc<dyn Store>, node: &str, lease: Millis) -> Result<Claim, StoreError> {
    store.claim(FREE, &name(node), lease)
}

fn commit(store: &Arc<dyn Store>, fence: Fence) -> Result<Result<(), Fenced>, StoreError> {
    let batch = Batch { shard: FREE, fence, changes: vec![], tallies: vec![] };
    Ok(store.commit(vec![batch])?.remove(0))
}

/// Requires that nothing can be done under this fence any more, because another is in force.
fn outdated(store: &Arc<dyn Store>, fence: Fence, current: Fence) -> Outcome {
    let fenced = Fenced { current };
    same("a commit under an old fence", commit(store, fence)?, Err(fenced))?;
    same("a renewal under an old fence", store.renew(FREE, fence, LONG), Err(fenced.into()))?;
    same("a release under an old fence", store.release(FREE, fence), Err(fenced.into()))
}

fn a_free_shard_is_granted(stage: &mut Stage<'_>) -> Outcome {
    let fence = granted(claim(stage.store(), "a", LONG)?)?;
    same("a commit under it", commit(stage.store(), fence)?, Ok(()))
}

fn a_held_shard_is_refused_with_its_owner(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let fence = granted(claim(store, "a", LONG)?)?;
    let owner = store.owners()?.into_iter().find(|owner| owner.shard == FREE);
    let until = owner.map(|owner| owner.until);
    let refused = claim(store, "b", LONG)?;
    let Claim::Held { by, until: end } = refused else {
        return holds(format_args!("a held shard is refused, not {refused:?}"), false);
    };
    same("the owner", by, name("a"))?;
    same("the end of its lease", Some(end), until)?;
    same("a commit of the owner", commit(store, fence)?, Ok(()))
}

fn the_same_name_claims_again_under_a_higher_fence(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = granted(claim(store, "a", LONG)?)?;
    let second = granted(claim(store, "a", LONG)?)?;
    holds(format_args!("{first:?} is lower than {second:?}"), first < second)?;
    outdated(store, first, second)?;
    same("a commit under the new fence", commit(store, second)?, Ok(()))
}

fn nodes_whose_names_look_alike_are_different(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    granted(claim(store, "node-a", LONG)?)?;
    for other in ["Node-a", "node-á", "node-%", "node-", "node-ａ", "node-a\u{fe0f}"] {
        let answer = claim(store, other, LONG)?;
        holds(format_args!("{other} is not node-a, yet got {answer:?}"), matches!(answer, Claim::Held { .. }))?;
    }
    Ok(())
}

fn a_shard_is_free_when_its_lease_is_over(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = granted(claim(store, "a", SHORT)?)?;
    let early = claim(store, "b", SHORT)?;
    holds("the shard is held while the lease lasts", matches!(early, Claim::Held { .. }))?;
    stage.subject.pass(OVER);
    let second = granted(claim(store, "b", LONG)?)?;
    holds(format_args!("{first:?} is lower than {second:?}"), first < second)?;
    let late = claim(store, "a", SHORT)?;
    holds("the shard is held by the new owner", matches!(late, Claim::Held { by, .. } if *by == *"b"))
}

fn after_a_takeover_the_old_fence_is_good_for_nothing(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = granted(claim(store, "a", SHORT)?)?;
    stage.subject.pass(OVER);
    let second = granted(claim(store, "b", LONG)?)?;
    outdated(store, first, second)?;
    same("a commit of the new owner", commit(store, second)?, Ok(()))
}

fn an_owner_whose_lease_is_over_stays_until_another_claims(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let fence = granted(claim(store, "a", SHORT)?)?;
    stage.subject.pass(OVER);
    let owner = store.owners()?.into_iter().find(|owner| owner.shard == FREE);
    same("the owner", owner.map(|owner| (owner.node, owner.fence)), Some((name("a"), fence)))?;
    same("a commit", commit(store, fence)?, Ok(()))?;
    store.renew(FREE, fence, LONG)?;
    let answer = claim(store, "b", LONG)?;
    holds("the shard is held after the renewal", matches!(answer, Claim::Held { .. }))
}

fn renewing_keeps_a_shard(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let fence = granted(claim(store, "a", SHORT)?)?;
    for _ in 0..2 {
        stage.subject.pass(MOST);
        store.renew(FREE, fence, SHORT)?;
    }
    let answer = claim(store, "b", SHORT)?;
    holds("the shard is held after the renewals", matches!(answer, Claim::Held { .. }))?;
    same("a commit under the same fence", commit(store, fence)?, Ok(()))?;
    stage.subject.pass(OVER);
    granted(claim(store, "b", SHORT)?).map(|_| ())
}

fn renewing_under_an_old_fence_is_refused(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = granted(claim(store, "a", SHORT)?)?;
    let current = granted(claim(store, "a", SHORT)?)?;
    same("the answer", store.renew(FREE, first, LONG), Err(StoreError::Fenced(Fenced { current })))?;
    stage.subject.pass(OVER);
    granted(claim(store, "b", SHORT)?).map(|_| ())
}

fn releasing_frees_a_shard_at_once(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = granted(claim(store, "a", LONG)?)?;
    store.release(FREE, first)?;
    holds("a released shard has no owner", store.owners()?.iter().all(|owner| owner.shard != FREE))?;
    let second = granted(claim(store, "b", LONG)?)?;
    holds(format_args!("{first:?} is lower than {second:?}"), first < second)?;
    outdated(store, first, second)
}

fn a_released_fence_is_good_for_nothing(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let fence = granted(claim(store, "a", LONG)?)?;
    store.release(FREE, fence)?;
    holds("a commit under it is refused", commit(store, fence)?.is_err())?;
    let refused = |answer: Result<(), StoreError>| matches!(answer, Err(StoreError::Fenced(_)));
    holds("a renewal under it is refused", refused(store.renew(FREE, fence, LONG)))?;
    holds("a second release is refused", refused(store.release(FREE, fence)))
}

fn releasing_under_an_old_fence_is_refused(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = granted(claim(store, "a", LONG)?)?;
    let current = granted(claim(store, "a", LONG)?)?;
    same("the answer", store.release(FREE, first), Err(StoreError::Fenced(Fenced { current })))?;
    let answer = claim(store, "b", LONG)?;
    holds("the owner keeps the shard", matches!(answer, Claim::Held { .. }))
}

fn owners_are_listed_in_order(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let mut expected = vec![(SHARD, Stage::node(), stage.fence(SHARD))];
    for (shard, node) in [(ShardId(300), "b"), (ShardId(2), "a"), (ShardId(u16::MAX), "c"), (ShardId(30), "a")] {
        let fence = granted(store.claim(shard, &name(node), LONG)?)?;
        expected.push((shard, name(node), fence));
    }
    expected.sort();
    let listed = |owner: Owner| (owner.shard, owner.node, owner.fence);
    same("the owners", store.owners()?.into_iter().map(listed).collect(), expected)
}

fn a_takeover_finds_what_was_committed(stage: &mut Stage<'_>) -> Outcome {
    let new = row(Table::Live, "1", 1, 10);
    let store = stage.store();
    let first = granted(claim(store, "a", SHORT)?)?;
    let batch = Batch { shard: FREE, fence: first, changes: vec![insert(&new)], tallies: vec![] };
    same("the answers", store.commit(vec![batch])?, vec![Ok(())])?;
    stage.subject.pass(OVER);
    granted(claim(store, "b", LONG)?)?;
    let rows = store.scan(FREE, &whole(Table::Live))?;
    same_rows("rows for the new owner", &rows, &[new])
}

fn fences_rise_also_when_the_store_is_reopened(stage: &mut Stage<'_>) -> Outcome {
    let mut highest = stage.fence(SHARD);
    for _ in 0..3 {
        stage.reopen()?;
        let fence = stage.fence(SHARD);
        holds(format_args!("{highest:?} from before is lower than {fence:?}"), highest < fence)?;
        let batch = Batch { fence: highest, ..stage.batch(SHARD, vec![]) };
        let answers = stage.try_commit(vec![batch])?;
        same("a commit under a fence from before", answers, vec![Err(Fenced { current: fence })])?;
        highest = fence;
    }
    let store = stage.store();
    store.release(SHARD, highest)?;
    stage.reopen()?;
    let fence = stage.fence(SHARD);
    holds(format_args!("{highest:?}, released, is lower than {fence:?}"), highest < fence)
}

fn nodes_that_share_a_store_see_each_other(stage: &mut Stage<'_>) -> Outcome {
    let here = stage.store();
    let Some(there) = stage.subject.share(here) else { return Ok(()) };
    let first = granted(claim(here, "a", SHORT)?)?;
    same("the owners seen from there", there.owners()?, here.owners()?)?;
    let early = claim(&there, "b", SHORT)?;
    holds("a claim from there is refused", matches!(early, Claim::Held { by, .. } if *by == *"a"))?;
    let new = row(Table::Live, "1", 1, 10);
    let batch = Batch { shard: FREE, fence: first, changes: vec![insert(&new)], tallies: vec![] };
    same("the answers", here.commit(vec![batch])?, vec![Ok(())])?;
    stage.subject.pass(OVER);
    let second = granted(claim(&there, "b", LONG)?)?;
    outdated(here, first, second)?;
    let rows = there.scan(FREE, &whole(Table::Live))?;
    same_rows("rows seen from there", &rows, &[new])
}
