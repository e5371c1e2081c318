//! The owner of a shard, which schedules and finishes rows, and can tell what must be there.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Incarnation, Key, Look, Position, Refusal, Row, Scan, ShardId, Store,
    StoreError, Table, Tally, TallyKind, Tenure,
};
use punctual_core::{Name, Timestamp};
use punctual_postgres::{Config, Database, PostgresStore};

pub const SHARD: ShardId = ShardId(3);

/// A store that gives up soon.
pub fn open(url: &str) -> Arc<PostgresStore> {
    open_with(url, |_| {})
}

pub fn open_with(url: &str, change: impl FnOnce(&mut Config)) -> Arc<PostgresStore> {
    let mut config = Config { patience: Duration::from_secs(20), ..Config::new(url) };
    change(&mut config);
    Arc::new(PostgresStore::open(config).unwrap())
}

pub fn life(node: &str) -> Incarnation {
    Incarnation { node: Name::stored(node), number: 1 }
}

pub fn row(seq: u64) -> Row {
    Row {
        table: Table::Live,
        key: Key::new("orders", &seq.to_string(), ""),
        seq,
        at: Timestamp::from_millis(1_000 + seq),
        group: None,
        state: "waiting".into(),
        body: format!("body of {seq}").into(),
    }
}

pub fn insert(row: Row) -> Change {
    Change::Insert { row, replaces: None }
}

pub fn waiting() -> Tally {
    Tally::named(TallyKind::Waiting, &Name::stored("orders"))
}

/// One who holds a shard.
pub struct Owner {
    pub store: Arc<PostgresStore>,
    pub shard: ShardId,
    pub tenure: Tenure,
}

impl Owner {
    /// Takes a shard, from whoever has it.
    pub fn of(store: &Arc<PostgresStore>, shard: ShardId, node: &str) -> Owner {
        let mut seen = Fence::default();
        loop {
            match store.claim(&life(node), &[(shard, seen)]).unwrap()[0] {
                Claim::Granted(tenure) => return Owner { store: Arc::clone(store), shard, tenure },
                Claim::Outrun(current) => seen = current,
            }
        }
    }

    /// The next batch.
    pub fn batch(&self, changes: Vec<Change>) -> Batch {
        let count = changes.iter().filter(|change| matches!(change, Change::Insert { .. })).count() as i64;
        let (shard, fence, serial) = (self.shard, self.tenure.fence, self.tenure.serial + 1);
        Batch { shard, fence, serial, changes, tallies: vec![(waiting(), count)] }
    }

    /// Commits the next batch; it counts as done if the store says so.
    pub fn commit(&mut self, changes: Vec<Change>) -> Result<Result<(), Refusal>, StoreError> {
        let batch = self.batch(changes);
        let answer = self.store.commit(vec![batch])?.remove(0);
        if answer.is_ok() {
            self.tenure.serial += 1;
        }
        Ok(answer)
    }

    /// Requires that exactly these rows are there, each once, and counted once.
    pub fn expect(&self, rows: &[Row]) {
        let mut found = Vec::new();
        let mut from = Some(Position::START);
        while let Some(position) = from {
            let (until, bodies) = (Timestamp::NEVER, Bodies::With);
            let scan = Scan { table: Table::Live, from: position, until, topic: None, limit: 1_000, bodies };
            let page = self.store.scan(self.shard, &scan).unwrap();
            found.extend(page.rows);
            from = page.next;
        }
        assert_eq!(found.len(), rows.len());
        assert_eq!(found, rows);
        let counts = self.store.tallies(self.shard).unwrap();
        let expected = if rows.is_empty() { vec![] } else { vec![(waiting(), rows.len() as i64)] };
        assert_eq!(counts, expected);
        assert_eq!(self.store.check().unwrap(), Vec::<String>::new());
    }
}
