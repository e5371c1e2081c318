//! What the tests of the memory store work with: a clock that they move, and a claimed shard.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "it is part of tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Incarnation, Key, Look, Place, Position, Refusal, Row, Scan, ShardId, Store,
    StoreError, Table,
};
use punctual_core::{Clock, Millis, Name, Timestamp};
use punctual_memory::MemoryStore;

/// A clock that stands still until it is moved.
#[derive(Default)]
pub struct TestClock(AtomicU64);

impl TestClock {
    pub fn pass(&self, time: Millis) {
        self.0.fetch_add(time.0, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

pub const SHARD: ShardId = ShardId(1);

/// A store and its clock; the test owns shards 1 and 2.
pub struct Bench {
    pub clock: Arc<TestClock>,
    pub store: Arc<MemoryStore>,
    pub fence: Fence,
    /// How many commits of a shard were answered well; the next one has the next number.
    answered: AtomicU64,
}

impl Bench {
    pub fn new() -> Bench {
        let clock = Arc::new(TestClock::default());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let fence = claim(&*store, SHARD);
        assert_eq!(claim(&*store, ShardId(2)), fence);
        Bench { clock, store, fence, answered: AtomicU64::new(0) }
    }

    pub fn batch(&self, shard: ShardId, changes: Vec<Change>) -> Batch {
        let serial = self.answered.load(Ordering::SeqCst) + 1;
        Batch { shard, fence: self.fence, serial, changes, tallies: vec![] }
    }

    pub fn commit(&self, changes: Vec<Change>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let answers = self.store.commit(vec![self.batch(SHARD, changes)])?;
        self.answered.fetch_add(u64::from(answers[0].is_ok()), Ordering::SeqCst);
        Ok(answers)
    }

    pub fn ids(&self, shard: ShardId) -> Vec<String> {
        let (from, until) = (Position::START, Timestamp::NEVER);
        let scan = Scan { table: Table::Live, from, until, topic: None, limit: 1_000, bodies: Bodies::Without };
        self.store.scan(shard, &scan).unwrap().rows.iter().map(|row| row.key.id().to_owned()).collect()
    }
}

/// Claims a shard, whoever has it.
pub fn claim(store: &dyn Store, shard: ShardId) -> Fence {
    let who = Incarnation { node: Name::new("node").unwrap(), number: 1 };
    let take = |seen| store.claim(&who, &[(shard, seen)]).unwrap()[0];
    match take(Fence::default()) {
        Claim::Granted(tenure) => tenure.fence,
        Claim::Outrun(current) => match take(current) {
            Claim::Granted(tenure) => tenure.fence,
            Claim::Outrun(_) => panic!("nobody else claims"),
        },
    }
}

pub fn row(id: &str, seq: u64) -> Row {
    Row {
        table: Table::Live,
        key: Key::new("topic", id, ""),
        seq,
        at: Timestamp::from_millis(seq),
        group: None,
        state: "state".into(),
        body: "body".into(),
    }
}

pub fn insert(id: &str, seq: u64) -> Change {
    Change::Insert { row: row(id, seq), replaces: None }
}

pub fn update(place: Place) -> Change {
    Change::Update { place, table: Table::Live, at: Timestamp::from_millis(99), state: "new".into() }
}
