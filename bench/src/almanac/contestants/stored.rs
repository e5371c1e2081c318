//! Whatever keeps the store contract, as a contestant.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Incarnation, Key, Look, Position, Row, Scan, ShardId, Store, StoreError,
    Table, Tenure,
};
use punctual_core::{Name, Timestamp};

use super::{Contestant, Inserts};

const SHARD: ShardId = ShardId(0);

pub struct Stored {
    store: Arc<dyn Store>,
    tenure: Tenure,
}

impl Stored {
    pub fn new(store: Arc<dyn Store>) -> Stored {
        let who = Incarnation { node: Name::new("bench").expect("a name"), number: 1 };
        // One that was opened again has another fence in force than a new one, and says which.
        let claim = |fence| answered(store.claim(&who, &[(SHARD, fence)]))[0];
        let claim = match claim(Fence::default()) {
            Claim::Outrun(fence) => claim(fence),
            granted => granted,
        };
        let Claim::Granted(tenure) = claim else { panic!("nobody else claims the shard, and yet {claim:?}") };
        Stored { store, tenure }
    }

    fn commit(&mut self, changes: Vec<Change>) {
        let Tenure { fence, serial } = self.tenure;
        // What changes nothing only asks.
        let serial = serial + u64::from(!changes.is_empty());
        let outcome =
            answered(self.store.commit(vec![Batch { shard: SHARD, fence, serial, changes, tallies: Vec::new() }]));
        assert!(outcome.iter().all(Result::is_ok), "nobody else claims the shard, and yet {outcome:?}");
        self.tenure.serial = serial;
    }
}

impl Inserts for Stored {
    fn insert(&mut self, rows: Vec<Row>) {
        self.commit(rows.into_iter().map(|row| Change::Insert { row, replaces: None }).collect());
    }
}

impl Contestant for Stored {
    fn due(&mut self, from: Position, until: Timestamp, limit: usize) -> Vec<Row> {
        let scan = Scan { table: Table::Live, from, until, topic: None, limit, bodies: Bodies::With };
        answered(self.store.scan(SHARD, &scan)).rows
    }

    fn get(&mut self, keys: &[Key]) -> Vec<Option<Row>> {
        answered(self.store.get(SHARD, keys, Bodies::With))
    }

    fn remove_keys(&mut self, keys: &[Key]) -> usize {
        let found = answered(self.store.get(SHARD, keys, Bodies::Without));
        let changes: Vec<Change> = found.iter().flatten().map(|row| Change::Remove { place: row.place() }).collect();
        let count = changes.len();
        self.commit(changes);
        count
    }

    fn update(&mut self, rows: &[Row], at: Timestamp, states: Vec<Bytes>) {
        let change = |(row, state): (&Row, Bytes)| Change::Update { place: row.place(), table: row.table, at, state };
        self.commit(rows.iter().zip(states).map(change).collect());
    }

    fn remove(&mut self, rows: &[Row]) {
        self.commit(rows.iter().map(|row| Change::Remove { place: row.place() }).collect());
    }
}

fn answered<T>(outcome: Result<T, StoreError>) -> T {
    outcome.expect("the store answers")
}
