//! Looking, without changing anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::store::{Bodies, Hardship, ShardId, Store, StoreError};
use punctual_core::view::{self, Listing, TaskView, Wanted};
use punctual_core::{Ahead, Command, Name, Refused, Scope, Timestamp, Unit};
use tokio::sync::oneshot;

use super::Handle;
use crate::error::Error;
use crate::inbox::Inbox;
use crate::listing::{Cursor, TaskPage, list};
use crate::outgoing::Hold;
use crate::stats::{Happened, Stats, Timing};
use crate::watch::Watch;

/// How many rows are looked at for a forecast of some topics.
const COUNTED: usize = 100_000;

/// The slots of a forecast by their beginnings, and where those begin that were not counted, if there are any.
pub type Slots = (Vec<(Timestamp, u64)>, Option<Timestamp>);

impl Handle {
    /// Looks at one task.
    pub async fn get(&self, topic: &Name, id: &Name) -> Result<Option<TaskView>, Error> {
        let (shard, now) = (self.shard_of(topic, id), self.now());
        let (topic, id) = (topic.clone(), id.clone());
        self.counted(self.read(move |store| view::get(store, shard, &topic, &id, now)).await)
    }

    /// The same for who keeps the task in memory for as long as somebody else takes to read it: with the room that it
    /// takes among all answers under way. A long one is refused as overload if there is none.
    pub async fn get_held(&self, topic: &Name, id: &Name) -> Result<Option<(TaskView, Hold)>, Error> {
        let (shard, now) = (self.shard_of(topic, id), self.now());
        let (topic, id) = (topic.clone(), id.clone());
        let look = move |store: &dyn Store| view::get(store, shard, &topic, &id, now);
        self.counted(self.read_held(look, TaskView::written).await)
    }

    /// Reads one thing, and finds room for it where it was read: what finds none is gone before the next is read, however
    /// many have asked.
    pub(super) async fn read_held<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<Option<T>, StoreError> + Send + 'static,
        written: impl FnOnce(&T) -> usize + Send + 'static,
    ) -> Result<Option<(T, Hold)>, Error> {
        let outgoing = Arc::clone(&self.shared.outgoing);
        let read = self.read(move |store| {
            let Some(found) = read(store)? else { return Ok(Ok(None)) };
            Ok(outgoing.hold_one(written(&found)).map(|hold| Some((found, hold))))
        });
        read.await?
    }

    /// Looks at a page of tasks of all shards, in the order of their times or against it; tasks of a key in the
    /// order in which they were scheduled. A page may have fewer tasks than asked for even if there
    /// are more.
    pub async fn list(
        &self,
        listing: Listing,
        from: Option<Cursor>,
        limit: usize,
        bodies: Bodies,
    ) -> Result<TaskPage, Error> {
        self.list_within(&Scope::ALL, listing, from, limit, bodies).await
    }

    /// The same for tasks of topics in a scope.
    pub async fn list_within(
        &self,
        within: &Scope,
        listing: Listing,
        from: Option<Cursor>,
        limit: usize,
        bodies: Bodies,
    ) -> Result<TaskPage, Error> {
        let shards = self.shared.config.shards;
        let cursor = from.unwrap_or_else(|| Cursor::start(&listing, shards));
        if cursor.shards() != usize::from(shards) {
            let message = "this cursor does not belong to this node: start the list again";
            return self.counted(Err(Refused::BadSettings(message.into()).into()));
        }
        let (now, within) = (self.now(), within.clone());
        let look = move |store: &dyn Store| {
            list(store, Wanted { listing: &listing, within: &within, limit, bodies }, &cursor, now)
        };
        self.counted(self.read(look).await)
    }

    /// How many deliveries come due in each of the next slots of time, by the slots' beginnings. The
    /// first slot is the one that is running.
    pub async fn forecast(&self, unit: Unit, slots: usize) -> Result<Vec<(Timestamp, u64)>, Error> {
        self.counted(self.look_ahead(unit, slots).await)
    }

    /// The same for deliveries of topics in a scope. These are counted when somebody asks, up to a bound: slots that were
    /// not counted are left out, and the instant is told at which they begin.
    pub async fn forecast_within(&self, within: &Scope, unit: Unit, slots: usize) -> Result<Slots, Error> {
        if within.is_all() {
            return Ok((self.forecast(unit, slots).await?, None));
        }
        let (shards, now, within) = (self.shared.config.shards, self.now(), within.clone());
        let count = move |store: &dyn Store| {
            let mut ahead = Ahead::new(now, unit, slots);
            for shard in (0..shards).map(ShardId) {
                ahead.count(store, shard, &within, &mut (COUNTED / usize::from(shards)))?;
            }
            Ok(ahead.into_slots())
        };
        self.counted(self.read(count).await)
    }

    async fn look_ahead(&self, unit: Unit, slots: usize) -> Result<Vec<(Timestamp, u64)>, Error> {
        let mut sums: BTreeMap<Timestamp, u64> = BTreeMap::new();
        let forecasts: Vec<Vec<(Timestamp, u64)>> = self.look_all(Command::Forecast { unit, slots }).await?;
        for (slot, count) in forecasts.into_iter().flatten() {
            *sums.entry(slot).or_default() += count;
        }
        Ok(sums.into_iter().take(slots).collect())
    }

    /// Whether the node answers now: it vouches for its data, is not stopping, and all of its shards are up.
    pub fn ready(&self) -> Result<(), Error> {
        self.shared.check()?;
        self.shared.inboxes.iter().try_for_each(Inbox::ready)
    }

    /// What keeps the store from taking new tasks, if anything does. All else goes on.
    pub fn hardship(&self) -> Option<Hardship> {
        self.shared.store.hardship()
    }

    /// Waits until the node has stopped answering for good, and says why: a sync has failed, or a bug was met. It can
    /// only be started again then.
    pub async fn until_broken(&self) -> String {
        self.shared.until_poisoned().await.to_owned()
    }

    /// Watches what happens from now on: each event as soon as it is durable.
    pub fn watch(&self) -> Watch {
        self.shared.watchers.watch()
    }

    /// How the node has been working since it started.
    pub fn stats(&self) -> Stats {
        let waiting_consumers = self.shared.board.lock().waiting.len();
        let inboxes = self.shared.inboxes.iter().map(|inbox| inbox.len()).collect();
        let archive = self.shared.config.archive.as_ref().map(|_| self.shared.archiving.stats());
        self.shared.meter.read(archive, waiting_consumers, inboxes)
    }

    /// How often what has happened to a topic since the node started, or the topic was made.
    pub fn happened(&self, topic: &Name) -> Happened {
        self.happened_to(std::slice::from_ref(topic)).pop().unwrap_or_default()
    }

    /// The same for several topics, in their order.
    pub fn happened_to(&self, topics: &[Name]) -> Vec<Happened> {
        self.shared.meter.happened(topics)
    }

    /// The same for so many of the topics to which most has happened, of those that are meant.
    pub fn busiest(&self, most: usize, is_meant: impl Fn(&Name) -> bool) -> BTreeMap<Name, Happened> {
        self.shared.meter.busiest(most, is_meant)
    }

    /// How long the deliveries of these queues took since the node started, in their order.
    pub fn timings(&self, queues: &[Name]) -> Vec<Timing> {
        self.shared.meter.timings(queues)
    }

    /// Reads from the store on one of the node's reading threads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Error> {
        self.shared.check()?;
        let (sender, receiver) = oneshot::channel();
        // Who does not listen any more does not mind.
        self.shared.readers.push(Box::new(move |store| _ = sender.send(read(store))))?;
        match receiver.await {
            Ok(result) => result.map_err(|error| self.shared.read_failed(&error)),
            Err(_) => Err(self.shared.lost().of_a_look()),
        }
    }
}
