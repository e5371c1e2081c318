//! Counts that cannot be right. Those that a shard is opened with are put right by counting its rows; one that says that
//! something is left of what was deleted, when nothing is, by the deletion (`closing.rs`).
//!
//! Nothing leads to such counts that is known. But a count is not worth a shard that cannot be opened: whoever runs
//! it learns from its steps what was mended, and says so where people look.

use std::collections::BTreeMap;

use super::Shard;
use super::counts::kinds;
use super::open::read_one;
use crate::name::Name;
use crate::settings::TopicSettings;
use crate::state::{Phase, State};
use crate::store::{Bodies, Position, Row, Scan, Store, StoreError, Table, Tally, Want};
use crate::time::Timestamp;

/// How many rows are read at once.
const STRETCH: usize = 1_024;

/// A count that was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// What is counted.
    pub tally: Tally,
    /// What the store had.
    pub stored: i64,
    /// What is right.
    pub right: i64,
}

impl<R> Shard<R> {
    /// Counts all rows, and puts every count right that is not. `absent` are counts of what is not there.
    pub(super) fn recount(&mut self, store: &dyn Store, absent: Vec<(Tally, i64)>) -> Result<(), StoreError> {
        let mut right: BTreeMap<Tally, i64> = BTreeMap::new();
        let mut waiting: Vec<Position> = Vec::new();
        for table in [Table::Live, Table::Dead, Table::History] {
            let mut from = Position::START;
            loop {
                let scan =
                    Scan { table, from, until: Timestamp::NEVER, topic: None, limit: STRETCH, bodies: Bodies::Without };
                let page = read_one(store, self.id(), self.tenure(), Want::Scan(&scan))?.span();
                page.rows.iter().for_each(|row| self.recount_row(row, &mut right, &mut waiting));
                match page.next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        // Counts of what is there, and those of what is not: the store keeps both until it is told otherwise.
        let stored = self.directory.tallies().into_iter().chain(absent);
        let counts = stored.map(|(tally, stored)| {
            let right = right.get(&tally).copied().unwrap_or(0);
            Mended { tally, stored, right }
        });
        let wrong: Vec<Mended> = counts.filter(|count| count.stored != count.right).collect();
        wrong.iter().for_each(|count| self.directory.mend(&count.tally, count.right));
        self.draft.mended(wrong);
        self.draft.mended(self.forecast.recount(&waiting));
        Ok(())
    }

    fn recount_row(&mut self, row: &Row, right: &mut BTreeMap<Tally, i64>, waiting: &mut Vec<Position>) {
        let state = State::decode(&row.state);
        let topic = Name::stored(row.key.topic());
        if self.directory.topic_index(&topic).is_none() {
            // A row without its topic: by its count the topic held nothing, and it was let go.
            self.create_topic(&topic, TopicSettings::default());
        }
        if row.table == Table::Live && state.phase == Phase::Waiting {
            waiting.push(row.position());
        }
        let Some((of_topic, of_queue)) = kinds(row.table, &state.phase) else { return };
        *right.entry(Tally::named(of_topic, &topic)).or_default() += 1;
        if let (Some(kind), Some(queue)) = (of_queue, &state.queue)
            && self.directory.queue_index(queue).is_some()
        {
            *right.entry(Tally::named(kind, queue)).or_default() += 1;
        }
    }
}
