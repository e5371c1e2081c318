//! How far the journal reaches, noted beside it: so that segments that are lost, emptied, cut or wiped are missed.
//!
//! ```text
//!   0  "PUNCREAC"                     16  u64  counter: the note with the higher one holds
//!   8  u32  version                   24  u64  sequence: all records up to it were on disk
//!  12  u32  checksum of what follows  32  u64  number of the latest segment that was begun
//!                                     40  u64  the number in its file's name
//! 512  the same once more
//! ```
//! The two notes are written by turns, so that a torn one leaves the other. A note never says more than is on disk, so it
//! may be late: it is written when a segment is begun, about once a second, and when the almanac is closed.

use std::io;
use std::sync::Arc;

use bytes::Buf;

use super::SegmentFile;
use crate::disk::{Disk, File};
use crate::error::{Damage, OpenError};

/// The file of the notes.
pub(crate) const NAME: &str = "reach";

const MAGIC: &[u8; 8] = b"PUNCREAC";
const VERSION: u32 = 1;
const COPY: u64 = 512;
const LENGTH: usize = 48;

/// What was noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// All records up to this one were on disk.
    pub sequence: u64,
    /// The number of the latest segment.
    pub segment: u64,
    /// The number in its file's name.
    pub name: u64,
}

impl Reached {
    /// The name of the latest segment's file.
    pub fn file(&self) -> String {
        SegmentFile::name(self.name)
    }
}

/// The file, open for the next note.
pub(crate) struct Reach {
    file: Arc<dyn File>,
    counter: u64,
    noted: Reached,
}

impl Reach {
    /// Begins it; its name is durable when the disk is synced.
    pub fn create(disk: &dyn Disk, reached: Reached) -> io::Result<Reach> {
        let file = disk.create(NAME)?;
        file.allocate(2 * COPY)?;
        let mut reach = Reach { file, counter: 0, noted: Reached::default() };
        // Both, so that neither is ever blank.
        reach.write(reached)?;
        reach.write(reached)?;
        Ok(reach)
    }

    /// What was noted last; `None` if there is no such file.
    pub fn read(disk: &dyn Disk) -> Result<Option<Reach>, OpenError> {
        let failed = || OpenError::io(format!("{NAME} cannot be read"));
        let file = match disk.open(NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed())?,
        };
        let length = file.len().map_err(failed())?;
        let mut bytes = vec![0; (2 * COPY).min(length) as usize];
        file.read_at(&mut bytes, 0).map_err(failed())?;
        let copies = [0, COPY as usize].map(|at| bytes.get(at..at + LENGTH).map_or(Note::Unreadable, read_note));
        if let Some(found) =
            copies.iter().find_map(|copy| if let Note::Newer(found) = copy { Some(*found) } else { None })
        {
            return Err(OpenError::Newer { file: NAME.to_owned(), found, known: VERSION });
        }
        let whole = copies
            .into_iter()
            .filter_map(|copy| if let Note::Whole(counter, noted) = copy { Some((counter, noted)) } else { None });
        match whole.max_by_key(|(counter, _)| *counter) {
            Some((counter, noted)) => Ok(Some(Reach { file, counter, noted })),
            None => {
                let what = "neither of its two notes can be read".to_owned();
                Err(Damage { file: NAME.to_owned(), offset: 0, what }.into())
            }
        }
    }

    pub fn noted(&self) -> Reached {
        self.noted
    }

    /// Notes how far the journal reaches, durably.
    pub fn write(&mut self, reached: Reached) -> io::Result<()> {
        self.counter += 1;
        let mut note = [0; LENGTH];
        note[..8].copy_from_slice(MAGIC);
        note[8..12].copy_from_slice(&VERSION.to_le_bytes());
        for (at, number) in [(16, self.counter), (24, reached.sequence), (32, reached.segment), (40, reached.name)] {
            note[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&note[16..]);
        note[12..16].copy_from_slice(&checksum.to_le_bytes());
        self.file.write_at(&note, self.counter % 2 * COPY)?;
        self.file.sync()?;
        self.noted = reached;
        Ok(())
    }
}

enum Note {
    Whole(u64, Reached),
    Newer(u32),
    Unreadable,
}

fn read_note(mut from: &[u8]) -> Note {
    if !from.starts_with(MAGIC) {
        return Note::Unreadable;
    }
    from.advance(8);
    let version = from.get_u32_le();
    if version > VERSION {
        return Note::Newer(version);
    }
    if from.get_u32_le() != crc32c::crc32c(from) {
        return Note::Unreadable;
    }
    let counter = from.get_u64_le();
    Note::Whole(counter, Reached { sequence: from.get_u64_le(), segment: from.get_u64_le(), name: from.get_u64_le() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimulatedDisk;

    #[test]
    fn a_note_that_is_torn_leaves_the_one_before() {
        let disk = SimulatedDisk::new(1);
        assert!(Reach::read(&disk).unwrap().is_none());
        let mut reach = Reach::create(&disk, Reached { sequence: 1, segment: 1, name: 0 }).unwrap();
        for sequence in 2..6 {
            let before = reach.noted();
            reach.write(Reached { sequence, segment: 7, name: 3 }).unwrap();
            let read = Reach::read(&disk).unwrap().unwrap();
            assert_eq!((read.noted(), read.noted().file()), (reach.noted(), "journal-0003".to_owned()));
            let torn = disk.copy();
            torn.flip(NAME, reach.counter % 2 * COPY + 30, 1);
            assert_eq!(Reach::read(&torn).unwrap().unwrap().noted(), before);
            torn.flip(NAME, (reach.counter + 1) % 2 * COPY + 30, 1);
            assert!(matches!(Reach::read(&torn), Err(OpenError::Damaged(_))));
        }
    }
}
