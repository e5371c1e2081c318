//! `punctual backup` and `punctual restore`: the data directory of a server as of one moment. They work on the files; the
//! server may run meanwhile, and is not asked.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::print;
use crate::commands::counted;
use crate::config::of_server;
use crate::failure::Failure;
use crate::private_file::replace;

/// What is in a data directory beside the store.
const FILES: [&str; 2] = ["secret", "tokens.toml"];
const STORE: &str = "almanac";

/// Copy the data of a server as it is at one moment, also while it runs.
///
/// Tasks, settings, history, the secret and the tokens. On the same file system the large files are linked, which takes
/// neither time nor room. The copy is a data directory: `punctual restore` puts it in place, and a server can be started on it.
#[derive(Args, Debug)]
pub struct BackupArgs {
    /// Where to put the copy; it must not exist, or must be empty.
    directory: PathBuf,
    #[command(flatten)]
    whose: Whose,
}

/// Put a backup in place of a server's data while the server is stopped.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The backup.
    directory: PathBuf,
    #[command(flatten)]
    whose: Whose,
}

/// Which server's data: where its configuration says, unless told otherwise.
#[derive(Args, Debug)]
struct Whose {
    /// The server's TOML file of settings; by default ./punctual.toml if it is there.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
    /// The server's data directory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Whose {
    fn data(self) -> Result<PathBuf, Failure> {
        Ok(of_server(self.config, self.data)?.data)
    }
}

impl BackupArgs {
    /// Does it.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let (data, to) = (self.whose.data()?, self.directory);
        copy(&data, &to, "backed up", json)
    }
}

impl RestoreArgs {
    /// Does it.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let (data, from) = (self.whose.data()?, self.directory);
        if data.join(STORE).exists() {
            return Err(Failure::Failed(format!(
                "there is a store in {} already: move it away first, so that nothing is lost by mistake",
                data.display()
            )));
        }
        copy(&from, &data, "restored", json)
    }
}

/// Copies a data directory. What is linked is never written to again, so neither can spoil the other.
fn copy(from: &Path, to: &Path, verb: &str, json: bool) -> Result<(), Failure> {
    let done = punctual_almanac::backup(&from.join(STORE), &to.join(STORE)).map_err(Failure::failed)?;
    for name in FILES {
        let failed = |error: io::Error| Failure::Failed(format!("{name} cannot be copied: {error}"));
        match fs::read(from.join(name)) {
            Ok(content) => replace(&to.join(name), &content).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let (runs, linked, copied) = (done.runs, done.linked, done.copied);
    if json {
        let place = to.display().to_string();
        return print(&format!(
            "{}\n",
            json!({ "directory": place, "runs": runs, "linked": linked, "copied_bytes": copied })
        ));
    }
    print(&format!(
        "{verb} {} to {}: {} ({linked} of them linked), {copied} bytes copied\n",
        from.display(),
        to.display(),
        counted(runs as u64, "run"),
    ))
}
