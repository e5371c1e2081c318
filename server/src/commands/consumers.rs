//! `consumers`: who waits for deliveries, and who has some.

use clap::Args;
use punctual_wire::{ConsumerInfo, HolderInfo, ListConsumers, Time};

use super::Session;
use super::failure::{Failure, help};
use super::moment::hint;
use super::output::{Columns, grouped, note};

/// List the consumers that are waiting for deliveries right now, and those that hold some.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual consumers --queue order-unpaid"))]
pub struct ConsumersArgs {
    /// Only those waiting for this queue, or holding deliveries of it.
    #[arg(long)]
    queue: Option<String>,
    /// Show at most N.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

/// Asks, and prints who waits.
pub async fn run(args: ConsumersArgs, mut session: Session) -> Result<(), Failure> {
    let list = ListConsumers { queue: args.queue, limit: Some(args.limit) };
    let found = session.client.consumers(&list).await?;
    let more = found.count.saturating_sub(found.consumers.len() as u64);
    if session.output.json {
        return session.output.json(&found);
    }
    session.output.list(&found.consumers, "nobody is waiting", table)?;
    if !found.holders.is_empty() {
        session.output.line("")?;
        session.output.table(&holders(&found.holders, Time::now()))?;
    }
    if more > 0 {
        note(format_args!("{} more are waiting", grouped(more)));
    }
    if found.holders_left_out > 0 {
        note(format_args!("{} more hold deliveries", grouped(found.holders_left_out)));
    }
    if found.leases_unknown > 0 {
        note(format_args!("who holds {} more deliveries is not known here", grouped(found.leases_unknown)));
    }
    if !found.silent.is_empty() {
        note(format_args!("these nodes did not answer: {}", found.silent.join(", ")));
    }
    Ok(())
}

fn table(consumers: &[ConsumerInfo]) -> Columns {
    let mut columns = Columns::new(&["CONSUMER", "NODE", "#TAKES", "QUEUES"]);
    for consumer in consumers {
        let ConsumerInfo { name, node, queues, max } = consumer;
        columns.row(vec![name.clone(), node.clone(), grouped(*max), queues.join(", ")]);
    }
    columns
}

fn holders(holders: &[HolderInfo], now: Time) -> Columns {
    let mut columns = Columns::new(&["HOLDER", "QUEUE", "#HOLDS", "OLDEST", "NEXT END"]);
    for holder in holders {
        let HolderInfo { name, queue, leases, oldest, next_end } = holder;
        let oldest = oldest.map_or("-".into(), |oldest| hint(oldest, now));
        columns.row(vec![name.clone(), queue.clone(), grouped(*leases), oldest, hint(*next_end, now)]);
    }
    columns
}
