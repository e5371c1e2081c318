//! Consumers that are lent to other nodes, and those that come from them.
//!
//! What to do is decided by [`Lending`](punctual_center::Lending), under the board's lock; what it says leaves under that
//! lock, too, so that words keep their order. Everything else is done when the lock is free: it may lead back here.

use std::sync::{Arc, Weak};

use punctual_center::{Consequences, Lending, LinkId, Message, Why};
use punctual_core::{Answer, Board, Delivery, Timestamp};

use crate::board::{Posted, time};
use crate::caller::Caller;
use crate::error::Outcome;
use crate::outgoing::Hold;
use crate::shared::Shared;

/// A consumer of another node, which was lent to this one.
pub(crate) struct Guest {
    shared: Weak<Shared>,
    on: LinkId,
    id: u64,
    /// Room for what it gets.
    pub hold: Option<Hold>,
    is_answered: bool,
}

impl Guest {
    /// Tells its node what it gets. If it is not known whether it got anything, that is nothing: the lease ends by itself.
    pub fn answer(mut self, outcome: Outcome) {
        self.say(outcome);
    }

    fn say(&mut self, outcome: Outcome) {
        self.is_answered = true;
        let Some(shared) = self.shared.upgrade() else { return };
        let deliveries = match outcome {
            Ok(Answer::Reserved(deliveries)) => deliveries,
            _ => Vec::new(),
        };
        let (on, id) = (self.on, self.id);
        shared.lend(|lending, board, now| lending.answered(on, id, deliveries, board, now));
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if !self.is_answered {
            self.say(Ok(Answer::Reserved(Vec::new())));
        }
    }
}

/// What is left to do when the board's lock is free.
#[must_use]
#[derive(Default)]
pub(crate) struct Aftermath {
    then: Consequences<Caller>,
    /// Those whose time to wait is over.
    over: Vec<Caller>,
    /// The board's thread has to wake sooner than it thinks.
    is_sooner: bool,
}

impl Aftermath {
    pub fn is_empty(&self) -> bool {
        self.then.is_empty() && self.over.is_empty()
    }
}

impl Posted {
    /// Lends what can be lent, and says to other nodes what is to be said.
    pub fn see_to_lending(&mut self, shared: &Shared, now: Timestamp) -> Aftermath {
        if self.lending.is_alone() {
            return Aftermath::default();
        }
        self.lending.look(&mut self.waiting, now);
        let mut all = Consequences::default();
        loop {
            let mut then = self.lending.take_consequences();
            if then.is_empty() {
                break;
            }
            let mut full = None;
            for (on, message) in then.say.drain(..) {
                // What comes after something that was not said would not be understood.
                if full != Some(on) && shared.peers.say(on, message) == Err(Why::Full) {
                    full = Some(on);
                    self.lending.is_full(on, &mut self.waiting, now);
                }
            }
            then.reply.drain(..).for_each(|(on, message)| shared.peers.reply(on, message));
            all.append(then);
        }
        Aftermath { then: all, over: Vec::new(), is_sooner: self.lending.wakes_at() < self.wakes_at }
    }
}

impl Shared {
    /// Decides something about lending, and does what follows.
    pub fn lend(&self, decide: impl FnOnce(&mut Lending<Caller>, &mut Board<Caller>, Timestamp)) {
        let mut posted = self.board.lock();
        let now = time(&*self.clock);
        let Posted { lending, waiting, .. } = &mut *posted;
        decide(lending, waiting, now);
        let mut after = posted.see_to_lending(self, now);
        after.over = posted.waiting.expire(now);
        drop(posted);
        self.clear_up(after);
    }

    /// Does what was left until the board's lock is free.
    pub fn clear_up(&self, after: Aftermath) {
        let Aftermath { then: Consequences { served, unwanted, look, gone, .. }, over, is_sooner } = after;
        if is_sooner {
            self.board.ring();
        }
        look.into_iter().for_each(|shard| self.inbox(shard).wake_up());
        for (caller, deliveries) in served {
            self.hand_over(caller, deliveries);
        }
        self.abandon(unwanted.into_iter().map(|delivery| delivery.lease));
        self.send_away(over);
        drop(gone);
    }

    /// Gives a consumer of this node what it got at another one.
    fn hand_over(&self, mut caller: Caller, deliveries: Vec<Delivery>) {
        self.make_room(&mut caller, &deliveries);
        self.answer(caller, Ok(Answer::Reserved(deliveries)));
    }

    /// Takes the room for what a consumer gets.
    pub fn make_room(&self, caller: &mut Caller, deliveries: &[Delivery]) {
        let (Caller::Consumer { hold, .. } | Caller::Guest(Guest { hold, .. })) = caller else { return };
        let bytes = deliveries.iter().map(|delivery| delivery.written() as u64).sum();
        *hold = Some(self.outgoing.hold(bytes));
    }

    /// What another node says to what was lent to it.
    pub fn told_of_lending(&self, on: LinkId, message: Message) {
        self.lend(|lending, board, now| lending.told(on, message, board, now));
    }

    /// What another node lends to this one, or wants to.
    pub fn asked_to_borrow(self: &Arc<Shared>, on: LinkId, message: Message) {
        let shared = Arc::downgrade(self);
        let guest = |id| Caller::Guest(Guest { shared, on, id, hold: None, is_answered: false });
        if let Message::Lend { id, loan } = &message
            && self.board.is_closed()
        {
            let (id, empty) = (*id, loan.queues.clone());
            return self.peers.reply(on, Message::Served { id, deliveries: Vec::new(), empty });
        }
        self.lend(|lending, board, now| lending.asked(on, message, guest, board, now));
    }
}
