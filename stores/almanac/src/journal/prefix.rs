//! The journal as it stands while somebody may be writing to it: for a copy of one moment.

use punctual_disk::Disk;

use super::record::{Beginning, RECORDS, SegmentHead, first_record};
use super::{Reached, SegmentFile};
use crate::error::{Damage, OpenError};

/// A segment up to where it can be read.
pub(crate) struct Prefix {
    pub name: String,
    /// How long the file is.
    pub capacity: u64,
    /// Its head and all records that follow one another.
    pub bytes: Vec<u8>,
    /// How far the journal reaches with it.
    pub ended: Reached,
}

/// The segments from this number on, in their order, as far as their records follow one another after a sequence. What is
/// written while they are read may be in them or not; nothing behind a record that is missing is.
pub(crate) fn prefixes(
    disk: &dyn Disk,
    names: &[String],
    first_segment: u64,
    after: u64,
) -> Result<Vec<Prefix>, OpenError> {
    let mut found = Vec::new();
    for name in names.iter().filter(|name| SegmentFile::is_one(name)) {
        let Some(head) = head_of(disk, name)? else { continue };
        if head.number >= first_segment {
            found.push((head, name));
        }
    }
    found.sort_by_key(|(head, _)| head.number);
    let mut last = after;
    let mut prefixes = Vec::new();
    for (index, (head, name)) in found.iter().enumerate() {
        if head.first != last + 1 {
            // The segment before it has grown since it was read.
            break;
        }
        // Records that the next segment begins anew were never confirmed.
        let next = found.get(index + 1).map(|(head, _)| head.first);
        let mut bytes = read(disk, name)?;
        let mut end = RECORDS;
        while let Some(record) = bytes.get(end..).and_then(|rest| first_record(rest, head.salt))
            && record.sequence == last + 1
            && next.is_none_or(|next| record.sequence < next)
        {
            last = record.sequence;
            end += record.length;
        }
        let capacity = bytes.len() as u64;
        bytes.truncate(end);
        let number = SegmentFile::number(name).unwrap_or_default();
        let ended = Reached { sequence: last, segment: head.number, name: number };
        prefixes.push(Prefix { name: (*name).clone(), capacity, bytes, ended });
    }
    Ok(prefixes)
}

fn head_of(disk: &dyn Disk, name: &str) -> Result<Option<SegmentHead>, OpenError> {
    let failed = || OpenError::io(format!("{name} cannot be read"));
    let file = match disk.open(name) {
        // It was surplus, or has become something else.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed())?,
    };
    if file.len().map_err(failed())? < RECORDS as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; RECORDS];
    file.read_at(&mut bytes, 0).map_err(failed())?;
    match SegmentHead::read(&bytes) {
        Beginning::Used(head) => Ok(Some(head)),
        Beginning::Blank => Ok(None),
        Beginning::Newer(found) => {
            Err(OpenError::Newer { file: name.to_owned(), found, known: super::record::VERSION })
        }
        Beginning::Damaged => {
            let what = "both copies of the segment's head are unreadable".to_owned();
            Err(Damage { file: name.to_owned(), offset: 0, what }.into())
        }
    }
}

fn read(disk: &dyn Disk, name: &str) -> Result<Vec<u8>, OpenError> {
    let failed = || OpenError::io(format!("{name} cannot be read"));
    let file = disk.open(name).map_err(failed())?;
    let mut bytes = vec![0; file.len().map_err(failed())? as usize];
    file.read_at(&mut bytes, 0).map_err(failed())?;
    Ok(bytes)
}
