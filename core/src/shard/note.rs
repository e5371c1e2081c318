//! A shard's note and counts, for whoever divides the shard while nobody works on it.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::counts::counted_in;
use super::forecast::slots;
use super::meta::{Meta, Numbers};
use crate::division::Era;
use crate::state::UnreadableState;
use crate::store::{Position, Row, Table, Tally, TallyKind};
use crate::time::Timestamp;

/// What a shard notes for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note(Meta);

impl Note {
    /// The note in a row of settings, if it is one.
    pub fn read(row: &Row) -> Option<Note> {
        (row.table == Table::Settings && row.key == Meta::key()).then(|| Note(Meta::decode(&row.state)))
    }

    /// That of a shard which was never opened, and is closed.
    pub fn fresh() -> Note {
        Note(Meta::new(0, &Numbers::new(), Position::START, 0))
    }

    /// Of how many shards it is one; zero if it is closed.
    pub fn shards(self) -> u16 {
        self.0.shards()
    }

    /// All numbers of rows and all tokens that were ever given are below these.
    pub fn bounds(self) -> (u64, u64) {
        self.0.bounds()
    }

    /// The note of a shard that cannot be opened, because it is being divided.
    #[must_use]
    pub fn closed(self) -> Note {
        let (rows, tokens) = self.bounds();
        Note(self.0.divided(0, rows, tokens))
    }

    /// The note of each of its children, of which there are so many in all: numbers go on after those of the era.
    #[must_use]
    pub fn divided(self, shards: u16, era: &Era) -> Note {
        Note(self.0.divided(shards, era.rows, era.tokens))
    }

    /// The row it is stored in.
    pub fn row(self) -> Row {
        let (key, at, state) = (Meta::key(), Timestamp::ZERO, self.0.encode());
        Row { table: Table::Settings, key, seq: 0, at, group: None, state, body: Bytes::new() }
    }

    /// Counts a row of the shard in every tally it belongs to.
    pub fn count(self, row: &Row, counts: &mut BTreeMap<Tally, i64>) -> Result<(), UnreadableState> {
        for tally in counted_in(row)? {
            if tally.kind == TallyKind::Waiting {
                for (kind, slot) in slots(row.position(), self.0.minutes()) {
                    *counts.entry(Tally::slot(kind, slot)).or_default() += 1;
                }
            }
            *counts.entry(tally).or_default() += 1;
        }
        Ok(())
    }
}
