//! The data directory: the store, the secret that vouches for leases, and unless told otherwise the tokens.
//!
//! ```text
//! punctual-data/
//!   almanac/      the store, if it is the embedded one (docs/almanac.md)
//!   secret        32 bytes; leases that were given out before a restart stay good after it
//!   tokens.toml   who is let in (server/src/tokens.rs)
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::private_file::{narrow, replace};

const SECRET: &str = "secret";

/// The data directory of a server.
pub struct DataDirectory {
    path: PathBuf,
}

impl DataDirectory {
    /// Makes it if it is not there.
    pub fn open(path: &Path) -> Result<DataDirectory, Failure> {
        // Bodies of tasks are nobody else's business.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| trouble(&format!("cannot create the data directory {}", path.display()), &error))?;
        Ok(DataDirectory { path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a server was started on it before: the secret is made when there is a store, so where it is, there was one.
    pub fn was_used(&self) -> bool {
        self.path.join(SECRET).exists()
    }

    /// What vouches for leases; made at the first start.
    pub fn secret(&self) -> Result<[u8; 32], Failure> {
        let path = self.path.join(SECRET);
        match fs::read(&path) {
            Ok(bytes) => {
                // Whoever reads it can make up leases.
                if let Err(error) = narrow(&path) {
                    tracing::warn!(%error, path = %path.display(), "other users can read the secret that signs leases: chmod 600");
                }
                <[u8; 32]>::try_from(bytes).map_err(|bytes| {
                    let (path, length) = (path.display(), bytes.len());
                    Failure::Failed(format!(
                        "{path} has {length} bytes instead of 32: restore it from a backup, or remove it (consumers \
                         then cannot acknowledge the deliveries they hold now)"
                    ))
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut secret = [0; 32];
                let drawn = getrandom::fill(&mut secret);
                drawn
                    .map_err(|error| Failure::Failed(format!("cannot get random numbers from the system: {error}")))?;
                let written = replace(&path, &secret);
                written.map_err(|error| trouble(&format!("{} cannot be written", path.display()), &error))?;
                Ok(secret)
            }
            Err(error) => Err(trouble(&format!("{} cannot be read", path.display()), &error)),
        }
    }
}

/// What the operating system refused, with what to do about it.
pub fn trouble(what: &str, error: &io::Error) -> Failure {
    let fix = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some disk space, or choose another directory with --data"
        }
        io::ErrorKind::PermissionDenied => "; run as the user who owns it, or choose another directory with --data",
        io::ErrorKind::ReadOnlyFilesystem => "; the disk is read-only: choose another directory with --data",
        _ => "",
    };
    Failure::Failed(format!("{what}: {error}{fix}"))
}
