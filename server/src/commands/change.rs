//! `cancel` and `reschedule`: one task, or all tasks of a key, with a certain answer.

use clap::{ArgGroup, Args};
use punctual_client::Ruling;
use punctual_wire::{CancelOutcome, Cancelled, Reschedule, Rescheduled, Shift, ShiftKey, Span, Standing, Swept, Time};
use serde::Serialize;

use super::body::BodyOptions;
use super::failure::{Exit, Failure, help};
use super::moment::exact;
use super::output::counted;
use super::{Session, show};

const CANCEL_EXAMPLES: &str = help!(
    "\
Examples:
  punctual cancel order-unpaid order-7
  punctual cancel --key user-1 --topic reminders --dry-run"
);

/// Cancel a task, or all tasks with a key. The answer is definite.
#[derive(Args, Debug)]
#[command(after_help = CANCEL_EXAMPLES, override_usage = "punctual cancel <TOPIC> <ID>\n       punctual cancel --key <KEY> [--topic <TOPIC>] [--dry-run]")]
pub struct CancelArgs {
    /// The task's topic.
    #[arg(value_name = "TOPIC", requires = "id", required_unless_present = "key")]
    topic: Option<String>,
    /// The task's id.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Instead of one task, all tasks with this key that have not been handed out yet.
    #[arg(long, conflicts_with_all = ["topic", "id"])]
    key: Option<String>,
    /// With --key: only tasks in this topic.
    #[arg(long = "topic", value_name = "TOPIC", requires = "key", conflicts_with = "topic")]
    of_topic: Option<String>,
    /// With --key: only count the tasks, change nothing.
    #[arg(long, requires = "key", conflicts_with = "topic")]
    dry_run: bool,
}

/// A ruling that went against the caller, for programs.
#[derive(Serialize)]
struct NotDone<'a> {
    topic: &'a str,
    id: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<&'a Standing>,
}

/// Cancels, and says whether it was in time.
pub async fn cancel(args: CancelArgs, mut session: Session) -> Result<(), Failure> {
    if let Some(key) = args.key {
        let swept = session.client.cancel_key(&key, args.of_topic.as_deref(), args.dry_run).await?;
        let done = if args.dry_run { "would be cancelled" } else { "cancelled" };
        return session.output.either(&swept, || swept_in_words(&swept, "task", done));
    }
    let (topic, id) = (args.topic.unwrap_or_default(), args.id.unwrap_or_default());
    match session.client.cancel(&topic, &id).await? {
        Ruling::Done(outcome) => {
            let text = match outcome {
                CancelOutcome::Cancelled => format!("cancelled {topic} {id}: it will never be handed over"),
                CancelOutcome::WasCancelled => {
                    format!("{topic} {id} was already cancelled: it will never be handed over")
                }
            };
            session.output.either(&Cancelled { topic, id, outcome }, || text)
        }
        Ruling::TooLate(standing) => too_late(&mut session, &topic, &id, &standing),
        Ruling::Unknown => unknown(&mut session, &topic, &id),
    }
}

const RESCHEDULE_EXAMPLES: &str = help!(
    "\
Examples:
  punctual reschedule order-unpaid order-7 --in 30m
  punctual reschedule order-unpaid order-7 --by -2h --priority 10
  punctual reschedule --key user-1 --by 1d"
);

/// Move a task to another time, or all tasks with a key. The answer is definite.
#[derive(Args, Debug)]
#[command(
    after_help = RESCHEDULE_EXAMPLES,
    group = ArgGroup::new("when").args(["delay", "at", "by"]).multiple(false),
    override_usage = "punctual reschedule <TOPIC> <ID> [--in <SPAN> | --at <TIME> | --by <SHIFT>] [--priority <N>] [--body <BODY>]\n       punctual reschedule --key <KEY> <--in <SPAN> | --at <TIME> | --by <SHIFT>> [--topic <TOPIC>] [--dry-run]"
)]
pub struct RescheduleArgs {
    /// The task's topic.
    #[arg(value_name = "TOPIC", requires = "id", required_unless_present = "key")]
    topic: Option<String>,
    /// The task's id.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// To this long from now, such as 15m.
    #[arg(long = "in", value_name = "SPAN")]
    delay: Option<Span>,
    /// To this time: RFC 3339, or milliseconds since 1970.
    #[arg(long, value_name = "TIME")]
    at: Option<Time>,
    /// Earlier or later than its current time by this much: -2h or 2h.
    #[arg(long, value_name = "SHIFT", allow_hyphen_values = true)]
    by: Option<Shift>,
    /// To this priority; lower numbers come first.
    #[arg(long, conflicts_with = "key")]
    priority: Option<u32>,
    /// To this body; - reads it from stdin.
    #[arg(long, conflicts_with = "key", allow_hyphen_values = true)]
    body: Option<String>,
    #[command(flatten)]
    options: BodyOptions,
    /// Instead of one task, all tasks with this key that have not been handed out yet.
    #[arg(long, conflicts_with_all = ["topic", "id"], requires = "when")]
    key: Option<String>,
    /// With --key: only tasks in this topic.
    #[arg(long = "topic", value_name = "TOPIC", requires = "key", conflicts_with = "topic")]
    of_topic: Option<String>,
    /// With --key: only count the tasks, change nothing.
    #[arg(long, requires = "key", conflicts_with = "topic")]
    dry_run: bool,
}

/// Moves, and says whether it was in time.
pub async fn reschedule(args: RescheduleArgs, mut session: Session) -> Result<(), Failure> {
    let RescheduleArgs { delay, at, by, priority, dry_run, .. } = args;
    if let Some(key) = args.key {
        let shift = ShiftKey { at, delay, by, topic: args.of_topic, dry_run };
        let swept = session.client.shift_key(&key, shift).await?;
        let done = if dry_run { "would be moved" } else { "moved" };
        return session.output.either(&swept, || swept_in_words(&swept, "task", done));
    }
    let body = args.options.read(args.body.as_deref())?;
    let (body, text, base64) = body.into_fields();
    let change = Reschedule { at, delay, by, priority, body, text, base64 };
    let (topic, id) = (args.topic.unwrap_or_default(), args.id.unwrap_or_default());
    match session.client.reschedule(&topic, &id, change).await? {
        Ruling::Done(due) => {
            let text = format!("{topic} {id} is now due {}", exact(due, Time::now()));
            session.output.either(&Rescheduled { topic, id, due }, || text)
        }
        Ruling::TooLate(standing) => too_late(&mut session, &topic, &id, &standing),
        Ruling::Unknown => unknown(&mut session, &topic, &id),
    }
}

pub fn too_late(session: &mut Session, topic: &str, id: &str, standing: &Standing) -> Result<(), Failure> {
    if session.output.json {
        session.output.json(&NotDone { topic, id, outcome: "too_late", standing: Some(standing) })?;
        session.output.flush()?;
    }
    let standing = show::sentence(standing, Time::now());
    Err(Failure::new(Exit::TooLate, format!("too late, nothing was changed: {topic} {id}: {standing}")))
}

pub fn unknown(session: &mut Session, topic: &str, id: &str) -> Result<(), Failure> {
    if session.output.json {
        session.output.json(&NotDone { topic, id, outcome: "unknown", standing: None })?;
        session.output.flush()?;
    }
    Err(Failure::missing(format!("there is no task {id} in topic {topic}: see `punctual list --topic {topic}`")))
}

/// What a change to many did: `5 tasks cancelled, 2 came too late`.
pub fn swept_in_words(swept: &Swept, one: &str, done: &str) -> String {
    let mut text = format!("{} {done}", counted(swept.changed, one));
    if swept.too_late > 0 {
        text.push_str(&format!(", {} too late", super::output::grouped(swept.too_late)));
    }
    if swept.no_room > 0 {
        text.push_str(&format!(", no room for {}: the queue is full", super::output::grouped(swept.no_room)));
    }
    if swept.matched != swept.changed + swept.too_late + swept.no_room {
        text.push_str(&format!(", {} matched", super::output::grouped(swept.matched)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_says_what_was_too_late() {
        let swept = Swept { matched: 7, changed: 5, too_late: 2, no_room: 0 };
        assert_eq!(swept_in_words(&swept, "task", "cancelled"), "5 tasks cancelled, 2 too late");
        let swept = Swept { matched: 1, changed: 1, too_late: 0, no_room: 0 };
        assert_eq!(swept_in_words(&swept, "task", "moved"), "1 task moved");
        let swept = Swept { matched: 3, changed: 1, too_late: 0, no_room: 2 };
        let words = "1 dead letter replayed, no room for 2: the queue is full";
        assert_eq!(swept_in_words(&swept, "dead letter", "replayed"), words);
    }
}
