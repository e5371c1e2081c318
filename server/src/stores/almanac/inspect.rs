//! `punctual store` for an almanac: what is damaged in its files, and what is in them.

use std::io::{self, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_almanac::inspect::{Contents, Listed, ListedRow, counted};
use punctual_almanac::{Damage, ReadOnlyDirectory};
use serde_json::{Value, json};

use super::{DIRECTORY, Listing};
use crate::failure::Failure;
use crate::stores::print::{ShownRow, instant, say, stored, table_word};

/// Opens the almanac of a data directory, or the almanac itself if that was named.
fn open(data: &Path) -> Result<ReadOnlyDirectory, Failure> {
    let inner = data.join(DIRECTORY);
    let dir = if inner.is_dir() { &inner } else { data };
    ReadOnlyDirectory::open(dir).map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", dir.display())))
}

pub fn check(data: &Path, json: bool) -> Result<bool, Failure> {
    let disk = open(data)?;
    let bar = progress_bar();
    let report = punctual_almanac::inspect::check(&disk, &mut |progress| {
        if progress.total > 0 {
            bar.set_length(progress.total);
        }
        bar.set_position(progress.done);
        bar.set_message(progress.file.to_owned());
    });
    bar.finish_and_clear();
    let report = report.map_err(|error| Failure::Usage(error.to_string()))?;
    say(|to| {
        if !json {
            return write!(to, "{report}");
        }
        let line = json!({
            "place": report.place, "in_use": report.in_use, "clean": report.is_clean(),
            "runs": report.runs, "run_rows": report.run_rows, "living": report.living, "recent": report.recent,
            "segments": report.segments, "records": report.records, "shards": report.shards,
            "tallies": report.tallies, "bytes": report.bytes, "remarks": report.remarks,
            "damage": report.damage.iter().map(damage).collect::<Vec<_>>(),
        });
        writeln!(to, "{line}")
    })?;
    Ok(report.is_clean())
}

pub fn show(data: &Path, listing: &Listing, json: bool) -> Result<bool, Failure> {
    let disk = open(data)?;
    let mut contents = Contents::read(&disk).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut is_clean = contents.damage.is_empty();
    say(|to| {
        if json {
            writeln!(to, "{}", summary(&contents))?
        } else {
            write!(to, "{contents}")?
        }
        let mut left = listing.limit;
        let mut rows = contents.rows(listing.topic.as_deref());
        while left > 0
            && let Some(listed) = rows.next()
        {
            match &listed {
                Listed::Row(_) => left -= 1,
                Listed::Lost { .. } => is_clean = false,
            }
            if json { writeln!(to, "{}", line(&listed))? } else { print(to, &listed)? }
        }
        Ok(())
    })?;
    Ok(is_clean)
}

/// On a terminal only.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    match ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}  {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn print(to: &mut dyn Write, listed: &Listed) -> io::Result<()> {
    match listed {
        Listed::Row(row) => print_row(to, row),
        Listed::Lost { table, shard, rows, at, damage } => {
            let place = format!("{}, byte {}: {}", damage.file, damage.offset, damage.what);
            let rows = counted(*rows, "row");
            writeln!(to, "LOST {table:?} shard {}  {rows} from {} on: {place}", shard.0, instant(*at))
        }
    }
}

fn print_row(to: &mut dyn Write, row: &ListedRow) -> io::Result<()> {
    match row.run {
        Some(run) => writeln!(to, "{}  run {run:x}", shown(row)),
        None => writeln!(to, "{}  journal", shown(row)),
    }
}

fn shown(row: &ListedRow) -> ShownRow<'_> {
    let [topic, id, queue] = &row.key;
    ShownRow {
        table: row.table,
        shard: row.shard,
        key: [topic, id, queue],
        at: row.at,
        seq: row.seq,
        group: row.group.as_deref(),
        state: row.state,
        body: row.body,
    }
}

fn damage(damage: &Damage) -> Value {
    json!({ "file": damage.file, "offset": damage.offset, "what": damage.what })
}

fn summary(contents: &Contents) -> Value {
    json!({
        "place": contents.place, "in_use": contents.in_use, "has_manifest": contents.manifest.is_some(),
        "runs": contents.runs.iter().map(|run| json!({
            "file": run.file, "format": run.version, "rows": run.rows, "living": run.living, "bytes": run.bytes,
        })).collect::<Vec<_>>(),
        "segments": contents.segments.iter().map(|segment| json!({
            "file": segment.file, "format": segment.version, "number": segment.number, "bytes": segment.bytes,
        })).collect::<Vec<_>>(),
        "tables": contents.tables.iter().map(|table| json!({
            "shard": table.shard.0, "table": table_word(table.table),
            "in_runs": table.in_runs, "recent": table.recent,
        })).collect::<Vec<_>>(),
        "tallies": contents.tallies, "astray": contents.astray,
        "damage": contents.damage.iter().map(damage).collect::<Vec<_>>(),
    })
}

fn line(listed: &Listed) -> Value {
    match listed {
        Listed::Row(row) => {
            let mut line = shown(row).to_json();
            line["run"] = json!(row.run);
            line
        }
        Listed::Lost { table, shard, rows, at, damage: lost } => json!({
            "table": table_word(*table), "shard": shard.0, "lost_rows": rows, "at": stored(*at),
            "damage": damage(lost),
        }),
    }
}
