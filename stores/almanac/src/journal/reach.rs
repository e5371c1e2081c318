//! How far the journal reaches, noted beside it: so that segments that are lost, emptied, cut or wiped are missed.
//!
//! ```text
//!   0  "PUNCREAC"                     16  u64  counter: the note with the higher one holds
//!   8  u32  version                   24  u64  sequence: all records up to it were on disk
//!  12  u32  checksum of what follows  32  u64  number of the latest segment that was begun
//!                                     40  u64  the number in its file's name
//! 512  the same once more            1,024  and once more
//! ```
//! The first two are synced, by turns, so that a torn one leaves the other: when a segment is begun, about once a second,
//! and when the almanac is closed. The third is written after every sync of the journal and not synced itself, which
//! costs next to nothing: a killed process leaves it as it is, and a power loss one of the others.
//! **Invariant**: a note never says more than is on disk. It may say less.

use std::io;
use std::sync::Arc;

use bytes::Buf;
use punctual_disk::{Disk, File};

use super::SegmentFile;
use crate::error::{Damage, OpenError};
use crate::payload::read_counter;

/// The file of the notes.
pub(crate) const NAME: &str = "reach";

const MAGIC: &[u8; 8] = b"PUNCREAC";
const VERSION: u32 = 1;
const COPY: u64 = 512;
/// Where the note is that is not synced.
const LATEST: u64 = 2 * COPY;
const FILE: u64 = 3 * COPY;
const LENGTH: usize = 48;

/// What was noted. The greater one is the later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Which of the two notes that are synced is written next: not the one that is known to be on disk.
    turn: u64,
    /// The counter of the draft that stands there.
    drafted: u64,
    /// The last note that is known to be on disk.
    durable: Option<Reached>,
}

/// A note that is written and must be synced.
pub(crate) struct Draft {
    file: Arc<dyn File>,
    counter: u64,
    reached: Reached,
}

impl Draft {
    /// Takes long, and is done while nobody holds the [`Reach`].
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Reach {
    /// Begins it; its name is durable when the disk is synced.
    pub fn create(disk: &dyn Disk, reached: Reached) -> io::Result<Reach> {
        let file = disk.create(NAME)?;
        file.allocate(FILE)?;
        let mut reach = Reach { file, counter: 0, noted: reached, turn: 0, drafted: 0, durable: None };
        // Both, so that neither is ever blank.
        reach.put(COPY, reached)?;
        reach.begin_anew(reached)?;
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
        let mut bytes = vec![0; FILE.min(length) as usize];
        file.read_at(&mut bytes, 0).map_err(failed())?;
        let note = |at: u64| bytes.get(at as usize..).and_then(|from| from.get(..LENGTH)).map(read_note);
        let copies = [0, COPY, LATEST].map(|at| note(at).unwrap_or(ReadNote::Unreadable));
        if let Some(found) =
            copies.iter().find_map(|copy| if let ReadNote::Newer(found) = copy { Some(*found) } else { None })
        {
            return Err(OpenError::Newer { file: NAME.to_owned(), found, known: VERSION });
        }
        let [first, second, latest] =
            copies.map(|copy| if let ReadNote::Whole(counter, noted) = copy { Some((counter, noted)) } else { None });
        let counter_of = |note: Option<(u64, Reached)>| note.map(|(counter, _)| counter);
        // Of two whole ones the later may be in the system's memory only, if the process was killed. The one before it is
        // on disk for sure and stays.
        let turn = match (counter_of(first), counter_of(second)) {
            (Some(first), Some(second)) => u64::from(second > first),
            (first, _) => u64::from(first.is_some()),
        };
        match [first, second, latest].into_iter().flatten().max_by_key(|(counter, _)| *counter) {
            Some((counter, noted)) => Ok(Some(Reach { file, counter, noted, turn, drafted: 0, durable: None })),
            None => {
                let what = "none of its entries can be read".to_owned();
                Err(Damage { file: NAME.to_owned(), offset: 0, what }.into())
            }
        }
    }

    pub fn noted(&self) -> Reached {
        self.noted
    }

    /// Notes how far the journal reaches, for the case that this process is killed.
    pub fn note(&mut self, reached: Reached) -> io::Result<()> {
        if reached > self.noted {
            self.put(LATEST, reached)?;
            self.noted = reached;
        }
        Ok(())
    }

    /// Begins to note it for any case: the draft is to be synced and then to be [confirmed](Reach::confirm). There is none if
    /// it was noted so before.
    pub fn draft(&mut self, reached: Reached) -> io::Result<Option<Draft>> {
        let reached = reached.max(self.noted);
        if self.durable == Some(reached) {
            return Ok(None);
        }
        self.put(self.turn * COPY, reached)?;
        self.noted = reached;
        self.drafted = self.counter;
        Ok(Some(Draft { file: Arc::clone(&self.file), counter: self.counter, reached }))
    }

    /// A draft was synced. If another one has taken its place meanwhile, that one's sync counts.
    pub fn confirm(&mut self, draft: &Draft) {
        if draft.counter == self.drafted {
            self.turn = 1 - self.turn;
            self.drafted = 0;
            self.durable = Some(draft.reached);
        }
    }

    /// Notes it durably, also if that is less than was noted.
    pub fn begin_anew(&mut self, reached: Reached) -> io::Result<()> {
        (self.noted, self.durable) = (reached, None);
        if let Some(draft) = self.draft(reached)? {
            draft.sync()?;
            self.confirm(&draft);
        }
        Ok(())
    }

    fn put(&mut self, at: u64, reached: Reached) -> io::Result<()> {
        self.counter += 1;
        let mut note = [0; LENGTH];
        note[..8].copy_from_slice(MAGIC);
        note[8..12].copy_from_slice(&VERSION.to_le_bytes());
        for (at, number) in [(16, self.counter), (24, reached.sequence), (32, reached.segment), (40, reached.name)] {
            note[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&note[16..]);
        note[12..16].copy_from_slice(&checksum.to_le_bytes());
        self.file.write_at(&note, at)
    }
}

enum ReadNote {
    Whole(u64, Reached),
    Newer(u32),
    Unreadable,
}

fn read_note(mut from: &[u8]) -> ReadNote {
    if !from.starts_with(MAGIC) {
        return ReadNote::Unreadable;
    }
    from.advance(8);
    let version = from.get_u32_le();
    if version > VERSION {
        return ReadNote::Newer(version);
    }
    if from.get_u32_le() != crc32c::crc32c(from) {
        return ReadNote::Unreadable;
    }
    let [counter, sequence, segment, name] = [(); 4].map(|()| read_counter(&mut from));
    match (counter, sequence, segment, name) {
        (Some(counter), Some(sequence), Some(segment), Some(name)) => {
            ReadNote::Whole(counter, Reached { sequence, segment, name })
        }
        _ => ReadNote::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use punctual_simulated_disk::SimulatedDisk;

    use super::*;

    fn reached(sequence: u64) -> Reached {
        Reached { sequence, segment: 7, name: 3 }
    }

    fn read(disk: &SimulatedDisk) -> Reached {
        Reach::read(disk).unwrap().unwrap().noted()
    }

    #[test]
    fn a_note_that_is_torn_leaves_the_one_before() {
        let disk = SimulatedDisk::new(1);
        assert!(Reach::read(&disk).unwrap().is_none());
        let mut reach = Reach::create(&disk, reached(1)).unwrap();
        for sequence in 2..6 {
            let (before, place) = (reach.noted(), reach.turn * COPY);
            let draft = reach.draft(reached(sequence)).unwrap().unwrap();
            draft.sync().unwrap();
            reach.confirm(&draft);
            assert_eq!((read(&disk), read(&disk).file()), (reached(sequence), "journal-0003".to_owned()));
            let torn = disk.copy();
            torn.flip(NAME, place + 30, 1);
            assert_eq!(read(&torn), before);
            torn.flip(NAME, COPY - place + 30, 1);
            assert!(matches!(Reach::read(&torn), Err(OpenError::Damaged(_))));
        }
        assert!(reach.draft(reached(5)).unwrap().is_none(), "it is on disk");
    }

    #[test]
    fn a_note_that_is_not_synced_outlives_the_process_and_is_late_after_a_power_loss_at_worst() {
        for seed in 0..50 {
            let disk = SimulatedDisk::new(seed);
            let mut reach = Reach::create(&disk, reached(1)).unwrap();
            disk.sync().unwrap();
            let mut durable = 1;
            for sequence in 2..20 {
                reach.note(reached(sequence)).unwrap();
                if sequence % 4 == seed % 4 {
                    // More is noted while it is synced.
                    let draft = reach.draft(reached(sequence)).unwrap().unwrap();
                    draft.sync().unwrap();
                    reach.note(reached(sequence + 1)).unwrap();
                    reach.confirm(&draft);
                    durable = sequence;
                }
                assert_eq!(read(&disk), reach.noted());
                let found = read(&disk.copy().crash(sequence)).sequence;
                assert!((durable..=sequence + 1).contains(&found), "{found} of {sequence}, durable {durable}");
                if sequence % 5 == 0 {
                    // Killed in between, and opened again.
                    drop(reach.draft(reached(sequence)).unwrap());
                    reach = Reach::read(&disk).unwrap().unwrap();
                }
            }
        }
    }

    #[test]
    fn a_draft_counts_as_synced_only_if_no_other_has_taken_its_place() {
        let disk = SimulatedDisk::new(1);
        let mut reach = Reach::create(&disk, reached(1)).unwrap();
        let turn = reach.turn;
        let one = reach.draft(reached(2)).unwrap().unwrap();
        let other = reach.draft(reached(3)).unwrap().unwrap();
        one.sync().unwrap();
        reach.confirm(&one);
        assert_eq!(reach.turn, turn, "the other is not on disk yet");
        other.sync().unwrap();
        reach.confirm(&other);
        assert_eq!(reach.turn, 1 - turn);
    }

    #[test]
    fn less_than_was_noted_is_noted_only_when_it_begins_anew() {
        let disk = SimulatedDisk::new(1);
        let mut reach = Reach::create(&disk, reached(5)).unwrap();
        reach.note(reached(9)).unwrap();
        reach.note(reached(6)).unwrap();
        assert_eq!(read(&disk), reached(9));
        reach.begin_anew(reached(3)).unwrap();
        assert_eq!(read(&disk), reached(3));
        reach.note(reached(4)).unwrap();
        assert_eq!(read(&disk), reached(4));
    }
}
