//! `punctual store move`: which of its forms is meant.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use punctual_wire::MoveStore;

use super::stopped::StoppedMove;
use crate::cli::on_runtime;
use crate::commands::{self, Connection, MoveRequest};
use crate::config::{Secret, StoreUrl};
use crate::failure::Failure;

/// What is asked of a running server.
const LIVE: [&str; 3] = ["live", "status", "cancel"];
/// What is about stores that are stopped.
const STOPPED: [&str; 4] = ["from", "to", "undo", "config"];

/// Move everything from one store into another, verified by a checksum of every row: stopped stores, or the store of a
/// running server.
///
/// A store is `almanac` (in the data directory of the configuration), `almanac:DIRECTORY`, or the URL of a database, as in the
/// setting `store`. Run the same command again if it was interrupted: it continues. See docs/moving.md.
#[derive(Args, Debug)]
#[command(override_usage = "\
punctual store move [--afresh | --undo] FROM TO
       punctual store move --live TO [--afresh]
       punctual store move --status
       punctual store move --cancel")]
pub struct MoveArgs {
    /// The store to move, on which no server may run. The password of a database is better given by
    /// PUNCTUAL_STORE_PASSWORD than in the URL.
    #[arg(required_unless_present_any = LIVE)]
    from: Option<String>,
    /// The store to move it into, which must be empty. The password of a database is better given by
    /// PUNCTUAL_STORE_MOVING_TO_PASSWORD than in the URL.
    #[arg(required_unless_present_any = LIVE)]
    to: Option<String>,
    /// A file that holds the password of the store to move into, and nothing else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["status", "cancel"])]
    to_password_file: Option<PathBuf>,
    /// First delete what an abandoned move, or one that was undone, has left in the target. Never deletes anything else.
    #[arg(long, conflicts_with_all = ["status", "cancel"])]
    afresh: bool,
    /// Take back a move that was done: the old store is in charge again, and what happened in the new one since is given up.
    #[arg(long, conflicts_with = "afresh")]
    undo: bool,
    /// Move the store of the running server into this one, shard by shard, and show how far it is until it is done.
    /// Ctrl-C ends the showing, not the move. The server opens the store: its password is the server's
    /// PUNCTUAL_STORE_MOVING_TO_PASSWORD, unless it is given here.
    #[arg(long, value_name = "TO", conflicts_with_all = STOPPED, help_heading = "While a server runs")]
    live: Option<String>,
    /// Show how far the move of the running server is.
    #[arg(long, conflicts_with_all = STOPPED, conflicts_with = "live", help_heading = "While a server runs")]
    status: bool,
    /// Give up the move of the running server. Refused once a shard has been moved.
    #[arg(long, conflicts_with_all = STOPPED, conflicts_with_all = ["live", "status"], help_heading = "While a server runs")]
    cancel: bool,
    /// The server's TOML file of settings; by default ./punctual.toml, if it exists.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
}

impl MoveArgs {
    /// Does it: here, or by asking the server.
    pub fn run(self, connection: &Connection) -> ExitCode {
        let request = match (self.live, self.from.zip(self.to)) {
            (Some(to), _) => match with_password(to, self.to_password_file) {
                Ok(to) => MoveRequest::Begin(MoveStore { to, afresh: self.afresh }),
                Err(failure) => return failure.report(),
            },
            (None, Some((from, to))) => {
                let (to_password_file, afresh, undo, config) =
                    (self.to_password_file, self.afresh, self.undo, self.config);
                let stopped = StoppedMove { from, to, to_password_file, afresh, undo, config };
                return stopped.run(connection.json).map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
            }
            (None, None) if self.cancel => MoveRequest::Cancel,
            (None, None) => MoveRequest::Look,
        };
        on_runtime(commands::move_store(request, connection))
    }
}

/// The address with the password that a file on this machine holds.
fn with_password(to: String, file: Option<PathBuf>) -> Result<String, Failure> {
    let Some(file) = file else { return Ok(to) };
    let url = StoreUrl::read(&to).map_err(Failure::Usage)?;
    let password = Secret::from_file(&file).map_err(Failure::Usage)?;
    Ok(url.whole(Some(&password)))
}
