//! Looking, without changing anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::store::{Bodies, Hardship, ShardId, Store, StoreError};
use punctual_core::view::{self, Kept, Listing, TaskView, Wanted};
use punctual_core::{Ahead, Command, Groups, InCommon, Name, Refused, Scope, Sieve, Timestamp, Unit};
use tokio::sync::oneshot;

use super::Handle;
use crate::error::Error;
use crate::inbox::Inbox;
use crate::listing::{Cursor, TaskPage, list};
use crate::outgoing::Hold;
use crate::rounds::EventId;
use crate::watch::Watch;

/// How many rows are looked at for what is counted only when somebody asks.
const COUNTED: usize = 100_000;
/// Up to how many slots ahead the shards are asked what comes due: for so many hours they have it at hand.
const AT_HAND: u64 = 62 * 24;

/// How many rows are read at once to be counted.
const SLICE: usize = 1_024;
/// How many rows a read counts for at least: one that finds little has looked at many.
const LEAST: u64 = 64;

/// How many tasks of a list there are, as far as they were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// So many.
    pub count: u64,
    /// There are, or may be, more than were counted.
    pub is_more: bool,
    /// How many rows of topics in the scope were looked at.
    pub looked_at: u64,
}

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
        self.list_sifted(within, listing, Sieve::ALL, from, limit, bodies).await
    }

    /// The same for those that pass a sieve.
    pub async fn list_sifted(
        &self,
        within: &Scope,
        listing: Listing,
        sieve: Sieve,
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
        let leases = {
            let wanted = Wanted { listing: &listing, within: &within, limit, bodies, sieve: &sieve };
            self.known_leases(wanted, &cursor).await
        };
        let look = move |store: &dyn Store| {
            let wanted = Wanted { listing: &listing, within: &within, limit, bodies, sieve: &sieve };
            list(store, wanted, &cursor, &leases, now)
        };
        self.counted(self.read(look).await)
    }

    /// How many tasks of a list there are, counted up to a number and to how many rows are looked at.
    pub async fn count(&self, within: &Scope, listing: Listing, sieve: Sieve, most: u64) -> Result<Counted, Error> {
        if listing.leases(listing.start(), 0).is_some() {
            return self.count_pages(within, listing, sieve, most).await;
        }
        let (shards, now, within) = (self.shared.config.shards, self.now(), within.clone());
        let count = move |store: &dyn Store| {
            let mut counted = Counted { count: 0, is_more: false, looked_at: 0 };
            let wanted =
                Wanted { listing: &listing, within: &within, limit: SLICE, bodies: Bodies::Without, sieve: &sieve };
            for shard in (0..shards).map(ShardId) {
                let (mut from, mut budget) = (Some(listing.start()), (COUNTED / usize::from(shards)) as u64);
                while let Some(position) = from {
                    if counted.count >= most || budget == 0 {
                        counted.is_more = true;
                        break;
                    }
                    let listed = view::list(store, shard, wanted, position, now)?;
                    budget = budget.saturating_sub(listed.cost.max(LEAST));
                    counted.looked_at += listed.looked_at;
                    counted.count += listed.tasks.len() as u64;
                    from = listed.next;
                }
            }
            counted.is_more |= counted.count > most;
            counted.count = counted.count.min(most);
            Ok(counted)
        };
        self.counted(self.read(count).await)
    }

    /// The same page by page, for what is listed without looking at all that is in between.
    async fn count_pages(&self, within: &Scope, listing: Listing, sieve: Sieve, most: u64) -> Result<Counted, Error> {
        let mut counted = Counted { count: 0, is_more: false, looked_at: 0 };
        let (mut from, mut cost) = (None, 0);
        loop {
            let page = self.list_sifted(within, listing.clone(), sieve.clone(), from, SLICE, Bodies::Without).await?;
            counted.count += page.tasks.len() as u64;
            counted.looked_at += page.looked_at;
            cost += page.cost.max(LEAST);
            from = page.next;
            if from.is_none() || counted.count > most || cost >= COUNTED as u64 {
                break;
            }
        }
        counted.is_more = from.is_some() || counted.count > most;
        counted.count = counted.count.min(most);
        Ok(counted)
    }

    /// How many deliveries come due in each of the next slots of time, by the slots' beginnings. The
    /// first slot is the one that is running.
    pub async fn forecast(&self, unit: Unit, slots: usize) -> Result<Vec<(Timestamp, u64)>, Error> {
        self.counted(self.look_ahead(unit, slots).await)
    }

    /// The same for deliveries of topics in a scope, from a time on. Those of some topics, and those far ahead, are counted
    /// when somebody asks, up to a bound: slots that were not counted are left out, and the instant is told at which they begin.
    pub async fn forecast_within(
        &self,
        within: &Scope,
        from: Timestamp,
        unit: Unit,
        slots: usize,
    ) -> Result<Slots, Error> {
        let ahead = unit.slot(from).saturating_sub(unit.slot(self.now()));
        if within.is_all() && ahead.saturating_add(slots as u64) <= AT_HAND {
            let first = unit.beginning(unit.slot(from));
            let all = self.forecast(unit, slots + ahead as usize).await?;
            return Ok((all.into_iter().skip_while(|(slot, _)| *slot < first).take(slots).collect(), None));
        }
        Ok(self.count_ahead(within, None, from, unit, slots).await?.into_slots())
    }

    /// The same, of one topic or told apart by topic: always counted when somebody asks, up to the same bound.
    pub async fn count_ahead(
        &self,
        within: &Scope,
        topic: Option<&Name>,
        from: Timestamp,
        unit: Unit,
        slots: usize,
    ) -> Result<Ahead, Error> {
        let (shards, from) = (self.shared.config.shards, from.max(self.now()));
        let (within, topic) = (within.clone(), topic.cloned());
        let count = move |store: &dyn Store| {
            let mut ahead = Ahead::new(from, unit, slots);
            for shard in (0..shards).map(ShardId) {
                ahead.count(store, shard, (&within, topic.as_ref()), COUNTED / usize::from(shards))?;
            }
            Ok(ahead)
        };
        self.counted(self.read(count).await)
    }

    /// Dead letters of topics in a scope, by what they have in common. They are counted when somebody asks, the latest
    /// first, up to the same bound.
    pub async fn dead_groups(&self, within: &Scope, of: Kept, by: InCommon) -> Result<Groups, Error> {
        let (shards, now, within) = (self.shared.config.shards, self.now(), within.clone());
        let count = move |store: &dyn Store| {
            let mut groups = Groups::new(now, by, of);
            for shard in (0..shards).map(ShardId) {
                groups.count(store, shard, &within, COUNTED / usize::from(shards))?;
            }
            Ok(groups)
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

    /// The level of what is stored that is in force for all nodes.
    pub fn level(&self) -> u32 {
        self.shared.level.in_force()
    }

    /// Watches what happens from now on, on all nodes: each event as soon as it is durable.
    pub fn watch(&self) -> Watch {
        self.shared.watch(None)
    }

    /// The same for who has watched this node before, up to an event: with what came after it. What is not kept any more is
    /// told as missed: the latest 1,024 rounds are, 16,384 events at most, and for about a minute if nobody watches.
    pub fn watch_after(&self, id: EventId) -> Watch {
        self.shared.watch(Some(id))
    }

    /// Reads from the store on one of the node's reading threads.
    pub(crate) async fn read<T: Send + 'static>(
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
