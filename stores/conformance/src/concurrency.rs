//! Facts about calls from several threads: reads come from any of them while one commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use bytes::Bytes;
use punctual_core::store::{Batch, Bodies, Claim, Row, ShardId, Store, Table};

use crate::stage::{
    Difference, LONG, Outcome, SHARD, Stage, at, granted, holds, insert, name, row, same, same_rows, update, whole,
};

crate::facts![
    a_reader_finds_a_row_wherever_it_moves_and_never_as_it_was_before,
    shards_commit_from_several_threads,
    of_many_claims_at_once_one_is_granted,
];

const MOVES: u64 = 200;

/// The row after so many moves. Its table, time and state all tell how many.
fn moved(moves: u64) -> Row {
    let tables = [Table::Live, Table::Dead, Table::History];
    let state = Bytes::from(moves.to_string());
    Row { state, ..row(tables[(moves % 3) as usize], "1", 1, 1_000 + moves) }
}

fn a_reader_finds_a_row_wherever_it_moves_and_never_as_it_was_before(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(vec![insert(&moved(0))])?;
    let (store, done) = (Arc::clone(stage.store()), AtomicBool::new(false));
    thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| follow(&*store, &done)));
        let signal = AtEnd(&done);
        let written = (0..MOVES).try_for_each(|n| stage.commit(vec![update(&moved(n), &moved(n + 1))]));
        drop(signal);
        readers.into_iter().map(joined).fold(written, Result::and)
    })
}

/// Tells the readers that the writer is done, also when it panics.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What a thread came to.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Difference>>) -> Result<T, Difference> {
    thread.join().unwrap_or_else(|_| Err(Difference("a thread panicked".to_owned())))
}

/// Reads the row until the writer is done, and once more.
fn follow(store: &dyn Store, done: &AtomicBool) -> Outcome {
    let mut seen = 0;
    loop {
        let last = done.load(Ordering::Acquire);
        let found = store.get(SHARD, &[moved(0).key], Bodies::With)?.remove(0);
        let Some(found) = found else { return holds("the row is somewhere at all times", false) };
        let moves = found.at.since(at(1_000)).0;
        same(format_args!("the row after {moves} moves"), found, moved(moves))?;
        holds(format_args!("move {moves} is not before {seen}, which was read already"), moves >= seen)?;
        seen = moves;
        if last {
            return Ok(());
        }
    }
}

fn shards_commit_from_several_threads(stage: &mut Stage<'_>) -> Outcome {
    let shards: Vec<ShardId> = (20..24).map(ShardId).collect();
    let rows: Vec<Row> = (1..=50).map(|n| row(Table::Live, &n.to_string(), n, n)).collect();
    for shard in &shards {
        stage.own(*shard)?;
    }
    thread::scope(|scope| {
        let write = |shard: ShardId| {
            let (store, fence, rows) = (stage.store(), stage.fence(shard), &rows);
            scope.spawn(move || {
                rows.iter().try_for_each(|row| {
                    let batch = Batch { shard, fence, changes: vec![insert(row)], tallies: vec![] };
                    same("the answers", store.commit(vec![batch])?, vec![Ok(())])
                })
            })
        };
        let writers: Vec<_> = shards.iter().map(|shard| write(*shard)).collect();
        writers.into_iter().try_for_each(joined)
    })?;
    for shard in shards {
        let found = stage.store().scan(shard, &whole(Table::Live))?;
        same_rows(format_args!("rows of {shard:?}"), &found, &rows)?;
    }
    Ok(())
}

fn of_many_claims_at_once_one_is_granted(stage: &mut Stage<'_>) -> Outcome {
    let shard = ShardId(40);
    let claims = thread::scope(|scope| {
        let claim = |n: u32| {
            let store = stage.store();
            scope.spawn(move || Ok(store.claim(shard, &name(&format!("claimer-{n}")), LONG)?))
        };
        let claimers: Vec<_> = (0..8).map(claim).collect();
        claimers.into_iter().map(joined).collect::<Result<Vec<Claim>, Difference>>()
    })?;
    let winners: Vec<Claim> = claims.into_iter().filter(|claim| matches!(claim, Claim::Granted(_))).collect();
    same("the number of claims granted", winners.len(), 1)?;
    let fence = granted(winners[0].clone())?;
    let owner = stage.store().owners()?.into_iter().find(|owner| owner.shard == shard);
    same("the fence of the owner", owner.map(|owner| owner.fence), Some(fence))
}
