//! What disks promise, and what the simulated one makes of trouble.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod contract;
mod trouble;

use std::io;

use punctual_disk::File;

/// All bytes of a file.
fn content(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// How something failed that was to fail.
fn kind<T>(outcome: io::Result<T>) -> io::ErrorKind {
    outcome.err().expect("it was to fail").kind()
}
