//! The archive: finished tasks in monthly files, for longer than the history keeps them.
//!
//! ```text
//! history-2026-11.jsonl.zst          tasks that finished in November 2026 (UTC), one JSON object a line
//! history-2026-11.jsonl.zst.sha256   the month is over and its file will not change: `sha256sum -c` checks it
//! history-2026-11.1.jsonl.zst        stragglers that came after that
//! archive.lock                       held by the server that writes here
//! ```
//! A file is a series of pieces, each on disk before the server forgets its tasks. `zstdcat FILE` prints it.
//!
//! ```text
//! piece:  50 2A 4D 18 │ 0C 00 00 00 │ "pct1" │ length: u64 LE │ zstd frame of that length, with checksum
//!         └───── a skippable frame, which zstd's tools pass over ─────┘
//! ```
//! A crash can leave the last piece torn; it is cut off when the file is opened, and the server hands the tasks
//! in again, since it was not told that they are safe. So a task may be there twice; readers drop the second one.
//! **Invariant**: what was taken is on disk, or the server is told that it is not.

mod files;
mod piece;
mod read;
mod record;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Filter, read};
pub use write::Archivist;
