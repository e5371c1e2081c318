//! What can be listed: which rows a list is of, in which direction it goes, and how they are read.

use crate::answer::Standing;
use crate::dead_groups::likeness;
use crate::line::Leases;
use crate::name::Name;
use crate::state::{Ending, Reason};
use crate::store::{
    Bodies, Find, FindBack, Look, Page, Position, Row, Scan, ScanBack, ShardId, Store, StoreError, Table,
};
use crate::sweep::TimeRange;
use crate::time::Timestamp;
use crate::view::TaskView;

/// What to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// All tasks with this key in one table, in the order in which they were scheduled.
    Key {
        /// The key.
        key: Name,
        /// Unfinished, dead or finished ones.
        table: Table,
    },
    /// Tasks and deliveries that are not finished, by when they wake.
    Live {
        /// Only of this topic.
        topic: Option<Name>,
        /// Only in this state.
        state: Option<LiveState>,
        /// Only those that wake in this time.
        wakes: TimeRange,
        /// Whether those that wake last come first.
        latest_first: bool,
    },
    /// Dead letters or finished tasks.
    Kept(Kept),
}

/// What is kept of tasks after their life, from either end: dead letters by when they died, or finished tasks by when
/// they finished. Those of one key stand in the order in which they were scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Dead letters, or finished tasks.
    pub table: Table,
    /// Whether the latest come first.
    pub latest_first: bool,
    /// Only of this topic.
    pub topic: Option<Name>,
    /// Only of this queue.
    pub queue: Option<Name>,
    /// Only with this key.
    pub key: Option<Name>,
    /// Only those that died or finished in this time.
    pub range: TimeRange,
    /// Only those that died of this.
    pub reason: Option<Reason>,
    /// Only those with notes like this; with an empty one, those without a note.
    pub note: Option<String>,
    /// Only those that finished so.
    pub ending: Option<Ending>,
}

impl Kept {
    /// All dead letters, the earliest first.
    pub fn dead() -> Kept {
        Kept::all_of(Table::Dead)
    }

    /// All finished tasks, the earliest first.
    pub fn history() -> Kept {
        Kept::all_of(Table::History)
    }

    fn all_of(table: Table) -> Kept {
        Kept {
            table,
            latest_first: false,
            topic: None,
            queue: None,
            key: None,
            range: TimeRange::ALL,
            reason: None,
            note: None,
            ending: None,
        }
    }

    /// Whether many rows may have to be looked at to find a few.
    fn is_narrow(&self) -> bool {
        let by_name = self.queue.is_some() || self.key.is_some();
        by_name || self.reason.is_some() || self.note.is_some() || self.ending.is_some()
    }

    fn fits(&self, row: &Row, task: &TaskView) -> bool {
        let ending = match task.delivery.standing {
            Standing::Finished { ending, .. } => Some(ending),
            _ => None,
        };
        let death = task.delivery.death.as_ref();
        let reason = death.map(|death| death.reason);
        let note = || death.and_then(|death| death.note.as_deref()).unwrap_or_default();
        let is = |wanted: &Option<Name>, name: Option<&Name>| wanted.is_none() || wanted.as_ref() == name;
        is(&self.topic, Some(&task.topic))
            && is(&self.queue, task.delivery.queue.as_ref())
            && (self.range.from..self.range.until).contains(&row.at)
            && (self.reason.is_none() || self.reason == reason)
            && self.note.as_ref().is_none_or(|wanted| likeness(note()) == *wanted)
            && (self.ending.is_none() || self.ending == ending)
    }
}

/// The states of what is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveState {
    /// Waiting for its time.
    Scheduled,
    /// Waiting for a consumer.
    Ready,
    /// With a consumer.
    Leased,
    /// Broadcast to several queues.
    Spread,
}

impl LiveState {
    fn is_that_of(self, standing: &Standing) -> bool {
        matches!(
            (self, standing),
            (LiveState::Scheduled, Standing::Scheduled { .. })
                | (LiveState::Ready, Standing::Ready { .. })
                | (LiveState::Leased, Standing::Leased { .. })
                | (LiveState::Spread, Standing::Spread { .. })
        )
    }
}

/// A page of a group, as lists know positions that go by numbers.
fn by_number(page: Page<u64>) -> Page<Position> {
    let next = page.next.map(|seq| Position { at: Timestamp::ZERO, seq });
    Page { rows: page.rows, next }
}

impl Listing {
    /// Whether many rows may have to be looked at to find a few.
    pub(crate) fn is_narrow(&self) -> bool {
        match self {
            Listing::Live { state, .. } => state.is_some(),
            Listing::Key { .. } => true,
            Listing::Kept(kept) => kept.is_narrow(),
        }
    }

    /// Whether it goes by the numbers of a key's rows, and not by time.
    pub fn goes_by_number(&self) -> bool {
        match self {
            Listing::Key { .. } => true,
            Listing::Kept(kept) => kept.key.is_some(),
            Listing::Live { .. } => false,
        }
    }

    /// Whether the latest come first.
    pub fn is_backward(&self) -> bool {
        matches!(self, Listing::Live { latest_first: true, .. } | Listing::Kept(Kept { latest_first: true, .. }))
    }

    /// How its shards are asked for their part of it from here on, if they have that at hand: what is with consumers.
    pub fn leases(&self, from: Position, limit: usize) -> Option<Leases> {
        match *self {
            Listing::Live { state: Some(LiveState::Leased), wakes, latest_first, .. } => {
                Some(Leases { from, ends: wakes, latest_first, limit })
            }
            _ => None,
        }
    }

    /// Where a list begins.
    pub fn start(&self) -> Position {
        if self.is_backward() { Position { at: Timestamp::NEVER, seq: u64::MAX } } else { Position::START }
    }

    pub(crate) fn read(
        &self,
        store: &dyn Store,
        shard: ShardId,
        from: Position,
        limit: usize,
        bodies: Bodies,
    ) -> Result<Page<Position>, StoreError> {
        let (table, key, topic, range) = match self {
            Listing::Key { key, table } => (*table, Some(key), None, TimeRange::ALL),
            Listing::Live { topic, wakes, .. } => (Table::Live, None, topic.as_ref(), *wakes),
            Listing::Kept(Kept { table, topic, key, range, .. }) => (*table, key.as_ref(), topic.as_ref(), *range),
        };
        match (key.cloned(), topic.cloned(), self.is_backward()) {
            (Some(group), _, false) => {
                store.find(shard, &Find { table, group, from_seq: from.seq, limit, bodies }).map(by_number)
            }
            (Some(group), _, true) => {
                store.find_back(shard, &FindBack { table, group, before_seq: from.seq, limit, bodies }).map(by_number)
            }
            (None, topic, false) => {
                let from = from.max(Position::start_of(range.from));
                store.scan(shard, &Scan { table, from, until: range.until, topic, limit, bodies })
            }
            (None, topic, true) => {
                let before = from.min(Position::start_of(range.until));
                store.scan_back(shard, &ScanBack { table, before, from: range.from, topic, limit, bodies })
            }
        }
    }

    /// Where to go on after a row: backward that is what to go on before, which is where the row stands.
    pub fn after(&self, row: &Row) -> Position {
        let place = self.at(row.position());
        if self.is_backward() { place } else { place.next() }
    }

    /// Where to go on so that the row at this position comes next.
    pub fn with(&self, position: Position) -> Position {
        let place = self.at(position);
        if self.is_backward() { place.next() } else { place }
    }

    /// A position as the list knows it: without a time where it goes by numbers.
    fn at(&self, position: Position) -> Position {
        if self.goes_by_number() { Position { at: Timestamp::ZERO, ..position } } else { position }
    }

    pub(crate) fn fits(&self, row: &Row, task: &TaskView) -> bool {
        match self {
            Listing::Key { .. } => row.key.queue().is_empty(),
            Listing::Live { topic, state, .. } => {
                topic.as_ref().is_none_or(|topic| *topic == task.topic)
                    && state.is_none_or(|state| state.is_that_of(&task.delivery.standing))
            }
            Listing::Kept(kept) => kept.fits(row, task),
        }
    }
}
