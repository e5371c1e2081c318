//! Facts about a store that goes back, as when a copy takes over that was behind: what it has confirmed since is gone, and it
//! must not pretend otherwise. They hold for stores that cannot go back.

use std::sync::Arc;

use punctual_core::Millis;
use punctual_core::store::{Batch, Outdated, Refusal, Row, Table, Tenure, Want};

use crate::stage::{Difference, Outcome, SHARD, Stage, claim, granted, holds, insert, life, row, same};

crate::listed![
    who_was_confirmed_what_is_gone_hears_that_it_is_lost,
    after_going_back_a_claim_tells_how_far_the_store_is,
    after_going_back_no_fence_is_granted_again,
    after_going_back_no_revision_is_given_again,
];

fn task(seq: u64) -> Row {
    row(Table::Live, &seq.to_string(), seq, seq)
}

/// Two rows, and a third of which the store knows nothing any more: how the owner believes that it holds the shard. `None`
/// if the store cannot go back.
fn go_back(stage: &mut Stage<'_>) -> Result<Option<Tenure>, Difference> {
    stage.commit(vec![insert(&task(1))])?;
    stage.commit(vec![insert(&task(2))])?;
    let (subject, store) = (stage.subject, Arc::clone(stage.store()));
    let Some(back) = subject.mark(&store) else { return Ok(None) };
    stage.commit(vec![insert(&task(3))])?;
    back();
    Ok(Some(stage.tenure(SHARD)))
}

fn who_was_confirmed_what_is_gone_hears_that_it_is_lost(stage: &mut Stage<'_>) -> Outcome {
    let Some(believed) = go_back(stage)? else { return Ok(()) };
    let lost = Refusal::Lost { expected: 3, found: 2 };
    let store = stage.store();
    same("a read", store.read(SHARD, believed, &[Want::Tallies]), Err(lost.clone().into()))?;
    let asks = Batch { serial: 3, ..stage.batch(SHARD, vec![]) };
    same("a commit of nothing", store.commit(vec![asks])?, vec![Err(lost.clone())])?;
    let next = Batch { serial: 4, ..stage.batch(SHARD, vec![insert(&task(4))]) };
    same("the next commit", store.commit(vec![next])?, vec![Err(lost)])?;
    stage.own(SHARD)?;
    stage.expect_rows(&[task(1), task(2)])
}

fn after_going_back_a_claim_tells_how_far_the_store_is(stage: &mut Stage<'_>) -> Outcome {
    if go_back(stage)?.is_none() {
        return Ok(());
    }
    stage.own(SHARD)?;
    same("the latest commit", stage.tenure(SHARD).serial, 2)?;
    stage.commit(vec![insert(&task(3))])?;
    stage.expect_rows(&[task(1), task(2), task(3)])
}

fn after_going_back_no_fence_is_granted_again(stage: &mut Stage<'_>) -> Outcome {
    let (subject, store, seen) = (stage.subject, Arc::clone(stage.store()), stage.fence(SHARD));
    let Some(back) = subject.mark(&store) else { return Ok(()) };
    let gone = granted(claim(&store, &life("a", 1), SHARD, seen)?)?.fence;
    back();
    subject.pass(Millis(5));
    let new = granted(claim(&store, &life("b", 1), SHARD, seen)?)?.fence;
    holds(format_args!("{new:?} was granted where {gone:?} had been, of which the store knows no more"), new > gone)
}

fn after_going_back_no_revision_is_given_again(stage: &mut Stage<'_>) -> Outcome {
    let (subject, store) = (stage.subject, Arc::clone(stage.store()));
    let put = |seen: u64, value: &[u8]| -> Result<Result<u64, Outdated>, Difference> {
        Ok(store.cluster_put("changes", seen, value)?)
    };
    let written = |answer: Result<u64, Outdated>| answer.map_err(|outdated| Difference(outdated.to_string()));
    let seen = written(put(0, b"first")?)?;
    let Some(back) = subject.mark(&store) else { return Ok(()) };
    let gone = written(put(seen, b"gone")?)?;
    back();
    subject.pass(Millis(5));
    let current = written(put(seen, b"instead")?)?;
    holds(format_args!("{current} was given where {gone} had been, of which the store knows no more"), current > gone)?;
    same("a change by one who has seen what is gone", put(gone, b"over it")?, Err(Outdated { current }))
}
