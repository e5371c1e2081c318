//! `sweeps`: those that run and the latest that did, to look at, to stop and to undo.

use std::time::Duration;

use clap::{Args, Subcommand};
use punctual_wire::{SweepAct, SweepInfo, SweepSelect, SweepState, Time};

use super::Session;
use super::confirm::confirm;
use super::failure::{Failure, help};
use super::moment::exact;
use super::output::{Columns, counted, grouped, note};
use super::sweep::{outcome, undo_in_words};

/// How soon it is looked again how far a sweep is.
const LOOK: Duration = Duration::from_millis(250);

/// List the sweeps that are running and the latest that ran, stop one, or undo one.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual sweeps
  punctual sweeps show 1795042012345678
  punctual sweeps stop 1795042012345678
  punctual sweeps undo 1795042012345678"))]
pub struct SweepsArgs {
    #[command(subcommand)]
    command: Option<SweepsCommand>,
}

#[derive(Subcommand, Debug)]
enum SweepsCommand {
    /// List them, newest first; the default.
    List,
    /// Show one and how far it is.
    Show {
        /// Its id.
        id: String,
    },
    /// Stop one; what it changed stays changed.
    Stop {
        /// Its id.
        id: String,
    },
    /// Undo one that cancelled, moved or spread tasks: all that nobody has changed since.
    Undo {
        /// Its id.
        id: String,
        /// Do not ask for confirmation.
        #[arg(long, short)]
        yes: bool,
        /// Do not wait until it is done.
        #[arg(long)]
        no_wait: bool,
    },
}

/// Does what was asked for about sweeps.
pub async fn run(args: SweepsArgs, mut session: Session) -> Result<(), Failure> {
    match args.command.unwrap_or(SweepsCommand::List) {
        SweepsCommand::List => {
            let list = session.client.sweeps().await?;
            session.output.list(&list.sweeps, "no sweeps", table)
        }
        SweepsCommand::Show { id } => {
            let sweep = session.client.sweep(&id).await?.ok_or_else(|| missing(&id))?;
            session.output.either(&sweep, || whole(&sweep))
        }
        SweepsCommand::Stop { id } => {
            let sweep = session.client.stop_sweep(&id).await?.ok_or_else(|| missing(&id))?;
            let sweep = until_over(&session, sweep).await?;
            session.output.either(&sweep, || format!("{}: {}", word(sweep.state), outcome(&sweep)))
        }
        SweepsCommand::Undo { id, yes, no_wait } => undo(&id, yes, no_wait, session).await,
    }
}

async fn undo(id: &str, yes: bool, no_wait: bool, mut session: Session) -> Result<(), Failure> {
    if !yes {
        let sweep = session.client.sweep(id).await?.ok_or_else(|| missing(id))?;
        if sweep.undo.possible {
            let done = done_word(sweep.act);
            confirm(&format!("Put back {} that sweep {id} has {done}?", counted(sweep.changed, "task")), false)?;
        }
    }
    let begun = session.client.undo_sweep(id).await?.ok_or_else(|| missing(id))?;
    if no_wait {
        return session.output.either(&begun, || format!("sweep {} has begun", begun.id));
    }
    note(format_args!("sweep {} has begun", begun.id));
    let over = until_over(&session, begun).await?;
    session.output.either(&over, || outcome(&over))
}

/// Waits until a sweep is over, and says now and then how far it is.
pub async fn until_over(session: &Session, mut sweep: SweepInfo) -> Result<SweepInfo, Failure> {
    let mut told = 0;
    while !sweep.state.is_over() {
        tokio::time::sleep(LOOK).await;
        sweep = session.client.sweep(&sweep.id).await?.ok_or_else(|| missing(&sweep.id))?;
        if sweep.matched >= told + 10_000 && !sweep.state.is_over() {
            told = sweep.matched;
            note(outcome(&sweep));
        }
    }
    Ok(sweep)
}

fn missing(id: &str) -> Failure {
    Failure::missing(format!("there is no sweep {id}, or it was too long ago: see `punctual sweeps`"))
}

/// What became of tasks.
pub fn done_word(act: SweepAct) -> &'static str {
    match act {
        SweepAct::Cancel => "cancelled",
        SweepAct::Move => "moved",
        SweepAct::Spread => "spread",
        SweepAct::Replay => "replayed",
        SweepAct::Purge => "purged",
        SweepAct::Hasten => "hastened",
    }
}

fn act_word(sweep: &SweepInfo) -> String {
    let act = match sweep.act {
        SweepAct::Cancel => "cancel",
        SweepAct::Move => "move",
        SweepAct::Spread => "spread",
        SweepAct::Replay => "replay",
        SweepAct::Purge => "purge",
        SweepAct::Hasten => "hasten",
    };
    if sweep.undoes.is_some() { format!("undo {act}") } else { act.to_owned() }
}

fn word(state: SweepState) -> &'static str {
    match state {
        SweepState::Running => "running",
        SweepState::Stopping => "stopping",
        SweepState::Done => "done",
        SweepState::Stopped => "stopped",
    }
}

fn table(sweeps: &[SweepInfo]) -> Columns {
    let mut columns =
        Columns::new(&["ID", "DO", "SELECT", "STATE", "#CHANGED", "#TOO LATE", "#NO ROOM", "BY", "BEGUN"]);
    for sweep in sweeps {
        columns.row(vec![
            sweep.id.clone(),
            act_word(sweep),
            selected(&sweep.select, sweep.ids),
            word(sweep.state).to_owned(),
            grouped(sweep.changed),
            grouped(sweep.too_late),
            grouped(sweep.no_room),
            sweep.who.clone().unwrap_or_default(),
            exact(sweep.begun_at, Time::now()),
        ]);
    }
    columns
}

/// The filters, as they would be given.
fn selected(select: &SweepSelect, ids: Option<u64>) -> String {
    let texts = [
        ("topic", select.topic.clone()),
        ("queue", select.queue.clone()),
        ("key", select.key.clone()),
        ("state", select.state.and_then(|state| Some(serde_json::to_value(state).ok()?.as_str()?.to_owned()))),
        ("from", select.from.map(|time| time.to_string())),
        ("until", select.until.map(|time| time.to_string())),
        ("reason", select.reason.clone()),
        ("note", select.note.clone()),
        ("note-prefix", select.note_prefix.clone()),
        ("ending", select.ending.and_then(|ending| Some(serde_json::to_value(ending).ok()?.as_str()?.to_owned()))),
        ("ids", ids.map(grouped)),
    ];
    let given = texts.into_iter().filter_map(|(name, text)| text.map(|text| format!("{name}={text}")));
    given.collect::<Vec<_>>().join(" ")
}

fn whole(sweep: &SweepInfo) -> String {
    let now = Time::now();
    let mut lines = vec![
        format!("sweep {}: {} {}", sweep.id, act_word(sweep), selected(&sweep.select, sweep.ids)),
        format!("{}: {}", word(sweep.state), outcome(sweep)),
        format!(
            "begun {}{}",
            exact(sweep.begun_at, now),
            sweep.who.as_ref().map_or(String::new(), |who| format!(" by {who}"))
        ),
    ];
    lines.extend(sweep.ended_at.map(|ended| format!("ended {}", exact(ended, now))));
    lines.extend(sweep.undoes.as_ref().map(|undone| format!("undoes sweep {undone}")));
    lines.push(undo_in_words(&sweep.undo, now));
    lines.join("\n")
}
