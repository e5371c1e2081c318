//! A store too simple to be wrong: all rows in one list, every read a walk through it.

use punctual_core::Timestamp;
use punctual_core::store::{
    Bodies, Change, Find, FindBack, Key, Place, Position, Row, Scan, ScanBack, ShardId, Table, Tally,
};

#[derive(Default)]
pub(crate) struct Model {
    rows: Vec<(ShardId, Row)>,
    tallies: Vec<(ShardId, Tally, i64)>,
}

impl Model {
    pub(crate) fn apply(&mut self, shard: ShardId, changes: &[Change], tallies: &[(Tally, i64)]) {
        for change in changes {
            match change {
                Change::Insert { row, replaces } => {
                    if let Some(place) = replaces {
                        self.take(shard, place);
                    }
                    self.rows.push((shard, row.clone()));
                }
                Change::Update { place, table, at, state } => {
                    let row = self.take(shard, place);
                    self.rows.push((shard, Row { table: *table, at: *at, state: state.clone(), ..row }));
                }
                Change::Remove { place } => {
                    self.take(shard, place);
                }
            }
        }
        for (tally, delta) in tallies {
            match self.tallies.iter_mut().find(|(of, known, _)| *of == shard && known == tally) {
                Some((_, _, count)) => *count += delta,
                None => self.tallies.push((shard, tally.clone(), *delta)),
            }
        }
        self.tallies.retain(|(_, _, count)| *count != 0);
    }

    pub(crate) fn rows(&self, shard: ShardId) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |(of, _)| *of == shard).map(|(_, row)| row)
    }

    pub(crate) fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Vec<Option<Row>> {
        let named = |key: &Key| self.rows(shard).find(|row| row.table != Table::Settings && row.key == *key);
        keys.iter().map(|key| named(key).map(|row| read(row, bodies))).collect()
    }

    pub(crate) fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Vec<Option<Row>> {
        let placed = |place: Position| self.rows(shard).find(|row| row.table == Table::Live && row.position() == place);
        positions.iter().map(|position| placed(*position).map(|row| read(row, bodies))).collect()
    }

    pub(crate) fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Vec<Option<Row>> {
        let with = |number: u64| self.rows(shard).find(|row| row.table != Table::Settings && row.seq == number);
        numbers.iter().map(|number| with(*number).map(|row| read(row, bodies))).collect()
    }

    pub(crate) fn scan(&self, shard: ShardId, scan: &Scan) -> Vec<Row> {
        let wanted = |row: &&Row| {
            let of_topic = scan.topic.as_ref().is_none_or(|topic| row.key.topic() == topic.as_str());
            row.table == scan.table && row.position() >= scan.from && row.at < scan.until && of_topic
        };
        let mut rows: Vec<Row> = self.rows(shard).filter(wanted).map(|row| read(row, scan.bodies)).collect();
        rows.sort_by_key(Row::position);
        rows.truncate(scan.limit);
        rows
    }

    pub(crate) fn find(&self, shard: ShardId, find: &Find) -> Vec<Row> {
        let wanted =
            |row: &&Row| row.table == find.table && row.seq >= find.from_seq && row.group.as_ref() == Some(&find.group);
        let mut rows: Vec<Row> = self.rows(shard).filter(wanted).map(|row| read(row, find.bodies)).collect();
        rows.sort_by_key(|row| row.seq);
        rows.truncate(find.limit);
        rows
    }

    pub(crate) fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Vec<Row> {
        let wanted = |row: &&Row| {
            let of_topic = back.topic.as_ref().is_none_or(|topic| row.key.topic() == topic.as_str());
            let in_time = row.position() < back.before && row.at >= back.from && row.at != Timestamp::NEVER;
            row.table == back.table && in_time && of_topic
        };
        let mut rows: Vec<Row> = self.rows(shard).filter(wanted).map(|row| read(row, back.bodies)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.position()));
        rows.truncate(back.limit);
        rows
    }

    pub(crate) fn find_back(&self, shard: ShardId, back: &FindBack) -> Vec<Row> {
        let wanted = |row: &&Row| {
            row.table == back.table && row.seq < back.before_seq && row.group.as_ref() == Some(&back.group)
        };
        let mut rows: Vec<Row> = self.rows(shard).filter(wanted).map(|row| read(row, back.bodies)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.seq));
        rows.truncate(back.limit);
        rows
    }

    pub(crate) fn tallies(&self, shard: ShardId) -> Vec<(Tally, i64)> {
        let of_shard = self.tallies.iter().filter(|(of, _, _)| *of == shard);
        let mut tallies: Vec<(Tally, i64)> = of_shard.map(|(_, tally, count)| (tally.clone(), *count)).collect();
        tallies.sort();
        tallies
    }

    fn take(&mut self, shard: ShardId, place: &Place) -> Row {
        let index = self.rows.iter().position(|(of, row)| *of == shard && row.place() == *place);
        self.rows.swap_remove(index.expect("the random run changes only rows that are there")).1
    }
}

fn read(row: &Row, bodies: Bodies) -> Row {
    match bodies {
        Bodies::With => row.clone(),
        Bodies::Without => row.clone().without_body(),
    }
}
