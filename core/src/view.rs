//! Looking at tasks without changing them.
//!
//! Whatever was answered to anybody is in the store, so looking needs no shard: it reads what was
//! committed, and holds nobody up.

use bytes::Bytes;

use crate::answer::{Lease, Standing};
use crate::attempt::Attempt;
use crate::command::{RowId, TimeRange};
use crate::name::Name;
use crate::scope::Scope;
use crate::settings::Retry;
use crate::state::{Death, Ending, Past, Phase, Reason, State};
use crate::store::{
    Bodies, Find, FindBack, Key, Look, Page, Position, Row, Scan, ScanBack, ShardId, Store, StoreError, Table,
};
use crate::task::{Content, Form, Headers, unpack};
use crate::time::{Millis, Timestamp};
use crate::written::written;

/// How many bytes of bodies a page has at most as they are written, unless its first has more.
pub const PAGE_BYTES: usize = 8 << 20;

/// How many bodies are read together while it is not known how long they are.
const FIRST_BODIES: usize = 8;

/// How many rows are looked at for one page, so that a filter that fits little cannot hold up the store.
const LOOK: usize = 1_024;

/// All that is known of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Its topic.
    pub topic: Name,
    /// Its id.
    pub id: Name,
    /// The number of its row.
    pub number: u64,
    /// Its key.
    pub key: Option<Name>,
    /// What is (or was) handed over; empty if bodies were not asked for.
    pub body: Bytes,
    /// How the body was handed in; bytes if bodies were not asked for.
    pub form: Form,
    /// What goes along with the body; empty if bodies were not asked for.
    pub headers: Headers,
    /// What bindings look at.
    pub routing_key: Option<Name>,
    /// How long after its due time it is worth handing over.
    pub ttl: Option<Millis>,
    /// What happens when it fails, if that differs from the queue's settings.
    pub retry: Option<Retry>,
    /// How long a consumer may work on it if it does not say, if that differs from the queue's settings.
    pub lease_time: Option<Millis>,
    /// How long a lease on it lasts at most, if that is less than the queue allows.
    pub max_lease: Option<Millis>,
    /// When it was scheduled.
    pub scheduled_at: Timestamp,
    /// When it is or was due.
    pub due: Timestamp,
    /// Where it stands.
    pub delivery: DeliveryView,
    /// Where its open deliveries stand, if it was broadcast. Empty in lists.
    pub parts: Vec<DeliveryView>,
    /// Where it stands in its table, for the page after it.
    pub position: Position,
}

/// All that is known of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryView {
    /// The number of its row: the task's, or its own if the task was broadcast.
    pub number: u64,
    /// The queue, once it was handed out or given up there.
    pub queue: Option<Name>,
    /// Where it stands.
    pub standing: Standing,
    /// Under which its consumer works on it, if it is with one.
    pub lease: Option<Lease>,
    /// Lower comes first.
    pub priority: u32,
    /// How often it was handed out.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
    /// What happened before: attempts and failures that are not among those, and how it came back.
    pub past: Past,
    /// The delay that it was last given, by whoever scheduled it or gave it back.
    pub delay: Millis,
    /// What it died of.
    pub death: Option<Death>,
    /// The first and the last of its attempts that did not end in the work being done, oldest first.
    pub log: Vec<Attempt>,
}

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
            ending: None,
        }
    }

    /// Whether many rows may have to be looked at to find a few.
    fn is_narrow(&self) -> bool {
        self.queue.is_some() || self.key.is_some() || self.reason.is_some() || self.ending.is_some()
    }

    fn read(
        &self,
        store: &dyn Store,
        shard: ShardId,
        from: Position,
        limit: usize,
        bodies: Bodies,
    ) -> Result<Page<Position>, StoreError> {
        let Kept { table, topic, range, .. } = self.clone();
        match (self.key.clone(), self.latest_first) {
            (Some(group), false) => {
                store.find(shard, &Find { table, group, from_seq: from.seq, limit, bodies }).map(by_number)
            }
            (Some(group), true) => {
                store.find_back(shard, &FindBack { table, group, before_seq: from.seq, limit, bodies }).map(by_number)
            }
            (None, false) => {
                let from = from.max(Position::start_of(range.from));
                store.scan(shard, &Scan { table, from, until: range.until, topic, limit, bodies })
            }
            (None, true) => {
                let before = from.min(Position::start_of(range.until));
                store.scan_back(shard, &ScanBack { table, before, from: range.from, topic, limit, bodies })
            }
        }
    }

    fn fits(&self, row: &Row, task: &TaskView) -> bool {
        let ending = match task.delivery.standing {
            Standing::Finished { ending, .. } => Some(ending),
            _ => None,
        };
        let reason = task.delivery.death.as_ref().map(|death| death.reason);
        let is = |wanted: &Option<Name>, name: Option<&Name>| wanted.is_none() || wanted.as_ref() == name;
        is(&self.topic, Some(&task.topic))
            && is(&self.queue, task.delivery.queue.as_ref())
            && (self.range.from..self.range.until).contains(&row.at)
            && (self.reason.is_none() || self.reason == reason)
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

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The tasks, maybe fewer than asked for even if there are more.
    pub tasks: Vec<TaskView>,
    /// Where to go on; `None` if that was all.
    pub next: Option<Position>,
}

/// Looks at one task.
pub fn get(
    store: &dyn Store,
    shard: ShardId,
    topic: &Name,
    id: &Name,
    now: Timestamp,
) -> Result<Option<TaskView>, StoreError> {
    let key = Key::task(topic, id);
    let rows = store.get(shard, std::slice::from_ref(&key), Bodies::With)?;
    let Some(row) = rows.into_iter().next().flatten() else { return Ok(None) };
    let mut task = TaskView::of(&row, now);
    if let Phase::Spread(parts) = &State::decode(&row.state).phase {
        let open = parts.iter().filter(|part| part.finished.is_none());
        let keys: Vec<Key> = open.map(|part| key.in_queue(&part.queue)).collect();
        let rows = store.get(shard, &keys, Bodies::Without)?;
        task.parts =
            rows.into_iter().flatten().map(|row| DeliveryView::of(&row, &State::decode(&row.state), now)).collect();
    }
    Ok(Some(task))
}

/// One row, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowView {
    /// Which row.
    pub row: RowId,
    /// The task, or one of several deliveries of it: then the delivery is that one.
    pub task: TaskView,
}

/// Looks at the rows with these numbers: tasks, and deliveries of those that were broadcast.
pub fn numbered(
    store: &dyn Store,
    shard: ShardId,
    numbers: &[u64],
    bodies: Bodies,
    now: Timestamp,
) -> Result<Vec<Option<RowView>>, StoreError> {
    let mut rows = store.numbered(shard, numbers, bodies)?;
    if bodies == Bodies::With {
        lend_bodies(store, shard, &mut rows)?;
    }
    let view = |row: Row| RowView { task: TaskView::of(&row, now), row: RowId { number: row.seq, key: row.key } };
    Ok(rows.into_iter().map(|row| row.map(view)).collect())
}

/// A delivery of a task that was broadcast has no body of its own: it gets the task's.
fn lend_bodies(store: &dyn Store, shard: ShardId, rows: &mut [Option<Row>]) -> Result<(), StoreError> {
    let parts: Vec<&mut Row> = rows.iter_mut().flatten().filter(|row| !row.key.queue().is_empty()).collect();
    if parts.is_empty() {
        return Ok(());
    }
    let tasks: Vec<Key> = parts.iter().map(|row| Key::new(row.key.topic(), row.key.id(), "")).collect();
    for (part, task) in parts.into_iter().zip(store.get(shard, &tasks, Bodies::With)?) {
        part.body = task.map(|task| task.body).unwrap_or_default();
    }
    Ok(())
}

/// What a page is to hold.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What to list.
    pub listing: &'a Listing,
    /// Only of these topics.
    pub within: &'a Scope,
    /// At most so many tasks.
    pub limit: usize,
    /// Whether bodies are wanted.
    pub bodies: Bodies,
}

/// Looks at a page of tasks from a position on; of a list that goes backward, before it. With bodies it ends before they
/// are written with more than [`PAGE_BYTES`] together, unless the first of them is.
pub fn list(
    store: &dyn Store,
    shard: ShardId,
    wanted: Wanted<'_>,
    from: Position,
    now: Timestamp,
) -> Result<Listed, StoreError> {
    let Wanted { listing, within, limit, bodies } = wanted;
    let limit = limit.clamp(1, LOOK);
    let look = if listing.is_narrow() || !within.is_all() { LOOK } else { limit };
    let Page { rows, mut next } = listing.read(store, shard, from, look, Bodies::Without)?;
    let mut tasks = Vec::new();
    for row in &rows {
        if tasks.len() == limit {
            next = Some(listing.after(tasks.last().map_or(row, |(row, _)| *row)));
            break;
        }
        if !within.fits(row.key.topic()) {
            continue;
        }
        let task = TaskView::of(row, now);
        if listing.fits(row, &task) {
            tasks.push((row, task));
        }
    }
    let (rows, tasks): (Vec<&Row>, Vec<TaskView>) = tasks.into_iter().unzip();
    let mut listed = Listed { tasks, next };
    if bodies == Bodies::With {
        let fitting = listed.fetch_bodies(store, shard, &rows, now)?;
        if fitting < rows.len() {
            listed.tasks.truncate(fitting);
            listed.next = Some(listing.after(rows[fitting - 1]));
        }
    }
    Ok(listed)
}

impl Listed {
    /// Adds the bodies of the tasks as long as there is room; says for how many there was. At least one has room.
    fn fetch_bodies(
        &mut self,
        store: &dyn Store,
        shard: ShardId,
        rows: &[&Row],
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let (mut fetched, mut length) = (0, 0);
        while fetched < rows.len() {
            // As many together as have room if they are as long as those before.
            let room = PAGE_BYTES.saturating_sub(length) / (length / fetched.max(1)).max(1);
            let together = if fetched == 0 { FIRST_BODIES } else { room.max(1) };
            let keys: Vec<Key> = rows[fetched..].iter().take(together).map(|row| row.key.clone()).collect();
            for found in store.get(shard, &keys, Bodies::With)? {
                // It may be gone since, or another one in its place.
                if let Some(found) = found.filter(|found| found.seq == rows[fetched].seq) {
                    let bytes = written(&found.body);
                    if fetched > 0 && length + bytes > PAGE_BYTES {
                        return Ok(fetched);
                    }
                    length += bytes;
                    let with_body = TaskView::of(&found, now);
                    let task = &mut self.tasks[fetched];
                    (task.body, task.form, task.headers) = (with_body.body, with_body.form, with_body.headers);
                }
                fetched += 1;
            }
        }
        Ok(fetched)
    }
}

/// A page of a group, as lists know positions that go by numbers.
fn by_number(page: Page<u64>) -> Page<Position> {
    let next = page.next.map(|seq| Position { at: Timestamp::ZERO, seq });
    Page { rows: page.rows, next }
}

impl Listing {
    /// Whether many rows may have to be looked at to find a few.
    fn is_narrow(&self) -> bool {
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
        matches!(self, Listing::Kept(Kept { latest_first: true, .. }))
    }

    /// Where a list begins.
    pub fn start(&self) -> Position {
        if self.is_backward() { Position { at: Timestamp::NEVER, seq: u64::MAX } } else { Position::START }
    }

    fn read(
        &self,
        store: &dyn Store,
        shard: ShardId,
        from: Position,
        limit: usize,
        bodies: Bodies,
    ) -> Result<Page<Position>, StoreError> {
        match self {
            Listing::Key { key, table } => {
                let find = Find { table: *table, group: key.clone(), from_seq: from.seq, limit, bodies };
                store.find(shard, &find).map(by_number)
            }
            Listing::Live { topic, wakes, .. } => {
                let (from, until) = (from.max(Position::start_of(wakes.from)), wakes.until);
                store.scan(shard, &Scan { table: Table::Live, from, until, topic: topic.clone(), limit, bodies })
            }
            Listing::Kept(kept) => kept.read(store, shard, from, limit, bodies),
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

    fn fits(&self, row: &Row, task: &TaskView) -> bool {
        match self {
            Listing::Key { .. } => row.key.queue().is_empty(),
            Listing::Live { state: Some(state), .. } => matches!(
                (state, &task.delivery.standing),
                (LiveState::Scheduled, Standing::Scheduled { .. })
                    | (LiveState::Ready, Standing::Ready { .. })
                    | (LiveState::Leased, Standing::Leased { .. })
                    | (LiveState::Spread, Standing::Spread { .. })
            ),
            Listing::Live { .. } => true,
            Listing::Kept(kept) => kept.fits(row, task),
        }
    }
}

impl TaskView {
    /// What a row says of its task.
    pub fn of(row: &Row, now: Timestamp) -> TaskView {
        let state = State::decode(&row.state);
        let Content { form, headers, body } = if row.body.is_empty() { Content::default() } else { unpack(&row.body) };
        TaskView {
            topic: Name::stored(row.key.topic()),
            id: Name::stored(row.key.id()),
            number: row.seq,
            key: row.group.clone(),
            body,
            form,
            headers,
            delivery: DeliveryView::of(row, &state, now),
            routing_key: state.routing_key,
            ttl: state.ttl,
            retry: state.retry,
            lease_time: state.lease,
            max_lease: state.max_lease,
            scheduled_at: state.scheduled_at,
            due: state.due,
            parts: Vec::new(),
            position: row.position(),
        }
    }
}

impl DeliveryView {
    fn of(row: &Row, state: &State, now: Timestamp) -> DeliveryView {
        let death = match &state.phase {
            Phase::Dead(death) | Phase::Forwarding { death, .. } => Some(death.clone()),
            _ => None,
        };
        let lease = match &state.phase {
            Phase::Leased { token, .. } => Some(Lease { key: row.key.clone(), token: *token }),
            _ => None,
        };
        DeliveryView {
            number: row.seq,
            queue: state.queue.clone(),
            standing: Standing::of(row.table, row.at, state, now),
            lease,
            priority: state.priority,
            attempts: state.attempts,
            failures: state.failures,
            past: state.past.as_deref().copied().unwrap_or_default(),
            delay: state.delay(),
            death,
            log: state.log.as_ref().map(|log| log.attempts().to_vec()).unwrap_or_default(),
        }
    }
}

/// The settings of all topics and queues, as one shard has stored them.
pub use crate::shard::{counted_in, noted_shards, settings_of};
