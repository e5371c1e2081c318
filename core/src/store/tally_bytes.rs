//! Tallies as bytes: a building block for stores that keep all counts of a shard, or of a commit, as one value.
//!
//! ```text
//! version 1, then for each tally, in order:
//!   kind: 1 byte
//!   slot: varint, what it is more than the slot of the tally before, if that is of the same kind
//!   name: length, 1 byte (zero: none), and its bytes
//!   count: zigzag varint
//! ```
//! Neighbouring slots and small counts are the rule, so that most tallies of time take four bytes.

use std::collections::BTreeMap;

use super::{Tally, TallyKind};
use crate::name::Name;

const VERSION: u8 = 1;

/// Bytes that are not tallies, or of a version that is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tallies cannot be read: they are damaged, or were written by a newer version")]
pub struct UnreadableTallies;

/// Counts by their tallies; those that are zero are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies(BTreeMap<Tally, i64>);

impl Tallies {
    /// Adds to a count.
    pub fn add(&mut self, tally: Tally, by: i64) {
        let count = self.0.entry(tally).or_default();
        *count = count.wrapping_add(by);
    }

    /// Adds counts that were written as bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<(), UnreadableTallies> {
        read(bytes, |tally, by| self.add(tally, by)).ok_or(UnreadableTallies)
    }

    /// Writes all that are not zero.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let mut before = None;
        for (tally, count) in self.0.iter().filter(|(_, count)| **count != 0) {
            let base = before.filter(|(kind, _)| *kind == tally.kind).map_or(0, |(_, slot)| slot);
            bytes.push(tally.kind as u8);
            put_varint(&mut bytes, tally.slot.wrapping_sub(base));
            let name = tally.name.as_deref().unwrap_or_default();
            bytes.push(u8::try_from(name.len()).expect("a name has at most 255 bytes"));
            bytes.extend_from_slice(name.as_bytes());
            put_varint(&mut bytes, ((count << 1) ^ (count >> 63)).cast_unsigned());
            before = Some((tally.kind, tally.slot));
        }
        bytes
    }

    /// All that are not zero, in order.
    pub fn into_vec(self) -> Vec<(Tally, i64)> {
        self.0.into_iter().filter(|(_, count)| *count != 0).collect()
    }
}

impl FromIterator<(Tally, i64)> for Tallies {
    fn from_iter<I: IntoIterator<Item = (Tally, i64)>>(counts: I) -> Tallies {
        let mut tallies = Tallies::default();
        counts.into_iter().for_each(|(tally, by)| tallies.add(tally, by));
        tallies
    }
}

fn read(bytes: &[u8], mut take: impl FnMut(Tally, i64)) -> Option<()> {
    let (&VERSION, mut rest) = bytes.split_first()? else { return None };
    let mut before = None;
    while let Some((&number, after)) = rest.split_first() {
        rest = after;
        let kind = TallyKind::from_number(number)?;
        let base = before.filter(|(before, _)| *before == kind).map_or(0, |(_, slot)| slot);
        let slot = take_varint(&mut rest)?.wrapping_add(base);
        let (&length, after) = rest.split_first()?;
        let (name, after) = after.split_at_checked(usize::from(length))?;
        rest = after;
        let name = match std::str::from_utf8(name).ok()? {
            "" => None,
            name => Some(Name::read_back(name).ok()?),
        };
        let count = take_varint(&mut rest)?;
        take(Tally { kind, name, slot }, (count >> 1).cast_signed() ^ -(count & 1).cast_signed());
        before = Some((kind, slot));
    }
    Some(())
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Tallies {
        let name = Name::stored("orders");
        let minute = |slot, count| (Tally::slot(TallyKind::DueMinute, slot), count);
        let all = [
            (Tally::named(TallyKind::Waiting, &name), 7),
            (Tally::named(TallyKind::QueueDead, &name), -7),
            (Tally::slot(TallyKind::DueDay, 20_000), i64::MIN),
            minute(0, i64::MAX),
            minute(28_000_000, 1),
            minute(28_000_001, -1),
            minute(u64::MAX, 2),
        ];
        all.into_iter().collect()
    }

    #[test]
    fn tallies_come_back_as_they_were() {
        let mut back = Tallies::default();
        back.add_bytes(&some().to_bytes()).unwrap();
        assert_eq!(back, some());
        assert_eq!(some().into_vec().len(), 7);
    }

    #[test]
    fn neighbours_in_time_take_four_bytes_each() {
        let minutes = |count| (0..count).map(|slot| (Tally::slot(TallyKind::DueMinute, 28_000_000 + slot), 1));
        let bytes = |count| minutes(count).collect::<Tallies>().to_bytes().len();
        assert_eq!(bytes(100) - bytes(99), 4);
    }

    #[test]
    fn what_adds_up_to_zero_is_left_out() {
        let mut sum = some();
        for (tally, count) in some().into_vec() {
            sum.add(tally, count.wrapping_neg());
        }
        assert_eq!(sum.to_bytes(), [VERSION]);
        assert_eq!(sum.into_vec(), []);
    }

    #[test]
    fn damaged_bytes_are_refused_and_never_panic() {
        let bytes = some().to_bytes();
        assert_eq!(Tallies::default().add_bytes(&[]), Err(UnreadableTallies));
        assert_eq!(Tallies::default().add_bytes(&[VERSION + 1]), Err(UnreadableTallies));
        assert_eq!(Tallies::default().add_bytes(&bytes[..bytes.len() - 1]), Err(UnreadableTallies));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let _ = Tallies::default().add_bytes(&damaged);
        }
    }
}
