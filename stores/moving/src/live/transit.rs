//! The store that a server works on, wherever its shards are.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;

use punctual_core::Millis;
use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Outdated, Refusal, Roll, Room, ShardId, Store,
    StoreError, Tenure, Terms, Want,
};

use super::crossing::Crossing;
use super::tracking::Tracked;
use crate::error::MoveError;
use crate::marks;

/// A store that can be moved into another one while it is in use.
pub struct Transit {
    pub(super) home: Arc<dyn Store>,
    pub(super) name: String,
    way: RwLock<Way>,
    /// What the node said last.
    pub(super) word: Mutex<Option<Beat>>,
    /// Held by commits while they last, so that whoever begins to track a shard knows that none is under way that is
    /// not noted.
    tracked: RwLock<Option<Arc<Tracked>>>,
    /// Held while an entry of the cluster is written, and while all of them go over.
    pub(super) entries: Mutex<()>,
    /// Whether what is copied ahead is to end early.
    pub(super) halted: AtomicBool,
}

/// Where the shards are.
#[derive(Clone)]
pub(super) enum Way {
    /// All where they were.
    Home,
    /// Some here, some there.
    Crossing(Arc<Crossing>),
    /// All over there.
    Over(Arc<dyn Store>),
}

impl Transit {
    /// A store that is not being moved. The name is what people call it, without secrets.
    pub fn new(home: Arc<dyn Store>, name: &str) -> Transit {
        Transit {
            home,
            name: name.to_owned(),
            way: RwLock::new(Way::Home),
            word: Mutex::default(),
            tracked: RwLock::default(),
            entries: Mutex::default(),
            halted: AtomicBool::new(false),
        }
    }

    /// Ends what is copied ahead early, until it may go on.
    pub fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// Lets what was halted go on.
    pub fn go_on(&self) {
        self.halted.store(false, Ordering::Relaxed);
    }

    /// Whether it was halted.
    pub fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed)
    }

    /// The shards that have crossed; nothing if it is not being moved.
    pub fn crossed(&self) -> Option<BTreeSet<ShardId>> {
        match self.way() {
            Way::Crossing(crossing) => Some(crossing.crossed()),
            Way::Home | Way::Over(_) => None,
        }
    }

    /// Whether all of it is in the other store.
    pub fn is_over(&self) -> bool {
        matches!(self.way(), Way::Over(_))
    }

    pub(super) fn crossing(&self) -> Result<Arc<Crossing>, MoveError> {
        match self.way() {
            Way::Crossing(crossing) => Ok(crossing),
            Way::Home | Way::Over(_) => Err(self.not_whole("it is not being moved")),
        }
    }

    /// Notes which rows of a shard change from now on. Commits that are under way are waited for.
    pub(super) fn track(&self, shard: ShardId) -> Arc<Tracked> {
        let tracked = Arc::new(Tracked::new(shard));
        *self.tracked.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&tracked));
        tracked
    }

    pub(super) fn track_nothing(&self) {
        *self.tracked.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes another way from now on.
    pub(super) fn turn(&self, way: Way) {
        *self.way.write().unwrap_or_else(PoisonError::into_inner) = way;
    }

    pub(super) fn not_whole(&self, why: &str) -> MoveError {
        MoveError::NotWhole { place: self.name.clone(), why: why.to_owned() }
    }

    pub(super) fn way(&self) -> Way {
        self.way.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a shard is.
    fn place(&self, shard: ShardId) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self.way() {
            Way::Home => Arc::clone(&self.home),
            Way::Crossing(crossing) if crossing.is_there(shard)? => Arc::clone(&crossing.to),
            Way::Crossing(_) => Arc::clone(&self.home),
            Way::Over(to) => to,
        })
    }

    /// Where the entries of the cluster are.
    fn shared(&self) -> Arc<dyn Store> {
        match self.way() {
            Way::Home | Way::Crossing(_) => Arc::clone(&self.home),
            Way::Over(to) => to,
        }
    }

    /// Does something for each of several things, in the one store or in both at once, and puts the answers together in
    /// the order of the things.
    fn apart<T: Send, A: Send>(
        &self,
        things: Vec<T>,
        shard: impl Fn(&T) -> ShardId,
        ask: impl Fn(&dyn Store, Vec<T>) -> Result<Vec<A>, StoreError> + Sync,
    ) -> Result<Vec<A>, StoreError> {
        let crossing = match self.way() {
            Way::Home => return ask(&*self.home, things),
            Way::Over(to) => return ask(&*to, things),
            Way::Crossing(crossing) => crossing,
        };
        let sides: Vec<bool> =
            things.iter().map(|thing| crossing.is_there(shard(thing))).collect::<Result<_, StoreError>>()?;
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for (thing, is_there) in things.into_iter().zip(&sides) {
            if *is_there { there.push(thing) } else { here.push(thing) }
        }
        let (here, there) = match (here.is_empty(), there.is_empty()) {
            (_, true) => (ask(&*crossing.home, here)?, Vec::new()),
            (true, false) => (Vec::new(), ask(&*crossing.to, there)?),
            (false, false) => both(|| ask(&*crossing.home, here), || ask(&*crossing.to, there))?,
        };
        let (mut here, mut there) = (here.into_iter(), there.into_iter());
        let next = |is_there: bool| if is_there { there.next() } else { here.next() };
        Ok(sides.into_iter().map(next).map(|answer| answer.expect("a store answers everything")).collect())
    }

    /// Beats in both stores: what is there needs it there.
    fn beat_both(&self, crossing: &Crossing, beat: &Beat) -> Result<Roll, StoreError> {
        let crossed = crossing.crossed();
        if crossed.is_empty() {
            return self.home.beat(beat);
        }
        let (mut roll, there) = both(|| self.home.beat(beat), || crossing.to.beat(beat))?;
        roll.shards.retain(|held| !crossed.contains(&held.shard));
        roll.shards.extend(there.shards.into_iter().filter(|held| crossed.contains(&held.shard)));
        roll.shards.sort_by_key(|held| held.shard);
        Ok(roll)
    }
}

/// Does two things at once.
fn both<A: Send, B: Send>(
    one: impl FnOnce() -> Result<A, StoreError> + Send,
    other: impl FnOnce() -> Result<B, StoreError>,
) -> Result<(A, B), StoreError> {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        let one = one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((one?, other?))
    })
}

impl Store for Transit {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        *lock(&self.word) = (beat.lease > Millis::ZERO).then(|| beat.clone());
        match self.way() {
            Way::Home => self.home.beat(beat),
            Way::Crossing(crossing) => {
                crossing.heard_of(&beat.who);
                self.beat_both(&crossing, beat)
            }
            Way::Over(to) => to.beat(beat),
        }
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.apart(wanted.to_vec(), |(shard, _)| *shard, |store, wanted| store.claim(who, &wanted))
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.place(shard)?.release(shard, fence, to)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.shared().cluster_get(key)
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        debug_assert_ne!(key, marks::KEY, "a mark is of one store");
        let _entries = lock(&self.entries);
        self.shared().cluster_put(key, seen, value)
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        self.place(shard)?.read(shard, tenure, wants)
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.apart(wants.to_vec(), |(shard, _)| *shard, |store, wants| store.look(&wants))
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let tracked = self.tracked.read().unwrap_or_else(PoisonError::into_inner);
        let numbers = tracked.as_ref().map_or(Vec::new(), |tracked| tracked.numbers(&batches));
        let note = || tracked.iter().for_each(|tracked| tracked.note(&numbers));
        note();
        let answers = self.apart(batches, |batch| batch.shard, |store, batches| store.commit(batches));
        note();
        answers
    }

    /// Those that both stores can live with. A shard is opened anew when it has crossed, and gets its lane then.
    fn terms(&self) -> Terms {
        match self.way() {
            Way::Home => self.home.terms(),
            Way::Over(to) => to.terms(),
            Way::Crossing(crossing) => {
                let (here, there) = (self.home.terms(), crossing.to.terms());
                Terms {
                    batch_bytes: here.batch_bytes.min(there.batch_bytes),
                    batch_changes: here.batch_changes.min(there.batch_changes),
                    lanes: there.lanes,
                    worthwhile: there.worthwhile,
                }
            }
        }
    }

    fn hardship(&self) -> Option<Hardship> {
        match self.way() {
            Way::Home => self.home.hardship(),
            Way::Crossing(crossing) => self.home.hardship().or_else(|| crossing.to.hardship()),
            Way::Over(to) => to.hardship(),
        }
    }

    fn room(&self) -> Room {
        match self.way() {
            Way::Home => self.home.room(),
            Way::Crossing(crossing) => match (self.home.room(), crossing.to.room()) {
                (Room::None, _) | (_, Room::None) => Room::None,
                (Room::Little, _) | (_, Room::Little) => Room::Little,
                (Room::Enough, Room::Enough) => Room::Enough,
            },
            Way::Over(to) => to.room(),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use std::sync::mpsc::channel;

    use punctual_core::store::{Change, Key, Row, Table};
    use punctual_core::{Name, Timestamp};
    use punctual_memory::MemoryStore;
    use punctual_node::SystemClock;

    use super::*;

    #[test]
    fn what_changes_is_noted_before_and_after_its_commit() {
        const SHARD: ShardId = ShardId(0);
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let who = Incarnation { node: Name::stored("server"), number: 1 };
        let Claim::Granted(tenure) = store.claim(&who, &[(SHARD, Fence::default())]).unwrap()[0] else { panic!() };
        let (come, came) = channel();
        let (open, opened) = channel::<()>();
        let gate = Mutex::new(opened);
        store.faults().slow_down(move || {
            come.send(()).unwrap();
            _ = lock(&gate).recv();
        });
        let transit = Transit::new(store, "here");
        let tracked = transit.track(SHARD);
        let row = Row {
            table: Table::Live,
            key: Key::new("orders", "7", ""),
            seq: 7,
            at: Timestamp::ZERO,
            group: None,
            state: "".into(),
            body: "".into(),
        };
        let changes = vec![Change::Insert { row, replaces: None }];
        let batch = Batch { shard: SHARD, fence: tenure.fence, serial: 1, changes, tallies: Vec::new() };
        thread::scope(|scope| {
            let commit = scope.spawn(|| transit.commit(vec![batch]));
            came.recv().unwrap();
            assert_eq!(tracked.take(), [7], "whoever reads it finds it noted");
            drop(open);
            assert_eq!(commit.join().unwrap().unwrap(), [Ok(())]);
        });
        assert_eq!(tracked.take(), [7], "who took it before it happened takes it again");
    }
}
