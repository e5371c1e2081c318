//! What nodes say to each other over a link.
//!
//! A link is dialled by one of two nodes, the *asker*, and serves its requests alone; for those of the other one there is
//! another link. So an answer comes back on the link on which its request went, and a link that breaks takes along what was
//! asked on it and nothing else.

use punctual_core::store::{Fence, Incarnation, ShardId};
use punctual_core::{Choice, Command, Delivery, Event, Millis, Name};

use crate::account::{Account, Inquiry};
use crate::error::Outcome;

/// What goes over a link. The first half is said by the asker, the other half to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Carry this out in a shard of yours.
    Ask {
        /// Told apart from all others of this link.
        id: u64,
        /// The shard.
        shard: ShardId,
        /// Rises each time the asker sends again what was not there. Whoever has said `NotHere` says so to all that comes
        /// of the same round, so that what was asked later is not done before.
        round: u32,
        /// What to do.
        command: Command,
        /// Under which name somebody asks for it.
        by: Option<Name>,
    },
    /// This shard was released to you: claim it with this fence.
    Handed {
        /// The shard.
        shard: ShardId,
        /// The fence in force.
        fence: Fence,
    },
    /// Consumers of mine wait for these queues: say whether you have something for them, and say so again whenever that
    /// comes to be.
    Want {
        /// The queues.
        queues: Vec<Name>,
    },
    /// Nobody waits for these queues any more.
    Unwant {
        /// The queues.
        queues: Vec<Name>,
    },
    /// A consumer of mine takes what you have for it. It is on no board but yours until you say what it gets.
    Lend {
        /// Told apart from all others of this link.
        id: u64,
        /// What it wants.
        loan: Loan,
    },
    /// The consumer that was lent has left: what it would have got goes to others.
    Recall {
        /// Its loan.
        id: u64,
    },
    /// Tell me what happens on your node, or stop doing so.
    Watch {
        /// Whether to tell.
        is_on: bool,
    },
    /// How does your work go? Nothing but numbers depends on what is said to that.
    Inquire {
        /// Told apart from all others of this link.
        id: u64,
        /// What is wanted.
        inquiry: Inquiry,
    },
    /// I have heard that you are leaving, and ask nothing more on this link.
    Farewell,

    /// What came of a request.
    Answered {
        /// The request.
        id: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// The shard is not here, and nothing was done.
    NotHere {
        /// The request.
        id: u64,
        /// Its shard.
        shard: ShardId,
        /// The latest fence of the shard that this node knows of.
        fence: Fence,
        /// Who has it by that fence, as far as this node knows.
        owner: Option<Incarnation>,
    },
    /// There is something in queues that were wanted, or there is nothing.
    Stocked {
        /// The queues.
        queues: Vec<Name>,
        /// Whether there is something.
        is_stocked: bool,
    },
    /// What a consumer that was lent gets; nothing if there was nothing left.
    Served {
        /// Its loan.
        id: u64,
        /// What it gets.
        deliveries: Vec<Delivery>,
        /// Those of its queues that have nothing left for it. Of each of them it is said when there is something again.
        empty: Vec<Name>,
    },
    /// What happened, in the order of each shard.
    Happened(Vec<Event>),
    /// So many rounds of what happened were not told.
    Missed(u64),
    /// How the work goes.
    Accounted {
        /// The inquiry.
        id: u64,
        /// What there is to say; nothing if it was not understood.
        account: Option<Account>,
    },
    /// I am about to hang up: ask nothing more of me, and say that you do not.
    Leaving,
}

/// What a consumer wants that is lent to another node: it has waited at its own, and does not wait there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loan {
    /// From any of these queues.
    pub queues: Vec<Name>,
    /// At most so many at once.
    pub max: usize,
    /// To work on each for so long; `None` means as long as its task or its queue gives.
    pub lease: Option<Millis>,
    /// Under this name.
    pub consumer: Name,
    /// From which of its queues, if several have something.
    pub choice: Choice,
}
