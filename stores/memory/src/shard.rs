//! The rows and tallies of one shard.
//!
//! ```text
//! keys, settings ──────┐
//! numbers ─────────────┼──► slot ──► row
//! each table's index ──┘
//! ```
//! A row lies in one slot from its insert to its removal, and a change reaches it by its number.
//! The changes of a batch are all checked before the first one happens: a caller that breaks the
//! contract breaks nothing else. The short loop that checks also lets the processor wait for many
//! cold rows at a time, and the one that changes finds them warm.

use std::collections::BTreeMap;

use bytes::Bytes;
use punctual_core::store::{
    Bodies, Change, Find, FindBack, Found, Index, Key, Page, Place, Position, Row, Scan, ScanBack, Table, Tally, Want,
};
use punctual_core::{Name, Timestamp};

use crate::keys::Keys;
use crate::numbers::Numbers;
use crate::slab::{Slab, Slot};

#[derive(Clone, Default)]
pub(crate) struct ShardRows {
    rows: Slab,
    numbers: Numbers,
    /// The keys of the live, dead and finished rows.
    keys: Keys,
    /// The keys of the settings, which do not collide with the others.
    settings: Keys,
    tables: [Index<Slot>; Table::ALL.len()],
    tallies: BTreeMap<Tally, i64>,
}

impl ShardRows {
    pub(crate) fn apply(&mut self, changes: Vec<Change>, tallies: Vec<(Tally, i64)>) {
        for change in &changes {
            self.check(change);
        }
        for change in changes {
            match change {
                Change::Insert { row, replaces: None } => self.insert(row),
                Change::Insert { row, replaces: Some(place) } => self.replace(&place, row),
                Change::Update { place, table, at, state } => self.update(&place, table, at, state),
                Change::Remove { place } => self.remove(&place),
            }
        }
        for (tally, delta) in tallies {
            self.add(tally, delta);
        }
    }

    /// What a read asks for.
    pub(crate) fn find_all(&mut self, want: &Want<'_>) -> Found {
        match *want {
            Want::Keys(keys, bodies) => Found::Each(keys.iter().map(|key| self.get(key, bodies)).collect()),
            Want::Positions(positions, bodies) => {
                Found::Each(positions.iter().map(|position| self.fetch(*position, bodies)).collect())
            }
            Want::Numbers(numbers, bodies) => {
                Found::Each(numbers.iter().map(|number| self.numbered(*number, bodies)).collect())
            }
            Want::Scan(scan) => Found::Span(self.scan(scan)),
            Want::ScanBack(back) => Found::Span(self.scan_back(back)),
            Want::Find(find) => Found::Members(self.find(find)),
            Want::FindBack(back) => Found::Members(self.find_back(back)),
            Want::Tallies => Found::Tallies(self.tallies()),
        }
    }

    fn get(&self, key: &Key, bodies: Bodies) -> Option<Row> {
        self.keys.get(key, &self.rows).map(|slot| copy(&self.rows[slot], bodies))
    }

    fn fetch(&self, position: Position, bodies: Bodies) -> Option<Row> {
        let row = &self.rows[self.numbers.get(position.seq)?];
        (row.table == Table::Live && row.at == position.at).then(|| copy(row, bodies))
    }

    fn numbered(&self, number: u64, bodies: Bodies) -> Option<Row> {
        let row = &self.rows[self.numbers.get(number)?];
        (row.table != Table::Settings).then(|| copy(row, bodies))
    }

    fn scan(&mut self, scan: &Scan) -> Page<Position> {
        let ShardRows { rows, tables, .. } = self;
        let in_time = index(tables, scan.table).range(scan.from, scan.until).map(|(_, slot)| &rows[slot]);
        page(in_time, scan.from, scan.topic.as_ref(), scan.limit, scan.bodies, |row| row.position().next())
    }

    fn find(&mut self, find: &Find) -> Page<u64> {
        let ShardRows { rows, tables, .. } = self;
        let members = index(tables, find.table).group(&find.group, find.from_seq).map(|(_, slot)| &rows[slot]);
        page(members, find.from_seq, None, find.limit, find.bodies, |row| row.seq + 1)
    }

    fn scan_back(&mut self, back: &ScanBack) -> Page<Position> {
        let ShardRows { rows, tables, .. } = self;
        // Rows without a time are left out.
        let before = back.before.min(Position::start_of(Timestamp::NEVER));
        let in_time = index(tables, back.table).range_back(back.from, before).map(|(_, slot)| &rows[slot]);
        page(in_time, back.before, back.topic.as_ref(), back.limit, back.bodies, Row::position)
    }

    fn find_back(&mut self, back: &FindBack) -> Page<u64> {
        let ShardRows { rows, tables, .. } = self;
        let members = index(tables, back.table).group_back(&back.group, back.before_seq).map(|(_, slot)| &rows[slot]);
        page(members, back.before_seq, None, back.limit, back.bodies, |row| row.seq)
    }

    fn tallies(&self) -> Vec<(Tally, i64)> {
        self.tallies.iter().map(|(tally, count)| (tally.clone(), *count)).collect()
    }

    /// Asserts what the contract asks of the caller.
    fn check(&self, change: &Change) {
        match change {
            Change::Insert { row, replaces: None } => {
                let number = self.numbers.get(row.seq);
                assert!(number.is_none(), "a number is given once: {:?} {}", row.place(), self.meets(number));
                let key = self.keys(row.table).get(&row.key, &self.rows);
                assert!(key.is_none(), "a key stands once: {:?} {}", row.place(), self.meets(key));
            }
            Change::Insert { row, replaces: Some(place) } => {
                self.check_place(place);
                assert!(
                    place.key == row.key,
                    "a row is replaced under its key: {:?} was to replace {place:?}",
                    row.place()
                );
                let number = self.numbers.get(row.seq).filter(|_| row.seq != place.position.seq);
                assert!(number.is_none(), "a number is given once: {:?} {}", row.place(), self.meets(number));
                check_settings(place, row.table);
            }
            Change::Update { place, table, .. } => {
                self.check_place(place);
                check_settings(place, *table);
            }
            Change::Remove { place } => self.check_place(place),
        }
    }

    fn check_place(&self, place: &Place) {
        let slot = self.numbers.get(place.position.seq);
        let stands = |row: &Row| {
            (row.table, row.position(), &row.key, &row.group) == (place.table, place.position, &place.key, &place.group)
        };
        let here = slot.is_some_and(|slot| stands(&self.rows[slot]));
        assert!(here, "a change names where its row stands: {place:?} {}", self.meets(slot));
    }

    /// What is there instead of what the caller believes, for a message.
    fn meets(&self, slot: Option<Slot>) -> String {
        slot.map_or("meets no row".to_owned(), |slot| format!("meets {:?}", self.rows[slot].place()))
    }

    fn insert(&mut self, row: Row) {
        let slot = self.rows.put(row);
        let row = &self.rows[slot];
        let keys = if row.table == Table::Settings { &mut self.settings } else { &mut self.keys };
        keys.insert(&row.key, slot);
        self.numbers.insert(row.seq, slot);
        index(&mut self.tables, row.table).add(row.position(), row.group.as_deref(), slot);
    }

    fn replace(&mut self, place: &Place, row: Row) {
        let slot = self.slot(place);
        let old = std::mem::replace(&mut self.rows[slot], row);
        index(&mut self.tables, old.table).remove(old.position(), old.group.as_deref());
        let row = &self.rows[slot];
        if old.seq != row.seq {
            self.numbers.remove(old.seq);
            self.numbers.insert(row.seq, slot);
        }
        index(&mut self.tables, row.table).add(row.position(), row.group.as_deref(), slot);
    }

    fn update(&mut self, place: &Place, table: Table, at: Timestamp, state: Bytes) {
        let slot = self.slot(place);
        let row = &mut self.rows[slot];
        (row.table, row.at, row.state) = (table, at, state);
        if place.table != table {
            index(&mut self.tables, place.table).remove(place.position, row.group.as_deref());
            index(&mut self.tables, table).add(row.position(), row.group.as_deref(), slot);
        } else if place.position.at != at {
            index(&mut self.tables, table).shift(place.position, row.position(), slot);
        }
    }

    fn remove(&mut self, place: &Place) {
        let slot = self.slot(place);
        let row = self.rows.take(slot);
        let keys = if row.table == Table::Settings { &mut self.settings } else { &mut self.keys };
        keys.remove(&row.key, slot);
        self.numbers.remove(row.seq);
        index(&mut self.tables, row.table).remove(row.position(), row.group.as_deref());
    }

    fn add(&mut self, tally: Tally, delta: i64) {
        let count = self.tallies.get(&tally).copied().unwrap_or(0) + delta;
        if count == 0 {
            self.tallies.remove(&tally);
        } else {
            self.tallies.insert(tally, count);
        }
    }

    fn slot(&self, place: &Place) -> Slot {
        self.numbers.get(place.position.seq).expect("the row was there when the batch was checked")
    }

    fn keys(&self, table: Table) -> &Keys {
        if table == Table::Settings { &self.settings } else { &self.keys }
    }
}

fn index(tables: &mut [Index<Slot>], table: Table) -> &mut Index<Slot> {
    &mut tables[table as usize - 1]
}

/// How many rows of other topics a read looks at before it stops and says where.
const LOOKED: usize = 4_096;

/// The first of these rows, of a topic if one is given, and where to go on after the last that was looked at.
fn page<'a, C>(
    rows: impl Iterator<Item = &'a Row>,
    begin: C,
    topic: Option<&Name>,
    limit: usize,
    bodies: Bodies,
    after: impl Fn(&Row) -> C,
) -> Page<C> {
    if limit == 0 {
        return Page { rows: Vec::new(), next: Some(begin) };
    }
    let (mut page, most) = (Page::default(), limit.saturating_add(LOOKED));
    for (looked, row) in rows.enumerate() {
        if topic.is_none_or(|topic| row.key.topic() == topic.as_str()) {
            page.rows.push(copy(row, bodies));
        }
        if page.rows.len() == limit || looked + 1 == most {
            page.next = Some(after(row));
            break;
        }
    }
    page
}

fn check_settings(place: &Place, table: Table) {
    let stay = (place.table == Table::Settings) == (table == Table::Settings);
    assert!(stay, "settings stay settings and others never become any: {place:?} was to move to {table:?}");
}

fn copy(row: &Row, bodies: Bodies) -> Row {
    let body = match bodies {
        Bodies::With => row.body.clone(),
        Bodies::Without => Bytes::new(),
    };
    Row { key: row.key.clone(), group: row.group.clone(), state: row.state.clone(), body, ..*row }
}
