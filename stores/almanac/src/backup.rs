//! A copy of an almanac while another process has it open, or nobody: one moment of it, whole.
//!
//! Nothing is asked of that process. Runs never change, so they are linked where the file system can and copied
//! where not. The journal only grows as long as the manifest is the same, so it is copied up to where it can be
//! read; if the manifest was replaced meanwhile, it is all done again.
//!
//! What is made belongs to the owner of the directory that the copy is put in, so that root may restore what a server of
//! another user then opens. Root itself needs no file of its own to read it.
//!
//! **Invariant**: a linked run is never written to: room of dead rows is given back only in files with one name. Nor is it
//! given to another owner, who would take it from the other.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, chown};
use std::path::Path;

use punctual_disk::{Directory, Disk, ReadOnlyDirectory};

use crate::error::{Damage, OpenError};
use crate::journal::{Prefix, Reach, Reached, prefixes};
use crate::manifest::Manifest;
use crate::run;

/// How often it is begun anew because the manifest was replaced meanwhile.
const ATTEMPTS: usize = 50;

/// What a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backup {
    /// How many runs.
    pub runs: usize,
    /// How many of these are linked, so that they take no room of their own.
    pub linked: usize,
    /// How many bytes were copied.
    pub copied: u64,
}

/// Copies the almanac of one directory into another, which must not be there or be empty. It may be in use.
pub fn backup(from: &Path, to: &Path) -> Result<Backup, OpenError> {
    let disk = ReadOnlyDirectory::open(from).map_err(OpenError::io(format!("{} cannot be read", from.display())))?;
    make_empty(to)?;
    let owner = FileOwner::of(to).map_err(OpenError::io(format!("{} cannot be inspected", to.display())))?;
    for _ in 0..ATTEMPTS {
        if let Some(done) = attempt(&disk, from, to, &owner)? {
            let failed = || OpenError::io(format!("the owner of {} cannot be set", to.display()));
            owner.take_over(to).map_err(failed())?;
            return Ok(done);
        }
        clear(to)?;
    }
    let error = io::Error::other("it changes too fast to be copied: try again when fewer changes are made");
    Err(OpenError::Io { what: format!("{} cannot be copied", from.display()), error })
}

fn attempt(disk: &dyn Disk, from: &Path, to: &Path, owner: &FileOwner) -> Result<Option<Backup>, OpenError> {
    let Some(manifest) = Manifest::load(disk)? else {
        let error = io::Error::new(ErrorKind::NotFound, "there is no manifest");
        return Err(OpenError::Io { what: format!("{} contains no almanac", from.display()), error });
    };
    let noted = Reach::read(disk)?.map_or(0, |reach| reach.noted().sequence);
    let mut done = Backup { runs: manifest.runs.len(), ..Backup::default() };
    for run in &manifest.runs {
        let name = run::file_name(run.number);
        match link_or_copy(&from.join(&name), &to.join(&name), owner, &mut done) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if stands(disk, &manifest)? {
                    let what = "it is missing, although the manifest names it".to_owned();
                    return Err(Damage { file: name, offset: 0, what }.into());
                }
                return Ok(None);
            }
            Err(error) => return Err(OpenError::Io { what: format!("{name} cannot be copied"), error }),
        }
    }
    let names = disk.list().map_err(OpenError::io(format!("{} cannot be listed", from.display())))?;
    let mut reached = Reached { sequence: manifest.sequence, ..Reached::default() };
    for Prefix { name, capacity, bytes, ended } in prefixes(disk, &names, manifest.first_segment, manifest.sequence)? {
        write(&to.join(&name), &bytes, capacity).map_err(OpenError::io(format!("{name} cannot be copied")))?;
        done.copied += bytes.len() as u64;
        reached = ended;
    }
    if !stands(disk, &manifest)? {
        return Ok(None);
    }
    if reached.sequence < noted {
        // What was on disk before this began cannot be read: the almanac itself would not open.
        let what = format!("the records from sequence {} to {noted} cannot be read", reached.sequence + 1);
        return Err(Damage { file: reached.file(), offset: 0, what }.into());
    }
    finish(to, &manifest, reached)?;
    Ok(Some(done))
}

/// Whether the manifest is still the one that was read.
fn stands(disk: &dyn Disk, manifest: &Manifest) -> Result<bool, OpenError> {
    Ok(Manifest::load(disk)?.as_ref() == Some(manifest))
}

/// Makes it an almanac: the manifest comes last.
fn finish(to: &Path, manifest: &Manifest, reached: Reached) -> Result<(), OpenError> {
    let failed = || OpenError::io(format!("{} cannot be written", to.display()));
    let disk = Directory::open(to).map_err(failed())?;
    Reach::create(&disk, reached).map_err(failed())?;
    disk.sync().map_err(failed())?;
    let manifest = Manifest { has_reach: true, ..manifest.clone() };
    manifest.store(&disk).and_then(|()| disk.sync()).map_err(failed())
}

fn link_or_copy(from: &Path, to: &Path, owner: &FileOwner, done: &mut Backup) -> io::Result<()> {
    if owner.reads(from)? && fs::hard_link(from, to).is_ok() {
        done.linked += 1;
        return Ok(());
    }
    done.copied += fs::copy(from, to)?;
    OpenOptions::new().write(true).open(to)?.sync_all()
}

/// Who is to have the copy.
struct FileOwner {
    user: u32,
    group: u32,
}

impl FileOwner {
    /// The owner of the directory in which this one is.
    fn of(directory: &Path) -> io::Result<FileOwner> {
        let around = fs::metadata(directory.join(".."))?;
        Ok(FileOwner { user: around.uid(), group: around.gid() })
    }

    /// Whether it may read a private file as it is.
    fn reads(&self, file: &Path) -> io::Result<bool> {
        Ok(self.user == 0 || fs::metadata(file)?.uid() == self.user)
    }

    /// Gets a directory and what is in it, but for what it may read anyway.
    fn take_over(&self, directory: &Path) -> io::Result<()> {
        let files: io::Result<Vec<_>> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect();
        for path in files?.iter().map(AsRef::as_ref).chain([directory]) {
            if !self.reads(path)? {
                chown(path, Some(self.user), Some(self.group))?;
            }
        }
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8], capacity: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_len(capacity)?;
    file.write_all_at(bytes, 0)?;
    file.sync_all()
}

fn make_empty(to: &Path) -> Result<(), OpenError> {
    let failed = || OpenError::io(format!("{} cannot be created", to.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(failed())?;
    if fs::read_dir(to).map_err(failed())?.next().is_some() {
        let error = io::Error::new(ErrorKind::DirectoryNotEmpty, "it is not empty: choose another one");
        return Err(OpenError::Io { what: format!("{} cannot be used", to.display()), error });
    }
    Ok(())
}

/// Removes what an attempt has left.
fn clear(to: &Path) -> Result<(), OpenError> {
    let failed = || OpenError::io(format!("{} cannot be cleared", to.display()));
    for entry in fs::read_dir(to).map_err(failed())? {
        fs::remove_file(entry.map_err(failed())?.path()).map_err(failed())?;
    }
    Ok(())
}
