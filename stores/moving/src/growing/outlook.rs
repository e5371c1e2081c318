//! What a growth would do, for who wants to know before.

use std::fmt;
use std::time::{Duration, Instant};

use punctual_core::Name;
use punctual_core::store::{Incarnation, ShardId, Table};

use super::{Grow, GrowError};
use crate::copying::expected;
use crate::error::MoveError;
use crate::patience::Patience;
use crate::presence::Guest;
use crate::reading::{Held, Reading};

/// A row is read, written, removed and counted, and writing takes longer than reading.
const READS: u32 = 6;

/// What a growth would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// How many shards there are.
    pub from: u16,
    /// How many there will be.
    pub to: u16,
    /// Whether it goes on with what had ended before its time.
    pub resumes: bool,
    /// How many rows are in the shards that are still to be divided, by the counts that are kept beside them: nearly all.
    pub rows: u64,
    /// How many of them go into another shard, more or less.
    pub moving: u64,
    /// How long it will take, very roughly: judged by how long some rows take to be read.
    pub time: Duration,
}

impl Grow<'_> {
    /// Looks at what would be done, and does nothing. A server may be running.
    pub fn look(&self) -> Result<Outlook, GrowError> {
        let division = self.standing()?;
        let (from, growth) = (division.shards, division.growth);
        let left = growth.and_then(|growth| growth.moving).map_or(from, |moving| moving.left);
        // It is on no roll.
        let who = Incarnation { node: Name::stored(super::NAME), number: 0 };
        let guest = Guest { side: self.side, who, patience: Patience(self.patience) };
        let (mut rows, mut staying) = (0, 0);
        for shard in (0..left).map(ShardId) {
            let here = expected(&guest, &[shard])?;
            rows += here;
            if shard.0 == 0 {
                // The others leave all that they have.
                staying = here / u64::from(self.to / from);
            }
        }
        let reads = u32::try_from(rows).unwrap_or(u32::MAX).saturating_mul(READS);
        let time = self.time_of_a_row(left, &guest)?.saturating_mul(reads);
        Ok(Outlook { from, to: self.to, resumes: growth.is_some(), rows, moving: rows - staying, time })
    }

    /// How long it takes to read a row: of the first shard that has some.
    fn time_of_a_row(&self, left: u16, guest: &Guest<'_>) -> Result<Duration, GrowError> {
        for shard in (0..left).map(ShardId) {
            let held = Held { store: self.side.store, shard, tenure: None };
            let begun = Instant::now();
            for page in Reading::new(held, guest.patience, &[Table::Live]).take(1) {
                let rows = page.map_err(MoveError::of(self.side.name))?.len();
                if let Some(time) = begun.elapsed().checked_div(rows as u32) {
                    return Ok(time);
                }
            }
        }
        Ok(Duration::ZERO)
    }
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outlook { from, to, resumes, rows, moving, time } = self;
        let begins = if *resumes { "goes on from" } else { "from" };
        write!(f, "{begins} {from} to {to} shards: about {moving} of {rows} rows go into another shard, ")?;
        match time.as_secs() {
            0 => write!(f, "in a moment"),
            seconds @ ..120 => write!(f, "which takes very roughly {seconds} s"),
            seconds => write!(f, "which takes very roughly {} min", seconds.div_ceil(60)),
        }
    }
}
