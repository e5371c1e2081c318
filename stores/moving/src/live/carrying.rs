//! A shard on its way: most of it while it is in use, the rest while it is set aside.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::{Bodies, Row, ShardId, StoreError, Table, Tally, Tenure, Want};

use super::Transit;
use super::crossing::Crossing;
use super::tracking::Tracked;
use crate::copying::{compare, compare_counts, expected, read_back, tallies};
use crate::error::MoveError;
use crate::presence::Guest;
use crate::progress::{Counting, Progress};
use crate::reading::{Held, Reading, carry};
use crate::report::ShardReport;
use crate::sum::{Summing, weight};
use crate::writing::Writing;

/// What is copied ahead. Settings are few, and follow when the shard is set aside.
const AHEAD: [Table; 3] = [Table::Live, Table::Dead, Table::History];
const SETTINGS: [Table; 1] = [Table::Settings];

/// How long a store is waited for while the shard is in use, and while its tasks wait.
const IN_USE: Duration = Duration::from_secs(30);
const SET_ASIDE: Duration = Duration::from_secs(5);

/// How many rows may be left for the moment at which the shard is set aside, and how often it is tried to get there: a
/// shard that changes faster than it can be followed has to wait longer.
const FEW: usize = 500;
const ROUNDS: usize = 5;
/// How many changed rows are read at once.
const CHUNK: usize = 128;

/// Most of a shard is in the target; what changes is noted.
pub struct Ahead {
    shard: ShardId,
    crossing: Arc<Crossing>,
    tracked: Arc<Tracked>,
    target: Tenure,
    /// What has been copied, with all that changed since.
    summing: Summing,
    copied: u64,
    /// The counts as they were last. There may be one for each minute of a year, so most of them go ahead, too.
    counts: Vec<(Tally, i64)>,
}

impl Transit {
    /// Copies most of a shard, while it is in use, and reads it back.
    pub fn copy_ahead(&self, shard: ShardId, watch: &(dyn Fn(Progress) + Sync)) -> Result<Ahead, MoveError> {
        let crossing = self.crossing()?;
        crossing.settle(IN_USE)?;
        let tracked = self.track(shard);
        let ahead = copy_ahead(&crossing, tracked, &Counting::new(watch).until(&self.halted));
        if ahead.is_err() {
            self.track_nothing();
        }
        ahead
    }

    /// Lets what has changed follow, and hands the shard over. For a shard that is set aside: nothing may be under way.
    /// If it fails, the shard stays where it is.
    pub fn hand_over(&self, ahead: Ahead, tenure: Tenure) -> Result<ShardReport, MoveError> {
        let handed = self.bring_the_rest(ahead, tenure);
        self.track_nothing();
        handed
    }

    fn bring_the_rest(&self, ahead: Ahead, tenure: Tenure) -> Result<ShardReport, MoveError> {
        let Ahead { shard, crossing, tracked, target, mut summing, mut copied, counts: known } = ahead;
        let (from, guest) = (crossing.source(SET_ASIDE), crossing.target(SET_ASIDE));
        let source = from.held(shard, tenure);
        let mut writing = Writing::new(&guest, guest.held(shard, target));
        copied += follow((source, &crossing.home_name), &mut writing, &guest, &mut summing, &tracked.take())?;
        writing.clear_table(Table::Settings)?;
        let mut settings = Summing::default();
        for page in Reading::new(source, from.patience, &SETTINGS) {
            for row in page.map_err(MoveError::of(&crossing.home_name))? {
                settings.add(&row);
                copied += 1;
                writing.push(row)?;
            }
        }
        writing.flush()?;
        let there = read_back(&guest, writing.held, &SETTINGS, &Counting::new(&|_| {}))?;
        compare(shard, &settings.sums(), &there)?;
        let counts = tallies(&from, source)?;
        writing.recount(&known, &counts)?;
        compare_counts(shard, &counts, &tallies(&guest, writing.held)?)?;
        crossing.cross(shard, SET_ASIDE)?;
        let mut tables = summing.sums();
        tables.settings = settings.sums().settings;
        Ok(ShardReport { shard: shard.0, tables, copied, counts: counts.len() })
    }
}

/// Makes rows in the target what they are in the source, and looks that they are. Says how many were written.
fn follow(
    (source, place): (Held<'_>, &str),
    writing: &mut Writing<'_>,
    guest: &Guest<'_>,
    summing: &mut Summing,
    numbers: &[u64],
) -> Result<u64, MoveError> {
    let read = |held: Held<'_>, numbers: &[u64]| -> Result<Vec<Row>, StoreError> {
        let found = guest.patience.retry(|| held.read(Want::Numbers(numbers, Bodies::With)))?;
        Ok(found.each().into_iter().flatten().collect())
    };
    // All of them go before the first one comes: a key may have gone from one number to another.
    for numbers in numbers.chunks(CHUNK) {
        let old = read(writing.held, numbers).map_err(MoveError::of(guest.side.name))?;
        old.iter().for_each(|row| summing.take_off(row));
        writing.remove(&old)?;
    }
    let mut written = 0;
    for numbers in numbers.chunks(CHUNK) {
        let new = read(source, numbers).map_err(MoveError::of(place))?;
        let mut expected = Summing::default();
        for row in &new {
            summing.add(row);
            expected.add(row);
            writing.push(row.clone())?;
        }
        writing.flush()?;
        written += new.len() as u64;
        let mut found = Summing::default();
        read(writing.held, numbers).map_err(MoveError::of(guest.side.name))?.iter().for_each(|row| found.add(row));
        compare(source.shard, &expected.sums(), &found.sums())?;
    }
    Ok(written)
}

/// Copies what does not change meanwhile, and then follows what does.
fn copy_ahead(crossing: &Arc<Crossing>, tracked: Arc<Tracked>, counting: &Counting<'_>) -> Result<Ahead, MoveError> {
    let shard = tracked.shard;
    let (from, guest) = (crossing.source(IN_USE), crossing.target(IN_USE));
    counting.expect(1, expected(&from, &[shard])?);
    let tenure = guest.claim(&[shard])?[0];
    let mut writing = Writing::new(&guest, guest.held(shard, tenure));
    // A server that was killed may have left something.
    writing.clear()?;
    let source = Held { store: &*crossing.home, shard, tenure: None };
    let mut summing = Summing::default();
    let reading = Reading::new(source, guest.patience, &AHEAD);
    carry(reading, &crossing.home_name, |page| {
        let (rows, bytes) = (page.len(), page.iter().map(weight).sum());
        // A row that changes may be met twice, or not at all: all that changes follows later.
        for row in page.into_iter().filter(|row| !tracked.has(row.seq)) {
            summing.add(&row);
            writing.push(row)?;
        }
        counting.copied(rows, bytes)
    })?;
    writing.flush()?;
    let there = read_back(&guest, writing.held, &AHEAD, counting)?;
    compare(shard, &summing.sums(), &there)?;
    let mut copied = there.total().rows;
    for _ in 0..ROUNDS {
        if tracked.len() <= FEW {
            break;
        }
        copied += follow((source, &crossing.home_name), &mut writing, &guest, &mut summing, &tracked.take())?;
    }
    let counts = tallies(&from, source)?;
    writing.count(&counts)?;
    let target = writing.tenure();
    Ok(Ahead { shard, crossing: Arc::clone(crossing), tracked, target, summing, copied, counts })
}
