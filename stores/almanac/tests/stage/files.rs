//! Looking at files of any disk.

use std::io;

use punctual_almanac::File;

/// All bytes of a file.
pub fn content(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// How something failed that was to fail.
pub fn kind<T>(outcome: io::Result<T>) -> io::ErrorKind {
    outcome.err().expect("it was to fail").kind()
}
