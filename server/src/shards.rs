//! `punctual shards`: what a server is asked, and `grow`, which divides the shards of a store while no server runs on it.
//!
//! Exit codes of that: 0 if all is done, 1 if not, 2 if it was called wrongly.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use punctual_moving::{Grow, GrowError, Progress, Side};
use punctual_node::SystemClock;
use serde_json::json;

use crate::cli::{on_runtime, print};
use crate::commands::{self, Connection, ShardsCommand, note};
use crate::failure::Failure;
use crate::moving::{Place, progress_bar};
use crate::store::WhichStore;
use crate::stores::chosen;

/// List the shards of the store and the nodes that have them, pin one to a node, or divide them into more.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  punctual shards
  punctual shards pin 7 node-2
  punctual shards unpin 7
  punctual shards grow 64 --dry-run

Exit codes: 0 done, 1 failed, 2 called wrongly; for what a server is asked, those of `punctual --help`.")]
pub struct ShardsArgs {
    #[command(subcommand)]
    command: Option<Wanted>,
}

#[derive(Subcommand, Debug)]
enum Wanted {
    #[command(flatten)]
    Asked(ShardsCommand),
    Grow(GrowArgs),
}

impl ShardsArgs {
    /// Does it: here, or by asking a server.
    pub fn run(self, connection: &Connection) -> ExitCode {
        match self.command.unwrap_or(Wanted::Asked(ShardsCommand::List)) {
            Wanted::Asked(command) => on_runtime(commands::shards(command, connection)),
            Wanted::Grow(grow) => {
                grow.run(connection.json).map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
            }
        }
    }
}

/// Divide the shards of a store into more of them, so that more servers can share the work. No server may run on it.
///
/// Run the same command again if it was interrupted: it continues. Until it is done no server starts on the store. See
/// docs/cluster.md.
#[derive(Args, Debug)]
struct GrowArgs {
    /// How many shards there are to be: a multiple of how many there are.
    shards: u16,
    #[command(flatten)]
    which: WhichStore,
    /// Only say how many rows would move, and roughly how long that takes. A server may be running.
    #[arg(long)]
    dry_run: bool,
}

impl GrowArgs {
    fn run(self, json: bool) -> Result<(), Failure> {
        let place = Place::of(self.which.settings()?);
        let storage = chosen(&place.config)?;
        if !storage.is_remote() && !storage.is_in(&place.config.data) {
            return Err(Failure::Usage(format!("there is no store in {}", place.config.data.display())));
        }
        let opened = place.open_now(Arc::new(SystemClock))?;
        let bar = progress_bar();
        let watch = |progress| show(&bar, progress);
        let side = Side { store: &*opened.store, name: &place.name };
        let plan = Grow { watch: &watch, ..Grow::new(side, self.shards) };
        let outlook = plan.look().map_err(failure)?;
        if self.dry_run {
            let told = json!({
                "store": place.name, "from": outlook.from, "to": outlook.to, "resumes": outlook.resumes,
                "rows": outlook.rows, "moving": outlook.moving, "seconds": outlook.time.as_secs_f64(),
            });
            return print(&if json { format!("{told}\n") } else { format!("{}: {outlook}\n", place.name) });
        }
        note(format_args!("{}: {outlook}", place.name));
        let grown = plan.run();
        bar.finish_and_clear();
        let grown = grown.map_err(failure)?;
        let told = json!({
            "store": place.name, "from": grown.from, "to": grown.to, "resumed": grown.resumed, "moved": grown.moved,
            "counted": grown.counted, "seconds": grown.took.as_secs_f64(),
        });
        let advice = format!(
            "numbers of jobs stay valid; set `node.shards` to {} wherever it is set, and look again at what is pinned",
            grown.to
        );
        print(&if json { format!("{told}\n") } else { format!("{}: {grown}\n{advice}\n", place.name) })
    }
}

/// What was called wrongly, and what did not work.
fn failure(error: GrowError) -> Failure {
    match error {
        GrowError::Store(_) | GrowError::Barred(_) | GrowError::InTheWay { .. } => Failure::failed(error),
        error => Failure::Usage(error.to_string()),
    }
}

fn show(bar: &ProgressBar, progress: Progress) {
    let Progress { expected, copied, shards, done, .. } = progress;
    bar.set_length(expected.max(copied));
    bar.set_position(copied);
    bar.set_message(format!("{copied} rows looked at, {done} of {shards} shards divided"));
}
