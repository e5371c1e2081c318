//! `timeline`: the course of one task.

use clap::Args;
use punctual_wire::{Passed, Prospect, Time, Timeline, TimelineEntry, ToCome, Why};

use super::Session;
use super::failure::{Failure, help};
use super::moment::exact;
use super::output::counted;
use super::plain::one_line;

/// Show what has happened to a task, what is to come, and why it is still where it is.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual timeline order-unpaid order-7"))]
pub struct TimelineArgs {
    /// Its topic.
    topic: String,
    /// Its id.
    id: String,
}

/// Asks, and prints the course of the task.
pub async fn run(args: TimelineArgs, mut session: Session) -> Result<(), Failure> {
    let TimelineArgs { topic, id } = args;
    let found = session.client.timeline(&topic, &id).await?;
    let timeline =
        found.ok_or_else(|| Failure::missing(format!("there is no task {topic} {id}, nor in the history")))?;
    session.output.either(&timeline, || text(&timeline))
}

fn text(timeline: &Timeline) -> String {
    let now = timeline.now;
    let mut lines: Vec<String> = timeline.entries.iter().map(|entry| passed(entry, now)).collect();
    if timeline.untold_attempts > 0 {
        let attempts = counted(u64::from(timeline.untold_attempts), "attempt");
        lines.push(format!("  and {attempts} of which nothing is remembered"));
    }
    if !timeline.why.is_empty() {
        lines.push("why it is where it is".into());
        lines.extend(timeline.why.iter().map(|cause| format!("  {}", why(cause, now))));
    }
    if !timeline.to_come.is_empty() {
        lines.push("to come".into());
        lines.extend(timeline.to_come.iter().map(|coming| format!("  {}", to_come(coming, now))));
    }
    lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n")
}

fn passed(entry: &TimelineEntry, now: Time) -> String {
    let about = if entry.exact { "" } else { "not before " };
    let what = match (entry.what, &entry.act) {
        (Passed::Act, Some(act)) => act.clone(),
        (what, _) => what.as_str().to_owned(),
    };
    let mut line = format!("{about}{}  {what}", entry.at);
    if let Some(attempt) = entry.attempt {
        line.push_str(&format!(", attempt {attempt}"));
    }
    if let Some(who) = &entry.who {
        line.push_str(&format!(", by {who}"));
    }
    if let Some(queue) = &entry.queue {
        line.push_str(&format!(", queue {queue}"));
    }
    match (entry.what, entry.until) {
        (Passed::Scheduled, Some(due)) => line.push_str(&format!(", due {}", exact(due, now))),
        (_, Some(until)) => line.push_str(&format!(", until {}", exact(until, now))),
        (_, None) => {}
    }
    if let Some(reason) = &entry.reason {
        line.push_str(&format!(": {reason}"));
    }
    if let Some(note) = &entry.note {
        line.push_str(&format!(": {note}"));
    }
    line
}

fn to_come(coming: &ToCome, now: Time) -> String {
    let attempt = coming.attempt.unwrap_or_default();
    let at = coming.at.map_or(String::new(), |at| format!(" at {}", exact(at, now)));
    let after = coming.after.map_or(String::new(), |after| format!(", after {after} at least"));
    match coming.what {
        Prospect::Due => format!("it comes due{at}"),
        Prospect::Retry => format!("attempt {attempt}{at}"),
        Prospect::LeaseEnds => format!("the lease of attempt {attempt} ends{at}"),
        Prospect::Expires => format!("its time to live ends{at}"),
        Prospect::Removed => format!("it is not kept any longer{at}"),
        Prospect::RetryIfFailed => format!("attempt {attempt} if the one before fails{after}"),
        Prospect::DeadIfFailed => format!("a dead letter if attempt {attempt} fails too"),
    }
}

fn why(cause: &Why, now: Time) -> String {
    match cause {
        Why::NotDue { at } => format!("it is due at {}", exact(*at, now)),
        Why::Retry { at, attempt } => format!("it is waiting for attempt {attempt} at {}", exact(*at, now)),
        Why::Held { queue, holder, until, attempt } => {
            format!("{holder} of queue {queue} has it until {}, for attempt {attempt}", exact(*until, now))
        }
        Why::Paused { queue, by, since, reason, until } => {
            let by = by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
            let since = since.map_or(String::new(), |since| format!(" since {}", exact(since, now)));
            let until = until.map_or(", until it is resumed".into(), |until| format!(", until {}", exact(until, now)));
            let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
            format!("queue {queue} is paused{by}{since}{until}{reason}")
        }
        Why::NobodyWaits { queue } => format!("no consumer is waiting for queue {queue}"),
        Why::Behind { queue, ahead, more } => {
            let at_least = if *more { "at least " } else { "" };
            format!("{at_least}{ahead} come before it in queue {queue}")
        }
        Why::Rate { queue, per_second } => format!("queue {queue} hands out at most {per_second} a second"),
        Why::Next { queue } => format!("it is next in queue {queue}"),
        Why::Spread { open } => format!("it was broadcast, and is open in {}", open.join(", ")),
        Why::Unrouted => "no queue takes it".into(),
        Why::Dead { reason, at } => format!("it has been a dead letter ({reason}) since {}", exact(*at, now)),
        Why::Finished { at, .. } => format!("it finished at {}", exact(*at, now)),
    }
}
