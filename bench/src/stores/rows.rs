//! What a row that was just scheduled looks like in the tables of a store, for those who insert such rows without it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// As long as the ids that a node makes up.
const ID_DIGITS: usize = 26;

/// As long as the state of a task that waits for its time.
pub const STATE: &[u8] = &[7; 23];

/// Numbers that no other row of this process has.
pub fn numbers(count: usize) -> Vec<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let first = NEXT.fetch_add(count as u64, Relaxed);
    (first..first + count as u64).collect()
}

/// Ids rise with time, as those of a node do.
pub fn id(number: u64) -> String {
    format!("{number:0ID_DIGITS$}")
}

/// A body as it is stored: four bytes before it say what it is.
pub fn stored(body: &[u8]) -> Vec<u8> {
    [b"body".as_slice(), body].concat()
}
