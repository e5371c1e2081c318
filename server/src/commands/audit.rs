//! `audit`: who did what.

use clap::Args;
use punctual_wire::{ActInfo, ListActs, Time};

use super::Session;
use super::failure::{Failure, help};
use super::moment::{Moment, exact};
use super::output::{Columns, note};

/// List what operators did: settings, pauses, replays, and what people cancelled and moved.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual audit
  punctual audit --queue order-unpaid --from -1d
  punctual audit --what purge-dead --by night-shift"))]
pub struct AuditArgs {
    /// Only actions by this token, or this person.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Only this action, such as pause-queue.
    #[arg(long, value_name = "ACTION")]
    what: Option<String>,
    /// Only actions on this topic and its tasks.
    #[arg(long)]
    topic: Option<String>,
    /// Only actions on this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only actions at this time or later: RFC 3339, milliseconds since 1970, or -2h.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// Only actions before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<Moment>,
    /// Show at most N.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

/// Asks, and prints who did what.
pub async fn run(args: AuditArgs, mut session: Session) -> Result<(), Failure> {
    let AuditArgs { by, what, topic, queue, from, until, limit } = args;
    let (from, until) = (from.map(Moment::time), until.map(Moment::time));
    let list = ListActs { by, what, topic, queue, from, until, limit: Some(limit) };
    let found = session.client.audit(&list).await?;
    session.output.list(&found.acts, "nothing was done", table)?;
    if found.more {
        note("more was done before: use --until with the time of the last line, or a greater --limit");
    } else {
        note(format_args!("known since {}", exact(found.known_since, Time::now())));
    }
    Ok(())
}

fn table(acts: &[ActInfo]) -> Columns {
    let mut columns = Columns::new(&["AT", "BY", "ACTION", "ON", "DETAIL"]);
    for act in acts {
        let by = act.person.as_ref().map_or(act.by.clone(), |person| format!("{person} ({})", act.by));
        let detail = act.detail.clone().unwrap_or("-".into());
        columns.row(vec![act.at.to_string(), by, act.what.clone(), target(act), detail]);
    }
    columns
}

/// What it was done to, in a few words.
fn target(act: &ActInfo) -> String {
    let task = act.topic.as_ref().zip(act.id.as_ref()).map(|(topic, id)| format!("{topic} {id}"));
    let topic = || act.topic.as_ref().map(|topic| format!("topic {topic}"));
    let queue = act.queue.as_ref().map(|queue| format!("queue {queue}"));
    let parts: Vec<String> = [act.subject.clone(), task.or_else(topic), queue].into_iter().flatten().collect();
    if parts.is_empty() { "all".into() } else { parts.join(", ") }
}
