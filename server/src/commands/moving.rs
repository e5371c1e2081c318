//! `store move --live`, `--status` and `--cancel`: moving the store of a running server.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_wire::{MoveState, MoveStore, ShardMove, ShardMoveState, StoreMove};
use tokio::time::sleep;

use super::Session;
use super::failure::{Exit, Failure};
use super::output::{Columns, Output, counted, grouped, note};

/// What is asked of the server.
pub enum MoveRequest {
    /// To begin, and to show how far it is.
    Begin(MoveStore),
    /// How far it is.
    Look,
    /// To give it up.
    Cancel,
}

/// How often it is asked how far it is.
const LOOK: Duration = Duration::from_millis(250);

pub async fn run(request: MoveRequest, mut session: Session) -> Result<(), Failure> {
    match request {
        MoveRequest::Begin(to) => begin(&to, session).await,
        MoveRequest::Look => {
            let found = session.client.store_move().await?;
            let found = found.ok_or_else(|| {
                Failure::missing("the store is not being moved, and was not since the server started")
            })?;
            show(&found, &mut session.output)
        }
        MoveRequest::Cancel => {
            let cancelled = session.client.cancel_move().await?;
            session.output.either(&cancelled, || format!("{}: {}", word(cancelled.state), cancelled.advice))
        }
    }
}

/// Begins, and follows it to its end.
async fn begin(to: &MoveStore, mut session: Session) -> Result<(), Failure> {
    let mut told = session.client.move_store(to).await?;
    let json = session.output.json;
    if !json {
        let (from, to, shards) = (&told.from, &told.to, counted(told.shards.len() as u64, "shard"));
        session.output.line(format_args!("moving {from} to {to}: {shards}"))?;
        session.output.flush()?;
        note(format_args!("{}. Ctrl-C leaves the move to the server; see it with --status", told.advice));
    }
    let (bar, mut seen, mut trouble) = (bar(), 0, None);
    loop {
        // Shards are moved in their order.
        while let Some(shard) = told.shards.get(seen).filter(|shard| shard.state == ShardMoveState::Moved) {
            seen += 1;
            if !json {
                bar.suspend(|| session.output.line(moved(shard)).and_then(|()| session.output.flush()))?;
            }
        }
        if told.trouble != trouble {
            trouble.clone_from(&told.trouble);
            trouble.iter().for_each(|why| note(format_args!("waiting: {why}")));
        }
        follow(&bar, &told);
        if matches!(told.state, MoveState::Moved | MoveState::Cancelled) {
            break;
        }
        sleep(LOOK).await;
        told = match session.client.store_move().await? {
            Some(told) => told,
            // A server that was restarted at the very end knows nothing of it any more.
            None => {
                return Err(Failure::new(
                    Exit::Failed,
                    "the server was restarted, and does not move its store any more: see its log",
                ));
            }
        };
    }
    bar.finish_and_clear();
    if told.state == MoveState::Cancelled {
        return Err(Failure::new(Exit::Failed, format!("the move was cancelled: {}", told.advice)));
    }
    session.output.either(&told, || last_word(&told))
}

fn moved(shard: &ShardMove) -> String {
    let number = shard.shard;
    match (shard.rows, &shard.checksum, shard.pause_micros) {
        (Some(rows), Some(checksum), Some(pause)) => {
            let (rows, millis) = (counted(rows, "row"), pause.div_ceil(1_000));
            format!("shard {number}: {rows}, checksum {checksum}, the same on both sides; paused for {millis} ms")
        }
        _ => format!("shard {number}: moved before the server was restarted"),
    }
}

fn last_word(told: &StoreMove) -> String {
    let rows = told.shards.iter().filter_map(|shard| shard.rows).sum();
    let pause = told.shards.iter().filter_map(|shard| shard.pause_micros).max().unwrap_or(0).div_ceil(1_000);
    let seconds = told.ended_at.map_or(0.0, |ended| ended.0.saturating_sub(told.begun_at.0) as f64 / 1_000.0);
    let rows = counted(rows, "row");
    format!("moved {rows} in {seconds:.1} s; the longest pause of a shard was {pause} ms\n{}", told.advice)
}

/// All that the server tells.
fn show(told: &StoreMove, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        output.json(told)?;
        return output.flush();
    }
    let mut columns = Columns::new(&["SHARD", "STATE", "ROWS", "COPIED", "VERIFIED", "PAUSED MS"]);
    for shard in &told.shards {
        let ShardMove { shard, state, expected, copied, verified, rows, pause_micros, .. } = shard;
        let pause = pause_micros.map_or(String::new(), |pause| grouped(pause.div_ceil(1_000)));
        let rows = grouped(rows.unwrap_or(*expected));
        columns.row(vec![
            shard.to_string(),
            shard_word(*state).into(),
            rows,
            grouped(*copied),
            grouped(*verified),
            pause,
        ]);
    }
    output.line(format_args!("{} {} to {}, since {}", word(told.state), told.from, told.to, told.begun_at))?;
    output.table(&columns)?;
    if let Some(why) = &told.trouble {
        output.line(format_args!("waiting: {why}"))?;
    }
    output.line(&told.advice)?;
    output.flush()
}

fn word(state: MoveState) -> &'static str {
    match state {
        MoveState::Moving => "moving",
        MoveState::Cancelling => "cancelling",
        MoveState::Cancelled => "cancelled",
        MoveState::Moved => "moved",
    }
}

fn shard_word(state: ShardMoveState) -> &'static str {
    match state {
        ShardMoveState::Here => "here",
        ShardMoveState::Copying => "copying",
        ShardMoveState::HandingOver => "handing over",
        ShardMoveState::Moved => "moved",
    }
}

/// On a terminal only.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1);
    match ProgressStyle::with_template("{bar:40} {percent}%  {msg}  {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Shows the shard that is under way: every row is written once and read back once.
fn follow(bar: &ProgressBar, told: &StoreMove) {
    let under_way = |shard: &&ShardMove| matches!(shard.state, ShardMoveState::Copying | ShardMoveState::HandingOver);
    let Some(shard) = told.shards.iter().find(under_way) else { return };
    bar.set_length(2 * shard.expected.max(shard.copied).max(1));
    bar.set_position(shard.copied + shard.verified);
    let (number, last) = (shard.shard, told.shards.len().saturating_sub(1));
    let (copied, verified) = (grouped(shard.copied), grouped(shard.verified));
    bar.set_message(format!("shard {number} of 0 to {last}: {copied} rows copied, {verified} verified"));
}
