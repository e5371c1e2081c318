//! Looking at tasks without changing them.
//!
//! Whatever was answered to anybody is in the store, so looking needs no shard: it reads what was
//! committed, and holds nobody up.

use bytes::Bytes;

use crate::answer::{Lease, Standing};
use crate::attempt::Attempt;
use crate::command::RowId;
use crate::name::Name;
use crate::scope::Scope;
use crate::settings::Retry;
use crate::sieve::Sieve;
use crate::state::{Death, Past, Phase, State};
use crate::store::{Bodies, Key, Look, Page, Position, Row, ShardId, Store, StoreError};
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

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The tasks, maybe fewer than asked for even if there are more.
    pub tasks: Vec<TaskView>,
    /// Where to go on; `None` if that was all.
    pub next: Option<Position>,
    /// How many rows of topics in the scope were looked at.
    pub looked_at: u64,
    /// How many rows were read for that, whosever they are. Nobody is told who may not see them all.
    pub cost: u64,
}

/// Looks at one task.
pub fn get(
    store: &dyn Store,
    shard: ShardId,
    topic: &Name,
    id: &Name,
    now: Timestamp,
) -> Result<Option<TaskView>, StoreError> {
    look_at(store, shard, &Key::task(topic, id), Bodies::With, now)
}

/// The same without its body.
pub fn without_body(
    store: &dyn Store,
    shard: ShardId,
    topic: &Name,
    id: &Name,
    now: Timestamp,
) -> Result<Option<TaskView>, StoreError> {
    look_at(store, shard, &Key::task(topic, id), Bodies::Without, now)
}

fn look_at(
    store: &dyn Store,
    shard: ShardId,
    key: &Key,
    bodies: Bodies,
    now: Timestamp,
) -> Result<Option<TaskView>, StoreError> {
    let rows = store.get(shard, std::slice::from_ref(key), bodies)?;
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

/// Looks at one row, without its body.
pub fn row(store: &dyn Store, shard: ShardId, key: &Key, now: Timestamp) -> Result<Option<RowView>, StoreError> {
    let found = store.get(shard, std::slice::from_ref(key), Bodies::Without)?.pop().flatten();
    Ok(found.map(|row| RowView::of(row, now)))
}

/// Looks at the tasks with these keys, as far as they are there, without their bodies.
pub fn tasks(store: &dyn Store, shard: ShardId, keys: &[Key], now: Timestamp) -> Result<Vec<TaskView>, StoreError> {
    let mut found = Vec::new();
    for keys in keys.chunks(LOOK) {
        let rows = store.get(shard, keys, Bodies::Without)?;
        found.extend(rows.iter().flatten().map(|row| TaskView::of(row, now)));
    }
    Ok(found)
}

impl RowView {
    fn of(row: Row, now: Timestamp) -> RowView {
        RowView { task: TaskView::of(&row, now), row: RowId { number: row.seq, key: row.key } }
    }
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
    Ok(rows.into_iter().map(|row| row.map(|row| RowView::of(row, now))).collect())
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
    /// Only what passes this.
    pub sieve: &'a Sieve,
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
    let page = wanted.listing.read(store, shard, from, wanted.look(wanted.listing.is_narrow()), Bodies::Without)?;
    wanted.pick(store, shard, page, now)
}

/// The same of what is with consumers, where its shard says that it stands: nothing else is looked at. `limit` is how many the
/// shard was asked for.
pub fn leased(
    store: &dyn Store,
    shard: ShardId,
    wanted: Wanted<'_>,
    (positions, limit): (&[Position], usize),
    now: Timestamp,
) -> Result<Listed, StoreError> {
    let numbers: Vec<u64> = positions.iter().map(|position| position.seq).collect();
    let found = positions.iter().zip(store.numbered(shard, &numbers, Bodies::Without)?);
    // A lease that is being extended may stand elsewhere in the store for a moment: it is listed once all the same.
    let rows = found.filter_map(|(position, row)| Some(Row { at: position.at, ..row? })).collect();
    let last = positions.last().filter(|_| positions.len() >= limit);
    let next = last.map(|last| if wanted.listing.is_backward() { *last } else { last.next() });
    wanted.pick(store, shard, Page { rows, next }, now)
}

impl Wanted<'_> {
    /// How many rows are looked at together: more than are wanted, if many of them may not be meant.
    fn look(&self, is_narrow: bool) -> usize {
        let is_narrow = is_narrow || !self.within.is_all() || !self.sieve.is_all();
        if is_narrow { LOOK } else { self.limit.clamp(1, LOOK) }
    }

    /// How many of those that are with consumers a shard is asked for.
    pub fn look_at_leases(&self) -> usize {
        self.look(matches!(self.listing, Listing::Live { topic: Some(_), .. }))
    }

    /// What is meant of these rows.
    fn pick(
        &self,
        store: &dyn Store,
        shard: ShardId,
        page: Page<Position>,
        now: Timestamp,
    ) -> Result<Listed, StoreError> {
        let Wanted { listing, within, limit, bodies, sieve } = *self;
        let limit = limit.clamp(1, LOOK);
        let Page { rows, mut next } = page;
        let (mut tasks, mut looked_at, mut cost) = (Vec::new(), 0, 0);
        for row in &rows {
            if tasks.len() == limit {
                next = Some(listing.after(tasks.last().map_or(row, |(row, _)| *row)));
                break;
            }
            cost += 1;
            if !within.fits(row.key.topic()) {
                continue;
            }
            looked_at += 1;
            let task = TaskView::of(row, now);
            if listing.fits(row, &task) && sieve.fits(&task) {
                tasks.push((row, task));
            }
        }
        let (rows, tasks): (Vec<&Row>, Vec<TaskView>) = tasks.into_iter().unzip();
        let mut listed = Listed { tasks, next, looked_at, cost };
        if bodies == Bodies::With {
            let fitting = listed.fetch_bodies(store, shard, &rows, now)?;
            if fitting < rows.len() {
                listed.tasks.truncate(fitting);
                listed.next = Some(listing.after(rows[fitting - 1]));
            }
        }
        Ok(listed)
    }
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

pub use crate::listing::{Kept, Listing, LiveState};
/// The settings of all topics and queues, as one shard has stored them.
pub use crate::shard::{counted_in, noted_shards, settings_of};
