//! Tallies: counts that are kept beside the rows and change with them, never counted by scanning.

use crate::name::Name;

/// What is counted. The numbers are stored: they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TallyKind {
    /// By topic: deliveries that wait for their time or for a consumer.
    Waiting = 1,
    /// By topic: deliveries that are with a consumer.
    TopicLeased = 2,
    /// By queue: deliveries that are with a consumer.
    QueueLeased = 3,
    /// By topic: dead letters.
    TopicDead = 4,
    /// By queue: dead letters.
    QueueDead = 5,
    /// By topic: finished tasks.
    History = 6,
    /// By day since 1970: deliveries that come due then.
    DueDay = 7,
    /// By minute since 1970: deliveries that come due then, as far as minutes are counted.
    DueMinute = 8,
}

impl TallyKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [TallyKind; 8] = [
        TallyKind::Waiting,
        TallyKind::TopicLeased,
        TallyKind::QueueLeased,
        TallyKind::TopicDead,
        TallyKind::QueueDead,
        TallyKind::History,
        TallyKind::DueDay,
        TallyKind::DueMinute,
    ];

    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<TallyKind> {
        TallyKind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// The name of a count: its kind and what of that kind, a name or a slot of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tally {
    /// What is counted.
    pub kind: TallyKind,
    /// The topic or queue, for the kinds that count by one.
    pub name: Option<Name>,
    /// The day or minute, for the kinds that count by time; else zero.
    pub slot: u64,
}

impl Tally {
    /// The count of this kind for a topic or queue.
    pub fn named(kind: TallyKind, name: &Name) -> Tally {
        Tally { kind, name: Some(name.clone()), slot: 0 }
    }

    /// The count of this kind for a slot of time.
    pub fn slot(kind: TallyKind, slot: u64) -> Tally {
        Tally { kind, name: None, slot }
    }
}
