//! What somebody wants from the delay center, and why.

use punctual_core::store::{Key, ShardId};
use punctual_core::{Adjustment, Command, Millis, Name, QueueSettings, Reserve, Subject, Timestamp, TopicSettings};

use crate::clock::Moment;

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Why.
    pub purpose: Purpose,
    /// What for.
    pub what: What,
    /// So long from now.
    pub after: Moment,
    /// How often it was sent before without an answer.
    pub tries: u32,
}

/// Who gets the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A client that wants it done for certain: it asks until it is answered.
    Insists,
    /// A client that asks again after a lost answer, or not.
    Client,
    /// A consumer that wants deliveries.
    Consumer(usize),
    /// A consumer that says what became of a delivery.
    Work(usize),
    /// A node that sends a dead letter on.
    Forward {
        /// The shard that it comes from.
        origin: ShardId,
        /// The dead letter's row.
        key: Key,
        /// The number of its journey.
        journey: u64,
    },
    /// A node that says how that went.
    Note,
    /// A node that draws tokens for a queue.
    Draw(Name),
    /// A node's administrator, in this round of questions to all shards.
    Adopt(u64),
}

/// What is wanted.
#[derive(Clone, Debug)]
pub enum What {
    /// A command to one shard.
    Command(ShardId, Box<Command>),
    /// Deliveries, waiting so long.
    Reserve(Reserve, Millis),
    /// Other settings, in all shards.
    Change(Wish),
}

/// How somebody wants settings to be.
#[derive(Clone, Debug)]
pub enum Wish {
    /// As a whole.
    Put(Adjustment),
    /// A topic that is there is paused, or not any more.
    PauseTopic {
        /// Which one.
        name: Name,
        /// Whether it is paused.
        paused: bool,
    },
    /// A queue that is there is paused, or not any more.
    PauseQueue {
        /// Which one.
        name: Name,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// It is to go.
    Delete {
        /// The topic or queue.
        subject: Subject,
        /// Also with all that it holds.
        force: bool,
    },
}

impl Wish {
    /// The topic or queue that it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Wish::Put(adjustment) => adjustment.subject(),
            Wish::PauseTopic { name, .. } => Subject::Topic(name.clone()),
            Wish::PauseQueue { name, .. } => Subject::Queue(name.clone()),
            Wish::Delete { subject, .. } => subject.clone(),
        }
    }

    /// What it makes of settings as they were, if that is what it does.
    pub fn amended(&self, as_it_was: &Adjustment) -> Option<Adjustment> {
        match (self, as_it_was) {
            (Wish::PauseTopic { name, paused }, Adjustment::PutTopic { settings, .. }) => {
                let settings = TopicSettings { paused: *paused, ..(**settings).clone() };
                Some(Adjustment::PutTopic { name: name.clone(), settings: Box::new(settings) })
            }
            (Wish::PauseQueue { name, until }, Adjustment::PutQueue { settings, .. }) => {
                let settings = QueueSettings { paused_until: *until, ..(**settings).clone() };
                Some(Adjustment::PutQueue { name: name.clone(), settings: Box::new(settings) })
            }
            _ => None,
        }
    }
}

impl Demand {
    /// A command, sent at once.
    pub fn command(purpose: Purpose, shard: ShardId, command: Command) -> Demand {
        Demand { purpose, what: What::Command(shard, Box::new(command)), after: 0, tries: 0 }
    }

    /// Other settings, at once.
    pub fn change(purpose: Purpose, wish: Wish) -> Demand {
        Demand { purpose, what: What::Change(wish), after: 0, tries: 0 }
    }

    /// The same, so much later.
    #[must_use]
    pub fn after(mut self, after: Moment) -> Demand {
        self.after = after;
        self
    }
}

/// The shard of a task (FNV-1a over topic and id).
pub fn shard_of(topic: &str, id: &str, shards: u16) -> ShardId {
    let bytes = topic.bytes().chain([0]).chain(id.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    ShardId(((hash >> 32) % u64::from(shards)) as u16)
}
