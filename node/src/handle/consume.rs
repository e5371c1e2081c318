//! Taking deliveries, and saying what became of them.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use punctual_core::{
    Back, Command, Delivery, Lease, Millis, Name, Refused, Reserve, Revoke, Standing, Ticket, Timestamp, Told,
};
use tokio::sync::oneshot;

use super::Handle;
use crate::caller::Served;
use crate::error::Error;
use crate::outgoing::Hold;
use crate::shared::Shared;

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
        self.check_queues(&reserve).await?;
        let (sender, receiver) = oneshot::channel();
        let (ticket, duty) = self.shared.post(reserve, sender)?;
        let mut waiting = OnBoard { shared: &self.shared, ticket: Some(ticket), receiver };
        if let Some(duty) = duty {
            duty.keep().await;
        }
        let handed = (&mut waiting.receiver).await;
        waiting.ticket = None;
        let (outcome, hold) = handed.unwrap_or_else(|_| (Err(self.shared.lost()), None));
        Ok((Vec::by(outcome?), hold))
    }

    async fn check_queues(&self, reserve: &Reserve) -> Result<(), Error> {
        reserve.check()?;
        if self.shared.config.shard.create_on_use {
            return Ok(());
        }
        let unknown: Vec<Name> = {
            let known = self.shared.known_queues.read().unwrap_or_else(PoisonError::into_inner);
            reserve.queues.iter().filter(|queue| !known.contains(*queue)).cloned().collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        // Another node may have made them. If that cannot be found out now, whoever waits there does no harm.
        let Ok(views) = self.queues_named(unknown.clone()).await else { return Ok(()) };
        let there: BTreeSet<Name> = views.into_iter().map(|view| view.counts.name).collect();
        match unknown.into_iter().find(|queue| !there.contains(queue)) {
            Some(queue) => Err(Refused::NoSuchQueue(queue).into()),
            None => {
                self.shared.known_queues.write().unwrap_or_else(PoisonError::into_inner).extend(there);
                Ok(())
            }
        }
    }

    /// The work is done.
    pub async fn acknowledge(&self, lease: Lease) -> Result<(), Error> {
        self.ask(Command::Acknowledge(lease)).await
    }

    /// The work on many deliveries is done; each is answered by itself, in the order of the leases.
    pub async fn acknowledge_many(&self, leases: Vec<Lease>) -> Vec<Result<(), Error>> {
        self.ask_many(leases.into_iter().map(Command::Acknowledge).collect()).await
    }

    /// The work is not done and somebody else may try; answers where the delivery stands now.
    pub async fn release(
        &self,
        lease: Lease,
        back: Back,
        priority: Option<u32>,
        note: Option<String>,
    ) -> Result<Standing, Error> {
        self.ask(Command::Release { lease, back, priority, note }).await
    }

    /// An operator ends a lease, whoever holds it; answers where the delivery stands now.
    pub async fn revoke(&self, revoke: Revoke) -> Result<Standing, Error> {
        self.ask(Command::Revoke(Box::new(revoke))).await
    }

    /// The work cannot be done: the delivery is a dead letter.
    pub async fn reject(&self, lease: Lease, note: Option<String>) -> Result<(), Error> {
        self.ask(Command::Reject { lease, note, priority: None }).await
    }

    /// The work takes longer: so long from now, or as long as the queue gives, but no longer than it allows. Answers
    /// with the new end of the lease.
    pub async fn extend(&self, lease: Lease, by: Option<Millis>) -> Result<Timestamp, Error> {
        self.ask(Command::Extend { lease, by }).await
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
        if self.shared.withdraw(ticket) {
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
