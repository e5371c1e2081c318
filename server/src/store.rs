//! `punctual store`: works on a store without a server, but for moving one that a server runs on. Checking and showing never
//! change anything, and the store may be damaged, or in use.
//!
//! Exit codes: 0 if all is well, 1 if something is damaged, 2 if it was called wrongly or cannot be read at all.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::print;
use crate::commands::Connection;
use crate::config::{Config, of_server, of_store};
use crate::failure::Failure;
use crate::moving::MoveArgs;
use crate::stores::{Listing, chosen};

const DAMAGED: u8 = 1;

/// What to do with a store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Verify every checksum and every count, and list all damage. Exit code: 0 clean, 1 damaged, 2 unreadable.
    Check {
        #[command(flatten)]
        which: WhichStore,
    },
    /// Show the contents, as far as they can be read. Exit codes are those of `check`.
    Show {
        #[command(flatten)]
        which: WhichStore,
        /// Also list the rows, table by table in time order.
        #[arg(long)]
        rows: bool,
        /// List only the rows of this topic.
        #[arg(long, requires = "rows")]
        topic: Option<String>,
        /// List at most N rows.
        #[arg(long, value_name = "N", requires = "rows")]
        limit: Option<usize>,
    },
    Move(MoveArgs),
    /// Create the tables of a database, or bring them up to date, as the server does when it starts.
    Migrate {
        #[command(flatten)]
        which: WhichStore,
    },
}

/// Which store.
#[derive(Args, Debug)]
pub struct WhichStore {
    /// The URL of a database, or a server's data directory, or the almanac in it; by default the store in the server's
    /// configuration. A password is better given by PUNCTUAL_STORE_PASSWORD than in the URL.
    store: Option<String>,
    /// The server's TOML file of settings; by default ./punctual.toml, if it exists.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
}

impl WhichStore {
    /// The settings that say which store it is, and where. A directory that was named is taken for what the default
    /// settings would keep in one; a URL takes the place of the one in the server's settings, the others of which count.
    pub fn settings(self) -> Result<Config, Failure> {
        match self.store {
            Some(url) if url.contains("://") => of_store(self.config, url),
            Some(data) => Ok(Config { data: data.into(), ..Config::default() }),
            None => of_server(self.config, None),
        }
    }
}

impl StoreCommand {
    /// Does it, and says by the exit code how the store is.
    pub fn run(self, connection: &Connection) -> ExitCode {
        let json = connection.json;
        let outcome = match self {
            StoreCommand::Check { which } => which.settings().and_then(|config| chosen(&config)?.check(&config, json)),
            StoreCommand::Show { which, rows, topic, limit } => {
                let limit = if rows { limit.unwrap_or(usize::MAX) } else { 0 };
                let listing = Listing { topic, limit };
                which.settings().and_then(|config| chosen(&config)?.show(&config, &listing, json))
            }
            StoreCommand::Move(args) => return args.run(connection),
            StoreCommand::Migrate { which } => which.settings().and_then(|config| {
                let done = chosen(&config)?.migrate(&config)?;
                print(&if json { format!("{}\n", json!({ "done": done })) } else { format!("{done}\n") })?;
                Ok(true)
            }),
        };
        match outcome {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(DAMAGED),
            Err(failure) => failure.report(),
        }
    }
}
