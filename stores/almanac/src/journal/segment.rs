//! A file of the journal.

use std::io;
use std::sync::Arc;

use punctual_disk::{Disk, File};

/// How the names of the journal's files begin.
const PREFIX: &str = "journal-";
/// How much is written at once to fill a new file.
const PIECE: usize = 1 << 20;

/// A file of the journal, with room for so many bytes.
pub(crate) struct SegmentFile {
    pub name: String,
    pub file: Arc<dyn File>,
    pub capacity: u64,
}

impl SegmentFile {
    /// A new file of this name, with this much room.
    pub fn create(disk: &Arc<dyn Disk>, name: String, capacity: u64) -> io::Result<SegmentFile> {
        let made = SegmentFile::make(disk, name.clone(), capacity);
        if made.is_err() {
            // Half a segment would only take room that is short already.
            _ = disk.remove(&name);
        }
        made
    }

    /// The same, and written once from end to end: what is written over later needs no new room,
    /// and a sync has nothing to note but the bytes.
    pub fn create_written(disk: &Arc<dyn Disk>, name: String, capacity: u64) -> io::Result<SegmentFile> {
        let segment = SegmentFile::create(disk, name, capacity)?;
        let zeros = vec![0; PIECE.min(capacity as usize)];
        let fill = || {
            for offset in (0..capacity).step_by(PIECE) {
                let length = (capacity - offset).min(PIECE as u64) as usize;
                segment.file.write_at(&zeros[..length], offset)?;
            }
            segment.file.sync()
        };
        let filled = fill();
        if filled.is_err() {
            _ = disk.remove(&segment.name);
        }
        filled.map(|()| segment)
    }

    /// Opens a file that is there.
    pub fn open(disk: &Arc<dyn Disk>, name: &str) -> io::Result<SegmentFile> {
        let file = disk.open(name)?;
        let capacity = file.len()?;
        Ok(SegmentFile { name: name.to_owned(), file, capacity })
    }

    /// Whether a file of this name belongs to the journal.
    pub fn is_one(name: &str) -> bool {
        SegmentFile::number(name).is_some()
    }

    /// The name of the file with this number, which has no meaning beyond the name.
    pub fn name(number: u64) -> String {
        format!("{PREFIX}{number:04}")
    }

    /// The number in a file's name, if it belongs to the journal.
    pub fn number(name: &str) -> Option<u64> {
        name.strip_prefix(PREFIX)?.parse().ok()
    }

    fn make(disk: &Arc<dyn Disk>, name: String, capacity: u64) -> io::Result<SegmentFile> {
        let file = disk.create(&name)?;
        file.allocate(capacity)?;
        file.sync()?;
        disk.sync()?;
        Ok(SegmentFile { name, file, capacity })
    }
}
