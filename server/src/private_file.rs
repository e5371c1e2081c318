//! Files that only their owner may read, replaced as a whole.
//!
//! The owner is that of the directory: what root puts into a server's directory is for the server.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// Writes a private file in the place of the one that is there, so that a reader sees either the old or the new.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = directory.join(name);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        hand_over(&file, &fs::metadata(directory)?)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(directory)?.sync_all()
    })();
    if written.is_err() {
        // What cannot be removed either does no harm: the next one writes over it.
        _ = fs::remove_file(&new);
    }
    written
}

/// Gives a file to the owner of its directory. A directory that its group may write to is the group's, too.
fn hand_over(file: &File, directory: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (directory.uid(), directory.gid()) {
        // Who may not give files away is one of the group, or makes a file that the server cannot read.
        let given = fchown(file, Some(directory.uid()), Some(directory.gid()));
        if given.is_err() && directory.mode() & 0o020 == 0 {
            return given;
        }
    }
    let mode = if directory.mode() & 0o020 == 0 { 0o600 } else { 0o660 };
    file.set_permissions(Permissions::from_mode(mode))
}
