//! `punctual store move`: brings everything from one store into another, while no server runs on either.
//!
//! Exit codes: 0 if all of it is there, 1 if not, 2 if it was called wrongly.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use punctual_core::Clock;
use punctual_moving::{Move, MoveError, Progress, Report, Side};
use punctual_node::SystemClock;
use serde_json::json;

use super::place::Place;
use crate::cli::print;
use crate::config::of_server;
use crate::failure::Failure;
use crate::stores::{Opened, SECRET, chosen};

/// Move everything from one store into another, verified by a checksum of every row. Both must be stopped.
///
/// A store is `almanac` (in the data directory of the configuration), `almanac:DIRECTORY`, or the URL of a database, as in the
/// setting `store`. Run the same command again if it was interrupted: it continues. See docs/moving.md.
#[derive(Args, Debug)]
pub struct MoveArgs {
    /// The store to move. The password of a database is better given by PUNCTUAL_STORE_PASSWORD than in the URL.
    from: String,
    /// The store to move it into, which must be empty. The password of a database is better given by
    /// PUNCTUAL_STORE_MOVING_TO_PASSWORD than in the URL.
    to: String,
    /// A file that holds the password of the store to move into, and nothing else.
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,
    /// First delete what an abandoned move, or one that was undone, has left in the target. Never deletes anything else.
    #[arg(long)]
    afresh: bool,
    /// Take back a move that was done: the old store is in charge again, and what happened in the new one since is given up.
    #[arg(long, conflicts_with = "afresh")]
    undo: bool,
    /// The server's TOML file of settings; by default ./punctual.toml, if it exists.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
}

impl MoveArgs {
    /// Does it.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let (from, to) = (self.source()?, self.target()?);
        let clock = || Arc::new(SystemClock) as Arc<dyn Clock>;
        let (source, target) = (from.open_now(clock())?, to.open_now(clock())?);
        let keep: &[(&str, &[u8])] = &[(SECRET, &source.secret)];
        let bar = progress_bar();
        let watch = |progress| show(&bar, progress);
        let plan =
            Move { afresh: self.afresh, keep, watch: &watch, ..Move::new(side(&from, &source), side(&to, &target)) };
        if self.undo {
            plan.undo().map_err(failure)?;
            let (from, to) = (&from.name, &to.name);
            let words = format!("{from} is in charge again; {to} is a copy that no server starts on\n");
            return print(&if json { format!("{}\n", json!({ "in_charge": from, "copy": to })) } else { words });
        }
        let moved = plan.run();
        bar.finish_and_clear();
        report(&moved.map_err(failure)?, json)
    }

    fn source(&self) -> Result<Place, Failure> {
        let place = Place::read(&self.from, self.config.clone())?;
        if !place.config.store.url.is_remote() && !chosen(&place.config)?.is_in(&place.config.data) {
            return Err(Failure::Usage(format!("there is no store in {}", place.config.data.display())));
        }
        Ok(place)
    }

    /// The password in the configuration is that of the store to move.
    fn target(&self) -> Result<Place, Failure> {
        let settings = of_server(self.config.clone(), None)?.store;
        let file = self.to_password_file.clone().or(settings.moving_to_password_file);
        Ok(Place::read(&self.to, self.config.clone())?.with_password(settings.moving_to_password, file))
    }
}

fn side<'a>(place: &'a Place, opened: &'a Opened) -> Side<'a> {
    Side { store: &*opened.store, name: &place.name }
}

/// What was called wrongly, and what did not work.
fn failure(error: MoveError) -> Failure {
    match error {
        MoveError::SameStore(_) | MoveError::NotEmpty { .. } | MoveError::Leftovers { .. } => {
            Failure::Usage(error.to_string())
        }
        error => Failure::failed(error),
    }
}

fn report(report: &Report, json: bool) -> Result<(), Failure> {
    if !json {
        return print(&report.to_string());
    }
    let line = serde_json::to_string(report).map_err(Failure::failed)?;
    print(&format!("{line}\n"))
}

/// On a terminal only.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    bar.enable_steady_tick(Duration::from_millis(200));
    match ProgressStyle::with_template("{bar:40} {percent}%  {msg}  {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Every row is written once and read back once.
fn show(bar: &ProgressBar, progress: Progress) {
    let Progress { expected, copied, verified, shards, done, .. } = progress;
    bar.set_length(2 * expected.max(copied));
    bar.set_position(copied + verified);
    bar.set_message(format!("{copied} rows copied, {verified} verified, {done} of {shards} shards"));
}
