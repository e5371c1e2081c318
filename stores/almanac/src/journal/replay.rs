//! Reading the journal when the almanac is opened: which records count, and where it ends.
//!
//! A torn tail is cut silently: nobody was told that it was written. A record that cannot be read
//! although a later one says that it was synced is damage, and an error: its commit was confirmed.
//!
//! What was read may still be only in the system's memory, if the process was killed or a sync
//! failed. It is written once more and synced before anything is built on it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use punctual_disk::Disk;

use super::record::{Beginning, RECORDS, Record, SegmentHead, VERSION, first_record, may_follow};
use super::{Journal, Reached, SegmentFile};
use crate::error::{Damage, OpenError};

/// The journal's files, looked at but not yet read.
pub(crate) struct Replay {
    /// Those that may hold records that count, in order.
    segments: Vec<(SegmentHead, SegmentFile)>,
    /// Those that hold nothing of use.
    free: Vec<SegmentFile>,
    /// Those whose head cannot be read, and what is wrong with them.
    broken: Vec<Damage>,
    /// Files that are too short to have ever been used, or were emptied.
    short: Vec<String>,
    /// The highest number that any segment bears.
    number: u64,
    /// The number in the name of the next file.
    next_name: u64,
}

/// Records that were confirmed and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub damage: Damage,
    /// The sequence of the first record that is lost, and of the last that is known to have been there; if that is
    /// before it, none is known to be lost.
    pub from: u64,
    pub until: u64,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { damage: Damage { file, offset, what }, from, until } = self;
        write!(f, "{file} at byte {offset}: {what}. ")?;
        match (until + 1).saturating_sub(*from) {
            0 => write!(f, "Lost commits: any after sequence {until}"),
            least => write!(f, "Lost commits: all from sequence {from} on, at least {least}"),
        }
    }
}

/// How far the journal could be read.
pub(crate) struct Ended {
    /// The sequence of the last record.
    pub last: u64,
    pub loss: Option<Loss>,
}

/// Something that was read from the journal.
pub(crate) struct FoundRecord<'a> {
    pub sequence: u64,
    pub file: &'a str,
    pub offset: u64,
    pub payload: &'a [u8],
}

impl FoundRecord<'_> {
    /// The damage of which this record would be the place.
    pub fn damage(&self, what: &str) -> Damage {
        Damage { file: self.file.to_owned(), offset: self.offset, what: what.to_owned() }
    }
}

impl Replay {
    /// Looks at the journal's files. Records count from the segment of this number on.
    pub fn look(disk: &Arc<dyn Disk>, names: &[String], first_segment: u64) -> Result<Replay, OpenError> {
        let next_name = names.iter().filter_map(|name| SegmentFile::number(name)).max().map_or(0, |number| number + 1);
        let number = first_segment.saturating_sub(1);
        let (broken, short) = (Vec::new(), Vec::new());
        let mut replay = Replay { segments: Vec::new(), free: Vec::new(), broken, short, number, next_name };
        for name in names.iter().filter(|name| SegmentFile::is_one(name)) {
            let segment = SegmentFile::open(disk, name).map_err(OpenError::io(format!("{name} cannot be opened")))?;
            if segment.capacity < RECORDS as u64 {
                // Its making was cut short, or it was emptied: then its records will be missed.
                replay.short.push(name.clone());
                continue;
            }
            let mut bytes = vec![0; RECORDS];
            segment.file.read_at(&mut bytes, 0).map_err(OpenError::io(format!("{name} cannot be read")))?;
            let beginning = SegmentHead::read(&bytes);
            if let Beginning::Used(head) = beginning {
                mend_head(&segment, head, &bytes).map_err(OpenError::io(format!("{name} cannot be repaired")))?;
            }
            match beginning {
                Beginning::Used(head) if head.number >= first_segment => replay.segments.push((head, segment)),
                Beginning::Used(_) => replay.free.push(segment),
                Beginning::Blank => {
                    // If the process that made it was killed, how long it is may not be on disk yet.
                    segment.file.sync().map_err(OpenError::io(format!("{name} cannot be synced")))?;
                    replay.free.push(segment);
                }
                Beginning::Newer(found) => {
                    return Err(OpenError::Newer { file: name.clone(), found, known: VERSION });
                }
                Beginning::Damaged => {
                    let what = "both copies of the segment's head are unreadable".to_owned();
                    replay.broken.push(Damage { file: name.clone(), offset: 0, what });
                }
            }
        }
        replay.segments.sort_by_key(|(head, _)| head.number);
        replay.number = replay.segments.last().map_or(replay.number, |(head, _)| head.number);
        Ok(replay)
    }

    /// Files whose head cannot be read.
    pub fn broken(&self) -> &[Damage] {
        &self.broken
    }

    /// Removes files that were never used, and those whose loss is accepted.
    pub fn remove_unusable(&self, disk: &dyn Disk) -> Result<(), OpenError> {
        for name in self.short.iter().chain(self.broken.iter().map(|damage| &damage.file)) {
            disk.remove(name).map_err(OpenError::io(format!("{name} cannot be removed")))?;
        }
        Ok(())
    }

    /// Reads all records after a sequence, in order, as far as they can be read. `reached`: how far it is known to go.
    pub fn run(
        &self,
        after: u64,
        reached: Option<Reached>,
        each: impl FnMut(FoundRecord<'_>) -> Result<(), OpenError>,
    ) -> Result<Ended, OpenError> {
        let mut last = after;
        let damage = self.read(&mut last, reached, each)?;
        let later = self.segments.iter().map(|(head, _)| head.first).max().unwrap_or_default();
        let known = reached.map_or(0, |reached| reached.sequence).max(later);
        let loss = damage.map(|damage| Loss { damage, from: last + 1, until: known.max(last) });
        Ok(Ended { last, loss })
    }

    /// Reads records until the end, or until one cannot be read that was confirmed.
    fn read(
        &self,
        last: &mut u64,
        reached: Option<Reached>,
        mut each: impl FnMut(FoundRecord<'_>) -> Result<(), OpenError>,
    ) -> Result<Option<Damage>, OpenError> {
        let mut ended_at = None;
        for (index, (head, segment)) in self.segments.iter().enumerate() {
            if head.first != *last + 1 {
                let what = format!("its first record has sequence {}, but {} is missing", head.first, *last + 1);
                return Ok(Some(Damage { file: segment.name.clone(), offset: 0, what }));
            }
            let mut bytes = vec![0; segment.capacity as usize];
            let name = &segment.name;
            segment.file.read_at(&mut bytes, 0).map_err(OpenError::io(format!("{name} cannot be read")))?;
            // Records that the next segment begins anew were never confirmed.
            let next = self.segments.get(index + 1).map(|(head, _)| head.first);
            let mut offset = RECORDS;
            // Each record says up to which one all was on disk when it was written. Those that no later one vouches for
            // may be in the system's memory alone, and from now on callers are told of them.
            let mut unproven: VecDeque<(u64, usize)> = VecDeque::new();
            while let Some(record) = first_record(&bytes[offset..], head.salt)
                && record.sequence == *last + 1
                && next.is_none_or(|next| record.sequence < next)
            {
                each(FoundRecord {
                    sequence: record.sequence,
                    file: name,
                    offset: offset as u64,
                    payload: record.payload,
                })?;
                unproven.push_back((record.sequence, offset));
                while unproven.front().is_some_and(|(sequence, _)| *sequence <= record.synced) {
                    unproven.pop_front();
                }
                *last = record.sequence;
                offset += record.length;
            }
            let damage = check_end(name, &bytes, offset, head.salt, *last + 1, next);
            if let Some(damage) = damage.or_else(|| is_cut(name, head, segment.capacity)) {
                return Ok(Some(damage));
            }
            // A segment is begun when all before it is durable, so only the last one is in doubt.
            if let Some((_, from)) = unproven.front().filter(|_| next.is_none()) {
                let from = if *from == RECORDS { 0 } else { *from };
                // Written and not only synced: after a failed sync the system takes what it could
                // not write for written.
                let written = segment.file.write_at(&bytes[from..offset], from as u64);
                let synced = written.and_then(|()| segment.file.sync());
                synced.map_err(OpenError::io(format!("{name} cannot be written")))?;
            }
            ended_at = Some((head.number, name.as_str(), offset as u64));
        }
        Ok(reached.and_then(|reached| missing(reached, *last, ended_at)))
    }

    /// The journal, to go on writing after the record of this sequence.
    pub fn into_journal(self, disk: Arc<dyn Disk>, segment: u64, last: u64) -> Journal {
        let (free, other): (Vec<_>, Vec<_>) = self.free.into_iter().partition(|file| file.capacity == segment);
        for file in other {
            // Segments of another size were made under other settings, or for one large record.
            _ = disk.remove(&file.name);
        }
        Journal {
            disk,
            segment,
            current: None,
            closed: self.segments.into_iter().map(|(head, file)| (head.number, file)).collect(),
            free,
            number: self.number,
            name: 0,
            written: last,
            synced: last,
            syncing: Arc::default(),
            next_name: self.next_name,
            lacking: None,
            buffer: Vec::new(),
        }
    }
}

/// Writes both copies of a head anew if one of them is torn: the next write that is torn may spoil the other.
fn mend_head(segment: &SegmentFile, head: SegmentHead, found: &[u8]) -> io::Result<()> {
    let mut whole = vec![0; RECORDS];
    head.write(&mut whole);
    if whole != found {
        segment.file.write_at(&whole, 0)?;
        segment.file.sync()?;
    }
    Ok(())
}

/// What is wrong if where the records of a segment end is not the end of what was confirmed.
fn check_end(
    name: &str,
    bytes: &[u8],
    end: usize,
    salt: u64,
    expected: u64,
    next_segment: Option<u64>,
) -> Option<Damage> {
    let damage = |what: String| Some(Damage { file: name.to_owned(), offset: end as u64, what });
    if let Some(next) = next_segment
        && next > expected
    {
        return damage(format!(
            "the record with sequence {expected} cannot be read, and the next segment continues with {next}"
        ));
    }
    let (_, later) = resume(bytes, end, salt, expected)?;
    let later = later.sequence;
    damage(format!("the record with sequence {expected} cannot be read, but the one with {later} can"))
}

/// What is wrong with a segment that is shorter than it was made.
pub(super) fn is_cut(name: &str, head: &SegmentHead, length: u64) -> Option<Damage> {
    let made = head.capacity.filter(|made| length < *made)?;
    let what = format!("the file has only {length} of {made} bytes: it was truncated");
    Some(Damage { file: name.to_owned(), offset: length, what })
}

/// What is wrong if the journal ends before the place up to which it is known to have been on disk. `ended_at`: the
/// number of the last segment, its file, and where its records end.
pub(super) fn missing(reached: Reached, last: u64, ended_at: Option<(u64, &str, u64)>) -> Option<Damage> {
    if last >= reached.sequence {
        return None;
    }
    let (expected, until) = (last + 1, reached.sequence);
    Some(match ended_at {
        Some((number, name, end)) if number >= reached.segment => {
            let what =
                format!("the record with sequence {expected} cannot be read, although all up to {until} were on disk");
            Damage { file: name.to_owned(), offset: end, what }
        }
        _ => {
            let what = format!(
                "it is missing or empty, or has lost its beginning, although the journal continued there: records from \
                 sequence {expected} to {until} were on disk"
            );
            Damage { file: reached.file(), offset: 0, what }
        }
    })
}

/// The first record behind this place, and where it begins, that proves that the record which should
/// be at this place was on disk once.
pub(super) fn resume(bytes: &[u8], end: usize, salt: u64, expected: u64) -> Option<(usize, Record<'_>)> {
    (end + 8..bytes.len()).step_by(8).find_map(|offset| {
        let rest = &bytes[offset..];
        let later = may_follow(rest, expected).then(|| first_record(rest, salt)).flatten()?;
        (later.synced >= expected).then_some((offset, later))
    })
}
