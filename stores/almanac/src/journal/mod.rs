//! The journal: every commit is one record, written and synced before it is confirmed.
//!
//! Its files are segments of one size that are allocated once and written over and over: a sync then
//! has nothing to do but to wait for the bytes. Their names mean nothing; the number in a segment's
//! head says where it stands in the journal.
//!
//! ```text
//! closed segments, oldest first ──► current ──► free ones (the last few are the reserve)
//!          ▲ all before it is in runs                ▲ refilled by the keeper
//! ```

mod inspect;
mod prefix;
pub(crate) mod reach;
mod record;
mod replay;
mod segment;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex};

use punctual_disk::{Disk, File};

use crate::error::is_no_room;
use crate::lock::lock;
use record::{Beginning, HEAD, RECORDS, SegmentHead, VERSION, seal};

pub use inspect::SegmentStanding;
pub(crate) use inspect::{Inspected, inspect, unreadable};
pub(crate) use prefix::{Prefix, prefixes};
pub(crate) use reach::{Reach, Reached};
pub(crate) use replay::{Loss, Replay};
pub(crate) use segment::SegmentFile;

/// What a segment has beside its records.
pub(crate) const SEGMENT_HEAD: u64 = RECORDS as u64;

pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    /// The size of a segment.
    segment: u64,
    current: Option<Current>,
    /// Segments that are full, and needed until their rows are in runs; with their numbers.
    closed: VecDeque<(u64, SegmentFile)>,
    free: Vec<SegmentFile>,
    /// The number of the latest segment, and the one in its file's name.
    number: u64,
    name: u64,
    /// The sequence of the last record that was written, and of the last that is known to be on disk.
    written: u64,
    synced: u64,
    syncing: Arc<Syncing>,
    /// The number in the name of the next file.
    next_name: u64,
    /// Why a segment had to be taken of those that are kept.
    lacking: Option<io::Error>,
    /// Room for a segment's head, then the record that is being put together.
    buffer: Vec<u8>,
}

struct Current {
    file: SegmentFile,
    salt: u64,
    offset: u64,
}

/// One sync after the other, and none after one that failed: the system tells an error once and takes what it could not
/// write for written, so whoever syncs next would be told that all is well.
#[derive(Default)]
struct Syncing {
    has_failed: Mutex<bool>,
}

impl Syncing {
    fn sync(&self, file: &dyn File) -> io::Result<()> {
        let mut has_failed = lock(&self.has_failed);
        if *has_failed {
            return Err(io::Error::other("an earlier sync of it failed"));
        }
        let synced = file.sync();
        *has_failed = synced.is_err();
        synced
    }
}

/// Records that are not durable yet.
pub(crate) struct Unsynced {
    file: Arc<dyn File>,
    syncing: Arc<Syncing>,
    sequence: u64,
}

impl Unsynced {
    /// Makes them durable, without the journal; says up to which.
    pub fn sync(&self) -> io::Result<u64> {
        self.syncing.sync(&*self.file).map(|()| self.sequence)
    }
}

/// Why a record was not written.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// There is no room. Nothing was written that could be taken for a record.
    Full(io::Error),
    /// A new segment could not be made for another reason. Nothing was written.
    Unmade(io::Error),
    /// What is on disk is not known.
    Unknown(io::Error),
}

impl Journal {
    /// Puts a record together and writes it. Not synced: see [`Journal::sync`]. If a new segment is needed and only
    /// `keep` are free, another one is made; one of those is taken only if that cannot be done, see
    /// [`Journal::take_lacking`].
    pub fn append(&mut self, keep: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), AppendError> {
        self.buffer.clear();
        self.buffer.resize(RECORDS + HEAD, 0);
        write(&mut self.buffer);
        let length = (self.buffer.len() - RECORDS).next_multiple_of(8) as u64;
        let fits = |current: &Current| current.offset + length <= current.file.capacity;
        if !self.current.as_ref().is_some_and(fits) {
            self.close()?;
            return self.append_to_next(length, keep);
        }
        let current = self.current.as_mut().expect("it was just looked at");
        seal(&mut self.buffer, RECORDS, current.salt, self.written + 1, self.synced);
        current.file.file.write_at(&self.buffer[RECORDS..], current.offset).map_err(refused)?;
        current.offset += length;
        self.written += 1;
        Ok(())
    }

    /// The payload of the record that was appended last.
    pub fn payload(&self) -> &[u8] {
        let length = u32::from_le_bytes(self.buffer[RECORDS + 4..RECORDS + 8].try_into().expect("four bytes"));
        &self.buffer[RECORDS + HEAD..RECORDS + HEAD + length as usize]
    }

    /// Makes all records durable.
    pub fn sync(&mut self) -> io::Result<()> {
        if let Some(current) = &self.current
            && self.synced < self.written
        {
            self.syncing.sync(&*current.file.file)?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// What has to be synced for all records up to a sequence to be durable, for syncing without
    /// holding the journal; then [`Journal::mark_synced`].
    pub fn unsynced(&self) -> Option<Unsynced> {
        let current = self.current.as_ref().filter(|_| self.synced < self.written)?;
        let (file, syncing) = (Arc::clone(&current.file.file), Arc::clone(&self.syncing));
        Some(Unsynced { file, syncing, sequence: self.written })
    }

    pub fn mark_synced(&mut self, sequence: u64) {
        self.synced = self.synced.max(sequence);
    }

    /// Notes on disk that all records are durable.
    pub fn mark(&mut self) -> Result<(), AppendError> {
        self.sync().map_err(AppendError::Unknown)?;
        if self.current.is_some() {
            self.append(0, |_| {})?;
            self.sync().map_err(AppendError::Unknown)?;
        }
        Ok(())
    }

    /// The sequence of the last record.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The number of the latest segment.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How far the journal is known to reach on disk.
    pub fn reached(&self) -> Reached {
        Reached { sequence: self.synced, segment: self.number, name: self.name }
    }

    /// The next record begins a new segment; what was written before is durable.
    pub fn close(&mut self) -> Result<(), AppendError> {
        self.sync().map_err(AppendError::Unknown)?;
        if let Some(current) = self.current.take() {
            self.closed.push_back((self.number, current.file));
        }
        Ok(())
    }

    /// How much of the disk the records take since the last time their rows moved to runs.
    pub fn bytes(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|(_, file)| file.capacity).sum();
        closed + self.current.as_ref().map_or(0, |current| current.offset)
    }

    /// How many segments hold records that are not in runs.
    pub fn used(&self) -> usize {
        self.closed.len() + usize::from(self.current.is_some())
    }

    /// How much room is left in the segment that is being written.
    pub fn left(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.file.capacity - current.offset)
    }

    /// Whether a record with a payload of so many bytes fits into the segment that is being written.
    pub fn fits(&self, payload: u64) -> bool {
        payload + HEAD as u64 + 8 <= self.left()
    }

    /// Makes the segments free again that hold nothing but records after this sequence: these were never confirmed, and
    /// say nothing that counts. From the last one on, so that what is left is a journal at any moment.
    pub fn take_back(&mut self, sequence: u64) -> io::Result<()> {
        if let Some(current) = self.current.take() {
            self.closed.push_back((self.number, current.file));
        }
        while let Some((_, segment)) = self.closed.back() {
            let mut head = vec![0; RECORDS];
            segment.file.read_at(&mut head, 0)?;
            let Beginning::Used(found) = SegmentHead::read(&head) else { break };
            if found.first <= sequence {
                break;
            }
            // Durable before a record of the same sequence is written anywhere else.
            segment.file.write_at(&[0; RECORDS], 0)?;
            segment.file.sync()?;
            self.written = found.first - 1;
            self.synced = self.synced.min(self.written);
            let (_, segment) = self.closed.pop_back().expect("it was just looked at");
            if segment.capacity == self.segment {
                self.free.push(segment);
            } else {
                _ = self.disk.remove(&segment.name);
            }
        }
        Ok(())
    }

    /// Why a segment had to be taken of those that are kept, if one was since this was last asked.
    pub fn take_lacking(&mut self) -> Option<io::Error> {
        self.lacking.take()
    }

    /// Takes a free segment out for another use.
    pub fn give_up_free(&mut self) -> Option<SegmentFile> {
        self.free.pop()
    }

    /// How many segments are free.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// A name for a new file, which nobody else is given.
    pub fn fresh_name(&mut self) -> String {
        self.next_name += 1;
        SegmentFile::name(self.next_name - 1)
    }

    /// Takes a segment in that can be written over.
    pub fn add_free(&mut self, file: SegmentFile) {
        self.free.push(file);
    }

    /// The segments before this number are not needed any more; gives back those that are more than
    /// `keep` free ones or of another size, to be removed.
    pub fn release(&mut self, first_needed: u64, keep: usize) -> Vec<SegmentFile> {
        let mut surplus = Vec::new();
        while self.closed.front().is_some_and(|(number, _)| *number < first_needed) {
            let (_, file) = self.closed.pop_front().expect("it was just looked at");
            let of_use = file.capacity == self.segment && self.free.len() < keep;
            if of_use { &mut self.free } else { &mut surplus }.push(file);
        }
        surplus
    }

    /// Writes the record that has been put together as the first one of a new segment.
    fn append_to_next(&mut self, length: u64, keep: usize) -> Result<(), AppendError> {
        let needed = RECORDS as u64 + length;
        let file = self.next_file(needed, keep)?;
        // A number is used once, also if the write fails and leaves some of it behind: the next
        // segment then begins with the same sequence, and replay knows which of the two holds.
        self.number += 1;
        let salt = RandomState::new().hash_one(self.number);
        self.name = SegmentFile::number(&file.name).unwrap_or_default();
        let capacity = Some(file.capacity);
        let head = SegmentHead { version: VERSION, number: self.number, salt, first: self.written + 1, capacity };
        head.write(&mut self.buffer);
        seal(&mut self.buffer, RECORDS, salt, self.written + 1, self.synced);
        if let Err(error) = file.file.write_at(&self.buffer, 0) {
            // Its head may be torn now, and the next write that is torn could spoil both copies.
            _ = self.disk.remove(&file.name);
            return Err(refused(error));
        }
        self.written += 1;
        self.current = Some(Current { file, salt, offset: needed });
        Ok(())
    }
}

impl Journal {
    /// A file with so much room: a free one, if there are more than are to be kept, or a new one.
    fn next_file(&mut self, needed: u64, keep: usize) -> Result<SegmentFile, AppendError> {
        if self.free.len() > keep
            && let Some(file) = self.free.pop_if(|file| file.capacity >= needed)
        {
            return Ok(file);
        }
        let name = self.fresh_name();
        SegmentFile::create(&self.disk, name, needed.max(self.segment)).or_else(|error| {
            let kept = self.free.pop_if(|file| file.capacity >= needed);
            match kept {
                Some(file) => {
                    self.lacking = Some(error);
                    Ok(file)
                }
                None if is_no_room(&error) => Err(AppendError::Full(error)),
                None => Err(AppendError::Unmade(error)),
            }
        })
    }
}

fn refused(error: io::Error) -> AppendError {
    if is_no_room(&error) { AppendError::Full(error) } else { AppendError::Unknown(error) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use punctual_simulated_disk::{Call, Fault, SimulatedDisk};

    use super::*;

    #[test]
    fn after_a_sync_that_failed_none_succeeds_whoever_tries() {
        let disk = SimulatedDisk::new(1);
        let file = disk.create("journal-0000").unwrap();
        file.write_at(b"record", 0).unwrap();
        let syncing = Arc::new(Syncing::default());
        let other = Unsynced { file: Arc::clone(&file), syncing: Arc::clone(&syncing), sequence: 7 };
        let kind = io::ErrorKind::Other;
        disk.fail(Fault { call: Call::Sync, name_contains: "journal", after: 0, kind, lasting: false });
        assert!(syncing.sync(&*file).is_err());
        disk.heal();
        assert!(file.sync().is_ok(), "the system tells it once");
        assert!(other.sync().is_err());
    }
}
