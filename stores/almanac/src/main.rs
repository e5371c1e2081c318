//! `punctual-almanac`: checks an almanac's directory, and shows what is in it. It never changes anything.
//!
//! It answers with 0 if all is well, with 1 if something is damaged, and with 2 if it was called
//! wrongly or cannot read the directory at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use punctual_almanac::ReadOnlyDirectory;
use punctual_almanac::inspect::{Contents, Listed, ListedRow, check};
use punctual_core::Timestamp;

const CLEAN: u8 = 0;
const DAMAGED: u8 = 1;
const CANNOT: u8 = 2;

/// Looks at the directory of an almanac, Punctual's embedded store, without changing anything. It may
/// be damaged, or in use.
#[derive(Debug, Parser)]
#[command(name = "punctual-almanac", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks every checksum and every count, and lists all damage. Exit code: 0 clean, 1 damaged, 2 cannot be read.
    Check {
        /// The almanac's directory.
        dir: PathBuf,
    },
    /// Shows what is in it, as far as it can be read. Exit code: as with `check`.
    Show {
        /// The almanac's directory.
        dir: PathBuf,
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

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Check { dir } => run_check(&dir),
        Command::Show { dir, rows, topic, limit } => {
            let limit = if rows { limit.unwrap_or(usize::MAX) } else { 0 };
            run_show(&dir, topic.as_deref(), limit)
        }
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("punctual-almanac: {error}");
            ExitCode::from(CANNOT)
        }
    }
}

/// Why there is no answer, in words.
type Failed = Box<dyn std::error::Error>;

fn run_check(dir: &Path) -> Result<u8, Failed> {
    let disk = look_at(dir)?;
    let bar = progress_bar();
    let report = check(&disk, &mut |progress| {
        if progress.total > 0 {
            bar.set_length(progress.total);
        }
        bar.set_position(progress.done);
        bar.set_message(progress.file.to_owned());
    });
    bar.finish_and_clear();
    let report = report?;
    say(|to| write!(to, "{report}"))?;
    Ok(if report.is_clean() { CLEAN } else { DAMAGED })
}

fn run_show(dir: &Path, topic: Option<&str>, limit: usize) -> Result<u8, Failed> {
    let mut contents = Contents::read(&look_at(dir)?)?;
    let mut code = if contents.damage.is_empty() { CLEAN } else { DAMAGED };
    say(|to| {
        write!(to, "{contents}")?;
        let mut left = limit;
        let mut rows = contents.rows(topic);
        while left > 0
            && let Some(listed) = rows.next()
        {
            match listed {
                Listed::Row(row) => {
                    print_row(to, &row)?;
                    left -= 1;
                }
                Listed::Lost { table, shard, rows, at, damage } => {
                    code = DAMAGED;
                    let place = format!("{}, byte {}: {}", damage.file, damage.offset, damage.what);
                    writeln!(to, "LOST {table:?} shard {}  {rows} rows from {} on: {place}", shard.0, instant(at))?;
                }
            }
        }
        Ok(())
    })?;
    Ok(code)
}

fn look_at(dir: &Path) -> Result<ReadOnlyDirectory, Failed> {
    Ok(ReadOnlyDirectory::open(dir).map_err(|error| format!("{} cannot be read: {error}", dir.display()))?)
}

/// On a terminal only.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}  {msg}");
    ProgressBar::no_length().with_style(style.expect("the template is fixed"))
}

/// Writes to the standard output. A reader who has seen enough is no error.
fn say(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut to = BufWriter::new(io::stdout().lock());
    match write(&mut to).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
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
    match row.body {
        Some(body) => write!(to, "  state {} body {body} bytes", row.state)?,
        None => write!(to, "  state {} bytes, body LOST", row.state)?,
    }
    match row.run {
        Some(run) => writeln!(to, "  run {run:x}"),
        None => writeln!(to, "  journal"),
    }
}

/// An instant as a day and a time of day (UTC), with the milliseconds since 1970 that are stored.
fn instant(at: Timestamp) -> String {
    if at == Timestamp::NEVER {
        return "never".to_owned();
    }
    let millis = at.as_millis();
    let (days, time) = (millis / 86_400_000, millis % 86_400_000);
    // Counted in years that begin in March, leap days come last: 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let day = day - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3_600_000, time / 60_000 % 60, time / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z ({millis})", millis % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_days_of_the_calendar() {
        let at = |millis| instant(Timestamp::from_millis(millis));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z (0)");
        assert_eq!(at(951_782_400_000), "2000-02-29T00:00:00.000Z (951782400000)");
        assert_eq!(at(1_767_225_599_999), "2025-12-31T23:59:59.999Z (1767225599999)");
        assert_eq!(instant(Timestamp::NEVER), "never");
    }
}
