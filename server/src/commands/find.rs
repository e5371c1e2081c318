//! `find`: what a word leads to.

use clap::Args;
use punctual_wire::{Hit, Time};

use super::failure::{Failure, help};
use super::output::{Columns, note};
use super::{Session, show};

/// Find tasks by id, topic/id or number, keys, and topics and queues by a part of their names.
#[derive(Args, Debug)]
#[command(after_help = help!("Examples:\n  punctual find order-7\n  punctual find 4711"))]
pub struct FindArgs {
    /// What to look for.
    text: String,
}

/// Asks, and prints what was found.
pub async fn run(args: FindArgs, mut session: Session) -> Result<(), Failure> {
    let found = session.client.find(&args.text).await?;
    let is_complete = found.is_complete;
    session.output.list(&found.hits, &format!("nothing is called {}", args.text), |hits| table(hits, Time::now()))?;
    if !is_complete {
        note("there may be more: not everything was looked at or is shown");
    }
    Ok(())
}

fn table(hits: &[Hit], now: Time) -> Columns {
    let mut columns = Columns::new(&["KIND", "NAME", "#NUMBER", "STATE"]);
    for hit in hits {
        let named = |kind: &str, name: &str| vec![kind.into(), name.into(), "-".into(), "-".into()];
        columns.row(match hit {
            Hit::Task { topic, id, number, standing, .. } => {
                let number = number.map_or("-".into(), |number| number.to_string());
                vec!["task".into(), format!("{topic} {id}"), number, show::standing(standing, now)]
            }
            Hit::Key { key } => named("key", key),
            Hit::Topic { name } => named("topic", name),
            Hit::Queue { name } => named("queue", name),
        });
    }
    columns
}
