//! The real disk: a directory of the file system.
//!
//! Nothing is retried and nothing is remembered here; whoever gets an error from a sync must take
//! all that was not synced before for lost.

use std::any::Any;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::{Errno, retry_on_intr};

use super::{Disk, File};

/// The zeros that are written at once where the file system cannot reserve room itself.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Bodies of tasks are nobody else's business, whoever made the directory above.
const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// A directory of the file system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Only for its sync, which makes names durable.
    handle: fs::File,
}

impl Directory {
    /// Opens a directory; makes it, durably, if it is not there.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Directory> {
        let path = path.into();
        make(&path)?;
        let handle = fs::File::open(&path)?;
        make_private(&path, &handle)?;
        Ok(Directory { path, handle })
    }
}

impl Disk for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        Ok(Arc::new(OpenFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(FILE);
        let file = options.open(self.path.join(name))?;
        Ok(Arc::new(OpenFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Any + Send + Sync>> {
        // The file is never removed: a process that waits with the old one open would then hold a
        // lock that nobody else can see.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(FILE);
        let file = options.open(self.path.join(name))?;
        file.try_lock()?;
        Ok(Box::new(file))
    }

    fn room(&self) -> io::Result<u64> {
        room_at(&self.handle)
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

pub(super) struct OpenFile(pub fs::File);

impl File for OpenFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        if length == 0 {
            // The system calls this invalid.
            return Ok(());
        }
        match retry_on_intr(|| fallocate(&self.0, FallocateFlags::empty(), 0, length)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill_with_zeros(&self.0, length),
            outcome => Ok(outcome?),
        }
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        if self.0.metadata()?.nlink() > 1 {
            // A backup has it too, and in that its rows may live.
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| fallocate(&self.0, flags, offset, length)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// What the file system has left for who is not root.
pub(super) fn room_at(handle: &fs::File) -> io::Result<u64> {
    let found = fstatvfs(handle)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The names of the files in a directory, in order.
pub(super) fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // What is no file, or has a name that is no text, was put here by somebody else.
        if entry.file_type()?.is_file()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Takes everybody else's rights to a directory and its files away, which others may have given or an older version left.
fn make_private(path: &Path, handle: &fs::File) -> io::Result<()> {
    restrict(&handle.metadata()?, DIRECTORY, |mode| handle.set_permissions(mode))?;
    for name in names_in(path)? {
        let file = path.join(name);
        let found = match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        restrict(&found, FILE, |mode| fs::set_permissions(&file, mode))?;
    }
    Ok(())
}

/// Narrows rights that are wider. What belongs to somebody else is not ours to change.
fn restrict(found: &fs::Metadata, allowed: u32, set: impl FnOnce(fs::Permissions) -> io::Result<()>) -> io::Result<()> {
    if found.mode() & 0o777 & !allowed == 0 {
        return Ok(());
    }
    match set(fs::Permissions::from_mode(found.mode() & allowed)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        outcome => outcome,
    }
}

/// Makes a directory and those above it. Each new name is durable before the next one is made, or
/// a crash could take the whole directory with all that was synced in it.
fn make(path: &Path) -> io::Result<()> {
    let above = match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => return Ok(()),
    };
    if path.is_dir() {
        // Whoever made it may have been killed before its sync. It may also be a mount point under
        // a directory that we may not read; then it is not ours to make durable.
        return match fs::File::open(above) {
            Ok(above) => above.sync_all(),
            Err(_) => Ok(()),
        };
    }
    if !above.is_dir() {
        make(above)?;
    }
    match fs::DirBuilder::new().mode(DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        outcome => outcome?,
    }
    fs::File::open(above)?.sync_all()
}

/// Lengthens a file with zeros that are really written.
fn fill_with_zeros(file: &fs::File, length: u64) -> io::Result<()> {
    let mut end = file.metadata()?.len();
    while end < length {
        let piece = (length - end).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..piece as usize], end)?;
        end += piece;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_lengthen_a_file_and_spare_what_it_holds() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"kept", 0).unwrap();
        fill_with_zeros(&file, 100_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 100_000);
        let mut bytes = vec![1; 100_000];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes[..4], b"kept");
        assert!(bytes[4..].iter().all(|byte| *byte == 0));
        fill_with_zeros(&file, 10).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 100_000);
    }
}
