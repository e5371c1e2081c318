//! Lending consumers: one waits on its node's board, and what it waits for is on another node.
//!
//! ```text
//!  the lender, A                           the borrower, B
//!  somebody waits for a queue ── Want ───►  remembers it
//!                             ◄─ Stocked ─  has something, or has not; later: has something again
//!  takes the consumer that has
//!  waited longest out of line ── Lend ───►  puts it on its board as a guest that does not wait
//!                             ◄─ Served ──  what it got; nothing: it goes back to its old place at A
//! ```
//! **Invariant**: a consumer stands in line on one board at a time, so that nothing is leased to it twice.
//!
//! **Invariant**: both sides agree on what A was told. B tells of a queue once, and again only after a loan has come and found
//! it empty; words keep their order on a link, so neither waits for the other for ever.

mod borrower;
mod lender;

use punctual_core::store::ShardId;
use punctual_core::{Board, Delivery, Reserve, Ticket, Timestamp};

use crate::links::LinkId;
use crate::message::{Loan, Message};
use borrower::Borrower;
use lender::{Lender, Service};

/// Both sides of lending at one node. Every call is given the node's board, and the time by which its consumers wait; what
/// follows is [taken](Lending::take_consequences) after it. After everything else that has changed the board, call
/// [`look`](Lending::look) before anybody is given up.
#[derive(Debug)]
pub struct Lending<R> {
    lender: Lender,
    borrower: Borrower,
    consequences: Consequences<R>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub struct Consequences<R> {
    /// To be said on links that this node dialled, in order.
    pub say: Vec<(LinkId, Message)>,
    /// To be said on links that others dialled, in order.
    pub reply: Vec<(LinkId, Message)>,
    /// Consumers of this node, and what they get.
    pub served: Vec<(R, Vec<Delivery>)>,
    /// Deliveries whose consumer has left.
    pub unwanted: Vec<Delivery>,
    /// Shards that should look at the board.
    pub look: Vec<ShardId>,
    /// Guests who have gone: there is nothing to be said to them.
    pub gone: Vec<R>,
}

impl<R> Default for Consequences<R> {
    fn default() -> Self {
        Consequences { say: vec![], reply: vec![], served: vec![], unwanted: vec![], look: vec![], gone: vec![] }
    }
}

impl<R> Consequences<R> {
    /// Adds what is to be done after all this.
    pub fn append(&mut self, later: Consequences<R>) {
        let Consequences { say, reply, served, unwanted, look, gone } = later;
        self.say.extend(say);
        self.reply.extend(reply);
        self.served.extend(served);
        self.unwanted.extend(unwanted);
        self.look.extend(look);
        self.gone.extend(gone);
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let quiet = self.say.is_empty() && self.reply.is_empty() && self.look.is_empty();
        quiet && self.served.is_empty() && self.unwanted.is_empty() && self.gone.is_empty()
    }
}

impl<R> Default for Lending<R> {
    fn default() -> Self {
        Lending { lender: Lender::default(), borrower: Borrower::default(), consequences: Consequences::default() }
    }
}

impl<R> Lending<R> {
    /// What is to be done since this was last asked.
    pub fn take_consequences(&mut self) -> Consequences<R> {
        std::mem::take(&mut self.consequences)
    }

    /// Whether there is nobody to lend to or to borrow from.
    pub fn is_alone(&self) -> bool {
        self.lender.is_alone() && self.borrower.is_alone()
    }

    /// The board, or the time, has changed.
    pub fn look(&mut self, board: &mut Board<R>, now: Timestamp) {
        if !self.is_alone() {
            self.borrower.look(board, now, &mut self.consequences);
            self.lender.look(board, now, &mut self.consequences);
        }
    }

    /// When to look although nothing has changed.
    pub fn wakes_at(&self) -> Timestamp {
        self.lender.wakes_at().min(self.borrower.wakes_at())
    }
}

/// What the lender hears.
impl<R> Lending<R> {
    /// A link that this node dialled is up.
    pub fn linked(&mut self, on: LinkId, board: &mut Board<R>, now: Timestamp) {
        self.lender.linked(on, board, now, &mut self.consequences);
        self.look(board, now);
    }

    /// A link that this node dialled is down.
    pub fn unlinked(&mut self, on: LinkId, board: &mut Board<R>, now: Timestamp) {
        self.lender.unlinked(on, board, &mut self.consequences);
        self.look(board, now);
    }

    /// Something could not be said on a link, because too much waits on it.
    pub fn is_full(&mut self, on: LinkId, board: &mut Board<R>, now: Timestamp) {
        self.lender.is_full(on, board, now, &mut self.consequences);
        self.look(board, now);
    }

    /// What came on a link that this node dialled; everything that does not concern lending is left alone.
    pub fn told(&mut self, on: LinkId, message: Message, board: &mut Board<R>, now: Timestamp) {
        match message {
            Message::Stocked { queues, is_stocked } => self.lender.stocked(on, &queues, is_stocked, board),
            Message::Served { id, deliveries, empty } => {
                let service = Service { id, deliveries, empty };
                self.lender.served(on, service, board, now, &mut self.consequences);
            }
            _ => return,
        }
        self.look(board, now);
    }

    /// A consumer was taken off the board: should it be lent, what it would have got goes to others.
    pub fn withdrawn(&mut self, ticket: Ticket) {
        self.lender.withdrawn(ticket, &mut self.consequences);
    }
}

/// What the borrower hears.
impl<R> Lending<R> {
    /// A link that another node dialled is gone.
    pub fn left(&mut self, on: LinkId, board: &mut Board<R>) {
        self.borrower.left(on, board, &mut self.consequences);
    }

    /// What came on a link that another node dialled; everything that does not concern lending is left alone. `guest`
    /// makes what is needed to answer a consumer that is lent, which then goes to [`answered`](Lending::answered).
    pub fn asked(
        &mut self,
        on: LinkId,
        message: Message,
        guest: impl FnOnce(u64) -> R,
        board: &mut Board<R>,
        now: Timestamp,
    ) {
        match message {
            Message::Want { queues } => self.borrower.wanted(on, queues),
            Message::Unwant { queues } => self.borrower.unwanted(on, &queues, board),
            Message::Lend { id, loan } => {
                let ask = self.borrower.lent(on, id, loan, guest(id), board, now);
                self.consequences.look.extend(ask);
            }
            Message::Recall { id } => self.borrower.recalled(on, id, board, &mut self.consequences),
            _ => return,
        }
        self.look(board, now);
    }

    /// What a guest got, and the commit with it is durable; nothing if it was given up.
    pub fn answered(&mut self, on: LinkId, id: u64, deliveries: Vec<Delivery>, board: &mut Board<R>, now: Timestamp) {
        self.borrower.answered(on, id, deliveries, board, now, &mut self.consequences);
        self.look(board, now);
    }
}

impl Loan {
    /// What a consumer wants that is lent.
    pub fn of(reserve: &Reserve) -> Loan {
        let Reserve { queues, max, lease, consumer, choice, .. } = reserve.clone();
        Loan { queues, max, lease, consumer, choice }
    }

    /// What it asks for where it is lent to, where it does not wait.
    pub fn into_reserve(self, now: Timestamp) -> Reserve {
        let Loan { queues, max, lease, consumer, choice } = self;
        Reserve { queues, max, lease, until: now, consumer, choice }
    }
}
