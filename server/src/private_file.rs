//! Files that are nobody else's business, replaced as a whole.
//!
//! Their owner is that of the directory: what root puts into a server's directory is for the server.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// Whose a file is, and who may do what with it.
struct Rights {
    uid: u32,
    gid: u32,
    mode: u32,
    /// Whether it may stay with who wrote it, if that one may not give it away.
    may_stay: bool,
}

/// Writes a file that only its owner may read in the place of the one that is there, so that a reader sees either the
/// old or the new.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    write(path, content, |directory| {
        // Whom the directory lets write without owning it is let in on purpose: a server that is one of the group.
        let may_stay = directory.mode() & 0o022 != 0;
        Ok(Rights { uid: directory.uid(), gid: directory.gid(), mode: 0o600, may_stay })
    })
}

/// The same for a file that one user writes and another reads. It keeps the owner, the group and the mode of the one
/// that is there; a new one is for whom the directory is for. Never is it for everybody.
pub fn replace_shared(path: &Path, content: &[u8]) -> io::Result<()> {
    write(path, content, |directory| match fs::metadata(path) {
        Ok(former) => Ok(Rights { uid: former.uid(), gid: former.gid(), mode: former.mode() & 0o660, may_stay: false }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mode = 0o600 | for_group(directory);
            Ok(Rights { uid: directory.uid(), gid: directory.gid(), mode, may_stay: false })
        }
        Err(error) => Err(error),
    })
}

/// What the group of a directory may do with a new file in it. A directory of root's is read by a server of its group,
/// and one that the group writes to is the group's; any other belongs to its owner alone, whoever may look in.
fn for_group(directory: &Metadata) -> u32 {
    let may_enter = directory.mode() & 0o010 != 0;
    let is_the_groups = directory.uid() == 0 || directory.mode() & 0o020 != 0;
    if may_enter && is_the_groups { directory.mode() & 0o060 } else { 0 }
}

/// Takes from a private file whatever others may do with it.
pub fn narrow(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.mode() & 0o7777 {
        mode if mode & 0o077 == 0 => Ok(()),
        mode => fs::set_permissions(path, Permissions::from_mode(mode & 0o700)),
    }
}

fn write(path: &Path, content: &[u8], rights: impl FnOnce(&Metadata) -> io::Result<Rights>) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = directory.join(name);
    // One that is there was left by a crash, or put there by somebody who wants to read along.
    _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = (|| {
        hand_over(&file, &rights(&fs::metadata(directory)?)?)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(directory)?.sync_all()
    })();
    if written.is_err() {
        // What cannot be removed either does no harm: the next one removes it.
        _ = fs::remove_file(&new);
    }
    written
}

/// Gives a file to whom it is for. Who may not give files away may be one of the group that it is for; otherwise it
/// would be a file that the server cannot read.
fn hand_over(file: &File, rights: &Rights) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (rights.uid, rights.gid)
        && let Err(refused) = fchown(file, Some(rights.uid), Some(rights.gid))
    {
        let group_reads = rights.mode & 0o040 != 0;
        if group_reads {
            fchown(file, None, Some(rights.gid))?;
        } else if own.uid() != rights.uid && !rights.may_stay {
            return Err(refused);
        }
    }
    file.set_permissions(Permissions::from_mode(rights.mode))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_for_the_group_that_its_directory_is_for() {
        for (directory_mode, private, shared) in [(0o700, 0o600, 0o600), (0o770, 0o600, 0o660), (0o760, 0o600, 0o600)] {
            let directory = tempfile::tempdir().unwrap();
            fs::set_permissions(directory.path(), Permissions::from_mode(directory_mode)).unwrap();
            let (secret, tokens) = (directory.path().join("secret"), directory.path().join("tokens"));
            replace(&secret, b"x").unwrap();
            replace_shared(&tokens, b"x").unwrap();
            assert_eq!((mode(&secret), mode(&tokens)), (private, shared), "in one of {directory_mode:o}");
        }
    }

    #[test]
    fn what_somebody_has_put_in_the_way_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let waiting = directory.path().join(format!("secret.{}.new", std::process::id()));
        fs::write(&waiting, "").unwrap();
        let reader = File::open(&waiting).unwrap();
        replace(&path, b"private").unwrap();
        assert_eq!(reader.metadata().unwrap().len(), 0);
        assert_eq!(fs::read(&path).unwrap(), b"private");
    }
}
