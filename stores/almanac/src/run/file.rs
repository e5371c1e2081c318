//! The file of a run, with its name for what there is to say when something is wrong with it.

use std::io;
use std::sync::Arc;

use punctual_disk::File;

use crate::error::{Damage, ReadError};

pub(super) struct RunFile {
    file: Arc<dyn File>,
    name: String,
}

impl RunFile {
    pub fn new(file: Arc<dyn File>, name: String) -> RunFile {
        RunFile { file, name }
    }

    /// So many bytes from this place on. A file that ends before them is not what was written.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; length];
        match self.file.read_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damage(offset, format!("the file ends within the next {length} bytes")).into())
            }
            Err(error) => Err(ReadError::Io { file: self.name.clone(), error }),
        }
    }

    pub fn damage(&self, offset: u64, what: impl Into<String>) -> Damage {
        Damage { file: self.name.clone(), offset, what: what.into() }
    }

    pub fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.punch(offset, length)
    }
}

/// The number at this place; the caller knows that the bytes are that many.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Takes the checksum off the end of the bytes; `None` if it is not theirs.
pub(super) fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (rest, sum) = bytes.split_last_chunk::<4>()?;
    (crc32c::crc32c(rest) == u32::from_le_bytes(*sum)).then_some(rest)
}

/// Appends the checksum of what stands from this place on.
pub(super) fn append_checksum(to: &mut Vec<u8>, from: usize) {
    let sum = crc32c::crc32c(&to[from..]);
    to.extend_from_slice(&sum.to_le_bytes());
}
