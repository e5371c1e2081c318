//! A writer that owns one shard of a store, and what it wrote.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::{
    Batch, Beat, Bodies, Change, Claim, Fence, Held, Incarnation, Key, Look, Position, Refusal, Row, Scan, ShardId,
    Store, StoreError, Table, Tally, TallyKind, Tenure, Want,
};
use punctual_core::{Millis, Name, Timestamp};
use punctual_redis::{Config, Database, RedisStore};

pub const SHARD: ShardId = ShardId(7);

/// A handle with so much patience.
pub fn open(url: &str, patience: u64) -> Arc<RedisStore> {
    let patience = Duration::from_millis(patience);
    Arc::new(RedisStore::open(Config { patience, ..Config::new(url) }).unwrap())
}

/// A node's name, in its first life.
pub fn life(node: &str) -> Incarnation {
    Incarnation { node: Name::new(node).unwrap(), number: u64::MAX }
}

/// How it stands with the shard.
pub fn held(store: &RedisStore) -> Option<Held> {
    let beat = Beat { who: life("onlooker"), address: String::new(), lease: Millis(1_000) };
    store.beat(&beat).unwrap().held(SHARD).cloned()
}

pub fn row(seq: u64, body: usize) -> Row {
    Row {
        table: Table::Live,
        key: Key::new("orders", &seq.to_string(), ""),
        seq,
        at: Timestamp::from_millis(1_000 * seq),
        group: None,
        state: "waits".into(),
        body: vec![b'x'; body].into(),
    }
}

pub fn insert(row: Row) -> Change {
    Change::Insert { row, replaces: None }
}

/// All live rows' numbers, in the order of time.
pub fn numbers(store: &RedisStore, shard: ShardId) -> Vec<u64> {
    let mut scan = Scan {
        table: Table::Live,
        from: Position::START,
        until: Timestamp::NEVER,
        topic: None,
        limit: 1_000,
        bodies: Bodies::Without,
    };
    let mut numbers = Vec::new();
    loop {
        let page = store.scan(shard, &scan).unwrap();
        numbers.extend(page.rows.iter().map(|row| row.seq));
        let Some(next) = page.next else { return numbers };
        scan.from = next;
    }
}

/// Who holds a shard, and how far it has come.
#[derive(Clone)]
pub struct Owner {
    pub store: Arc<RedisStore>,
    pub shard: ShardId,
    pub tenure: Tenure,
}

impl Owner {
    /// Claims the shard by whatever fence is in force.
    pub fn of(store: &Arc<RedisStore>, node: &str) -> Owner {
        let seen = held(store).map_or(Fence::default(), |held| held.fence);
        Owner::claiming(store, SHARD, node, seen)
    }

    pub fn claiming(store: &Arc<RedisStore>, shard: ShardId, node: &str, seen: Fence) -> Owner {
        match store.claim(&life(node), &[(shard, seen)]).unwrap()[0] {
            Claim::Granted(tenure) => Owner { store: Arc::clone(store), shard, tenure },
            Claim::Outrun(fence) => panic!("outrun by {fence:?}"),
        }
    }

    /// The next batch of the chain.
    pub fn batch(&self, changes: Vec<Change>) -> Batch {
        let tallies = vec![(Tally::named(TallyKind::Waiting, &Name::new("orders").unwrap()), 1)];
        Batch { shard: self.shard, fence: self.tenure.fence, serial: self.tenure.serial + 1, changes, tallies }
    }

    /// Commits the next batch.
    pub fn commit(&mut self, changes: Vec<Change>) -> Result<Result<(), Refusal>, StoreError> {
        let outcome = self.store.commit(vec![self.batch(changes)])?.remove(0);
        if outcome.is_ok() {
            self.tenure.serial += 1;
        }
        Ok(outcome)
    }

    /// Inserts the row of a number.
    pub fn insert(&mut self, seq: u64) -> Result<Result<(), Refusal>, StoreError> {
        self.commit(vec![insert(row(seq, 20))])
    }

    /// Whether all that was confirmed can be read.
    pub fn read(&self) -> Result<(), StoreError> {
        self.store.read(self.shard, self.tenure, &[Want::Tallies]).map(drop)
    }

    /// How many batches were counted: each exactly once.
    pub fn counted(&self) -> i64 {
        self.store.tallies(self.shard).unwrap().iter().map(|(_, count)| count).sum()
    }
}
