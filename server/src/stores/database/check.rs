//! `punctual store check` for a database: every row, by time, key and number, all counts, and what the database sees by
//! itself. Nothing is kept of rows that were seen, so a million of them take no more memory than a thousand.
//!
//! While servers change the store, it is looked at as it is at one moment, where the database can do that. Where it cannot,
//! whatever looks wrong is looked at again, and the counts of a shard are compared if it kept still for a while.

use std::collections::BTreeMap;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_core::store::{Bodies, Key, Look, Position, Row, ShardId, Store, StoreError, Table, Tally, TallyKind};
use punctual_core::view::counted_in;
use punctual_database::Database;
use serde_json::json;

use super::roll::{roll, shards, users};
use super::walk::{Onward, Walk};
use crate::commands::counted;
use crate::failure::Failure;
use crate::stores::print::{say, shown_row};

/// More would not be read.
const MOST_DAMAGE: usize = 1_000;

/// How often a shard is walked through in the hope that nobody changes it meanwhile.
const ATTEMPTS: u32 = 3;

/// Checks a store; `frozen` is the same as it is at one moment, if there is such a view.
pub fn check<D: Database>(store: &D, frozen: Option<&D>, json: bool) -> Result<bool, Failure> {
    let shards = shards(store)?;
    let in_use = users(&roll(store)?);
    let is_still = frozen.is_some() || in_use.is_empty();
    let mut check = Check::new(frozen.unwrap_or(store), is_still);
    check.damage = store.check().map_err(Failure::failed)?;
    let serial = |shard| {
        let contents = store.contents()?;
        Ok(contents.shards.iter().find(|found| found.shard == shard).map_or(0, |found| found.serial))
    };
    check.run(shards, &serial).map_err(Failure::failed)?;
    let Check { rows, damage, remarks, tallies, .. } = check;
    let is_clean = damage.is_empty();
    say(|to| {
        if json {
            let line = json!({
                "place": store.to_string(), "in_use": in_use, "clean": is_clean, "shards": shards, "rows": rows,
                "tallies": tallies, "remarks": remarks, "damage": damage,
            });
            return writeln!(to, "{line}");
        }
        writeln!(to, "{store}")?;
        if !in_use.is_empty() {
            writeln!(to, "in use by {}", in_use.join(", "))?;
        }
        remarks.iter().try_for_each(|remark| writeln!(to, "note: {remark}"))?;
        damage.iter().try_for_each(|damage| writeln!(to, "DAMAGE {damage}"))?;
        let found = format!(
            "{} in {}, {}",
            counted(rows, "row"),
            counted(shards.into(), "shard"),
            counted(tallies as u64, "tally")
        );
        match is_clean {
            true => writeln!(to, "clean: {found}"),
            false => writeln!(to, "damaged: {found}; `punctual store show --rows` lists what can be read"),
        }
    })?;
    Ok(is_clean)
}

/// A walk through everything that notes what cannot be.
struct Check<'a> {
    store: &'a dyn Store,
    /// Whether nobody changes what is seen.
    is_still: bool,
    rows: u64,
    tallies: usize,
    damage: Vec<String>,
    remarks: Vec<String>,
    /// What the counts of the shard under way should be.
    right: BTreeMap<Tally, i64>,
    before: Option<(Table, Position)>,
}

impl<'a> Check<'a> {
    fn new(store: &'a dyn Store, is_still: bool) -> Check<'a> {
        let (damage, remarks, right) = Default::default();
        Check { store, is_still, rows: 0, tallies: 0, damage, remarks, right, before: None }
    }

    fn run(&mut self, shards: u16, serial: &dyn Fn(ShardId) -> Result<u64, StoreError>) -> Result<(), StoreError> {
        let bar = progress_bar();
        for shard in (0..shards).map(ShardId) {
            self.shard(shard, serial, &bar)?;
            if self.damage.len() >= MOST_DAMAGE {
                self.remarks.push("there is more damage than is worth listing: the rest was not looked at".to_owned());
                break;
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Looks at a shard: again, if it was changed meanwhile.
    fn shard(
        &mut self,
        shard: ShardId,
        serial: &dyn Fn(ShardId) -> Result<u64, StoreError>,
        bar: &ProgressBar,
    ) -> Result<(), StoreError> {
        let (rows, tallies) = (self.rows, self.tallies);
        for _ in 0..ATTEMPTS {
            (self.rows, self.tallies, self.before) = (rows, tallies, None);
            self.right.clear();
            let begun = if self.is_still { 0 } else { serial(shard)? };
            self.walk(shard, bar)?;
            let stored = match self.store.tallies(shard) {
                Ok(stored) => stored,
                Err(error) => return self.damaged(error),
            };
            self.tallies += stored.len();
            if self.is_still || serial(shard)? == begun {
                self.compare(shard, stored);
                return Ok(());
            }
        }
        let what = format!("shard {} was changed all the time: its counts were not compared", shard.0);
        self.remarks.push(what);
        Ok(())
    }

    /// Goes through the rows of a shard. A table that cannot be read on is damage, and the next one comes.
    fn walk(&mut self, shard: ShardId, bar: &ProgressBar) -> Result<(), StoreError> {
        let walk = Walk { store: self.store, topic: None, bodies: Bodies::With };
        for table in Table::ALL {
            let walked = walk.table(shard, table, &mut |rows| {
                bar.set_position(self.rows);
                self.see(shard, table, rows)?;
                Ok(if self.damage.len() < MOST_DAMAGE { Onward::More } else { Onward::Enough })
            });
            if let Err(error) = walked {
                self.damaged(error)?;
            }
        }
        Ok(())
    }

    fn see(&mut self, shard: ShardId, table: Table, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            self.rows += 1;
            let place = (table, row.position());
            if self.before.is_some_and(|before| before >= place) {
                self.note(shard, row, "stands twice, or before the one that came before it");
            }
            self.before = Some(place);
            if row.table != table {
                self.note(shard, row, &format!("says that it is in the table {:?}", row.table));
            }
            match counted_in(row) {
                _ if table == Table::Settings => {}
                Ok(tallies) => tallies.into_iter().for_each(|tally| *self.right.entry(tally).or_default() += 1),
                Err(error) => self.note(shard, row, &error.to_string()),
            }
        }
        if table == Table::Settings {
            return Ok(());
        }
        let mut lost = self.lost(shard, rows)?;
        if !self.is_still && !lost.is_empty() {
            // Who changed meanwhile is not lost.
            let numbers: Vec<u64> = lost.iter().map(|(row, _)| row.seq).collect();
            let now = self.store.numbered(shard, &numbers, Bodies::With)?;
            let same: Vec<Row> = lost
                .iter()
                .zip(now)
                .filter(|((row, _), now)| now.as_ref() == Some(*row))
                .map(|((row, _), _)| (*row).clone())
                .collect();
            let again = self.lost(shard, &same)?;
            lost.retain(|(row, _)| again.iter().any(|(other, _)| other.seq == row.seq));
        }
        lost.into_iter().for_each(|(row, what)| self.note(shard, row, what));
        Ok(())
    }

    /// The rows that are not found by their key or their number.
    fn lost<'r>(&self, shard: ShardId, rows: &'r [Row]) -> Result<Vec<(&'r Row, &'static str)>, StoreError> {
        let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
        let numbers: Vec<u64> = rows.iter().map(|row| row.seq).collect();
        let by_key = self.store.get(shard, &keys, Bodies::Without)?;
        let by_number = self.store.numbered(shard, &numbers, Bodies::Without)?;
        let found = rows.iter().zip(by_key.into_iter().zip(by_number));
        Ok(found
            .filter_map(|(row, (by_key, by_number))| {
                let by_key = by_key.is_some_and(|found| found.seq == row.seq);
                let by_number = by_number.is_some_and(|found| found.key == row.key);
                match (by_key, by_number) {
                    (true, true) => None,
                    (false, _) => Some((row, "is not found by its key")),
                    (true, false) => Some((row, "is not found by its number")),
                }
            })
            .collect())
    }

    /// Compares the counts of a shard with what was counted.
    fn compare(&mut self, shard: ShardId, stored: Vec<(Tally, i64)>) {
        let is_named = |(tally, _): &(Tally, i64)| !matches!(tally.kind, TallyKind::DueDay | TallyKind::DueMinute);
        let stored: BTreeMap<Tally, i64> = stored.into_iter().filter(is_named).collect();
        let right = std::mem::take(&mut self.right);
        let count = |counts: &BTreeMap<Tally, i64>, tally| counts.get(tally).copied().unwrap_or(0);
        let missing = right.keys().filter(|tally| !stored.contains_key(tally));
        for tally in stored.keys().chain(missing) {
            let (stored, right) = (count(&stored, tally), count(&right, tally));
            if stored != right {
                let name = tally.name.as_deref().unwrap_or_default();
                let what = format!("shard {}: {:?} of {name} is {stored} instead of {right}", shard.0, tally.kind);
                self.damage.push(what);
            }
        }
    }

    /// What the store cannot vouch for is what is looked for; all else ends the check.
    fn damaged(&mut self, error: StoreError) -> Result<(), StoreError> {
        let StoreError::Poisoned(what) = error else { return Err(error) };
        if !self.damage.contains(&what) {
            self.damage.push(what);
        }
        Ok(())
    }

    fn note(&mut self, shard: ShardId, row: &Row, what: &str) {
        let what = format!("{}: {what}", shown_row(shard, row));
        if !self.damage.contains(&what) {
            self.damage.push(what);
        }
    }
}

/// On a terminal only.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    match ProgressStyle::with_template("{spinner} {human_pos} rows") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
