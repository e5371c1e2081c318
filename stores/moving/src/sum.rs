//! Checksums that do not depend on the order in which rows are read.
//!
//! Each row is laid out in one way and hashed; the hashes are added up. Two sums are equal if both have the same rows,
//! and with all likelihood only then. They find what went wrong, not what somebody forged.

use std::fmt;
use std::ops::{AddAssign, SubAssign};

use punctual_core::store::{Row, Table};
use serde::{Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_128;

/// Some rows: how many they are, and a checksum of all that they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// How many.
    pub rows: u64,
    /// The bytes of their names, states and bodies.
    pub bytes: u64,
    /// The sum of their hashes.
    #[serde(serialize_with = "as_hex")]
    pub checksum: u128,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.checksum = self.checksum.wrapping_add(other.checksum);
    }
}

impl SubAssign for Sum {
    fn sub_assign(&mut self, other: Sum) {
        self.rows -= other.rows;
        self.bytes -= other.bytes;
        self.checksum = self.checksum.wrapping_sub(other.checksum);
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.rows == 1 { "" } else { "s" };
        write!(f, "{} row{s} of {} bytes, checksum {:032x}", self.rows, self.bytes, self.checksum)
    }
}

fn as_hex<S: Serializer>(checksum: &u128, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{checksum:032x}"))
}

/// A sum for each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Tasks and deliveries to come, ready or with a consumer.
    pub live: Sum,
    /// Dead letters.
    pub dead: Sum,
    /// Finished tasks.
    pub history: Sum,
    /// Settings, and the shard's note.
    pub settings: Sum,
}

impl Sums {
    /// The sum of a table.
    pub fn of(&self, table: Table) -> Sum {
        match table {
            Table::Live => self.live,
            Table::Dead => self.dead,
            Table::History => self.history,
            Table::Settings => self.settings,
        }
    }

    fn of_mut(&mut self, table: Table) -> &mut Sum {
        match table {
            Table::Live => &mut self.live,
            Table::Dead => &mut self.dead,
            Table::History => &mut self.history,
            Table::Settings => &mut self.settings,
        }
    }

    /// All tables together.
    pub fn total(&self) -> Sum {
        let mut total = Sum::default();
        Table::ALL.into_iter().for_each(|table| total += self.of(table));
        total
    }
}

/// Adds rows up. It keeps the room in which it lays them out.
#[derive(Default)]
pub(crate) struct Summing {
    sums: Sums,
    laid_out: Vec<u8>,
}

impl Summing {
    pub fn add(&mut self, row: &Row) {
        let sum = self.of(row);
        *self.sums.of_mut(row.table) += sum;
    }

    /// Takes a row off that was added.
    pub fn take_off(&mut self, row: &Row) {
        let sum = self.of(row);
        *self.sums.of_mut(row.table) -= sum;
    }

    fn of(&mut self, row: &Row) -> Sum {
        self.lay_out(row);
        Sum { rows: 1, bytes: weight(row) as u64, checksum: xxh3_128(&self.laid_out) }
    }

    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// Lengths come before what they are the lengths of, so that no two rows are laid out alike.
    fn lay_out(&mut self, row: &Row) {
        let to = &mut self.laid_out;
        to.clear();
        to.push(row.table as u8);
        to.extend(row.seq.to_le_bytes());
        to.extend(row.at.as_millis().to_le_bytes());
        to.push(u8::from(row.group.is_some()));
        let group = row.group.as_ref().map_or("", |group| group.as_str());
        let texts = [row.key.topic(), row.key.id(), row.key.queue(), group].map(str::as_bytes);
        for part in texts.into_iter().chain([&*row.state, &*row.body]) {
            to.extend((part.len() as u64).to_le_bytes());
            to.extend(part);
        }
    }
}

/// How many bytes a row has, more or less.
pub(crate) fn weight(row: &Row) -> usize {
    row.key.text().len() + row.group.as_ref().map_or(0, |group| group.len()) + row.state.len() + row.body.len()
}

#[cfg(test)]
mod tests {
    use punctual_core::store::Key;
    use punctual_core::{Name, Timestamp};

    use super::*;

    fn row() -> Row {
        Row {
            table: Table::Live,
            key: Key::new("ab", "c", ""),
            seq: 7,
            at: Timestamp::from_millis(5),
            group: None,
            state: "state".into(),
            body: "body".into(),
        }
    }

    fn sum(rows: &[Row]) -> Sums {
        let mut summing = Summing::default();
        rows.iter().for_each(|row| summing.add(row));
        summing.sums()
    }

    #[test]
    fn every_part_of_a_row_counts() {
        let others = [
            Row { table: Table::Dead, ..row() },
            Row { key: Key::new("a", "bc", ""), ..row() },
            Row { key: Key::new("ab", "", "c"), ..row() },
            Row { seq: 8, ..row() },
            Row { at: Timestamp::NEVER, ..row() },
            Row { group: Some(Name::stored("g")), ..row() },
            Row { state: "stat".into(), body: "ebody".into(), ..row() },
            Row { body: "".into(), ..row() },
        ];
        for other in &others {
            assert_ne!(sum(&[row()]), sum(std::slice::from_ref(other)), "{other:?}");
        }
        assert_eq!(sum(&[row()]).live.bytes, 12);
    }

    #[test]
    fn the_order_of_rows_does_not_count_and_their_number_does() {
        let other = Row { seq: 8, key: Key::new("x", "y", ""), ..row() };
        assert_eq!(sum(&[row(), other.clone()]), sum(&[other, row()]));
        assert_ne!(sum(&[row(), row(), row()]), sum(&[row()]));
        assert_eq!(sum(&[row(), row()]).total().rows, 2);
    }
}
