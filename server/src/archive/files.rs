//! Months, and the names of the archive's files.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use punctual_wire::Time;

/// What follows a file's name when the file will not change any more.
const SEAL: &str = ".sha256";

/// A month of the calendar, UTC. Beyond the year 9999, where the calendar ends, everything is one month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    year: u16,
    /// From 1 to 12.
    month: u8,
}

impl Month {
    /// The month of an instant.
    pub fn of(time: Time) -> Month {
        // The text of a time is RFC 3339; what has none lies beyond it.
        let text = time.to_string();
        let parts =
            text.split_once('-').and_then(|(year, rest)| Some((year.parse().ok()?, rest.get(..2)?.parse().ok()?)));
        parts.map_or(Month { year: 9999, month: 12 }, |(year, month)| Month { year, month })
    }

    /// Whether this month is over for good when something of a later one comes: not in the month right after it,
    /// since clocks differ and commits take a while.
    pub fn is_over_at(self, later: Month) -> bool {
        let number = |month: Month| u32::from(month.year) * 12 + u32::from(month.month);
        number(later) >= number(self) + 2
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

/// One file of the archive: a month's first, or one of stragglers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchiveFile {
    pub month: Month,
    /// 0 is the first.
    pub part: u32,
}

impl ArchiveFile {
    /// The name of the file.
    pub fn name(self) -> String {
        match self.part {
            0 => format!("history-{}.jsonl.zst", self.month),
            part => format!("history-{}.{part}.jsonl.zst", self.month),
        }
    }

    /// Understands a name; `None` if it is not one of ours.
    pub fn named(name: &str) -> Option<ArchiveFile> {
        let core = name.strip_prefix("history-")?.strip_suffix(".jsonl.zst")?;
        let (month, part) = match core.split_once('.') {
            Some((month, part)) => (month, part.parse().ok().filter(|part| *part > 0)?),
            None => (core, 0),
        };
        let (year, month) = month.split_once('-')?;
        let month =
            Month { year: year.parse().ok()?, month: month.parse().ok().filter(|month| (1..=12).contains(month))? };
        Some(ArchiveFile { month, part }).filter(|file| file.name() == name)
    }

    /// Where it is.
    pub fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.name())
    }

    /// Where its checksum is, once it is finished.
    pub fn seal(self, directory: &Path) -> PathBuf {
        directory.join(format!("{}{SEAL}", self.name()))
    }

    /// Whether it will not change any more.
    pub fn is_sealed(self, directory: &Path) -> bool {
        self.seal(directory).exists()
    }

    /// The next one of the same month.
    pub fn next(self) -> ArchiveFile {
        ArchiveFile { part: self.part + 1, ..self }
    }
}

/// All files of an archive, in order.
pub fn list(directory: &Path) -> io::Result<Vec<ArchiveFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        files.extend(entry?.file_name().to_str().and_then(ArchiveFile::named));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn month(year: u16, month: u8) -> Month {
        Month { year, month }
    }

    #[test]
    fn months_begin_at_midnight_utc() {
        let of = |text: &str| Month::of(text.parse().expect("it is a time"));
        assert_eq!(of("2026-11-30T23:59:59.999Z"), month(2026, 11));
        assert_eq!(of("2026-12-01T00:00:00Z"), month(2026, 12));
        assert_eq!(Month::of(Time::LAST), month(9999, 12));
    }

    #[test]
    fn a_month_is_over_when_the_one_after_the_next_begins() {
        assert!(!month(2026, 11).is_over_at(month(2026, 12)));
        assert!(month(2026, 11).is_over_at(month(2027, 1)));
        assert!(!month(2026, 11).is_over_at(month(2026, 10)));
    }

    #[test]
    fn files_come_back_from_their_names() {
        for file in [ArchiveFile { month: month(2026, 11), part: 0 }, ArchiveFile { month: month(2026, 1), part: 12 }] {
            assert_eq!(ArchiveFile::named(&file.name()), Some(file));
        }
        for other in
            ["history-2026-11.jsonl.zst.sha256", "history-2026-13.jsonl.zst", "history-2026-11.0.jsonl.zst", "x"]
        {
            assert_eq!(ArchiveFile::named(other), None, "{other}");
        }
    }
}
