//! Reading an archive: no server is needed, and one may be writing meanwhile.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use punctual_wire::{Ending, Standing, TaskInfo, Time};

use super::files::{ArchiveFile, Month, list};
use super::piece::{Found, Pieces};
use super::write::checksum;

/// Which tasks to read; what is left open fits all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this topic.
    pub topic: Option<String>,
    /// Only with this key.
    pub key: Option<String>,
    /// Only with this id.
    pub id: Option<String>,
    /// Only those that ended so.
    pub ending: Option<Ending>,
    /// Only those that finished from this instant on.
    pub from: Option<Time>,
    /// Only those that finished before this instant.
    pub until: Option<Time>,
}

/// Why something of an archive could not be read. Reading goes on after it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("{} cannot be read: {error}", file.display())]
    Io {
        /// The file or directory.
        file: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// A finished file has changed.
    #[error("{} has changed since its month ended: its checksum differs; restore it from a backup", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// A part of a file is not what was written.
    #[error("{} is damaged at byte {byte}: {what}; reading continues after the damage", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where.
        byte: u64,
        /// What is wrong there.
        what: String,
    },
}

/// Reads the tasks of an archive that fit, by month, and within a month in the order in which they were archived.
/// A task that was archived twice comes once.
pub fn read(directory: &Path, filter: Filter) -> Result<impl Iterator<Item = Result<TaskInfo, ReadError>>, ReadError> {
    let files = list(directory).map_err(|error| ReadError::Io { file: directory.to_owned(), error })?;
    let (from, until) = (filter.from.map(Month::of), filter.until.map(Month::of));
    let in_range = |file: &ArchiveFile| {
        from.is_none_or(|from| file.month >= from) && until.is_none_or(|until| file.month <= until)
    };
    let files: Vec<_> = files.into_iter().filter(in_range).collect();
    Ok(Tasks { directory: directory.to_owned(), filter, files: files.into_iter(), open: None, seen: Seen::default() })
}

struct Tasks {
    directory: PathBuf,
    filter: Filter,
    files: IntoIter<ArchiveFile>,
    open: Option<Open>,
    seen: Seen,
}

/// A file that is being read.
struct Open {
    path: PathBuf,
    is_sealed: bool,
    file: File,
    at: u64,
    /// What was unpacked and not yet given.
    waiting: IntoIter<Result<TaskInfo, ReadError>>,
}

/// The tasks of a month that were given already, so that none is given twice. Only the same month can have it again.
#[derive(Default)]
struct Seen {
    month: Option<Month>,
    tasks: HashSet<[u8; 16]>,
}

impl Iterator for Tasks {
    type Item = Result<TaskInfo, ReadError>;

    fn next(&mut self) -> Option<Result<TaskInfo, ReadError>> {
        loop {
            let Some(open) = &mut self.open else {
                let name = self.files.next()?;
                if self.seen.month != Some(name.month) {
                    self.seen = Seen { month: Some(name.month), tasks: HashSet::new() };
                }
                match Open::new(&self.directory, name) {
                    Ok(open) => self.open = Some(open),
                    Err(error) => return Some(Err(error)),
                }
                continue;
            };
            match open.waiting.next() {
                Some(Ok(task)) if !self.filter.fits(&task) || !self.seen.is_new(&task) => {}
                Some(read) => return Some(read),
                None => match open.unpack_next() {
                    Ok(true) => {}
                    Ok(false) => self.open = None,
                    Err(error) => {
                        let file = open.path.clone();
                        self.open = None;
                        return Some(Err(ReadError::Io { file, error }));
                    }
                },
            }
        }
    }
}

impl Open {
    /// Opens a file; a finished one only if it is what it was.
    fn new(directory: &Path, name: ArchiveFile) -> Result<Open, ReadError> {
        let path = name.path(directory);
        let failed = |error| ReadError::Io { file: path.clone(), error };
        let seal = match fs::read_to_string(name.seal(directory)) {
            Ok(seal) => Some(seal),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(ReadError::Io { file: name.seal(directory), error }),
        };
        if let Some(seal) = &seal
            && seal.split_whitespace().next() != Some(checksum(&path).map_err(failed)?.as_str())
        {
            return Err(ReadError::Changed { file: path });
        }
        let file = File::open(&path).map_err(failed)?;
        Ok(Open { path, is_sealed: seal.is_some(), file, at: 0, waiting: Vec::new().into_iter() })
    }

    /// Unpacks the next piece; `false` if there is none.
    fn unpack_next(&mut self) -> io::Result<bool> {
        let mut pieces = Pieces::from(&self.file, self.at)?;
        let read = match pieces.next()? {
            Found::End => return Ok(false),
            Found::Torn(byte) => {
                let has_more = pieces.find_next()?;
                // At the end of a file that is being written, it is only not finished yet.
                if !has_more && !self.is_sealed {
                    return Ok(false);
                }
                if !has_more {
                    pieces.go_to_end();
                }
                vec![Err(self.damaged(byte, "the data differs from what was written"))]
            }
            Found::Piece(frame) => match frame.unpack(&self.file) {
                Ok(lines) => lines
                    .split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .map(|line| serde_json::from_slice(line).map_err(|error| self.damaged(frame.piece_start(), error)))
                    .collect(),
                Err(error) => vec![Err(self.damaged(frame.piece_start(), error))],
            },
        };
        self.at = pieces.at();
        self.waiting = read.into_iter();
        Ok(true)
    }

    fn damaged(&self, byte: u64, what: impl ToString) -> ReadError {
        ReadError::Damaged { file: self.path.clone(), byte, what: what.to_string() }
    }
}

/// When a task finished; before everything if the archive does not say.
fn finished_at(task: &TaskInfo) -> Time {
    match task.standing {
        Standing::Finished { at, .. } | Standing::Dead { at, .. } => at,
        _ => Time(0),
    }
}

impl Filter {
    fn fits(&self, task: &TaskInfo) -> bool {
        let at = finished_at(task);
        self.topic.as_ref().is_none_or(|topic| *topic == task.topic)
            && self.key.as_ref().is_none_or(|key| Some(key) == task.key.as_ref())
            && self.id.as_ref().is_none_or(|id| *id == task.id)
            && self
                .ending
                .is_none_or(|ending| matches!(task.standing, Standing::Finished { ending: is, .. } if is == ending))
            && self.from.is_none_or(|from| at >= from)
            && self.until.is_none_or(|until| at < until)
    }
}

impl Seen {
    /// Half of a hash tells tasks apart as surely as the whole, and a month of them still fits into memory.
    fn is_new(&mut self, task: &TaskInfo) -> bool {
        let mut hasher = blake3::Hasher::new();
        for part in [task.topic.as_bytes(), task.id.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.update(&finished_at(task).0.to_le_bytes());
        let hash = hasher.finalize();
        let half = hash.as_bytes().first_chunk().copied().unwrap_or_default();
        self.tasks.insert(half)
    }
}
