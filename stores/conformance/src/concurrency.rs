//! Facts about calls from several threads: reads come from any of them while one commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};

use bytes::Bytes;
use punctual_core::store::{
    Batch, Bodies, Claim, Fence, Found, Look, Refusal, Row, Scan, ShardId, Store, StoreError, Table, Tenure, Want,
};

use crate::stage::{
    Difference, Outcome, SHARD, Stage, at, claim, granted, holds, insert, life, row, same, same_rows, update, whole,
};

crate::listed![
    a_reader_finds_a_row_wherever_it_moves_and_never_as_it_was_before,
    shards_commit_from_several_threads,
    of_many_claims_at_once_one_is_granted,
    a_read_that_is_not_refused_saw_nothing_of_the_next_owner,
    what_races_with_a_claim_happened_before_it_or_never,
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
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Difference>>) -> Result<T, Difference> {
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
                (1..).zip(rows).try_for_each(|(serial, row)| {
                    let batch = Batch { shard, fence, serial, changes: vec![insert(row)], tallies: vec![] };
                    same("the answers", store.commit(vec![batch])?, vec![Ok(())])
                })
            })
        };
        let writers: Vec<_> = shards.iter().map(|shard| write(*shard)).collect();
        writers.into_iter().try_for_each(joined)
    })?;
    for shard in shards {
        stage.own(shard)?;
        let found = stage.scan_of(shard, &whole(Table::Live))?;
        same_rows(format_args!("rows of {shard:?}"), &found, &rows)?;
    }
    Ok(())
}

fn of_many_claims_at_once_one_is_granted(stage: &mut Stage<'_>) -> Outcome {
    let (shard, there) = (ShardId(40), stage.other());
    let claims = thread::scope(|scope| {
        let attempt = |n: u32| {
            let store = if n.is_multiple_of(2) { stage.store() } else { &there };
            scope.spawn(move || claim(store, &life(&format!("claimer-{n}"), 1), shard, Fence::default()))
        };
        let claimers: Vec<_> = (0..8).map(attempt).collect();
        claimers.into_iter().map(joined).collect::<Result<Vec<Claim>, Difference>>()
    })?;
    let (winners, others): (Vec<Claim>, Vec<Claim>) =
        claims.into_iter().partition(|claim| matches!(claim, Claim::Granted(_)));
    same("the number of claims granted", winners.len(), 1)?;
    let fence = granted(winners[0])?.fence;
    same("what the others hear", others, vec![Claim::Outrun(fence); 7])
}

/// How often a shard changes its owner in a check.
const TAKEOVERS: u64 = 20;

fn a_read_that_is_not_refused_saw_nothing_of_the_next_owner(stage: &mut Stage<'_>) -> Outcome {
    for turn in 1..=TAKEOVERS {
        let (here, there, old) = (Arc::clone(stage.store()), stage.other(), stage.tenure(SHARD));
        let (reads, done) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let readers = [(); 2].map(|()| scope.spawn(|| read_until_refused(&*here, old, turn, &reads, &done)));
            let signal = AtEnd(&done);
            // One is on its way at almost any moment from here on.
            while reads.load(Ordering::Acquire) < 4 && !readers.iter().any(ScopedJoinHandle::is_finished) {
                thread::yield_now();
            }
            let taken = take_and_write(&there, old, turn);
            drop(signal);
            readers.into_iter().map(joined).fold(taken, Result::and)
        })?;
        stage.own(SHARD)?;
    }
    Ok(())
}

/// Reads a row for the shard's owner until that is not the owner any more. The row must not be there before.
fn read_until_refused(store: &dyn Store, old: Tenure, seq: u64, reads: &AtomicU64, done: &AtomicBool) -> Outcome {
    loop {
        let is_over = done.load(Ordering::Acquire);
        match store.read(SHARD, old, &[Want::Numbers(&[seq], Bodies::With)]) {
            Ok(found) => same("the row of the next owner, for the old one", found, vec![Found::Each(vec![None])])?,
            Err(StoreError::Refused(Refusal::Fenced { .. })) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        holds("a read is refused after the takeover", !is_over)?;
        reads.fetch_add(1, Ordering::Release);
    }
}

/// Takes the shard over and writes a row at once.
fn take_and_write(store: &Arc<dyn Store>, old: Tenure, seq: u64) -> Outcome {
    let next = granted(claim(store, &life("next", 1), SHARD, old.fence)?)?;
    let changes = vec![insert(&row(Table::Live, &seq.to_string(), seq, seq))];
    let batch = Batch { shard: SHARD, fence: next.fence, serial: next.serial + 1, changes, tallies: vec![] };
    same("the answer to the next owner", store.commit(vec![batch])?, vec![Ok(())])
}

fn what_races_with_a_claim_happened_before_it_or_never(stage: &mut Stage<'_>) -> Outcome {
    for _ in 1..=TAKEOVERS / 2 {
        let (here, there, old) = (Arc::clone(stage.store()), stage.other(), stage.tenure(SHARD));
        let (commits, done) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let writer = scope.spawn(|| write_until_refused(&*here, old, &commits, &done));
            let signal = AtEnd(&done);
            // One is on its way at almost any moment from here on.
            while commits.load(Ordering::Acquire) < 2 && !writer.is_finished() {
                thread::yield_now();
            }
            let taken = take_and_count(&there, old);
            drop(signal);
            joined(writer)?;
            let (next, found) = taken?;
            let confirmed = old.serial + commits.load(Ordering::Acquire);
            same("the commits that the claim tells of, beside those confirmed", next.serial, confirmed)?;
            same("the rows that the next owner found at once", found, next.serial)
        })?;
        stage.own(SHARD)?;
        let rows = stage.scan(&whole(Table::Live))?;
        same("the rows in the end", rows.len() as u64, stage.tenure(SHARD).serial)?;
    }
    Ok(())
}

/// Writes a row with each commit, and counts those that are confirmed, until the shard is another's.
fn write_until_refused(store: &dyn Store, old: Tenure, commits: &AtomicU64, done: &AtomicBool) -> Outcome {
    for serial in old.serial + 1.. {
        let is_over = done.load(Ordering::Acquire);
        let changes = vec![insert(&row(Table::Live, &serial.to_string(), serial, serial))];
        let batch = Batch { shard: SHARD, fence: old.fence, serial, changes, tallies: vec![] };
        match &store.commit(vec![batch])?[..] {
            [Ok(())] => commits.fetch_add(1, Ordering::Release),
            [Err(Refusal::Fenced { .. })] => break,
            other => return holds(format_args!("a commit in a race is done or refused, not {other:?}"), false),
        };
        holds("a commit is refused after the takeover", !is_over)?;
    }
    Ok(())
}

/// Takes the shard over; says how many rows are there then.
fn take_and_count(store: &Arc<dyn Store>, old: Tenure) -> Result<(Tenure, u64), Difference> {
    let next = granted(claim(store, &life("next", 1), SHARD, old.fence)?)?;
    let scan = Scan { bodies: Bodies::Without, ..whole(Table::Live) };
    let page = store.read(SHARD, next, &[Want::Scan(&scan)])?.remove(0).span();
    Ok((next, page.rows.len() as u64))
}
