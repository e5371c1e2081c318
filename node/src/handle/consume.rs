//! Taking deliveries, and saying what became of them.

use std::sync::{Arc, PoisonError};

use punctual_core::store::ShardId;
use punctual_core::{
    Answer, Back, Command, Delivery, Lease, Millis, Refused, Reserve, Revoke, Standing, Ticket, Timestamp,
};
use tokio::sync::oneshot;

use super::{Handle, answered};
use crate::caller::{Outcome, Served};
use crate::error::Error;
use crate::outgoing::Hold;
use crate::routing::shard_of_key;
use crate::shared::Shared;

/// What a consumer says about a delivery it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// The work is done.
    Acknowledge(Lease),
    /// The work is not done and somebody else may try.
    Release {
        /// The right to say so.
        lease: Lease,
        /// When.
        back: Back,
        /// From now on with this priority.
        priority: Option<u32>,
        /// What went wrong.
        note: Option<String>,
    },
    /// The work cannot be done.
    Reject {
        /// The right to say so.
        lease: Lease,
        /// Why not.
        note: Option<String>,
        /// With this priority, should it be handed out again.
        priority: Option<u32>,
    },
    /// The work takes longer.
    Extend {
        /// The right to say so.
        lease: Lease,
        /// So long from now; `None` means as long as the queue gives.
        by: Option<Millis>,
    },
}

/// What came of what a consumer said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The delivery is done.
    Acknowledged,
    /// It was given back, and stands here now.
    Released(Standing),
    /// It is a dead letter.
    Rejected,
    /// Its lease ends then.
    Extended(Timestamp),
}

impl Settle {
    /// The lease of the delivery that is spoken of.
    pub fn lease(&self) -> &Lease {
        match self {
            Settle::Acknowledge(lease)
            | Settle::Release { lease, .. }
            | Settle::Reject { lease, .. }
            | Settle::Extend { lease, .. } => lease,
        }
    }

    pub(super) fn command(self, shards: u16) -> (ShardId, Command) {
        let shard = shard_of_key(&self.lease().key, shards);
        let command = match self {
            Settle::Acknowledge(lease) => Command::Acknowledge(lease),
            Settle::Release { lease, back, priority, note } => Command::Release { lease, back, priority, note },
            Settle::Reject { lease, note, priority } => Command::Reject { lease, note, priority },
            Settle::Extend { lease, by } => Command::Extend { lease, by },
        };
        (shard, command)
    }
}

impl Settled {
    pub(super) fn of(outcome: Outcome) -> Result<Settled, Error> {
        match outcome? {
            Answer::Acknowledged => Ok(Settled::Acknowledged),
            Answer::Released(standing) => Ok(Settled::Released(standing)),
            Answer::Rejected => Ok(Settled::Rejected),
            Answer::Extended(until) => Ok(Settled::Extended(until)),
            other => unreachable!("a shard answers a command with its own answer, not with {other:?}"),
        }
    }
}

impl Handle {
    /// Waits for deliveries; empty when the time to wait was over. Those who have waited longest
    /// come first, whichever shard has something for them.
    ///
    /// Dropping the future takes the consumer off the board. Deliveries that were already on their
    /// way to it go back at once.
    pub async fn reserve(&self, reserve: Reserve) -> Result<Vec<Delivery>, Error> {
        Ok(self.counted(self.wait(reserve).await)?.0)
    }

    /// The same for who keeps what it gets in memory for as long as somebody else takes to read it: with the room that
    /// it takes among all answers under way.
    pub async fn reserve_held(&self, reserve: Reserve) -> Result<(Vec<Delivery>, Hold), Error> {
        let (deliveries, hold) = self.counted(self.wait(reserve).await)?;
        Ok((deliveries, hold.unwrap_or_else(|| self.shared.outgoing.hold(0))))
    }

    /// Room for an answer of about so many bytes; refused as overload if too many are under way.
    pub fn hold(&self, bytes: u64) -> Result<Hold, Error> {
        self.counted(self.shared.outgoing.try_hold(bytes))
    }

    /// The room of an answer that is there already, and waits for its reader.
    pub fn hold_unread(&self, bytes: u64) -> Hold {
        self.shared.outgoing.hold(bytes)
    }

    async fn wait(&self, reserve: Reserve) -> Result<(Vec<Delivery>, Option<Hold>), Error> {
        self.check_queues(&reserve)?;
        let (sender, receiver) = oneshot::channel();
        let (ticket, duty) = self.shared.post(reserve, sender)?;
        let mut waiting = OnBoard { shared: &self.shared, ticket: Some(ticket), receiver };
        if let Some(duty) = duty {
            duty.keep().await;
        }
        let handed = (&mut waiting.receiver).await;
        waiting.ticket = None;
        let (outcome, hold) = handed.unwrap_or_else(|_| (Err(self.shared.lost()), None));
        answered!(outcome, Answer::Reserved(deliveries) => (deliveries, hold))
    }

    fn check_queues(&self, reserve: &Reserve) -> Result<(), Error> {
        reserve.check()?;
        if self.shared.config.shard.create_on_use {
            return Ok(());
        }
        let known = self.shared.known_queues.read().unwrap_or_else(PoisonError::into_inner);
        match reserve.queues.iter().find(|queue| !known.contains(*queue)) {
            Some(queue) => Err(Refused::NoSuchQueue(queue.clone()).into()),
            None => Ok(()),
        }
    }

    /// The work is done.
    pub async fn acknowledge(&self, lease: Lease) -> Result<(), Error> {
        let shard = shard_of_key(&lease.key, self.shared.config.shards);
        answered!(self.ask(shard, Command::Acknowledge(lease)).await, Answer::Acknowledged => ())
    }

    /// Says what became of many deliveries; each is answered by itself, in the order of what was said.
    pub async fn settle_many(&self, settles: Vec<Settle>) -> Vec<Result<Settled, Error>> {
        let shards = self.shared.config.shards;
        let commands = settles.into_iter().map(|settle| Ok(settle.command(shards))).collect();
        self.ask_many(commands).await.into_iter().map(Settled::of).collect()
    }

    /// The work on many deliveries is done; each is answered by itself, in the order of the leases.
    pub async fn acknowledge_many(&self, leases: Vec<Lease>) -> Vec<Result<(), Error>> {
        let shards = self.shared.config.shards;
        let command = |lease: Lease| Ok((shard_of_key(&lease.key, shards), Command::Acknowledge(lease)));
        let outcomes = self.ask_many(leases.into_iter().map(command).collect()).await;
        outcomes.into_iter().map(|outcome| answered!(outcome, Answer::Acknowledged => ())).collect()
    }

    /// The work is not done and somebody else may try; answers where the delivery stands now.
    pub async fn release(
        &self,
        lease: Lease,
        back: Back,
        priority: Option<u32>,
        note: Option<String>,
    ) -> Result<Standing, Error> {
        let shard = shard_of_key(&lease.key, self.shared.config.shards);
        let command = Command::Release { lease, back, priority, note };
        answered!(self.ask(shard, command).await, Answer::Released(standing) => standing)
    }

    /// An operator ends a lease, whoever holds it; answers where the delivery stands now.
    pub async fn revoke(&self, revoke: Revoke) -> Result<Standing, Error> {
        let shard = self.shard_of(&revoke.selected.topic, &revoke.selected.id);
        answered!(self.ask(shard, Command::Revoke(Box::new(revoke))).await, Answer::Released(standing) => standing)
    }

    /// The work cannot be done: the delivery is a dead letter.
    pub async fn reject(&self, lease: Lease, note: Option<String>) -> Result<(), Error> {
        let shard = shard_of_key(&lease.key, self.shared.config.shards);
        let command = Command::Reject { lease, note, priority: None };
        answered!(self.ask(shard, command).await, Answer::Rejected => ())
    }

    /// The work takes longer: so long from now, or as long as the queue gives, but no longer than it allows. Answers
    /// with the new end of the lease.
    pub async fn extend(&self, lease: Lease, by: Option<Millis>) -> Result<Timestamp, Error> {
        let shard = shard_of_key(&lease.key, self.shared.config.shards);
        answered!(self.ask(shard, Command::Extend { lease, by }).await, Answer::Extended(until) => until)
    }
}

/// A consumer on the board. When it leaves before it was answered, what was meant for it goes back.
struct OnBoard<'a> {
    shared: &'a Arc<Shared>,
    ticket: Option<Ticket>,
    receiver: oneshot::Receiver<Served>,
}

impl Drop for OnBoard<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let withdrawn = self.shared.board.lock().waiting.withdraw(ticket);
        if withdrawn.is_some() {
            return;
        }
        // It was being answered: from here on the sender notices that nobody is there, and what
        // came before is here.
        self.receiver.close();
        if let Ok((outcome, _)) = self.receiver.try_recv() {
            self.shared.give_back(outcome);
        }
    }
}
