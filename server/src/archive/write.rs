//! Writing to the archive.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use punctual_core::view::TaskView;
use punctual_node::Archive;
use punctual_wire::Time;
use sha2::{Digest, Sha256};

use super::files::{ArchiveFile, Month, list};
use super::piece::{Found, Frame, Pieces, pack};
use super::record::{finished_at, line};
use crate::private_file::replace;

/// About how many bytes of lines go into one piece: much gains nothing, and readers unpack one at a time.
const PIECE: usize = 1 << 20;

/// Writes finished tasks to an archive. One process at a time writes to a directory.
#[derive(Debug)]
pub struct Archivist {
    directory: PathBuf,
    months: Mutex<OpenMonths>,
    _lock: File,
}

#[derive(Debug, Default)]
struct OpenMonths {
    /// The files that are open, each with how long it is when nothing is torn.
    open: BTreeMap<Month, (File, u64)>,
    /// The latest month that came.
    latest: Option<Month>,
}

/// How often a lock is tried for, and how long apart. A process that was just started by a former owner holds it for a
/// moment too, until its own program begins.
const TRIES: (u32, Duration) = (20, Duration::from_millis(25));

/// Whether nobody else writes here.
fn is_ours(lock: &File) -> bool {
    (0..TRIES.0).any(|attempt| {
        if attempt > 0 {
            thread::sleep(TRIES.1);
        }
        lock.try_lock().is_ok()
    })
}

impl Archivist {
    /// Opens an archive, or begins one. Months that are over are finished.
    pub fn open(directory: &Path, now: Time) -> Result<Archivist, String> {
        let place = directory.display();
        let failed = |what: &str, error: io::Error| format!("the archive {place} {what}: {error}");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| failed("cannot be created", error))?;
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(directory.join("archive.lock"));
        let lock = lock.map_err(|error| failed("cannot be written", error))?;
        if !is_ours(&lock) {
            return Err(format!(
                "the archive {place} is in use by another process: stop it, or choose another directory"
            ));
        }
        let archivist = Archivist { directory: directory.to_owned(), months: Mutex::default(), _lock: lock };
        archivist.seal_until(Month::of(now)).map_err(|error| failed("cannot be read", error))?;
        Ok(archivist)
    }

    /// Writes tasks, and returns when they are on disk.
    pub fn write<'a>(&self, tasks: impl IntoIterator<Item = &'a TaskView>) -> io::Result<()> {
        let mut lines: BTreeMap<Month, Vec<u8>> = BTreeMap::new();
        let mut months = self.months.lock().unwrap_or_else(PoisonError::into_inner);
        for task in tasks {
            let month = Month::of(finished_at(task));
            let waiting = lines.entry(month).or_default();
            line(task, waiting)?;
            if waiting.len() >= PIECE {
                self.append(&mut months, month, &std::mem::take(waiting))?;
            }
        }
        let latest = lines.keys().next_back().copied();
        for (month, waiting) in lines {
            if !waiting.is_empty() {
                self.append(&mut months, month, &waiting)?;
            }
        }
        match latest {
            Some(latest) if months.latest.is_none_or(|before| latest > before) => {
                months.open.retain(|month, _| !month.is_over_at(latest));
                self.seal_until(latest)?;
                months.latest = Some(latest);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn append(&self, months: &mut OpenMonths, month: Month, lines: &[u8]) -> io::Result<()> {
        let piece = pack(lines)?;
        let (file, length) = match months.open.remove(&month) {
            Some(open) => open,
            None => self.open_file(month)?,
        };
        if let Err(error) = file.write_all_at(&piece, length) {
            // What is half there is cut off; if that fails too, it is when the file is opened again.
            _ = file.set_len(length);
            return Err(error);
        }
        // Each piece by itself, so that at most the last one of a file can be torn.
        file.sync_data()?;
        months.open.insert(month, (file, length + piece.len() as u64));
        Ok(())
    }

    /// Opens the file that takes tasks of a month, without what is torn at its end.
    fn open_file(&self, month: Month) -> io::Result<(File, u64)> {
        let mut name = ArchiveFile { month, part: 0 };
        while name.is_sealed(&self.directory) {
            name = name.next();
        }
        loop {
            let path = name.path(&self.directory);
            let file =
                OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            match content(&file)? {
                Content::Whole(length) => {
                    cut(&file, length, &path)?;
                    File::open(&self.directory)?.sync_all()?;
                    return Ok((file, length));
                }
                Content::Damaged(byte) => {
                    let file = path.display();
                    tracing::error!(%file, byte, "this file is damaged; it is left as it is, and a new one is started");
                    name = name.next();
                }
            }
        }
    }

    /// Gives all files of months that are over their checksum.
    fn seal_until(&self, latest: Month) -> io::Result<()> {
        for file in list(&self.directory)? {
            if file.month.is_over_at(latest) && !file.is_sealed(&self.directory) {
                self.seal(file)?;
            }
        }
        Ok(())
    }

    fn seal(&self, name: ArchiveFile) -> io::Result<()> {
        let path = name.path(&self.directory);
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        if let Content::Whole(length) = content(&file)? {
            cut(&file, length, &path)?;
        }
        replace(&name.seal(&self.directory), format!("{}  {}\n", checksum(&path)?, name.name()).as_bytes())?;
        tracing::info!(file = %path.display(), "the month is over; its file is sealed with a checksum");
        Ok(())
    }
}

impl Archive for Archivist {
    fn take(&self, tasks: &[TaskView]) -> Result<(), String> {
        self.write(tasks).map_err(|error| {
            let fix = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "; free some space there, or put it on another disk than the store"
                }
                _ => "",
            };
            let what = format!("the archive {} cannot be written: {error}{fix}", self.directory.display());
            tracing::error!("{what}; finished tasks stay in the history until it works again");
            what
        })
    }
}

/// Cuts off what is torn.
fn cut(file: &File, length: u64, path: &Path) -> io::Result<()> {
    let torn = file.metadata()?.len() - length;
    if torn > 0 {
        tracing::warn!(file = %path.display(), bytes = torn, "an incomplete end was cut off; its tasks will be archived again");
        file.set_len(length)?;
        file.sync_all()?;
    }
    Ok(())
}

/// What an archive's file holds.
enum Content {
    /// Whole pieces up to this length, and after that at most a torn one.
    Whole(u64),
    /// Something that is not a piece here, with pieces after it. That was no crash; nothing is cut off.
    Damaged(u64),
}

/// Only the last piece can be torn: each one was synced before the next was begun.
fn content(file: &File) -> io::Result<Content> {
    let mut pieces = Pieces::of(file)?;
    let mut last: Option<Frame> = None;
    loop {
        match pieces.next()? {
            Found::Piece(frame) => last = Some(frame),
            Found::Torn(start) if pieces.find_next()? => return Ok(Content::Damaged(start)),
            Found::Torn(start) => return Ok(Content::Whole(start)),
            Found::End => break,
        }
    }
    // As long as it should be does not mean that all of it arrived.
    match last.filter(|last| last.unpack(file).is_err()) {
        Some(torn) => Ok(Content::Whole(torn.piece_start())),
        None => Ok(Content::Whole(file.metadata()?.len())),
    }
}

/// The checksum of a file, as `sha256sum` prints it.
pub(super) fn checksum(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
