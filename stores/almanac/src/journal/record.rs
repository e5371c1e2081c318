//! The journal's records and the heads of its segments, byte by byte.
//!
//! ```text
//! segment:    0  head          record:   0  u32  checksum of all that follows
//!           512  head again              4  u32  length of the payload
//!         1,024  record                  8  u64  sequence
//!                record                 16  u64  synced: all records up to this one are on disk
//!                …                      24  payload, then zeros up to a multiple of 8
//!
//! head:       0  "PUNCJRNL"             20  u64  number of the segment
//!             8  u32  version           28  u64  salt
//!            12  u32  checksum of what  36  u64  sequence of the first record
//!                follows                44  u64  length of the file; not in version 1
//!            16  u32  zero
//! ```
//! Segments are written over and over. A record's checksum begins with the salt of its segment, so
//! that what an earlier use of the file has left behind is never taken for a record of this one.
//! The head stands there twice: a torn write spoils one of the two at most, so if neither can be
//! read the file was damaged afterwards.

use bytes::Buf;

use crate::payload::read_counter;

/// Where the first record begins.
pub(super) const RECORDS: usize = 1_024;
/// How long a record is before its payload.
pub(super) const HEAD: usize = 24;

const MAGIC: &[u8; 8] = b"PUNCJRNL";
const COPY: usize = 512;
const HEAD_LENGTH: usize = 52;
const SHORT_HEAD: usize = 44;

/// The newest version of segments that can be read, and the one that is written. Version 2 knows no entries of the
/// cluster. Version 1 knows no retellings either, and does not say how long the file is.
pub(super) const VERSION: u32 = 3;

/// What the head of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub version: u32,
    pub number: u64,
    pub salt: u64,
    /// The sequence of its first record.
    pub first: u64,
    /// How long the file is, if the head says so.
    pub capacity: Option<u64>,
}

/// What stands at the beginning of a segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// It was never used, or its first use was cut short.
    Blank,
    Used(SegmentHead),
    /// A newer version of Punctual wrote it.
    Newer(u32),
    Damaged,
}

impl SegmentHead {
    /// Fills the first [`RECORDS`] bytes of a segment.
    pub fn write(&self, to: &mut [u8]) {
        let mut head = [0; HEAD_LENGTH];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&self.version.to_le_bytes());
        head[20..28].copy_from_slice(&self.number.to_le_bytes());
        head[28..36].copy_from_slice(&self.salt.to_le_bytes());
        head[36..44].copy_from_slice(&self.first.to_le_bytes());
        head[44..52].copy_from_slice(&self.capacity.unwrap_or_default().to_le_bytes());
        let checksum = crc32c::crc32c(&head[16..length(self.version)]);
        head[12..16].copy_from_slice(&checksum.to_le_bytes());
        to[..RECORDS].fill(0);
        to[..HEAD_LENGTH].copy_from_slice(&head);
        to[COPY..COPY + HEAD_LENGTH].copy_from_slice(&head);
    }

    /// What the first [`RECORDS`] bytes of a segment say. If both copies can be read and differ, the
    /// later one holds: writing was cut short between them.
    pub fn read(from: &[u8]) -> Beginning {
        let copies = [&from[..HEAD_LENGTH], &from[COPY..COPY + HEAD_LENGTH]].map(read_head);
        let used = copies.iter().filter_map(|copy| if let Beginning::Used(head) = copy { Some(*head) } else { None });
        if let Some(head) = used.max_by_key(|head| head.number) {
            return Beginning::Used(head);
        }
        let newer = copies.iter().find(|copy| matches!(copy, Beginning::Newer(_)));
        let blank = copies.iter().find(|copy| matches!(copy, Beginning::Blank));
        *newer.or(blank).unwrap_or(&Beginning::Damaged)
    }
}

fn read_head(mut from: &[u8]) -> Beginning {
    if from.iter().all(|byte| *byte == 0) {
        return Beginning::Blank;
    }
    if !from.starts_with(MAGIC) {
        return Beginning::Damaged;
    }
    from.advance(8);
    let version = from.get_u32_le();
    if version > VERSION {
        return Beginning::Newer(version);
    }
    if version == 0 || from.get_u32_le() != crc32c::crc32c(&from[..length(version) - 16]) {
        return Beginning::Damaged;
    }
    from.advance(4);
    let (number, salt, first) = (read_counter(&mut from), from.get_u64_le(), read_counter(&mut from));
    let capacity = (version > 1).then(|| from.get_u64_le());
    let (Some(number), Some(first)) = (number, first) else { return Beginning::Damaged };
    Beginning::Used(SegmentHead { version, number, salt, first, capacity })
}

/// How long a head of a version is.
fn length(version: u32) -> usize {
    if version == 1 { SHORT_HEAD } else { HEAD_LENGTH }
}

/// Fills in the first bytes of a record whose payload is in place, and pads it.
pub(super) fn seal(record: &mut Vec<u8>, start: usize, salt: u64, sequence: u64, synced: u64) {
    let length = (record.len() - start - HEAD) as u32;
    record.resize(start + padded(record.len() - start), 0);
    record[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    record[start + 8..start + 16].copy_from_slice(&sequence.to_le_bytes());
    record[start + 16..start + 24].copy_from_slice(&synced.to_le_bytes());
    let checksum = checksum(salt, &record[start + 4..]);
    record[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// A record that was found whole.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub sequence: u64,
    pub synced: u64,
    pub payload: &'a [u8],
    /// How long it is with everything.
    pub length: usize,
}

/// The record at the beginning of these bytes, if there is a whole one of this segment.
pub(super) fn first_record(bytes: &[u8], salt: u64) -> Option<Record<'_>> {
    let mut head = bytes.get(..HEAD)?;
    let stored = head.get_u32_le();
    let payload = head.get_u32_le() as usize;
    let (sequence, synced) = (head.get_u64_le(), head.get_u64_le());
    let length = padded(HEAD + payload);
    let whole = bytes.get(..length)?;
    (checksum(salt, &whole[4..]) == stored).then(|| Record {
        sequence,
        synced,
        payload: &whole[HEAD..HEAD + payload],
        length,
    })
}

/// Whether these bytes may begin a record that says that the one of `sequence` was synced; cheap, for searching.
pub(super) fn may_follow(bytes: &[u8], sequence: u64) -> bool {
    let Some(mut head) = bytes.get(8..HEAD) else { return false };
    let (own, synced) = (head.get_u64_le(), head.get_u64_le());
    // A segment cannot have more records than this; so what is not one hardly ever looks like one.
    let most = sequence.saturating_add(1 << 28);
    own > sequence && own <= most && synced >= sequence && synced < own
}

fn checksum(salt: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), bytes)
}

fn padded(length: usize) -> usize {
    length.next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_OF_7: SegmentHead =
        SegmentHead { version: VERSION, number: 7, salt: 9, first: 100, capacity: Some(4_096) };

    #[test]
    fn a_head_survives_the_loss_of_either_copy_and_not_of_both() {
        let mut bytes = vec![0; RECORDS];
        HEAD_OF_7.write(&mut bytes);
        for place in [30, COPY + 30] {
            let mut spoilt = bytes.clone();
            spoilt[place] ^= 1;
            assert_eq!(SegmentHead::read(&spoilt), Beginning::Used(HEAD_OF_7));
        }
        bytes[30] ^= 1;
        bytes[COPY + 30] ^= 1;
        assert_eq!(SegmentHead::read(&bytes), Beginning::Damaged);
    }

    #[test]
    fn a_head_torn_at_any_byte_is_the_old_or_the_new_one() {
        let old = SegmentHead { version: 1, number: 3, salt: 1, first: 50, capacity: None };
        for before in [None, Some(old)] {
            let mut bytes = vec![0; RECORDS];
            before.iter().for_each(|head| head.write(&mut bytes));
            let mut new = vec![0; RECORDS];
            HEAD_OF_7.write(&mut new);
            for torn in 0..=RECORDS {
                let mix = [&new[..torn], &bytes[torn..]].concat();
                let found = SegmentHead::read(&mix);
                let expected = [before.map_or(Beginning::Blank, Beginning::Used), Beginning::Used(HEAD_OF_7)];
                assert!(expected.contains(&found), "torn at {torn}: {found:?}");
            }
        }
    }

    #[test]
    fn a_record_of_another_use_of_the_file_is_not_taken_for_one_of_this() {
        let mut record = [&[0; HEAD], &b"payload"[..]].concat();
        seal(&mut record, 0, 1, 5, 4);
        let found = first_record(&record, 1).unwrap();
        assert_eq!((found.sequence, found.synced, found.payload), (5, 4, &b"payload"[..]));
        assert!(first_record(&record, 2).is_none());
    }
}
