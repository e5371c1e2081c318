//! `hasten`: makes one task available now.

use clap::Args;
use punctual_client::Ruling;
use punctual_wire::{Hastened, Time};

use super::change::{too_late, unknown};
use super::failure::{Failure, help};
use super::{Session, show};

/// Make a task available now: one that is waiting for its time or for its next attempt, or a dead letter.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual hasten order-unpaid order-7"))]
pub struct HastenArgs {
    /// The task's topic.
    topic: String,
    /// The task's id.
    id: String,
    /// For a broadcast task: its delivery in this queue.
    #[arg(long)]
    queue: Option<String>,
}

/// Hastens, and says where the task stands now.
pub async fn run(args: HastenArgs, mut session: Session) -> Result<(), Failure> {
    let HastenArgs { topic, id, queue } = args;
    match session.client.hasten(&topic, &id, queue.as_deref()).await? {
        Ruling::Done(standing) => {
            let text = format!("hastened {topic} {id}: {}", show::sentence(&standing, Time::now()));
            session.output.either(&Hastened { topic, id, standing }, || text)
        }
        Ruling::TooLate(standing) => too_late(&mut session, &topic, &id, &standing),
        Ruling::Unknown => unknown(&mut session, &topic, &id),
    }
}
