//! `dead groups`: what dead letters died of, and how many of each.

use clap::Args;
use punctual_wire::{DeadGroup, DeadGroupsQuery, Time};

use super::Session;
use super::failure::Failure;
use super::look::Range;
use super::moment::{Moment, exact};
use super::output::{Columns, grouped, note};

/// Which dead letters, and by what they are grouped.
#[derive(Args, Debug)]
pub struct GroupsArgs {
    /// What those of a group have in common: some of topic, queue, reason and note.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "reason,queue,note")]
    by: Vec<String>,
    /// Only those of this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Only those of this queue.
    #[arg(long)]
    queue: Option<String>,
    #[command(flatten)]
    range: Range,
}

/// Asks, and prints the groups.
pub async fn run(args: GroupsArgs, reason: Option<&str>, mut session: Session) -> Result<(), Failure> {
    let query = DeadGroupsQuery {
        by: Some(args.by.join(",")),
        topic: args.topic,
        queue: args.queue,
        reason: reason.map(Into::into),
        from: args.range.from.map(Moment::time),
        until: args.range.until.map(Moment::time),
    };
    let found = session.client.dead_groups(&query).await?;
    session.output.list(&found.groups, "no dead letters", |groups| table(groups, Time::now()))?;
    if found.others > 0 {
        note(format_args!("{} dead letters are in smaller groups", grouped(found.others)));
    }
    if let Some(since) = found.counted_since {
        note(format_args!("only those that died from {since} on are all counted: there are too many"));
    }
    Ok(())
}

fn table(groups: &[DeadGroup], now: Time) -> Columns {
    let mut columns = Columns::new(&["REASON", "NOTE", "QUEUE", "TOPIC", "#HOUR", "#DAY", "#ALL", "FIRST", "LAST"]);
    let or_none = |text: &Option<String>| text.clone().unwrap_or("-".into());
    for group in groups {
        columns.row(vec![
            or_none(&group.reason),
            or_none(&group.note),
            or_none(&group.queue),
            or_none(&group.topic),
            grouped(group.last_hour),
            grouped(group.last_day),
            grouped(group.count),
            exact(group.first_at, now),
            exact(group.last_at, now),
        ]);
    }
    columns
}
