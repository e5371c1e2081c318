//! Looking at an almanac's files without opening it: whether they hold what was written to them, and
//! what that is. Nothing is ever changed, and what is damaged keeps nothing else from being read.
//!
//! On a [`ReadOnlyDirectory`](crate::ReadOnlyDirectory) this also works beside a process that has the
//! almanac open. Then the journal's tail may be moving, and what is found is the state at some moment.

mod check;
mod follow;
mod look;
mod report;
mod rows;
mod show;

pub use check::{Progress, check};
pub use report::{Report, counted};
pub use rows::{Listed, ListedRow, Rows};
pub use show::{
    Contents, EntryContents, ManifestContents, RunContents, SegmentContents, SegmentStanding, TableContents,
};
