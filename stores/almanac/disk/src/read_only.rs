//! A directory of the file system that is only looked at: nothing is made, changed or removed, so
//! it also works on a backup that may not be written to, and beside a process that has it open.

use std::any::Any;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use super::directory::{OpenFile, names_in, room_at};
use super::{Disk, File};

/// A directory of the file system that is only looked at. Whatever would change it is refused.
#[derive(Debug)]
pub struct ReadOnlyDirectory {
    path: PathBuf,
}

impl ReadOnlyDirectory {
    /// Looks at a directory, which must be there.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<ReadOnlyDirectory> {
        let path = path.into();
        if !fs::metadata(&path)?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(ReadOnlyDirectory { path })
    }
}

impl Disk for ReadOnlyDirectory {
    fn list(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        // The system refuses writes to a file that was opened like this.
        Ok(Arc::new(OpenFile(fs::File::open(self.path.join(name))?)))
    }

    fn create(&self, _: &str) -> io::Result<Arc<dyn File>> {
        Err(refused())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Err(refused())
    }

    /// Tells whether another process holds the directory. It is held only against writers, who are
    /// to wait for each other; any number may look at once.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Any + Send + Sync>> {
        let file = fs::File::open(self.path.join(name))?;
        file.try_lock_shared()?;
        Ok(Box::new(file))
    }

    fn room(&self) -> io::Result<u64> {
        room_at(&fs::File::open(&self.path)?)
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

fn refused() -> io::Error {
    io::Error::new(ErrorKind::ReadOnlyFilesystem, "the directory is open for reading only")
}
