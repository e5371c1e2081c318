//! `punctual store`: looks into the files of an almanac without a server. It never changes anything, and the
//! almanac may be damaged, or in use.
//!
//! Exit codes: 0 if all is well, 1 if something is damaged, 2 if it was called wrongly or cannot be read at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use punctual_almanac::inspect::{Contents, Listed, ListedRow, check, counted};
use punctual_almanac::{Damage, ReadOnlyDirectory};
use punctual_core::Timestamp;
use punctual_wire::Time;
use serde_json::{Value, json};

use crate::config::of_server;
use crate::failure::Failure;

const CLEAN: u8 = 0;
const DAMAGED: u8 = 1;

/// What to do with the files of a store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Check every checksum and every count, and list all damage. Exit code: 0 clean, 1 damaged, 2 cannot be read.
    Check {
        #[command(flatten)]
        which: WhichFiles,
    },
    /// Show what is in it, as far as it can be read. Exit code: as with `check`.
    Show {
        #[command(flatten)]
        which: WhichFiles,
        /// List the rows too, table by table in time order.
        #[arg(long)]
        rows: bool,
        /// List only rows of this topic.
        #[arg(long, requires = "rows")]
        topic: Option<String>,
        /// List at most so many rows.
        #[arg(long, value_name = "N", requires = "rows")]
        limit: Option<usize>,
    },
}

/// Which files.
#[derive(Args, Debug)]
pub struct WhichFiles {
    /// The data directory of a server, or the almanac in it; by default what the server's configuration names.
    dir: Option<PathBuf>,
    /// The server's TOML file of settings; by default ./punctual.toml if it is there.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true, conflicts_with = "dir")]
    config: Option<PathBuf>,
}

impl WhichFiles {
    fn open(self) -> Result<ReadOnlyDirectory, Failure> {
        let dir = match self.dir {
            Some(dir) => dir,
            None => of_server(self.config, None)?.data,
        };
        let inner = dir.join("almanac");
        let dir = if inner.is_dir() { inner } else { dir };
        ReadOnlyDirectory::open(&dir).map_err(|error| unreadable(&dir, &error))
    }
}

fn unreadable(dir: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("{} cannot be read: {error}", dir.display()))
}

impl StoreCommand {
    /// Does it, and says by the exit code how the store is.
    pub fn run(self, json: bool) -> ExitCode {
        let outcome = match self {
            StoreCommand::Check { which } => which.open().and_then(|disk| run_check(&disk, json)),
            StoreCommand::Show { which, rows, topic, limit } => {
                let limit = if rows { limit.unwrap_or(usize::MAX) } else { 0 };
                which.open().and_then(|disk| run_show(&disk, topic.as_deref(), limit, json))
            }
        };
        match outcome {
            Ok(code) => ExitCode::from(code),
            Err(failure) => failure.report(),
        }
    }
}

fn run_check(disk: &ReadOnlyDirectory, json: bool) -> Result<u8, Failure> {
    let bar = progress_bar();
    let report = check(disk, &mut |progress| {
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
    Ok(if report.is_clean() { CLEAN } else { DAMAGED })
}

fn run_show(disk: &ReadOnlyDirectory, topic: Option<&str>, limit: usize, json: bool) -> Result<u8, Failure> {
    let mut contents = Contents::read(disk).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut code = if contents.damage.is_empty() { CLEAN } else { DAMAGED };
    say(|to| {
        if json {
            writeln!(to, "{}", summary(&contents))?
        } else {
            write!(to, "{contents}")?
        }
        let mut left = limit;
        let mut rows = contents.rows(topic);
        while left > 0
            && let Some(listed) = rows.next()
        {
            match &listed {
                Listed::Row(_) => left -= 1,
                Listed::Lost { .. } => code = DAMAGED,
            }
            if json { writeln!(to, "{}", line(&listed))? } else { print(to, &listed)? }
        }
        Ok(())
    })?;
    Ok(code)
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
