//! Into how many shards the tasks of a store are divided, and were before it grew: an entry of the cluster.
//!
//! A store grows by a whole factor, so that each shard has its own children and rows keep their numbers in them. What
//! people see of a row is that number and its shard in one, under the number of shards of its **era**: the time in which it
//! was given. Every shard of the next era begins above all numbers of those before, so that one follows from the other:
//! ```text
//! row:     1 … rows₁−1            rows₁ … rows₂−1            rows₂ …
//! number:  row·s₁ + shard₁        row·s₂ + shard₂            row·s₃ + shard₃
//! ```
//! The entry has the number of shards, then a line for each era that is over, and one for a growth that is under way:
//! ```text
//! 64
//! was 16 below row 65538 token 1790000000000000
//! growing to 256 after row 140000 token 1795000000000000 left 12
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::shard::noted_shards;
use crate::store::{ShardId, Store, StoreError};

/// Into how many shards the tasks of a store are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// Their number; while it grows, the old one.
    pub shards: u16,
    /// How it was before.
    pub eras: Eras,
    /// What is being done about it, while nobody may work on the store.
    pub growth: Option<Growth>,
}

/// A time in which there were so many shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// How many.
    pub shards: u16,
    /// All rows that came in until its end have numbers below this, and all later ones have not.
    pub rows: u64,
    /// The same for tokens.
    pub tokens: u64,
}

/// The eras that are over, the first one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Eras(Arc<[Era]>);

/// A growth that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// How many shards there will be.
    pub to: u16,
    /// How far it is, once rows may have moved.
    pub moving: Option<Moving>,
}

/// How far a growth is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// The era that ends.
    pub ending: Era,
    /// The shards below this one are still to be divided.
    pub left: u16,
}

impl Division {
    /// The key of the entry.
    pub const KEY: &str = "shards";

    /// So many, and never another number.
    pub fn of(shards: u16) -> Division {
        Division { shards, eras: Eras::default(), growth: None }
    }

    /// Reads the entry; nothing comes back if it is not one.
    pub fn read(bytes: &[u8]) -> Option<Division> {
        let mut lines = std::str::from_utf8(bytes).ok()?.lines();
        let mut division = Division::of(lines.next()?.parse().ok()?);
        let mut eras = Vec::new();
        for line in lines {
            match *line.split(' ').collect::<Vec<_>>() {
                ["was", shards, "below", "row", rows, "token", tokens] => eras.push(read_era(shards, rows, tokens)?),
                ["growing", "to", to] => division.growth = Some(Growth { to: to.parse().ok()?, moving: None }),
                ["growing", "to", to, "after", "row", rows, "token", tokens, "left", left] => {
                    let ending = Era { shards: division.shards, ..read_era("1", rows, tokens)? };
                    let moving = Some(Moving { ending, left: left.parse().ok()? });
                    division.growth = Some(Growth { to: to.parse().ok()?, moving });
                }
                _ => return None,
            }
        }
        division.eras = Eras(eras.into());
        division.is_sound().then_some(division)
    }

    /// Each number of shards is a multiple of the one before.
    fn is_sound(&self) -> bool {
        let growing = self.growth.map(|growth| growth.to);
        let all: Vec<u16> = self.eras.0.iter().map(|era| era.shards).chain([self.shards]).chain(growing).collect();
        all[0] > 0 && all.windows(2).all(|pair| pair[1] > pair[0] && pair[1].is_multiple_of(pair[0]))
    }

    /// The store when a growth has come to its end.
    #[must_use]
    pub fn grown(&self, to: u16, ending: Era) -> Division {
        let eras = self.eras.0.iter().copied().chain([ending]).collect();
        Division { shards: to, eras: Eras(eras), growth: None }
    }
}

fn read_era(shards: &str, rows: &str, tokens: &str) -> Option<Era> {
    Some(Era { shards: shards.parse().ok()?, rows: rows.parse().ok()?, tokens: tokens.parse().ok()? })
}

/// The entry as it is written.
impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shards)?;
        for Era { shards, rows, tokens } in &*self.eras.0 {
            write!(f, "\nwas {shards} below row {rows} token {tokens}")?;
        }
        let Some(Growth { to, moving }) = self.growth else { return Ok(()) };
        write!(f, "\ngrowing to {to}")?;
        let Some(Moving { ending: Era { rows, tokens, .. }, left }) = moving else { return Ok(()) };
        write!(f, " after row {rows} token {tokens} left {left}")
    }
}

/// Into how many shards the tasks of a store are divided, if that was ever chosen. Stores from before there was an entry
/// have it noted in their shards.
pub fn division_of(store: &dyn Store) -> Result<Option<Division>, StoreError> {
    let Some(entry) = store.cluster_get(Division::KEY)? else { return Ok(noted_shards(store)?.map(Division::of)) };
    let unreadable = || {
        let why = "cannot be read: maybe a newer version has written it";
        StoreError::Unavailable(format!("the entry `{}` of the store {why}", Division::KEY))
    };
    Division::read(&entry.value).map(Some).ok_or_else(unreadable)
}

impl Eras {
    /// The number of a row for people, told from those of all shards, of which there are so many.
    pub fn number(&self, shard: ShardId, row: u64, shards: u16) -> u64 {
        let then = self.0.iter().find(|era| row < era.rows).map_or(shards, |era| era.shards);
        row * u64::from(then) + u64::from(shard.0 / (shards / then))
    }

    /// The shards in one of which the row of this number is, if it is anywhere, and its number there.
    pub fn places(&self, number: u64, shards: u16) -> (Range<u16>, u64) {
        let is_of = |era: &&Era| number < era.rows.saturating_mul(era.shards.into());
        let then = self.0.iter().find(is_of).map_or(shards, |era| era.shards);
        let (row, shard) = (number / u64::from(then), (number % u64::from(then)) as u16);
        let children = shards / then;
        let places = shard * children..(shard + 1) * children;
        // Between two eras there are numbers that were never given.
        let is_given = self.number(ShardId(places.start), row, shards) == number;
        (if is_given { places } else { 0..0 }, row)
    }

    /// The shard in which a token was given that is in this one now.
    pub(crate) fn birthplace(&self, shard: ShardId, token: u64, shards: u16) -> ShardId {
        let then = self.0.iter().find(|era| token < era.tokens).map_or(shards, |era| era.shards);
        ShardId(shard.0 / (shards / then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn era(shards: u16, rows: u64) -> Era {
        Era { shards, rows, tokens: rows * 10 }
    }

    fn eras() -> Eras {
        Eras(vec![era(2, 100), era(6, 130)].into())
    }

    #[test]
    fn the_entry_is_read_as_it_was_written() {
        let growing = |moving| Some(Growth { to: 48, moving });
        for growth in [None, growing(None), growing(Some(Moving { ending: era(24, 900), left: 5 }))] {
            for eras in [Eras::default(), eras()] {
                let division = Division { shards: 24, eras, growth };
                assert_eq!(Division::read(division.to_string().as_bytes()), Some(division));
            }
        }
        assert_eq!(Division::of(16).to_string(), "16", "as it was before stores could grow");
    }

    #[test]
    fn an_entry_that_makes_no_sense_is_not_read() {
        for text in [
            "",
            "x",
            "0",
            "70000",
            "4\nwas",
            "4\nwas 3 below row 1 token 1",
            "4\nwas 4 below row 1 token 1",
            "4\nwas 0 below row 1 token 1",
            "4\ngrowing to 6",
            "4\ngrowing to 4",
            "4\nis 5",
            "4\ngrowing to 8 after row 1 token 1 left",
        ] {
            assert_eq!(Division::read(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_number_stays_what_it_was_when_its_shard_is_divided() {
        let before = Eras::default().number(ShardId(1), 7, 2);
        let once = Eras(vec![era(2, 100)].into());
        for child in 3..6 {
            assert_eq!(once.number(ShardId(child), 7, 6), before);
        }
        for child in 12..24 {
            assert_eq!(eras().number(ShardId(child), 7, 24), before);
        }
        assert_eq!(eras().number(ShardId(12), 110, 24), once.number(ShardId(3), 110, 6));
        assert_eq!(eras().number(ShardId(12), 130, 24), 130 * 24 + 12);
    }

    #[test]
    fn every_number_leads_to_its_row_and_to_no_other() {
        let (eras, mut given) = (eras(), std::collections::BTreeMap::new());
        for shard in (0..24).map(ShardId) {
            for row in 1..140 {
                let number = eras.number(shard, row, 24);
                let (places, found) = eras.places(number, 24);
                assert!(places.contains(&shard.0) && found == row, "{shard:?} {row}: {places:?} {found}");
                given.insert(number, (places, found));
            }
        }
        for number in 0..5_000 {
            let (places, _) = eras.places(number, 24);
            assert!(places.is_empty() || given.contains_key(&number) || !(24..140 * 24).contains(&number), "{number}");
        }
    }

    #[test]
    fn a_token_is_of_the_shard_in_which_it_was_given() {
        let birthplace = |token| eras().birthplace(ShardId(23), token, 24).0;
        assert_eq!([999, 1_000, 1_299, 1_300].map(birthplace), [1, 5, 5, 23]);
    }
}
