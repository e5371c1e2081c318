//! `revoke`: ends the lease on a delivery, whoever holds it.

use clap::Args;
use punctual_wire::{Revoke, Revoked, Span, Time};

use super::failure::{Failure, help};
use super::{Session, show};

/// End the lease on a delivery, whoever holds it: its consumer has lost it, and somebody else gets it.
///
/// Without --after the attempt counts as failed, as if the lease had ended by itself, and the retry policy says
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
    /// Of a task that was broadcast: its delivery in this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only if this consumer holds it.
    #[arg(long, value_name = "CONSUMER")]
    holder: Option<String>,
    /// Available again after so long, without counting as failed; 0s for at once.
    #[arg(long, value_name = "SPAN")]
    after: Option<Span>,
    /// Why; it stays with the task.
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
