//! `uncancel`: takes back the cancellation of a task.

use clap::Args;
use punctual_client::Ruling;
use punctual_wire::{Restored, Time};

use super::change::{too_late, unknown};
use super::failure::{Failure, help};
use super::{Session, show};

/// Take back the cancellation of a task: it waits for its old due time again.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual uncancel order-unpaid order-7"))]
pub struct UncancelArgs {
    /// The task's topic.
    topic: String,
    /// The task's id.
    id: String,
}

/// Restores the task, and says where it stands now.
pub async fn run(args: UncancelArgs, mut session: Session) -> Result<(), Failure> {
    let UncancelArgs { topic, id } = args;
    match session.client.restore(&topic, &id).await? {
        Ruling::Done(standing) => {
            let text = format!("restored {topic} {id}: {}", show::sentence(&standing, Time::now()));
            session.output.either(&Restored { topic, id, standing }, || text)
        }
        Ruling::TooLate(standing) => too_late(&mut session, &topic, &id, &standing),
        Ruling::Unknown => unknown(&mut session, &topic, &id),
    }
}
