//! `punctual store check` and `show` for a database: its rows, keys, numbers and counts, as the contract shows them, and
//! what the database sees by itself.

use std::collections::BTreeMap;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_core::store::{
    Beat, Bodies, Incarnation, Key, Look, Position, Roll, Row, ShardId, Store, StoreError, Table, Tally, TallyKind,
};
use punctual_core::view::{counted_in, noted_shards};
use punctual_core::{Millis, Name};
use serde_json::{Value, json};

use super::DatabaseStore;
use super::walk::{Onward, Walk};
use crate::commands::counted;
use crate::failure::Failure;
use crate::stores::Listing;
use crate::stores::print::{ShownRow, say, table_word};

/// More would not be read.
const MOST_DAMAGE: usize = 1_000;

pub fn check(store: &dyn DatabaseStore, json: bool) -> Result<bool, Failure> {
    let damage = store.check().map_err(Failure::failed)?;
    let shards = shards(store)?;
    let in_use = users(&roll(store)?);
    let mut check = Check::new(store, !in_use.is_empty(), damage);
    check.run(shards).map_err(Failure::failed)?;
    let Check { rows, damage, tallies, .. } = check;
    let is_clean = damage.is_empty();
    say(|to| {
        if json {
            let line = json!({
                "place": store.line(), "in_use": in_use, "clean": is_clean, "shards": shards, "rows": rows,
                "tallies": tallies, "damage": damage,
            });
            return writeln!(to, "{line}");
        }
        writeln!(to, "{}", store.line())?;
        if !in_use.is_empty() {
            writeln!(to, "in use by {}: counts are compared only when nobody changes them", in_use.join(", "))?;
        }
        damage.iter().try_for_each(|damage| writeln!(to, "DAMAGE {damage}"))?;
        let found = format!("{} in {}", counted(rows, "row"), counted(shards.into(), "shard"));
        match is_clean {
            true => writeln!(to, "clean: {found}"),
            false => writeln!(to, "damaged: {found}, of which `punctual store show --rows` lists what can be read"),
        }
    })?;
    Ok(is_clean)
}

pub fn show(store: &dyn DatabaseStore, listing: &Listing, json: bool) -> Result<bool, Failure> {
    let (shards, roll) = (shards(store)?, roll(store)?);
    let counts = (0..shards).map(|shard| sums(store, ShardId(shard)));
    let counts = counts.collect::<Result<Vec<_>, _>>().map_err(Failure::failed)?;
    say(|to| match json {
        true => writeln!(to, "{}", summary(&store.line(), &roll, &counts)),
        false => write!(to, "{}\n{}", store.line(), overview(&roll, &counts)),
    })?;
    let topic =
        listing.topic.as_deref().map(Name::new).transpose().map_err(|error| Failure::Usage(error.to_string()))?;
    let walk = Walk { store, shards, topic, bodies: Bodies::With };
    let mut left = listing.limit;
    if left > 0 {
        let mut printed = Ok(());
        let walked = walk.each(|shard, _, rows| {
            let some = &rows[..rows.len().min(left)];
            left -= some.len();
            printed = say(|to| {
                some.iter().map(|row| shown(shard, row)).try_for_each(|row| match json {
                    true => writeln!(to, "{}", row.to_json()),
                    false => writeln!(to, "{row}"),
                })
            });
            Ok(if left == 0 || printed.is_err() { Onward::Enough } else { Onward::More })
        });
        printed.and(walked.map_err(Failure::failed))?;
    }
    Ok(true)
}

/// A walk through everything that notes what cannot be.
struct Check<'a> {
    store: &'a dyn DatabaseStore,
    is_in_use: bool,
    rows: u64,
    tallies: usize,
    damage: Vec<String>,
    /// What the counts of the shard under way should be.
    right: BTreeMap<Tally, i64>,
    before: Option<(ShardId, Table, Position)>,
}

impl<'a> Check<'a> {
    fn new(store: &'a dyn DatabaseStore, is_in_use: bool, damage: Vec<String>) -> Check<'a> {
        Check { store, is_in_use, rows: 0, tallies: 0, damage, right: BTreeMap::new(), before: None }
    }

    fn run(&mut self, shards: u16) -> Result<(), StoreError> {
        let bar = progress_bar();
        let walk = Walk { store: self.store, shards, topic: None, bodies: Bodies::Without };
        for shard in (0..shards).map(ShardId) {
            self.right.clear();
            let walked = walk.shard(shard, |shard, table, rows| {
                bar.set_position(self.rows);
                self.see(shard, table, rows)?;
                Ok(if self.damage.len() < MOST_DAMAGE { Onward::More } else { Onward::Enough })
            })?;
            if walked == Onward::Enough {
                break;
            }
            self.compare(shard)?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn see(&mut self, shard: ShardId, table: Table, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            self.rows += 1;
            let place = (shard, table, row.position());
            if self.before.is_some_and(|before| before >= place) {
                self.note(shard, row, "stands twice, or before the one that came before it");
            }
            self.before = Some(place);
            if row.table != table {
                self.note(shard, row, &format!("says that it is in the table {:?}", row.table));
            }
        }
        if table == Table::Settings || self.is_in_use {
            return Ok(());
        }
        let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
        let numbers: Vec<u64> = rows.iter().map(|row| row.seq).collect();
        let by_key = self.store.get(shard, &keys, Bodies::Without)?;
        let by_number = self.store.numbered(shard, &numbers, Bodies::Without)?;
        for ((row, by_key), by_number) in rows.iter().zip(by_key).zip(by_number) {
            if by_key.is_none_or(|found| found.seq != row.seq) {
                self.note(shard, row, "is not found by its key");
            }
            if by_number.is_none_or(|found| found.key != row.key) {
                self.note(shard, row, "is not found by its number");
            }
            counted_in(row).into_iter().for_each(|tally| *self.right.entry(tally).or_default() += 1);
        }
        Ok(())
    }

    /// Compares the counts of a shard with what was counted.
    fn compare(&mut self, shard: ShardId) -> Result<(), StoreError> {
        let stored = self.store.tallies(shard)?;
        self.tallies += stored.len();
        if self.is_in_use {
            return Ok(());
        }
        let is_named = |(tally, _): &(Tally, i64)| !matches!(tally.kind, TallyKind::DueDay | TallyKind::DueMinute);
        let stored: BTreeMap<Tally, i64> = stored.into_iter().filter(is_named).collect();
        let all: Vec<Tally> = stored.keys().chain(self.right.keys()).cloned().collect();
        for tally in all {
            let count = |counts: &BTreeMap<Tally, i64>| counts.get(&tally).copied().unwrap_or(0);
            let (stored, right) = (count(&stored), count(&self.right));
            let what =
                format!("shard {}: {:?} of {:?} is {stored} instead of {right}", shard.0, tally.kind, tally.name);
            if stored != right && !self.damage.contains(&what) {
                self.damage.push(what);
            }
        }
        Ok(())
    }

    fn note(&mut self, shard: ShardId, row: &Row, what: &str) {
        self.damage.push(format!("{}: {what}", self::shown(shard, row)));
    }
}

fn shown(shard: ShardId, row: &Row) -> ShownRow<'_> {
    ShownRow {
        table: row.table,
        shard,
        key: [row.key.topic(), row.key.id(), row.key.queue()],
        at: row.at,
        seq: row.seq,
        group: row.group.as_deref(),
        state: row.state.len(),
        body: Some(row.body.len()),
    }
}

/// Into how many shards the tasks are divided.
fn shards(store: &dyn DatabaseStore) -> Result<u16, Failure> {
    Ok(noted_shards(store as &dyn Store).map_err(Failure::failed)?.unwrap_or(0))
}

/// Who is there. A beat without a lease leaves nothing behind.
fn roll(store: &dyn DatabaseStore) -> Result<Roll, Failure> {
    let who = Incarnation { node: Name::stored("punctual-store"), number: 0 };
    store.beat(&Beat { who, address: String::new(), lease: Millis::ZERO }).map_err(Failure::failed)
}

fn users(roll: &Roll) -> Vec<String> {
    let is_there = roll.nodes.iter().filter(|present| present.until > roll.now());
    is_there.map(|present| present.who.node.to_string()).collect()
}

/// How much a shard has: waiting, leased, dead, finished.
fn sums(store: &dyn DatabaseStore, shard: ShardId) -> Result<[i64; 4], StoreError> {
    let kinds = [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
    let tallies = store.tallies(shard)?;
    let sum = |kind| tallies.iter().filter(|(tally, _)| tally.kind == kind).map(|(_, count)| count).sum();
    Ok(kinds.map(sum))
}

fn overview(roll: &Roll, counts: &[[i64; 4]]) -> String {
    let mut text = String::new();
    for present in &roll.nodes {
        let state = if present.until > roll.now() { "at work" } else { "gone" };
        text += &format!("node {}: {state}\n", present.who.node);
    }
    for (shard, [waiting, leased, dead, history]) in (0..).map(ShardId).zip(counts) {
        let owner = roll.held(shard).and_then(|held| held.by.as_ref()).map_or("nobody", |by| &by.node);
        text += &format!(
            "shard {}: owned by {owner}, fence {}; {waiting} waiting, {leased} leased, {dead} dead, {history} in the history\n",
            shard.0,
            roll.fence(shard).0,
        );
    }
    if counts.is_empty() {
        text += "no server has worked on it yet\n";
    }
    text
}

fn summary(place: &str, roll: &Roll, counts: &[[i64; 4]]) -> Value {
    let shard = |(shard, [waiting, leased, dead, history]): (ShardId, &[i64; 4])| {
        json!({
            "shard": shard.0, "owner": roll.held(shard).and_then(|held| held.by.as_ref()).map(|by| by.node.to_string()),
            "fence": roll.fence(shard).0, "waiting": waiting, "leased": leased, "dead": dead, "history": history,
        })
    };
    json!({
        "place": place, "in_use": users(roll), "tables": Table::ALL.map(table_word),
        "shards": (0..).map(ShardId).zip(counts).map(shard).collect::<Vec<_>>(),
    })
}

/// On a terminal only.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    match ProgressStyle::with_template("{spinner} {human_pos} rows") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
