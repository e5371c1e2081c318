//! The data directory: the store, the secret that vouches for leases, and unless told otherwise the tokens.
//!
//! ```text
//! punctual-data/
//!   almanac/      the store (docs/almanac.md)
//!   secret        32 bytes; leases that were given out before a restart stay good after it
//!   tokens.toml   who is let in (server/src/tokens.rs)
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_almanac::{Almanac, Directory, OpenError};
use punctual_core::Clock;
use punctual_wire::StoreSize;

use crate::config::Config;
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
        made.map_err(|error| trouble(&format!("the data directory {} cannot be made", path.display()), &error))?;
        Ok(DataDirectory { path: path.to_owned() })
    }

    /// Opens the store, or begins one. One that was there and is gone, or has lost confirmed tasks, is opened only
    /// if `force` says so, and what is lost is logged.
    pub fn open_almanac(&self, config: &Config, clock: Arc<dyn Clock>, force: bool) -> Result<Almanac, Failure> {
        let place = self.path.join("almanac");
        let disk = Directory::open(&place).map_err(|error| {
            let place = place.display();
            trouble(&format!("the store's directory {place} cannot be opened"), &error)
        })?;
        let defaults = punctual_almanac::Config::default();
        let journal = config.store.journal.0;
        let settings = punctual_almanac::Config {
            memory: config.store.memory.as_usize(),
            journal,
            segment: defaults.segment.min(journal),
            reserve: config.store.reserve.0,
            sync: config.store.sync,
            // The secret is made when there is a store, so where it is, there was one.
            must_exist: self.path.join(SECRET).exists(),
            accepts_loss: force,
            ..defaults
        };
        let almanac = Almanac::open(Arc::new(disk), settings, clock).map_err(|error| match error {
            OpenError::Io { what, error } => trouble(&what, &error),
            error if error.is_loss() => Failure::Failed(format!(
                "{error}. `punctual serve --force-open` goes on without what is lost, and says what that is"
            )),
            error => Failure::failed(error),
        })?;
        for loss in almanac.losses() {
            tracing::error!(loss, "the store has lost confirmed tasks, and was told to go on without them");
        }
        Ok(almanac)
    }

    /// What vouches for leases; made at the first start.
    pub fn secret(&self) -> Result<[u8; 32], Failure> {
        let path = self.path.join(SECRET);
        match fs::read(&path) {
            Ok(bytes) => {
                // Whoever reads it can make up leases.
                if let Err(error) = narrow(&path) {
                    tracing::warn!(%error, path = %path.display(), "others may read what vouches for leases: chmod 600");
                }
                <[u8; 32]>::try_from(bytes).map_err(|bytes| {
                    let (path, length) = (path.display(), bytes.len());
                    Failure::Failed(format!(
                        "{path} has {length} bytes instead of 32: restore it from a backup, or remove it; then consumers \
                         cannot acknowledge what they were handed out before"
                    ))
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut secret = [0; 32];
                let drawn = getrandom::fill(&mut secret);
                drawn.map_err(|error| Failure::Failed(format!("the system gives no random numbers: {error}")))?;
                let written = replace(&path, &secret);
                written.map_err(|error| trouble(&format!("{} cannot be written", path.display()), &error))?;
                Ok(secret)
            }
            Err(error) => Err(trouble(&format!("{} cannot be read", path.display()), &error)),
        }
    }
}

/// What the operating system refused, with what to do about it.
fn trouble(what: &str, error: &io::Error) -> Failure {
    let fix = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room on the disk, or choose another one by --data"
        }
        io::ErrorKind::PermissionDenied => "; run as the user it belongs to, or choose another directory by --data",
        io::ErrorKind::ReadOnlyFilesystem => "; the disk is read-only: choose another directory by --data",
        _ => "",
    };
    Failure::Failed(format!("{what}: {error}{fix}"))
}

/// Looks at what the store takes.
pub fn measure(almanac: &Arc<Almanac>) -> Arc<dyn Fn() -> StoreSize + Send + Sync> {
    let almanac = Arc::clone(almanac);
    Arc::new(move || {
        let usage = almanac.usage();
        let memory = usage.recent_bytes + usage.key_bytes + usage.block_bytes;
        StoreSize { memory_bytes: memory as u64, disk_bytes: usage.run_bytes + usage.journal_bytes }
    })
}
