//! Stores in memory for the tests: filled with all that rows can be, and behind a line that can be cut.

#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

pub mod engines;
mod ledger;
mod line;
pub mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use punctual_chance::Chance;
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Incarnation, Key, Look, Position, Row, Scan, ShardId, Store, Table, Tally,
    TallyKind,
};
use punctual_core::{Clock, Name, Timestamp};
use punctual_memory::MemoryStore;

pub use ledger::Ledger;
pub use line::{Life, Line};
pub use server::Server;

/// More calls than any life has.
pub const ENDLESS: i64 = i64::MAX / 2;

/// Real time, and as much more as a test says has passed.
#[derive(Default)]
pub struct Hurried(AtomicU64);

impl Hurried {
    pub fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_micros() as u64, Ordering::SeqCst);
    }
}

impl Clock for Hurried {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.micros() / 1_000)
    }

    fn micros(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        since.as_micros() as u64 + self.0.load(Ordering::SeqCst)
    }
}

/// Two stores of one clock.
pub struct Stage {
    pub clock: Arc<Hurried>,
    pub from: Arc<MemoryStore>,
    pub to: Arc<MemoryStore>,
}

impl Stage {
    pub fn new() -> Stage {
        let clock = Arc::new(Hurried::default());
        let store = || Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
        Stage { from: store(), to: store(), clock }
    }

    /// With something of everything in the source.
    pub fn filled(seed: u64, shards: u16, rows: u64) -> Stage {
        let stage = Stage::new();
        fill(&*stage.from, &mut Chance::new(seed), shards, rows);
        stage
    }

    /// The target loses a row that is not the last of its table.
    pub fn lose_a_row(&self) {
        let shard = ShardId(0);
        let tenure = claim(&*self.to, shard);
        let of = |table| rows(&*self.to, shard, table);
        let table = Table::ALL.into_iter().map(of).find(|rows| rows.len() > 1).expect("some rows have arrived");
        let changes = vec![Change::Remove { place: table[0].place() }];
        let batch = Batch { shard, fence: tenure.fence, serial: tenure.serial + 1, changes, tallies: vec![] };
        assert_eq!(self.to.commit(vec![batch]).unwrap(), [Ok(())]);
    }

    /// Requires that all of the source is in the target and nothing else.
    pub fn require_equal(&self) {
        assert_eq!(contents(&*self.from), contents(&*self.to));
    }
}

/// Takes a shard as a server would.
pub fn claim(store: &dyn Store, shard: ShardId) -> punctual_core::store::Tenure {
    let who = Incarnation { node: Name::stored("filler"), number: 1 };
    let Claim::Outrun(seen) = store.claim(&who, &[(shard, Fence(u64::MAX))]).unwrap()[0] else { panic!("granted") };
    let Claim::Granted(tenure) = store.claim(&who, &[(shard, seen)]).unwrap()[0] else { panic!("outrun") };
    tenure
}

/// Rows of all tables, with all that is hard about them.
pub fn fill(store: &dyn Store, chance: &mut Chance, shards: u16, rows: u64) {
    for shard in (0..shards).map(ShardId) {
        let tenure = claim(store, shard);
        let changes = (1..=rows).map(|seq| Change::Insert { row: draw(chance, seq), replaces: None }).collect();
        let tallies = tallies(chance);
        let batch = Batch { shard, fence: tenure.fence, serial: tenure.serial + 1, changes, tallies };
        assert_eq!(store.commit(vec![batch]).unwrap(), [Ok(())]);
    }
    let seen = store.cluster_put("secret", 0, b"\0\xff").unwrap().unwrap();
    for (key, seen, value) in [("shards", 0, &b"3"[..]), ("empty", 0, b""), ("secret", seen, b"another")] {
        store.cluster_put(key, seen, value).unwrap().unwrap();
    }
}

fn draw(chance: &mut Chance, seq: u64) -> Row {
    let names = ["a", "A", "注文", "';DROP", "\\x00", "%", "{tag}"];
    let times =
        [Timestamp::ZERO, Timestamp::from_millis(7), Timestamp::from_millis(1_700_000_000_000), Timestamp::LAST];
    let bodies: [&[u8]; 4] = [b"", b"\0", b"\xff\xfe\0", &[7; 900]];
    let table = *chance.pick(&Table::ALL);
    let (topic, group, body) = (*chance.pick(&names), *chance.pick(&names), *chance.pick(&bodies));
    let queue = if chance.percent(30) { "queue" } else { "" };
    Row {
        table,
        key: Key::new(topic, &format!("{seq}"), queue),
        // Those of settings are far from the others.
        seq: if table == Table::Settings { (1 << 62) + seq } else { seq },
        at: if table == Table::Settings { Timestamp::ZERO } else { *chance.pick(&times) },
        group: chance.percent(40).then(|| Name::stored(group)),
        state: Bytes::from(chance.draw().to_le_bytes()[..chance.index(9)].to_vec()),
        body: if chance.percent(1) { vec![9; 1 << 20].into() } else { Bytes::copy_from_slice(body) },
    }
}

fn tallies(chance: &mut Chance) -> Vec<(Tally, i64)> {
    let name = Name::stored("orders");
    let of = |kind: TallyKind| match kind {
        TallyKind::DueDay | TallyKind::DueMinute => Tally::slot(kind, 20_000),
        _ => Tally::named(kind, &name),
    };
    TallyKind::ALL
        .into_iter()
        .map(|kind| (of(kind), chance.between(1, 90) as i64 - 10))
        .filter(|(_, n)| *n != 0)
        .collect()
}

/// Everything that a move has to keep.
#[derive(Debug, PartialEq)]
pub struct Contents {
    rows: BTreeMap<ShardId, Vec<Row>>,
    tallies: BTreeMap<ShardId, Vec<(Tally, i64)>>,
    entries: BTreeMap<String, Bytes>,
}

pub fn contents(store: &dyn Store) -> Contents {
    let shards = || (0..16).map(ShardId);
    let rows = |shard| (shard, Table::ALL.into_iter().flat_map(|table| rows(store, shard, table)).collect());
    let tallies = shards().map(|shard| (shard, store.tallies(shard).unwrap())).collect();
    let keys = ["secret", "shards", "empty"].into_iter();
    let entry = |key: &str| Some((key.to_owned(), store.cluster_get(key).unwrap()?.value));
    Contents { rows: shards().map(rows).collect(), tallies, entries: keys.filter_map(entry).collect() }
}

pub fn rows(store: &dyn Store, shard: ShardId, table: Table) -> Vec<Row> {
    let (mut all, mut next) = (Vec::new(), Some(Position::START));
    while let Some(from) = next {
        let until = Timestamp::NEVER;
        let scan = Scan { table, from, until, topic: None, limit: 1_000, bodies: Bodies::With };
        let page = store.scan(shard, &scan).unwrap();
        all.extend(page.rows);
        next = page.next;
    }
    all
}
