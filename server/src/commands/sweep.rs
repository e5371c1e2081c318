//! `sweep`: changes many tasks at once, after a look at how many.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use punctual_wire::{
    Ending, NewSweep, SelectState, Shift, Span, SweepAct, SweepInfo, SweepPreview, SweepSelect, SweepUndo, Swept, Time,
};

use super::Session;
use super::change::swept_in_words;
use super::confirm::confirm;
use super::failure::{Failure, help};
use super::letters::ReasonChoice;
use super::moment::{Moment, exact};
use super::output::note;
use super::sweeps::{done_word, until_over};

/// How many topics are named whose tasks do not come back.
const NAMED: usize = 5;

/// Cancel, move, spread, replay, purge or hasten all tasks that match. It counts first and asks.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual sweep --topic coupon-end --from 2026-11-18T15:00:00Z --until 2026-11-18T15:01:00Z --do spread --over 10m
  punctual sweep --topic reminders --state scheduled --do cancel --dry-run
  punctual sweep --queue sms --reason out-of-attempts --note-prefix timeout --do replay --yes
  punctual sweep --topic orders --ids ids.txt --do move --by 1h

A sweep goes on by itself on the server. See how far it is with `punctual sweeps`; cancel, move and spread can be undone
with `punctual sweeps undo ID`."))]
pub struct SweepArgs {
    /// What to do.
    #[arg(long = "do", value_name = "WHAT")]
    act: ActChoice,
    #[command(flatten)]
    which: Which,
    /// move: to this time: RFC 3339 or milliseconds since 1970.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["delay", "by"])]
    at: Option<Time>,
    /// move: to this long from now.
    #[arg(long, value_name = "DURATION", conflicts_with = "by")]
    delay: Option<Span>,
    /// move: by this much, in either direction: 1h, -30m.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    by: Option<Shift>,
    /// spread: beginning at this time instead of now.
    #[arg(long, value_name = "TIME", requires = "over")]
    start: Option<Time>,
    /// spread: evenly over this long.
    #[arg(long, value_name = "DURATION")]
    over: Option<Span>,
    /// Only count, change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
    /// Do not wait until it is done.
    #[arg(long)]
    no_wait: bool,
}

/// Which tasks: those that fit every filter.
#[derive(Args, Debug)]
struct Which {
    /// Only those of this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Only those that are ready in this queue, or died there.
    #[arg(long)]
    queue: Option<String>,
    /// Only those with this key.
    #[arg(long)]
    key: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE")]
    state: Option<StateChoice>,
    /// Only those that come due, died or finished from this time on: RFC 3339, milliseconds since 1970, 1h, or -1h.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// Only those before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<Moment>,
    /// Dead letters: only those with this reason.
    #[arg(long, value_name = "REASON")]
    reason: Option<ReasonChoice>,
    /// Dead letters: only those whose notes are like this, as `dead groups` tells it; '' for those without a note.
    #[arg(long)]
    note: Option<String>,
    /// Dead letters: only those whose notes begin with this.
    #[arg(long, value_name = "TEXT")]
    note_prefix: Option<String>,
    /// Finished tasks: only those with this ending.
    #[arg(long, value_name = "ENDING")]
    ending: Option<EndedChoice>,
    /// Only those whose ids stand in this file, one in each line. Needs --topic.
    #[arg(long, value_name = "FILE", requires = "topic")]
    ids: Option<PathBuf>,
    /// All of them, without any filter.
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ActChoice {
    /// Cancel tasks.
    Cancel,
    /// Move their due times.
    Move,
    /// Move their due times to lie evenly over a length of time.
    Spread,
    /// Hand out dead letters or finished tasks again.
    Replay,
    /// Remove dead letters.
    Purge,
    /// Make tasks that wait for their time due now.
    Hasten,
}

impl From<ActChoice> for SweepAct {
    fn from(choice: ActChoice) -> SweepAct {
        match choice {
            ActChoice::Cancel => SweepAct::Cancel,
            ActChoice::Move => SweepAct::Move,
            ActChoice::Spread => SweepAct::Spread,
            ActChoice::Replay => SweepAct::Replay,
            ActChoice::Purge => SweepAct::Purge,
            ActChoice::Hasten => SweepAct::Hasten,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StateChoice {
    /// Not finished.
    Live,
    /// Waiting for their time.
    Scheduled,
    /// Waiting for a consumer.
    Ready,
    /// Dead letters.
    Dead,
    /// Finished.
    Finished,
}

impl From<StateChoice> for SelectState {
    fn from(choice: StateChoice) -> SelectState {
        match choice {
            StateChoice::Live => SelectState::Live,
            StateChoice::Scheduled => SelectState::Scheduled,
            StateChoice::Ready => SelectState::Ready,
            StateChoice::Dead => SelectState::Dead,
            StateChoice::Finished => SelectState::Finished,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EndedChoice {
    /// A consumer acknowledged it.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It was forwarded to another topic as a dead letter.
    Forwarded,
    /// It was removed as a dead letter.
    Purged,
}

impl From<EndedChoice> for Ending {
    fn from(choice: EndedChoice) -> Ending {
        match choice {
            EndedChoice::Done => Ending::Done,
            EndedChoice::Cancelled => Ending::Cancelled,
            EndedChoice::Forwarded => Ending::Forwarded,
            EndedChoice::Purged => Ending::Purged,
        }
    }
}

impl Which {
    fn select(self) -> Result<SweepSelect, Failure> {
        let unread =
            |file: &PathBuf, error| Failure::usage(format!("--ids {} cannot be read: {error}", file.display()));
        let ids =
            self.ids.map(|file| std::fs::read_to_string(&file).map_err(|error| unread(&file, error))).transpose()?;
        let lines = |text: String| text.lines().map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
        Ok(SweepSelect {
            topic: self.topic,
            queue: self.queue,
            key: self.key,
            state: self.state.map(SelectState::from),
            from: self.from.map(Moment::time),
            until: self.until.map(Moment::time),
            reason: self.reason.map(|reason| reason.word().to_owned()),
            note: self.note,
            note_prefix: self.note_prefix,
            ending: self.ending.map(Ending::from),
            ids: ids.map(lines),
            all: self.all,
        })
    }
}

/// Counts first, asks, then does it.
pub async fn run(args: SweepArgs, mut session: Session) -> Result<(), Failure> {
    let SweepArgs { act, which, at, delay, by, start, over, dry_run, yes, no_wait } = args;
    let select = which.select()?;
    let sweep = NewSweep { select, act: act.into(), at, delay, by, start, over, dry_run };
    if dry_run || !yes {
        let preview = session.client.preview_sweep(&sweep).await?;
        if dry_run {
            return session.output.either(&preview, || in_words(&preview, sweep.act));
        }
        if preview.changed == 0 {
            return session.output.either(&preview, || "no task matches that could be changed, nothing to do".into());
        }
        note(in_words(&preview, sweep.act));
        confirm("Begin?", false)?;
    }
    let begun = session.client.begin_sweep(&sweep).await?;
    if no_wait {
        return session.output.either(&begun, || format!("sweep {} has begun", begun.id));
    }
    note(format_args!("sweep {} has begun", begun.id));
    let over = until_over(&session, begun).await?;
    session.output.either(&over, || outcome(&over))
}

/// What came of a sweep, as a sentence.
pub fn outcome(sweep: &SweepInfo) -> String {
    let SweepInfo { matched, changed, too_late, no_room, .. } = *sweep;
    let done = if sweep.undoes.is_some() { "put back" } else { done_word(sweep.act) };
    swept_in_words(&Swept { matched, changed, too_late, no_room }, "task", done)
}

fn in_words(preview: &SweepPreview, act: SweepAct) -> String {
    let SweepPreview { matched, changed, too_late, no_room, .. } = *preview;
    let done = format!("would be {}", done_word(act));
    let mut text = swept_in_words(&Swept { matched, changed, too_late, no_room }, "task", &done);
    if preview.more {
        text.push_str(", and there are more");
    }
    let named: Vec<String> = preview.samples.iter().map(|task| format!("{} {}", task.topic, task.id)).collect();
    if !named.is_empty() {
        text.push_str(&format!("\nfor example: {}", named.join(", ")));
    }
    text.push_str(&format!("\nthis {}", undo_in_words(&preview.undo, Time::now())));
    text
}

/// Whether a sweep can be undone, for how long, and what of it not.
pub fn undo_in_words(undo: &SweepUndo, now: Time) -> String {
    if !undo.possible {
        return undo.why.as_ref().map_or("cannot be undone".into(), |why| format!("cannot be undone: {why}"));
    }
    let mut text = match undo.until {
        Some(until) => format!("can be undone until {}", exact(until, now)),
        None => "can be undone for tasks that no consumer got meanwhile".into(),
    };
    if !undo.except.is_empty() {
        let (named, others) = undo.except.split_at(undo.except.len().min(NAMED));
        let others = if others.is_empty() { "" } else { " and others" };
        text.push_str(&format!(", except tasks of {}{others}: no history keeps them", named.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_says_what_cannot_be_undone() {
        let why = Some("what is purged is gone".into());
        let undo = SweepUndo { possible: false, until: None, why, except: Vec::new() };
        let samples = Vec::new();
        let preview = SweepPreview { matched: 7, changed: 5, too_late: 2, no_room: 0, more: false, samples, undo };
        let words = "5 tasks would be purged, 2 too late\nthis cannot be undone: what is purged is gone";
        assert_eq!(in_words(&preview, SweepAct::Purge), words);
    }

    #[test]
    fn topics_whose_tasks_do_not_come_back_are_named() {
        let except = ('a'..='g').map(String::from).collect();
        let undo = SweepUndo { possible: true, until: None, why: Some("of some".into()), except };
        let words = "can be undone for tasks that no consumer got meanwhile, \
            except tasks of a, b, c, d, e and others: no history keeps them";
        assert_eq!(undo_in_words(&undo, Time(0)), words);
    }
}
