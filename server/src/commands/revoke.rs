//! `revoke`: ends the lease on a delivery, whoever holds it.

use clap::Args;
use punctual_wire::{Revoke, Revoked, Span, Time};

use super::failure::{Failure, help};
use super::{Session, show};

/// Take a delivery away from the consumer that holds it, so that another consumer gets it.
///
/// Without --after the attempt counts as failed, as if the lease had run out, and the retry policy decides
/// when the delivery is available again.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual revoke order-unpaid order-7
  punctual revoke order-unpaid order-7 --holder worker-3 --after 0s --note 'worker-3 hangs'"))]
pub struct RevokeArgs {
    /// The task's topic.
    topic: String,
    /// The task's id.
    id: String,
    /// For a broadcast task: its delivery in this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only if this consumer holds it.
    #[arg(long, value_name = "CONSUMER")]
    holder: Option<String>,
    /// Make it available again after this long, without counting the attempt as failed; 0s means at once.
    #[arg(long, value_name = "SPAN")]
    after: Option<Span>,
    /// The reason; it is kept with the task.
    #[arg(long)]
    note: Option<String>,
}

/// Ends the lease and says where the delivery stands now.
pub async fn run(args: RevokeArgs, mut session: Session) -> Result<(), Failure> {
    let RevokeArgs { topic, id, queue, holder, after, note } = args;
    let revoke = Revoke { holder, after, note };
    let standing = session.client.revoke(&topic, &id, queue.as_deref(), revoke).await?;
    let text = format!("revoked the lease on {topic} {id}: {}", show::sentence(&standing, Time::now()));
    session.output.either(&Revoked { topic, id, standing }, || text)
}
