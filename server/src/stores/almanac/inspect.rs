//! `punctual store` for an almanac: what is damaged in its files, and what is in them.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_almanac::inspect::{Contents, Listed, ListedRow, counted};
use punctual_almanac::{Damage, ReadOnlyDirectory};
use punctual_core::Timestamp;
use punctual_wire::Time;
use serde_json::{Value, json};

use super::{DIRECTORY, Listing};
use crate::failure::Failure;

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

/// Writes to the standard output. A reader who has seen enough is no error.
fn say(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut to = BufWriter::new(io::stdout().lock());
    match write(&mut to).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
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
    let [topic, id, queue] = &row.key;
    write!(to, "{:?} shard {}  {topic}/{id}", row.table, row.shard.0)?;
    if !queue.is_empty() {
        write!(to, "/{queue}")?;
    }
    write!(to, "  at {}  seq {}", instant(row.at), row.seq)?;
    if let Some(group) = &row.group {
        write!(to, "  group {group}")?;
    }
    let bytes = |bytes: usize| counted(bytes as u64, "byte");
    match row.body {
        Some(body) => write!(to, "  state {} body {}", bytes(row.state), bytes(body))?,
        None => write!(to, "  state {}, body LOST", bytes(row.state))?,
    }
    match row.run {
        Some(run) => writeln!(to, "  run {run:x}"),
        None => writeln!(to, "  journal"),
    }
}

/// An instant in UTC, with the milliseconds since 1970 that are stored.
fn instant(at: Timestamp) -> String {
    if at == Timestamp::NEVER {
        return "never".to_owned();
    }
    format!("{} ({})", Time(at.as_millis()), at.as_millis())
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
            "shard": table.shard.0, "table": format!("{:?}", table.table).to_lowercase(),
            "in_runs": table.in_runs, "recent": table.recent,
        })).collect::<Vec<_>>(),
        "tallies": contents.tallies, "astray": contents.astray,
        "damage": contents.damage.iter().map(damage).collect::<Vec<_>>(),
    })
}

fn line(listed: &Listed) -> Value {
    match listed {
        Listed::Row(row) => {
            let [topic, id, queue] = &row.key;
            json!({
                "table": format!("{:?}", row.table).to_lowercase(), "shard": row.shard.0,
                "topic": topic, "id": id, "queue": queue, "at": stored(row.at), "seq": row.seq, "group": row.group,
                "state_bytes": row.state, "body_bytes": row.body, "run": row.run,
            })
        }
        Listed::Lost { table, shard, rows, at, damage: lost } => json!({
            "table": format!("{table:?}").to_lowercase(), "shard": shard.0, "lost_rows": rows, "at": stored(*at),
            "damage": damage(lost),
        }),
    }
}

/// Milliseconds since 1970; none for what has no time.
fn stored(at: Timestamp) -> Option<u64> {
    (at != Timestamp::NEVER).then(|| at.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_days_of_the_calendar() {
        let at = |millis| instant(Timestamp::from_millis(millis));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z (0)");
        assert_eq!(at(951_782_400_000), "2000-02-29T00:00:00.000Z (951782400000)");
        assert_eq!(instant(Timestamp::NEVER), "never");
    }
}
