//! A store that is too simple to be wrong, and the comparison of an almanac with it by everything
//! that can be read.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use punctual_almanac::Almanac;
use punctual_chance::Chance;
use punctual_core::store::{
    Batch, Bodies, Change, Find, FindBack, Key, Place, Position, Row, Scan, ScanBack, ShardId, Store, StoreError,
    Table, Tally,
};
use punctual_core::{Name, Timestamp};

/// All rows and tallies. Settings have a space of keys of their own.
#[derive(Clone, Default, PartialEq)]
pub struct Model {
    rows: BTreeMap<(ShardId, bool, Key), Row>,
    tallies: BTreeMap<(ShardId, Tally), i64>,
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
                for row in almanac.scan(shard, &everything(table))? {
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
                expected.retain(|row| row.seq >= from_seq);
                let limit = if chance.happens(1, 2) { 1_000 } else { 2 };
                expected.truncate(limit);
                let find = Find { table, group: group.clone(), from_seq, limit, bodies: Bodies::With };
                let found = almanac.find(shard, &find).expect("a healthy almanac can be read");
                assert!(found.iter().eq(expected), "{shard:?} {find:?} gave {found:?}");
                let mut expected: Vec<&Row> =
                    self.rows(shard).filter(|row| row.table == table && row.group.as_ref() == Some(group)).collect();
                expected.sort_by_key(|row| std::cmp::Reverse(row.seq));
                expected.truncate(limit);
                let back = FindBack { table, group: group.clone(), before_seq: u64::MAX, limit, bodies: Bodies::With };
                let found = almanac.find_back(shard, &back).expect("a healthy almanac can be read");
                assert!(found.iter().eq(expected), "{shard:?} {back:?} gave {found:?}");
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
        let mut scan = Scan { topic: topic.clone(), limit, bodies: Bodies::Without, ..everything(table) };
        let mut found = Vec::new();
        loop {
            let page = almanac.scan(shard, &scan).expect("a healthy almanac can be read");
            let Some(last) = page.last() else { break };
            scan.from = last.position().next();
            found.extend(page);
        }
        let mut expected: Vec<Row> = expected.into_iter().map(|row| row.clone().without_body()).collect();
        assert!(found == expected, "{shard:?} {scan:?} gave {found:?} instead of {expected:?}");
        let before = Position::start_of(Timestamp::NEVER);
        let mut back = ScanBack { table, before, from: Timestamp::ZERO, topic, limit, bodies: Bodies::Without };
        let mut found = Vec::new();
        loop {
            let page = almanac.scan_back(shard, &back).expect("a healthy almanac can be read");
            let Some(last) = page.last() else { break };
            back.before = last.position();
            found.extend(page);
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
        text
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
