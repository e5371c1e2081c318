//! `punctual store show` for a database: who is there, how it stands with each shard, what takes room, and the rows.

use std::fmt::Write as _;

use punctual_core::store::{Bodies, Look, Position, Roll, Scan, ShardId, Store, StoreError, Table, Tally, TallyKind};
use punctual_core::{Name, Timestamp};
use punctual_database::{Contents, Database, Part};
use serde_json::{Value, json};

use super::roll::{roll, users};
use super::walk::{Onward, Walk};
use crate::commands::counted;
use crate::failure::Failure;
use crate::stores::Listing;
use crate::stores::print::{instant, say, shown_row, stored, table_word};

pub fn show<D: Database>(store: &D, listing: &Listing, json: bool) -> Result<bool, Failure> {
    let (contents, roll) = (store.contents().map_err(Failure::failed)?, roll(store)?);
    let standings = contents.shards.iter().map(|shard| Standing::of(store, shard.shard));
    let standings = standings.collect::<Result<Vec<_>, _>>().map_err(Failure::failed)?;
    say(|to| match json {
        true => writeln!(to, "{}", summary(&store.to_string(), &roll, &contents, &standings)),
        false => write!(to, "{store}\n{}", overview(&roll, &contents, &standings)),
    })?;
    let topic =
        listing.topic.as_deref().map(Name::new).transpose().map_err(|error| Failure::Usage(error.to_string()))?;
    list(&Walk { store, topic, bodies: Bodies::With }, &contents, listing.limit, json)?;
    Ok(true)
}

/// How it stands with a shard, as the contract shows it.
struct Standing {
    /// Waiting, leased, dead, finished.
    counts: [i64; 4],
    /// When the first of what is to come is due.
    first: Option<Timestamp>,
}

impl Standing {
    fn of(store: &dyn Store, shard: ShardId) -> Result<Standing, StoreError> {
        let (table, from, until) = (Table::Live, Position::START, Timestamp::NEVER);
        let scan = Scan { table, from, until, topic: None, limit: 1, bodies: Bodies::Without };
        let first = store.scan(shard, &scan)?.rows.first().map(|row| row.at);
        let tallies = store.tallies(shard)?;
        let kinds = [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
        let is_of = |kind| move |(tally, _): &&(Tally, i64)| tally.kind == kind;
        let counts = kinds.map(|kind| tallies.iter().filter(is_of(kind)).map(|(_, count)| count).sum());
        Ok(Standing { counts, first })
    }
}

fn list(walk: &Walk<'_>, contents: &Contents, limit: usize, json: bool) -> Result<(), Failure> {
    let mut left = limit;
    let mut printed = Ok(());
    for shard in contents.shards.iter().map(|found| found.shard) {
        for table in Table::ALL {
            if left == 0 || printed.is_err() {
                return printed;
            }
            let walked = walk.table(shard, table, &mut |rows| {
                let some = &rows[..rows.len().min(left)];
                left -= some.len();
                printed = say(|to| {
                    some.iter().map(|row| shown_row(shard, row)).try_for_each(|row| match json {
                        true => writeln!(to, "{}", row.to_json()),
                        false => writeln!(to, "{row}"),
                    })
                });
                Ok(if left == 0 || printed.is_err() { Onward::Enough } else { Onward::More })
            });
            walked.map_err(Failure::failed)?;
        }
    }
    printed
}

fn owner(roll: &Roll, shard: ShardId) -> Option<&str> {
    roll.held(shard).and_then(|held| held.by.as_ref()).map(|by| &*by.node)
}

fn overview(roll: &Roll, contents: &Contents, standings: &[Standing]) -> String {
    let mut text = format!("layout: version {}\n", contents.version);
    for present in &roll.nodes {
        let state = if present.until > roll.now() { "at work" } else { "gone" };
        _ = writeln!(text, "node {}: {state}", present.who.node);
    }
    for Part { name, bytes } in &contents.parts {
        _ = writeln!(text, "{}: {name}", counted(*bytes, "byte"));
    }
    for (found, Standing { counts, first }) in contents.shards.iter().zip(standings) {
        let (shard, serial) = (found.shard, found.serial);
        let (owner, fence) = (owner(roll, shard).unwrap_or("nobody"), roll.fence(shard).0);
        let [live, dead_rows, history_rows, settings] = found.rows;
        let [waiting, leased, dead, history] = counts;
        let first = first.map_or("nothing to come".to_owned(), |first| format!("the next at {}", instant(first)));
        _ = writeln!(text, "shard {}: owned by {owner}, fence {fence}, commit {serial}; {first}", shard.0);
        _ = writeln!(
            text,
            "  rows: {live} live, {dead_rows} dead letters, {history_rows} in the history, {settings} settings"
        );
        _ = writeln!(text, "  counts: {waiting} waiting, {leased} leased, {dead} dead, {history} in the history");
    }
    if contents.shards.is_empty() {
        text += "no server has worked on it yet\n";
    }
    text
}

fn summary(place: &str, roll: &Roll, contents: &Contents, standings: &[Standing]) -> Value {
    let shards = contents.shards.iter().zip(standings).map(|(found, Standing { counts, first })| {
        let shard = found.shard;
        let [waiting, leased, dead, history] = counts;
        let rows: serde_json::Map<String, Value> =
            Table::ALL.iter().zip(found.rows).map(|(table, count)| (table_word(*table), count.into())).collect();
        json!({
            "shard": shard.0, "owner": owner(roll, shard), "fence": roll.fence(shard).0, "serial": found.serial,
            "rows": rows, "waiting": waiting, "leased": leased, "dead": dead, "history": history,
            "first_at": first.and_then(stored),
        })
    });
    let parts = contents.parts.iter().map(|part| json!({ "part": part.name, "bytes": part.bytes }));
    json!({
        "place": place, "version": contents.version, "in_use": users(roll), "tables": Table::ALL.map(table_word),
        "parts": parts.collect::<Vec<_>>(), "shards": shards.collect::<Vec<_>>(),
    })
}
