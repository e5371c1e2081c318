//! The file layer: all that the almanac asks of an operating system.
//!
//! It is a trait, and a crate of its own, so that tests can put a disk underneath that loses, tears and
//! reorders what was not synced (`punctual-simulated-disk`) and that no program links. [`Directory`] is the
//! real one, and [`ReadOnlyDirectory`] the same for those who only look.

mod directory;
mod read_only;

use std::any::Any;
use std::io;
use std::sync::Arc;

pub use directory::Directory;
pub use read_only::ReadOnlyDirectory;

/// A directory of files. What is created, renamed or removed is durable after [`Disk::sync`].
pub trait Disk: Send + Sync {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Makes a file, empty; one of that name that is there is emptied.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name; one that has it already goes.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Who has it open can still read it.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all that happened to names durable.
    fn sync(&self) -> io::Result<()>;

    /// Holds the directory for this process until the answer is dropped;
    /// [`io::ErrorKind::WouldBlock`] if another one does.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Any + Send + Sync>>;

    /// About how many bytes there is room for.
    fn room(&self) -> io::Result<u64>;

    /// Where it is, for messages.
    fn place(&self) -> String;
}

/// A file. Bytes that were written are durable after [`File::sync`]; until then a crash may keep any of them.
pub trait File: Send + Sync {
    /// How long it is.
    fn len(&self) -> io::Result<u64>;

    /// Whether nothing was ever written.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills the buffer from this place on; [`io::ErrorKind::UnexpectedEof`] if the file is too short.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes at this place; the file grows as needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Gives the file at least this length, with room on the disk for all of it.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Gives room back to the disk; reads as zeros from then on. Best effort.
    fn punch(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
}
