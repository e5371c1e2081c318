//! Reading a journal that may be damaged, without changing anything: it goes on where [`Replay`]
//! would stop, and tells all that is wrong.
//!
//! Where `Replay` finds no damage there is none here, and the other way round.
//!
//! [`Replay`]: super::Replay

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use punctual_disk::{Disk, File};

use super::record::{Beginning, HEAD, RECORDS, Record, SegmentHead, VERSION, first_record};
use super::replay::{FoundRecord, is_cut, missing, resume};
use super::{Reached, SegmentFile};
use crate::error::{Damage, OpenError};

/// What was found of a journal.
#[derive(Default)]
pub(crate) struct Inspected {
    /// All its files; those that count first, in their order.
    pub segments: Vec<InspectedSegment>,
    pub damage: Vec<Damage>,
    /// Where a record was cut short that nobody was told of.
    pub torn: Option<(String, u64)>,
    /// Files of whose head only one copy is right.
    pub half_heads: Vec<String>,
    /// A file of a version that is not known.
    pub newer: Option<OpenError>,
}

/// A file of the journal.
pub(crate) struct InspectedSegment {
    pub name: String,
    /// How long the file is.
    pub bytes: u64,
    /// Its number in the journal, if it has one.
    pub number: Option<u64>,
    pub standing: SegmentStanding,
}

/// What a file of the journal is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentStanding {
    /// Its records count.
    Live {
        /// The sequence of its first record.
        first: u64,
        /// How many records can be read.
        records: u64,
        /// Where they end in the file.
        end: u64,
    },
    /// What it holds is in runs; it will be written over.
    Free,
    /// Nothing was ever written to it.
    Blank,
    /// It cannot be read.
    Unreadable,
}

/// Reads a journal and passes on all records that can be read, with whether any before it is lost.
/// `start` is where it begins, the sequence before it and the first segment that counts; without it
/// all segments count, and gaps between them tell nothing. `reached`: how far it is known to go.
pub(crate) fn inspect(
    disk: &dyn Disk,
    names: &[String],
    start: Option<(u64, u64)>,
    reached: Option<Reached>,
    mut each: impl FnMut(FoundRecord<'_>, bool),
) -> Result<Inspected, OpenError> {
    let mut inspected = Inspected::default();
    let mut live = Vec::new();
    for name in names.iter().filter(|name| SegmentFile::is_one(name)) {
        let first_segment = start.map_or(0, |(_, first)| first);
        let (segment, used) = match look(disk, name, first_segment, &mut inspected) {
            Ok(looked) => looked,
            Err(error) => {
                inspected.damage.push(unreadable(name, 0, error)?);
                (InspectedSegment::new(name, 0, SegmentStanding::Unreadable), None)
            }
        };
        match used {
            Some((head, file)) => live.push((head, file, segment)),
            None => inspected.segments.push(segment),
        }
    }
    live.sort_by_key(|(head, ..)| head.number);
    let mut last = start.map(|(sequence, _)| sequence);
    let heads: Vec<SegmentHead> = live.iter().map(|(head, ..)| *head).collect();
    let mut read = Vec::new();
    for (index, (head, file, mut segment)) in live.into_iter().enumerate() {
        let follows = |next: &&SegmentHead| start.is_some() || next.number == head.number + 1;
        let next = heads.get(index + 1).filter(follows).map(|next| next.first);
        let expected = last.filter(|_| start.is_some()).map(|last| last + 1);
        if let Some(expected) = expected.filter(|expected| *expected != head.first) {
            let what = format!("its first record has sequence {}, but {expected} is missing", head.first);
            inspected.damage.push(Damage { file: segment.name.clone(), offset: 0, what });
        }
        let mut bytes = vec![0; segment.bytes as usize];
        last = match file.read_at(&mut bytes, 0) {
            Ok(()) => {
                let last = inspected.records(&bytes, head, next, &mut segment, &mut each);
                inspected.damage.extend(is_cut(&segment.name, &head, segment.bytes));
                Some(last)
            }
            Err(error) => {
                inspected.damage.push(unreadable(&segment.name, 0, error)?);
                segment.standing = SegmentStanding::Unreadable;
                next.map(|next| next - 1).or(last)
            }
        };
        read.push(segment);
    }
    if let (Some(reached), true) = (reached, inspected.damage.is_empty()) {
        let ended_at = read.last().and_then(|segment: &InspectedSegment| match segment.standing {
            SegmentStanding::Live { end, .. } => Some((segment.number?, segment.name.as_str(), end)),
            _ => None,
        });
        inspected.damage.extend(missing(reached, last.unwrap_or_default(), ended_at));
    }
    inspected.segments.splice(0..0, read);
    Ok(inspected)
}

impl Inspected {
    /// Reads the records of a segment, and gives the sequence after which the next one should go on.
    fn records(
        &mut self,
        bytes: &[u8],
        head: SegmentHead,
        next: Option<u64>,
        segment: &mut InspectedSegment,
        each: &mut impl FnMut(FoundRecord<'_>, bool),
    ) -> u64 {
        let name = segment.name.clone();
        let counts = |sequence: u64| next.is_none_or(|next| sequence < next);
        let (mut offset, mut last, mut records) = (RECORDS, head.first.saturating_sub(1), 0);
        loop {
            while let Some(Record { sequence, payload, length, .. }) = first_record(&bytes[offset..], head.salt)
                && sequence == last + 1
                && counts(sequence)
            {
                let found = FoundRecord { sequence, file: &name, offset: offset as u64, payload };
                each(found, !self.damage.is_empty());
                (last, records, offset) = (sequence, records + 1, offset + length);
            }
            let expected = last + 1;
            let proof = resume(bytes, offset, head.salt, expected);
            let after = match (&proof, next) {
                (Some((_, later)), _) => format!("but the one with {} can", later.sequence),
                (None, Some(next)) if next > expected => format!("and the next segment continues with {next}"),
                _ => break,
            };
            let what = format!("the record with sequence {expected} cannot be read, {after}");
            self.damage.push(Damage { file: name.clone(), offset: offset as u64, what });
            let go_on = proof.and_then(|(until, later)| {
                first_whole(bytes, offset + 8..=until, head.salt, expected + 1..=later.sequence)
            });
            match go_on.filter(|(_, sequence)| counts(*sequence)) {
                Some((place, sequence)) => (offset, last) = (place, sequence - 1),
                None => {
                    last = next.map_or(last, |next| next - 1);
                    break;
                }
            }
        }
        if next.is_none() && is_torn(&bytes[offset..], last + 1) {
            self.torn = Some((name, offset as u64));
        }
        segment.standing = SegmentStanding::Live { first: head.first, records, end: offset as u64 };
        last
    }
}

impl InspectedSegment {
    fn new(name: &str, bytes: u64, standing: SegmentStanding) -> InspectedSegment {
        InspectedSegment { name: name.to_owned(), bytes, number: None, standing }
    }
}

type Used = Option<(SegmentHead, Arc<dyn File>)>;

/// Looks at the head of a file.
fn look(
    disk: &dyn Disk,
    name: &str,
    first_segment: u64,
    inspected: &mut Inspected,
) -> io::Result<(InspectedSegment, Used)> {
    let file = disk.open(name)?;
    let mut segment = InspectedSegment::new(name, file.len()?, SegmentStanding::Blank);
    if segment.bytes < RECORDS as u64 {
        // Its making was cut short, so nothing was ever written to it.
        return Ok((segment, None));
    }
    let mut bytes = vec![0; RECORDS];
    file.read_at(&mut bytes, 0)?;
    match SegmentHead::read(&bytes) {
        Beginning::Blank => return Ok((segment, None)),
        Beginning::Used(head) => {
            segment.number = Some(head.number);
            let mut whole = vec![0; RECORDS];
            head.write(&mut whole);
            if whole != bytes {
                inspected.half_heads.push(name.to_owned());
            }
            segment.standing = SegmentStanding::Free;
            return Ok((segment, (head.number >= first_segment).then_some((head, file))));
        }
        Beginning::Newer(found) => {
            inspected.newer = Some(OpenError::Newer { file: name.to_owned(), found, known: VERSION });
        }
        Beginning::Damaged => {
            let what = "both copies of the segment's head are unreadable".to_owned();
            inspected.damage.push(Damage { file: name.to_owned(), offset: 0, what });
        }
    }
    segment.standing = SegmentStanding::Unreadable;
    Ok((segment, None))
}

/// The damage of a file that the system does not give out. That it may not be read is no damage.
pub(crate) fn unreadable(name: &str, offset: u64, error: io::Error) -> Result<Damage, OpenError> {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Err(OpenError::Io { what: format!("{name} cannot be read"), error });
    }
    Ok(Damage { file: name.to_owned(), offset, what: format!("it cannot be read: {error}") })
}

/// The first whole record at one of these places and with one of these sequences.
fn first_whole(
    bytes: &[u8],
    places: RangeInclusive<usize>,
    salt: u64,
    sequences: RangeInclusive<u64>,
) -> Option<(usize, u64)> {
    places.step_by(8).find_map(|place| {
        let sequence = u64::from_le_bytes(bytes.get(place + 8..place + 16)?.try_into().ok()?);
        let whole = sequences.contains(&sequence) && first_record(&bytes[place..], salt).is_some();
        whole.then_some((place, sequence))
    })
}

/// Whether these bytes look like the beginning of the record that was to come next.
fn is_torn(bytes: &[u8], expected: u64) -> bool {
    let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    bytes.len() >= HEAD && number(8) == Some(expected) && number(16).is_some_and(|synced| synced < expected)
}
