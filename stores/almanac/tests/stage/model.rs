//! A store that is too simple to be wrong, and the comparison of an almanac with it by everything
//! that can be read.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use punctual_almanac::Almanac;
use punctual_chance::Chance;
use punctual_core::store::{
    Batch, Bodies, Change, Entry, Find, FindBack, Key, Look, Place, Position, Row, Scan, ScanBack, ShardId, Store,
    StoreError, Table, Tally, Want,
};
use punctual_core::{Name, Timestamp};

/// All rows, tallies and entries of the cluster. Settings have a space of keys of their own.
#[derive(Clone, Default, PartialEq)]
pub struct Model {
    rows: BTreeMap<(ShardId, bool, Key), Row>,
    tallies: BTreeMap<(ShardId, Tally), i64>,
    entries: BTreeMap<String, Entry>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model of {} rows", self.rows.len())
    }
}

impl Model {
    pub fn apply(&mut self, batch: &Batch) {
        let shard = batch.shard;
        for change in &batch.changes {
            match change {
                Change::Insert { row, replaces } => {
                    assert_eq!(replaces.is_some(), self.row_of(shard, row.table, &row.key).is_some(), "{change:?}");
                    self.rows.insert((shard, row.table == Table::Settings, row.key.clone()), row.clone());
                }
                Change::Update { place, table, at, state } => {
                    let row = self.row_at(shard, place);
                    (row.table, row.at, row.state) = (*table, *at, state.clone());
                }
                Change::Remove { place } => {
                    self.row_at(shard, place);
                    self.rows.remove(&(shard, place.table == Table::Settings, place.key.clone()));
                }
            }
        }
        for (tally, delta) in &batch.tallies {
            let count = self.tallies.entry((shard, tally.clone())).or_insert(0);
            *count += delta;
            if *count == 0 {
                self.tallies.remove(&(shard, tally.clone()));
            }
        }
    }

    /// Writes an entry of the cluster at this time, in microseconds; tells the revision that it had, and the one that it
    /// has.
    pub fn put(&mut self, key: &str, value: &[u8], micros: u64) -> (u64, u64) {
        let seen = self.entries.get(key).map_or(0, |entry| entry.revision);
        let revision = micros.max(seen + 1);
        self.entries.insert(key.to_owned(), Entry { revision, value: value.to_vec().into() });
        (seen, revision)
    }

    /// The numbers of a shard's rows.
    pub fn numbers(&self, shard: ShardId) -> Vec<u64> {
        self.rows(shard).map(|row| row.seq).collect()
    }

    /// The row under a key, in the space that a table belongs to.
    pub fn row_of(&self, shard: ShardId, table: Table, key: &Key) -> Option<&Row> {
        self.rows.get(&(shard, table == Table::Settings, key.clone()))
    }

    pub fn rows(&self, shard: ShardId) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |((of, ..), _)| *of == shard).map(|(_, row)| row)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    fn row_at(&mut self, shard: ShardId, place: &Place) -> &mut Row {
        let row = self.rows.get_mut(&(shard, place.table == Table::Settings, place.key.clone()));
        row.filter(|row| row.place() == *place).expect("a change names a row that is there")
    }

    /// What the almanac holds, read by scans, and by key what no scan gives.
    pub fn read(almanac: &Almanac, shards: &[ShardId], keys: &[Key]) -> Result<Model, StoreError> {
        let mut model = Model::default();
        for shard in shards.iter().copied() {
            for table in Table::ALL {
                for row in scan_all(almanac, shard, everything(table))? {
                    let before = model.rows.insert((shard, table == Table::Settings, row.key.clone()), row);
                    assert!(before.is_none(), "a key is there twice: {before:?}");
                }
            }
            for row in almanac.get(shard, keys, Bodies::With)?.into_iter().flatten() {
                if row.at == Timestamp::NEVER {
                    model.rows.insert((shard, false, row.key.clone()), row);
                }
            }
            for (tally, count) in almanac.tallies(shard)? {
                model.tallies.insert((shard, tally), count);
            }
        }
        for (key, revision) in super::roll(almanac)?.revisions {
            let entry = almanac.cluster_get(&key)?.expect("what is on the roll can be read");
            assert_eq!(entry.revision, revision);
            model.entries.insert(key, entry);
        }
        Ok(model)
    }

    /// Makes sure that every kind of read gives what this model says.
    pub fn compare(&self, almanac: &Almanac, shards: &[ShardId], keys: &[Key], groups: &[Name], chance: &mut Chance) {
        let found = Model::read(almanac, shards, keys).expect("a healthy almanac can be read");
        assert!(found == *self, "{}", found.differences(self));
        for shard in shards.iter().copied() {
            self.compare_by_key(almanac, shard, keys);
            self.compare_by_position(almanac, shard, chance);
            self.compare_by_number(almanac, shard);
            self.compare_by_group(almanac, shard, groups, chance);
            self.compare_pages(almanac, shard, chance);
        }
        self.compare_at_once(almanac, shards, keys);
    }

    /// Reads of several shards in one call.
    fn compare_at_once(&self, almanac: &Almanac, shards: &[ShardId], keys: &[Key]) {
        let each = |shard: &ShardId| [(*shard, Want::Keys(keys, Bodies::With)), (*shard, Want::Tallies)];
        let wants: Vec<_> = shards.iter().flat_map(each).collect();
        let mut found = almanac.look(&wants).expect("a healthy almanac can be read").into_iter();
        for shard in shards.iter().copied() {
            let rows = found.next().expect("each want is answered").each();
            for (key, row) in keys.iter().zip(rows) {
                assert_eq!(row.as_ref(), self.row_of(shard, Table::Live, key), "look {shard:?} {key:?}");
            }
            let tallies = self.tallies.iter().filter(|((of, _), _)| *of == shard);
            let expected: Vec<_> = tallies.map(|((_, tally), count)| (tally.clone(), *count)).collect();
            assert_eq!(found.next().expect("each want is answered").tallies(), expected, "look {shard:?}");
        }
    }

    fn compare_by_key(&self, almanac: &Almanac, shard: ShardId, keys: &[Key]) {
        let keys: Vec<Key> = keys.iter().chain(self.rows(shard).map(|row| &row.key)).cloned().collect();
        for (bodies, found) in [Bodies::With, Bodies::Without].map(|bodies| (bodies, almanac.get(shard, &keys, bodies)))
        {
            for (key, found) in keys.iter().zip(found.expect("a healthy almanac can be read")) {
                let expected = self.row_of(shard, Table::Live, key).cloned();
                assert_eq!(found, expected.map(|row| with(row, bodies)), "get {shard:?} {key:?}");
            }
        }
    }

    fn compare_by_position(&self, almanac: &Almanac, shard: ShardId, chance: &mut Chance) {
        let rows: Vec<&Row> = self.rows(shard).collect();
        let mut positions: Vec<Position> = rows.iter().map(|row| row.position()).collect();
        let wrong =
            |position: &Position| Position { at: Timestamp::from_millis(position.at.as_millis() / 2), ..*position };
        positions.extend(positions.clone().iter().filter(|_| chance.happens(1, 4)).map(wrong));
        let found = almanac.fetch(shard, &positions, Bodies::With).expect("a healthy almanac can be read");
        for (position, found) in positions.iter().zip(found) {
            let expected = rows.iter().find(|row| row.table == Table::Live && row.position() == *position);
            assert_eq!(found.as_ref(), expected.copied(), "fetch {shard:?} {position:?}");
        }
    }

    fn compare_by_number(&self, almanac: &Almanac, shard: ShardId) {
        let last = self.numbers(shard).into_iter().max().unwrap_or(0);
        let numbers: Vec<u64> = (0..last + 2).collect();
        let rows: BTreeMap<u64, &Row> =
            self.rows(shard).filter(|row| row.table != Table::Settings).map(|row| (row.seq, row)).collect();
        let found = almanac.numbered(shard, &numbers, Bodies::With).expect("a healthy almanac can be read");
        for (number, found) in numbers.iter().zip(found) {
            assert_eq!(found.as_ref(), rows.get(number).copied(), "numbered {shard:?} {number}");
        }
    }

    fn compare_by_group(&self, almanac: &Almanac, shard: ShardId, groups: &[Name], chance: &mut Chance) {
        for group in groups {
            for table in Table::ALL {
                let mut expected: Vec<&Row> =
                    self.rows(shard).filter(|row| row.table == table && row.group.as_ref() == Some(group)).collect();
                expected.sort_by_key(|row| row.seq);
                let from_seq = if chance.happens(1, 2) { 0 } else { expected.get(2).map_or(0, |row| row.seq) };
                let limit = if chance.happens(1, 2) { 1_000 } else { 2 };
                let find = Find { table, group: group.clone(), from_seq, limit, bodies: Bodies::With };
                let found = find_pages(almanac, shard, find.clone());
                let ahead = expected.iter().copied().filter(|row| row.seq >= from_seq);
                assert!(found.iter().eq(ahead.take(PAGES * limit)), "{shard:?} {find:?} gave {found:?}");
                let back = FindBack { table, group: group.clone(), before_seq: u64::MAX, limit, bodies: Bodies::With };
                let found = find_pages_back(almanac, shard, back.clone());
                assert!(
                    found.iter().eq(expected.into_iter().rev().take(PAGES * limit)),
                    "{shard:?} {back:?} gave {found:?}"
                );
            }
        }
    }

    /// Reads a table in pieces, and only one topic of it.
    fn compare_pages(&self, almanac: &Almanac, shard: ShardId, chance: &mut Chance) {
        let table = *chance.pick(&Table::ALL);
        let topic = self.rows(shard).next().and_then(|row| Name::new(row.key.topic()).ok());
        let of_topic = |row: &&Row| topic.as_ref().is_none_or(|topic| row.key.topic() == topic.as_str());
        let mut expected: Vec<&Row> = self.rows(shard).filter(|row| row.table == table).filter(of_topic).collect();
        expected.retain(|row| row.at < Timestamp::NEVER);
        expected.sort_by_key(|row| row.position());
        let limit = 1 + chance.below(7) as usize;
        let scan = Scan { topic: topic.clone(), limit, bodies: Bodies::Without, ..everything(table) };
        let found = scan_all(almanac, shard, scan.clone()).expect("a healthy almanac can be read");
        let mut expected: Vec<Row> = expected.into_iter().map(|row| row.clone().without_body()).collect();
        assert!(found == expected, "{shard:?} {scan:?} gave {found:?} instead of {expected:?}");
        let before = Position::start_of(Timestamp::NEVER);
        let mut back = ScanBack { table, before, from: Timestamp::ZERO, topic, limit, bodies: Bodies::Without };
        let mut found = Vec::new();
        loop {
            let page = almanac.scan_back(shard, &back).expect("a healthy almanac can be read");
            assert!(page.rows.len() <= limit, "{shard:?} {back:?} gave {page:?}");
            found.extend(page.rows);
            let Some(next) = page.next else { break };
            back.before = next;
        }
        expected.reverse();
        assert!(found == expected, "{shard:?} {back:?} gave {found:?} instead of {expected:?}");
    }

    /// What this one has, which was found, and the other has not, which was expected.
    pub fn differences(&self, expected: &Model) -> String {
        let mut text = String::from("what was found differs from what was expected:\n");
        let rows = self.rows.keys().chain(expected.rows.keys());
        for at in rows.collect::<std::collections::BTreeSet<_>>() {
            let (found, expected) = (self.rows.get(at), expected.rows.get(at));
            if found != expected {
                _ = writeln!(text, "{at:?}\n  found    {}\n  expected {}", brief(found), brief(expected));
            }
        }
        let tallies = self.tallies.keys().chain(expected.tallies.keys());
        for at in tallies.collect::<std::collections::BTreeSet<_>>() {
            let (found, expected) = (self.tallies.get(at), expected.tallies.get(at));
            if found != expected {
                _ = writeln!(text, "{at:?}: found {found:?}, expected {expected:?}");
            }
        }
        if self.entries != expected.entries {
            _ = writeln!(text, "entries: found {:?}, expected {:?}", self.entries, expected.entries);
        }
        text
    }
}

/// All pages of a scan, one after the other.
pub fn scan_all(almanac: &Almanac, shard: ShardId, mut scan: Scan) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let page = almanac.scan(shard, &scan)?;
        assert!(page.rows.len() <= scan.limit, "{shard:?} {scan:?} gave {page:?}");
        rows.extend(page.rows);
        match page.next {
            Some(next) => scan.from = next,
            None => return Ok(rows),
        }
    }
}

/// How many pages of a group are read.
const PAGES: usize = 3;

/// The first pages of a group, one after the other.
fn find_pages(almanac: &Almanac, shard: ShardId, mut find: Find) -> Vec<Row> {
    let mut rows = Vec::new();
    loop {
        let page = almanac.find(shard, &find).expect("a healthy almanac can be read");
        assert!(page.rows.len() <= find.limit, "{shard:?} {find:?} gave {page:?}");
        rows.extend(page.rows);
        match page.next {
            Some(next) if rows.len() < PAGES * find.limit => find.from_seq = next,
            _ => return rows,
        }
    }
}

/// The same against the order of the numbers.
fn find_pages_back(almanac: &Almanac, shard: ShardId, mut back: FindBack) -> Vec<Row> {
    let mut rows = Vec::new();
    loop {
        let page = almanac.find_back(shard, &back).expect("a healthy almanac can be read");
        assert!(page.rows.len() <= back.limit, "{shard:?} {back:?} gave {page:?}");
        rows.extend(page.rows);
        match page.next {
            Some(next) if rows.len() < PAGES * back.limit => back.before_seq = next,
            _ => return rows,
        }
    }
}

/// A read of all of a table.
pub fn everything(table: Table) -> Scan {
    let (from, until) = (Position::START, Timestamp::NEVER);
    Scan { table, from, until, topic: None, limit: 100_000, bodies: Bodies::With }
}

fn with(row: Row, bodies: Bodies) -> Row {
    match bodies {
        Bodies::With => row,
        Bodies::Without => row.without_body(),
    }
}

fn brief(row: Option<&Row>) -> String {
    row.map_or("nothing".to_owned(), |row| {
        let Row { table, seq, at, group, state, body, .. } = row;
        let begin = &body[..body.len().min(8)];
        format!("{table:?} {seq} {at:?} {group:?} {state:?} body of {}: {begin:?}", body.len())
    })
}
