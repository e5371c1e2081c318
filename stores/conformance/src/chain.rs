//! Facts about the chain of a shard's commits: each happens once, after the one before it, whoever sends it and however
//! often.

use std::sync::Arc;
use std::thread;

use punctual_core::store::{Batch, Refusal, Row, ShardId, Store, StoreError, Table, Tally, TallyKind};

use crate::concurrency::joined;
use crate::stage::{
    Difference, Outcome, SHARD, Stage, at, claim, granted, insert, life, name, row, same, same_rows, update, whole,
};

crate::listed![
    the_same_batch_twice_is_one,
    a_batch_is_one_also_when_others_came_after_it,
    the_same_batch_from_many_threads_at_once_is_one,
    a_gap_is_lost_and_changes_nothing,
    a_batch_that_changes_nothing_needs_no_place_in_the_chain,
    a_batch_that_changes_nothing_is_lost_if_what_came_before_it_is,
    the_batches_of_one_commit_are_a_chain,
    a_commit_that_is_tried_again_and_has_grown_happens_as_far_as_it_is_new,
    the_chain_goes_on_from_owner_to_owner,
    an_old_fence_is_refused_whatever_the_serial,
    the_chain_of_one_shard_is_not_that_of_another,
    the_chain_goes_on_when_the_store_is_reopened,
];

/// The row after so many steps. Its time and its state both tell how many.
fn after(steps: u64) -> Row {
    Row { state: steps.to_string().into(), ..row(Table::Live, "1", 1, 100 + steps) }
}

fn tally() -> Tally {
    Tally::named(TallyKind::Waiting, &name("orders"))
}

/// The batch that takes one step, and counts it. As many as have been taken make its place in the chain.
fn step(stage: &Stage<'_>, number: u64) -> Batch {
    let change = if number == 1 { insert(&after(1)) } else { update(&after(number - 1), &after(number)) };
    Batch { serial: number, tallies: vec![(tally(), 1)], ..stage.batch(SHARD, vec![change]) }
}

/// A batch that changes nothing and wants so much to be there.
fn nothing(stage: &Stage<'_>, serial: u64) -> Batch {
    Batch { serial, ..stage.batch(SHARD, vec![]) }
}

fn send(store: &Arc<dyn Store>, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
    store.commit(batches)
}

/// Requires that exactly so many steps have happened, each once.
fn taken(stage: &Stage<'_>, steps: u64) -> Outcome {
    let (rows, count) = if steps == 0 { (vec![], vec![]) } else { (vec![after(steps)], vec![(tally(), steps as i64)]) };
    stage.expect_rows(&rows)?;
    same("the tallies", stage.tallies(SHARD)?, count)
}

fn lost(expected: u64, found: u64) -> Result<(), Refusal> {
    Err(Refusal::Lost { expected, found })
}

fn the_same_batch_twice_is_one(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (Arc::clone(stage.store()), stage.other());
    for number in 1..=3 {
        for store in [&here, &here, &there] {
            same("the answer", send(store, vec![step(stage, number)])?, vec![Ok(())])?;
            taken(stage, number)?;
        }
    }
    Ok(())
}

fn a_batch_is_one_also_when_others_came_after_it(stage: &mut Stage<'_>) -> Outcome {
    let there = stage.other();
    for number in 1..=5 {
        same("the answer", send(stage.store(), vec![step(stage, number)])?, vec![Ok(())])?;
    }
    for number in [4, 1, 5, 2] {
        same("the answer to an earlier batch", send(&there, vec![step(stage, number)])?, vec![Ok(())])?;
        taken(stage, 5)?;
    }
    Ok(())
}

fn the_same_batch_from_many_threads_at_once_is_one(stage: &mut Stage<'_>) -> Outcome {
    let handles = [Arc::clone(stage.store()), stage.other()];
    for number in 1..=10 {
        let batch = step(stage, number);
        let answers = thread::scope(|scope| {
            let attempt = |n: usize| {
                let (store, batches) = (&handles[n % 2], vec![batch.clone()]);
                scope.spawn(move || Ok(store.commit(batches)?))
            };
            let threads: Vec<_> = (0..6).map(attempt).collect();
            threads.into_iter().map(joined).collect::<Result<Vec<_>, Difference>>()
        })?;
        same("the answers", answers, vec![vec![Ok(())]; 6])?;
        taken(stage, number)?;
    }
    Ok(())
}

fn a_gap_is_lost_and_changes_nothing(stage: &mut Stage<'_>) -> Outcome {
    // Each would fit: only its number is too great.
    let early = Batch { serial: 2, ..step(stage, 1) };
    same("the answer before the first", send(stage.store(), vec![early])?, vec![lost(1, 0)])?;
    taken(stage, 0)?;
    send(stage.store(), vec![step(stage, 1)])?;
    for number in [3, 4, 1_000_000_000_000] {
        let batch = Batch { serial: number, ..step(stage, 2) };
        same(format_args!("the answer to {number}"), send(stage.store(), vec![batch])?, vec![lost(number - 1, 1)])?;
        taken(stage, 1)?;
    }
    same("the answer to the next", send(stage.store(), vec![step(stage, 2)])?, vec![Ok(())])?;
    taken(stage, 2)
}

fn a_batch_that_changes_nothing_needs_no_place_in_the_chain(stage: &mut Stage<'_>) -> Outcome {
    for number in 1..=3 {
        for asked in [number - 1, number - 1, 0] {
            same("the answer to nothing", send(stage.store(), vec![nothing(stage, asked)])?, vec![Ok(())])?;
        }
        same("the answer", send(stage.store(), vec![step(stage, number)])?, vec![Ok(())])?;
    }
    taken(stage, 3)
}

fn a_batch_that_changes_nothing_is_lost_if_what_came_before_it_is(stage: &mut Stage<'_>) -> Outcome {
    send(stage.store(), vec![step(stage, 1)])?;
    for asked in [2, 3] {
        let answer = send(stage.store(), vec![nothing(stage, asked)])?;
        same(format_args!("the answer where {asked} should be there"), answer, vec![lost(asked, 1)])?;
    }
    same("the answer to the next", send(stage.store(), vec![step(stage, 2)])?, vec![Ok(())])?;
    taken(stage, 2)
}

fn the_batches_of_one_commit_are_a_chain(stage: &mut Stage<'_>) -> Outcome {
    let chain = vec![step(stage, 1), nothing(stage, 1), step(stage, 2), step(stage, 3), nothing(stage, 3)];
    same("the answers", send(stage.store(), chain)?, vec![Ok(()); 5])?;
    taken(stage, 3)?;
    let torn = vec![step(stage, 4), Batch { serial: 6, ..step(stage, 5) }];
    same("the answers to a chain with a gap", send(stage.store(), torn)?, vec![Ok(()), lost(5, 4)])?;
    taken(stage, 4)
}

fn a_commit_that_is_tried_again_and_has_grown_happens_as_far_as_it_is_new(stage: &mut Stage<'_>) -> Outcome {
    let there = stage.other();
    same("the answers", send(stage.store(), vec![step(stage, 1), step(stage, 2)])?, vec![Ok(()); 2])?;
    let grown = (1..=4).map(|number| step(stage, number)).collect();
    same("the answers to the second attempt", send(&there, grown)?, vec![Ok(()); 4])?;
    taken(stage, 4)
}

fn the_chain_goes_on_from_owner_to_owner(stage: &mut Stage<'_>) -> Outcome {
    let there = stage.other();
    send(stage.store(), vec![step(stage, 1), step(stage, 2)])?;
    let tenure = granted(claim(&there, &life("b", 1), SHARD, stage.fence(SHARD))?)?;
    same("the latest commit for the next owner", tenure.serial, 2)?;
    let by_next = |number| Batch { fence: tenure.fence, ..step(stage, number) };
    same("the answer to a repetition", send(&there, vec![by_next(2)])?, vec![Ok(())])?;
    same("the answer to a gap", send(&there, vec![by_next(4)])?, vec![lost(3, 2)])?;
    same("the answer to the next", send(&there, vec![by_next(3)])?, vec![Ok(())])?;
    stage.own(SHARD)?;
    taken(stage, 3)
}

fn an_old_fence_is_refused_whatever_the_serial(stage: &mut Stage<'_>) -> Outcome {
    send(stage.store(), vec![step(stage, 1), step(stage, 2)])?;
    let old: Vec<Batch> = [1, 2, 3, 9].map(|number| step(stage, number)).into();
    let none: Vec<Batch> = [0, 2, 3].map(|serial| nothing(stage, serial)).into();
    let current = stage.own(SHARD)?;
    for batch in old.into_iter().chain(none) {
        let what = format!("the answer to number {} under an old fence", batch.serial);
        same(what, send(stage.store(), vec![batch])?, vec![Err(Refusal::Fenced { current })])?;
    }
    taken(stage, 2)
}

fn the_chain_of_one_shard_is_not_that_of_another(stage: &mut Stage<'_>) -> Outcome {
    let other = ShardId(8);
    stage.own(other)?;
    send(stage.store(), vec![step(stage, 1), step(stage, 2)])?;
    let first = Batch { shard: other, fence: stage.fence(other), ..step(stage, 1) };
    let far = Batch { serial: 3, ..first.clone() };
    same("the answers there", send(stage.store(), vec![far, first])?, vec![lost(2, 0), Ok(())])?;
    let both = vec![step(stage, 3), Batch { shard: other, fence: stage.fence(other), ..step(stage, 2) }];
    same("the answers to both", send(stage.store(), both)?, vec![Ok(()); 2])?;
    stage.own(other)?;
    taken(stage, 3)?;
    same_rows("the rows there", &stage.scan_of(other, &whole(Table::Live))?, &[Row { at: at(102), ..after(2) }])
}

/// A store that nobody shares has no writer left when it is opened, and may begin a new chain.
fn the_chain_goes_on_when_the_store_is_reopened(stage: &mut Stage<'_>) -> Outcome {
    if stage.subject.share(stage.store()).is_none() {
        return Ok(());
    }
    for number in 1..=3 {
        send(stage.store(), vec![step(stage, number)])?;
        stage.reopen()?;
        same("the latest commit", stage.tenure(SHARD).serial, number)?;
        same("the answer to a repetition", send(stage.store(), vec![step(stage, number)])?, vec![Ok(())])?;
        taken(stage, number)?;
    }
    Ok(())
}
