//! The end of retention: finished tasks and dead letters that were kept long enough go.
//!
//! The rows of a table stand in the order in which they finished, and topics keep them for
//! different times. So there is one cursor for each different time; a cursor removes the rows
//! that are kept for its time and passes over the others.
//!
//! A table that has to make room gives rows up before their time, the oldest first and slowly: what is short of room
//! for a moment is not to lose all of it.

use std::collections::BTreeMap;

use super::Shard;
use super::desk::Slot;
use super::stretch::Stretch;
use crate::store::{Bodies, Position, Scan, Table};
use crate::time::{Millis, Timestamp};

/// How many rows one cursor reads in one step.
const SLICE: usize = 256;

/// How often a cursor looks again for rows that are slower to become durable than they are kept.
const AGAIN: Millis = Millis::from_secs(1);

/// How often a cursor gives rows up that could still be kept, while room has to be made.
const PACE: Millis = Millis(100);

/// What is kept for a while, by table.
#[derive(Debug)]
pub(super) struct Retained {
    pub history: Retention,
    pub dead: Retention,
}

impl Retained {
    /// `keeps_history` says that somebody else removes what is finished.
    pub fn new(keeps_history: bool) -> Retained {
        let history = Retention { is_off: keeps_history, ..Retention::new(Table::History) };
        Retained { history, dead: Retention::new(Table::Dead) }
    }

    /// What to read: one slice for each time that is due, with its table.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = (Millis, Scan)> {
        self.history.due(now).chain(self.dead.due(now))
    }

    pub fn wake(&self) -> Timestamp {
        self.history.wake().min(self.dead.wake())
    }

    /// The clock went back: rows may come to stand before the cursors.
    pub fn begin_again(&mut self) {
        self.history.begin_again();
        self.dead.begin_again();
    }
}

#[derive(Debug)]
pub(super) struct Retention {
    table: Table,
    /// Somebody else removes the rows: there are no cursors.
    is_off: bool,
    /// Room has to be made: rows go before their time.
    makes_room: bool,
    cursors: BTreeMap<Millis, Cursor>,
}

#[derive(Debug)]
struct Cursor {
    /// How many topics or queues keep rows for this time.
    users: usize,
    from: Position,
    /// When the next row may have been kept long enough.
    wake: Timestamp,
}

impl Retention {
    fn new(table: Table) -> Retention {
        Retention { table, is_off: false, makes_room: false, cursors: BTreeMap::new() }
    }

    /// There are rows that are kept for this time and may have been kept long enough.
    pub fn look_again(&mut self, period: Millis) {
        if let Some(cursor) = self.cursors.get_mut(&period) {
            (cursor.from, cursor.wake) = (Position::START, Timestamp::ZERO);
        }
    }

    /// One more topic or queue keeps its rows for this time; there are none yet.
    pub fn add(&mut self, period: Millis, now: Timestamp) {
        if !self.is_off {
            let fresh = Cursor { users: 0, from: Position::start_of(now), wake: Timestamp::NEVER };
            self.cursors.entry(period).or_insert(fresh).users += 1;
        }
    }

    /// A topic or queue does not keep its rows for this time any more.
    pub fn drop(&mut self, period: Millis) {
        if let Some(cursor) = self.cursors.get_mut(&period) {
            cursor.users -= 1;
            if cursor.users == 0 {
                self.cursors.remove(&period);
            }
        }
    }

    /// A row begins to be kept for this time. It may stand behind the cursor: rows of one instant come in any order,
    /// and what is kept for no time is looked for at that very instant.
    pub fn keep(&mut self, period: Millis, position: Position) {
        if let Some(cursor) = self.cursors.get_mut(&period) {
            cursor.from = cursor.from.min(position);
            cursor.wake = cursor.wake.min(position.at.plus(period));
        }
    }

    fn begin_again(&mut self) {
        for cursor in self.cursors.values_mut() {
            (cursor.from, cursor.wake) = (Position::START, Timestamp::ZERO);
        }
    }

    /// From now on room has to be made, or not any more.
    pub fn give_way(&mut self, makes_room: bool, now: Timestamp) {
        if makes_room && !self.makes_room {
            self.cursors.values_mut().for_each(|cursor| cursor.wake = cursor.wake.min(now));
        }
        self.makes_room = makes_room;
    }

    /// Whether a row is kept at all that comes now: not while room has to be made, unless somebody else removes them.
    pub fn takes_rows(&self) -> bool {
        self.is_off || !self.makes_room
    }

    fn wake(&self) -> Timestamp {
        self.cursors.values().map(|cursor| cursor.wake).min().unwrap_or(Timestamp::NEVER)
    }

    fn due(&self, now: Timestamp) -> impl Iterator<Item = (Millis, Scan)> {
        let due = self.cursors.iter().filter(move |(_, cursor)| cursor.wake <= now);
        due.map(|(period, cursor)| (*period, slice(self.table, cursor.from)))
    }

    /// Moves a cursor over what was read and says how many of the rows are old enough.
    /// From `settled` on there may be rows that are not durable yet and were not read, so the
    /// cursor waits there; [`Timestamp::NEVER`] means that there are none.
    pub fn pass(&mut self, period: Millis, stretch: &Stretch, now: Timestamp, settled: Timestamp) -> usize {
        let makes_room = self.makes_room;
        let cursor = self.cursors.get_mut(&period).expect("a cursor stays while a slice for it is read");
        let is_old = |at: Timestamp| at < settled && (makes_room || at.plus(period) <= now);
        let rows = &stretch.rows;
        let passed = rows.iter().take_while(|row| is_old(row.at)).count();
        // Where the read stopped, if it did before it came to a row that is too young.
        let stopped = stretch.next.filter(|_| passed == rows.len());
        if let Some(stopped) = stopped.filter(|stopped| stopped.at < settled) {
            cursor.from = stopped;
        } else if let Some(last) = passed.checked_sub(1).map(|index| &rows[index]) {
            cursor.from = last.position().next();
        }
        // What is not durable yet may come before the next row, if the clock was set back since; and the next row may be
        // the first of both to have been kept long enough.
        let end = |at: Timestamp| Some(at.plus(period)).filter(|end| *end > now).unwrap_or(now.plus(AGAIN));
        let next = rows.get(passed).map(|row| row.at).or(stopped.map(|stopped| stopped.at));
        let ends = next.into_iter().chain(Some(settled).filter(|at| *at < Timestamp::NEVER)).map(end);
        let has_more = stopped.is_some_and(|stopped| is_old(stopped.at));
        cursor.wake = if has_more { now } else { ends.min().unwrap_or(Timestamp::NEVER) };
        if makes_room && !(rows.is_empty() && stopped.is_none()) {
            cursor.wake = now.plus(PACE);
        }
        passed
    }
}

/// What a cursor reads in one step.
fn slice(table: Table, from: Position) -> Scan {
    Scan { table, from, until: Timestamp::NEVER, topic: None, limit: SLICE, bodies: Bodies::Without }
}

impl<R> Shard<R> {
    /// Removes what was kept long enough.
    pub(super) fn pass_kept(&mut self, kept: Vec<(Table, Millis, Stretch)>) {
        let settled = self.flight.settled();
        for (table, period, stretch) in kept {
            let retention = if table == Table::History { &mut self.retained.history } else { &mut self.retained.dead };
            let passed = retention.pass(period, &stretch, self.now, settled);
            for row in &stretch.rows[..passed] {
                let Some(slot) = self.desk.by_key(&row.key) else { continue };
                let kept = &self.desk[slot];
                let unmoved = kept.table() == table && kept.at() == row.at;
                if unmoved && self.kept_for(slot) == Some(period) {
                    self.forget(slot);
                }
            }
        }
    }

    /// How long a row is kept where it stands; `None` means until something happens to it.
    pub(super) fn kept_for(&self, slot: Slot) -> Option<Millis> {
        let row = &self.desk[slot];
        match row.table() {
            Table::History => Some(self.directory.topic(row.topic()).settings.history),
            Table::Dead => {
                let queue = self.directory.queue_index(row.state.queue.as_ref()?)?;
                self.directory.queue(queue).settings.dead_retention
            }
            Table::Live | Table::Settings => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Key, Row};
    use bytes::Bytes;

    fn row(at: u64, seq: u64) -> Row {
        Row {
            table: Table::History,
            key: Key::new("t", &seq.to_string(), ""),
            seq,
            at: Timestamp::from_millis(at),
            group: None,
            state: Bytes::new(),
            body: Bytes::new(),
        }
    }

    /// All that there is.
    fn read(rows: &[Row]) -> Stretch {
        Stretch { rows: rows.to_vec(), ..Stretch::scan(slice(Table::History, Position::START)) }
    }

    #[test]
    fn a_read_that_stopped_early_is_gone_on_with_where_it_stopped() {
        let mut retention = Retention::new(Table::History);
        retention.add(Millis(100), Timestamp::ZERO);
        let now = Timestamp::from_millis(150);
        let stop = |rows: &[Row], next: Row| Stretch { next: Some(next.position()), ..read(rows) };
        assert_eq!(retention.pass(Millis(100), &stop(&[row(10, 1)], row(20, 2)), now, Timestamp::NEVER), 1);
        let (_, scan) = retention.due(now).next().unwrap();
        assert_eq!(scan.from, row(20, 2).position(), "old ones may be right behind");
        assert_eq!(retention.pass(Millis(100), &stop(&[], row(90, 3)), now, Timestamp::NEVER), 0);
        assert_eq!(retention.wake(), Timestamp::from_millis(190), "none is older than that");
    }

    #[test]
    fn a_cursor_stops_at_the_first_row_that_is_too_young() {
        let mut retention = Retention::new(Table::History);
        retention.add(Millis(100), Timestamp::ZERO);
        let rows = [row(10, 1), row(20, 2), row(90, 3)];
        let now = Timestamp::from_millis(130);
        assert_eq!(retention.pass(Millis(100), &read(&rows), now, Timestamp::NEVER), 2);
        assert_eq!(retention.wake(), Timestamp::from_millis(190));
        assert_eq!(retention.due(Timestamp::from_millis(190)).count(), 1);
    }

    #[test]
    fn a_cursor_does_not_pass_where_rows_may_still_come() {
        let mut retention = Retention::new(Table::History);
        retention.add(Millis(1), Timestamp::ZERO);
        let now = Timestamp::from_millis(20);
        assert_eq!(retention.pass(Millis(1), &read(&[row(10, 1)]), now, Timestamp::from_millis(10)), 0);
        assert_eq!(retention.wake(), now.plus(AGAIN));
    }

    #[test]
    fn while_room_has_to_be_made_rows_go_before_their_time_and_slowly() {
        let mut retention = Retention::new(Table::History);
        retention.add(Millis(100), Timestamp::ZERO);
        let now = Timestamp::from_millis(30);
        assert_eq!(retention.pass(Millis(100), &read(&[row(10, 1), row(20, 2)]), now, Timestamp::NEVER), 0);
        assert_eq!(retention.wake(), Timestamp::from_millis(110));
        retention.give_way(true, now);
        assert_eq!(retention.wake(), now);
        assert!(!retention.takes_rows());
        assert_eq!(retention.pass(Millis(100), &read(&[row(10, 1), row(20, 2)]), now, Timestamp::NEVER), 2);
        assert_eq!(retention.wake(), now.plus(PACE));
        retention.give_way(false, now);
        assert!(retention.takes_rows());
        assert_eq!(
            retention.pass(Millis(100), &read(&[row(25, 3)]), now.plus(PACE), Timestamp::NEVER),
            1,
            "its time is over"
        );
        assert_eq!(retention.pass(Millis(100), &read(&[row(95, 4)]), now.plus(PACE), Timestamp::NEVER), 0);
    }

    #[test]
    fn what_somebody_else_removes_is_never_looked_at() {
        let mut retention = Retained::new(true).history;
        retention.add(Millis(100), Timestamp::ZERO);
        retention.add(Millis(200), Timestamp::ZERO);
        retention.keep(Millis(100), Position::START);
        assert_eq!((retention.wake(), retention.due(Timestamp::LAST).count()), (Timestamp::NEVER, 0));
    }

    #[test]
    fn an_empty_table_sleeps_until_something_is_kept() {
        let mut retention = Retention::new(Table::History);
        retention.add(Millis(100), Timestamp::ZERO);
        let now = Timestamp::from_millis(5);
        retention.pass(Millis(100), &read(&[]), now, Timestamp::NEVER);
        assert_eq!(retention.wake(), Timestamp::NEVER);
        retention.keep(Millis(100), Position::start_of(now));
        assert_eq!(retention.wake(), Timestamp::from_millis(105));
    }

    #[test]
    fn a_row_that_is_too_young_is_waited_for_also_while_others_may_come_before_it() {
        let mut retention = Retention::new(Table::History);
        retention.add(Millis::ZERO, Timestamp::ZERO);
        let now = Timestamp::from_millis(10);
        assert_eq!(retention.pass(Millis::ZERO, &read(&[row(15, 1)]), now, now), 0);
        assert_eq!(retention.wake(), Timestamp::from_millis(15));
    }

    #[test]
    fn what_comes_behind_the_cursor_is_found() {
        let mut retention = Retention::new(Table::Dead);
        retention.add(Millis::ZERO, Timestamp::ZERO);
        let now = Timestamp::from_millis(10);
        assert_eq!(retention.pass(Millis::ZERO, &read(&[row(10, 7)]), now, Timestamp::NEVER), 1);
        retention.keep(Millis::ZERO, row(10, 3).position());
        let (_, scan) = retention.due(now).next().unwrap();
        assert_eq!(scan.from, row(10, 3).position());
    }

    #[test]
    fn a_time_that_nobody_keeps_rows_for_any_more_costs_nothing() {
        let mut retention = Retention::new(Table::History);
        for period in 1..1_000 {
            retention.add(Millis(period), Timestamp::ZERO);
            retention.drop(Millis(period));
        }
        assert!(retention.cursors.is_empty());
        retention.add(Millis(5), Timestamp::ZERO);
        retention.add(Millis(5), Timestamp::ZERO);
        retention.drop(Millis(5));
        assert_eq!(retention.cursors.len(), 1);
    }
}
