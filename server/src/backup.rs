//! `punctual backup` and `punctual restore`: the data directory of a server as of one moment. They work on the files; the
//! server may run meanwhile, and is not asked.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::print;
use crate::config::{Config, of_server};
use crate::failure::Failure;
use crate::private_file::replace;
use crate::stores::{Copied, Storage, chosen};

/// What is in a data directory beside the store.
const FILES: [&str; 2] = ["secret", "tokens.toml"];

/// Take a consistent backup of a server's data, even while it runs.
///
/// Copies tasks, settings, history, the secret and the tokens. On the same file system the large files are hard-linked, which takes
/// neither time nor space. The copy is a data directory: `punctual restore` puts it in place, or a server can be started on it.
#[derive(Args, Debug)]
pub struct BackupArgs {
    /// The directory for the copy; it must not exist yet, or be empty.
    directory: PathBuf,
    #[command(flatten)]
    whose: Whose,
}

/// Restore a backup as a server's data, while the server is stopped.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The directory of the backup.
    directory: PathBuf,
    #[command(flatten)]
    whose: Whose,
}

/// Which server's data: where its configuration says, unless told otherwise.
#[derive(Args, Debug)]
struct Whose {
    /// The server's TOML file of settings; by default ./punctual.toml, if it exists.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
    /// The server's data directory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Whose {
    fn settings(self) -> Result<Config, Failure> {
        of_server(self.config, self.data)
    }
}

impl BackupArgs {
    /// Does it.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let config = self.whose.settings()?;
        copy(chosen(&config)?, &config.data, &self.directory, "backed up", json)
    }
}

impl RestoreArgs {
    /// Does it.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let config = self.whose.settings()?;
        let storage = chosen(&config)?;
        if storage.is_in(&config.data) {
            return Err(Failure::Failed(format!(
                "{} already contains a store: move it away first, so that nothing is lost by mistake",
                config.data.display()
            )));
        }
        copy(storage, &self.directory, &config.data, "restored", json)
    }
}

/// Copies a data directory.
fn copy(storage: &dyn Storage, from: &Path, to: &Path, verb: &str, json: bool) -> Result<(), Failure> {
    let Copied { words, numbers } = storage.copy(from, to)?;
    for name in FILES {
        let failed = |error: io::Error| Failure::Failed(format!("{name} cannot be copied: {error}"));
        match fs::read(from.join(name)) {
            Ok(content) => replace(&to.join(name), &content).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    if json {
        let mut line = json!({ "directory": to.display().to_string() });
        for (name, number) in numbers {
            line[name] = number;
        }
        return print(&format!("{line}\n"));
    }
    print(&format!("{verb} {} to {}: {words}\n", from.display(), to.display()))
}
