//! In which order a job comes to its rows.

use super::stretch::Stretch;
use crate::name::Name;
use crate::store::{Bodies, Find, Position, Scan, Table};
use crate::sweep::{Among, Matching, Select, SweepAction, TimeRange};
use crate::time::{Millis, Timestamp};

/// How many rows a job changes in one step.
pub(super) const STRETCH: usize = 256;

#[derive(Clone, Debug)]
pub(super) enum Course {
    /// All of a table in a time, maybe of one topic only.
    Time { table: Table, topic: Option<Name>, range: TimeRange },
    /// Those of a key, by their numbers.
    Key { table: Table, key: Name },
    /// None but those that are named.
    Named,
}

impl Course {
    /// All rows of a table.
    pub fn table(table: Table, topic: Option<Name>) -> Course {
        Course::Time { table, topic, range: TimeRange::ALL }
    }

    /// That of a sweep which begins now; that of one which takes back another follows from what the other one did.
    pub fn of(matching: &Matching, now: Timestamp) -> Course {
        match matching {
            Matching::Key { key, .. } => Course::Key { table: Table::Live, key: key.clone() },
            Matching::Dead { topic, died, .. } => {
                Course::Time { table: Table::Dead, topic: topic.clone(), range: *died }
            }
            Matching::History { topic, finished, .. } => {
                Course::Time { table: Table::History, topic: Some(topic.clone()), range: *finished }
            }
            Matching::Tasks(select) => Course::of_select(select, now),
            Matching::Changed { .. } => Course::Named,
        }
    }

    fn of_select(select: &Select, now: Timestamp) -> Course {
        let table = select.table();
        if select.ids.is_some() {
            return Course::Named;
        }
        if let Some(key) = &select.key {
            return Course::Key { table, key: key.clone() };
        }
        let (mut range, next) = (select.time, now.plus(Millis(1)));
        match select.among {
            Among::Scheduled => range.from = range.from.max(next),
            Among::Ready => range.until = range.until.min(next),
            Among::Live | Among::Dead { .. } | Among::History { .. } => {}
        }
        Course::Time { table, topic: select.topic.clone(), range }
    }

    /// To what a sweep has changed, which stands between these times now.
    pub fn to_changed(action: SweepAction, topic: Option<Name>, (first, last): (Timestamp, Timestamp)) -> Course {
        let table = match action {
            SweepAction::Shift(_) | SweepAction::Spread(_) => Table::Live,
            _ => Table::History,
        };
        Course::Time { table, topic, range: TimeRange { from: first, until: last.plus(Millis(1)) } }
    }

    /// Where it begins.
    pub fn start(&self) -> Position {
        match self {
            Course::Time { range, .. } => Position::start_of(range.from),
            Course::Key { .. } | Course::Named => Position::START,
        }
    }

    /// Where a row stands on it: by its number alone, if rows come by their numbers.
    pub fn place(&self, position: Position) -> Position {
        match self {
            Course::Key { .. } => Position { at: Timestamp::ZERO, seq: position.seq },
            Course::Time { .. } | Course::Named => position,
        }
    }

    /// The table that it goes through; none if rows are named.
    pub fn through(&self) -> Option<Table> {
        match self {
            Course::Time { table, .. } | Course::Key { table, .. } => Some(*table),
            Course::Named => None,
        }
    }

    /// The next rows from a place, up to a time.
    pub fn stretch(&self, from: Position, until: Timestamp) -> Stretch {
        let (limit, bodies) = (STRETCH, Bodies::Without);
        match self {
            Course::Time { table, topic, .. } => {
                Stretch::scan(Scan { table: *table, from, until, topic: topic.clone(), limit, bodies })
            }
            Course::Key { table, key } => {
                Stretch::find(Find { table: *table, group: key.clone(), from_seq: from.seq, limit, bodies })
            }
            Course::Named => Stretch::nothing(),
        }
    }
}
