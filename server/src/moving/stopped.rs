//! `punctual store move`: brings everything from one store into another, while no server runs on either.
//!
//! Exit codes: 0 if all of it is there, 1 if not, 2 if it was called wrongly.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_core::Clock;
use punctual_moving::{Move, MoveError, Progress, Report, Side};
use punctual_node::SystemClock;
use serde_json::json;

use super::place::Place;
use crate::cli::print;
use crate::config::{Config, of_server, of_store};
use crate::failure::Failure;
use crate::stores::{Opened, SECRET, chosen};
use crate::tokens;

/// A move that was asked for.
pub struct StoppedMove {
    pub from: String,
    pub to: String,
    pub to_password_file: Option<PathBuf>,
    pub afresh: bool,
    pub undo: bool,
    /// The file of settings.
    pub config: Option<PathBuf>,
}

impl StoppedMove {
    /// Does it.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let settings = self.settings()?;
        let (from, to) = (self.source(&settings)?, self.target(&settings)?);
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
        let moved = moved.map_err(failure)?;
        tokens::bring_out(&target.store, &to.config).map_err(Failure::failed)?;
        report(&moved, &to.advice(&from.name), json)
    }

    /// The settings of the server whose store is moved. Whatever they choose, they are about the store that was named, if that
    /// makes sense.
    fn settings(&self) -> Result<Config, Failure> {
        let configured = of_server(self.config.clone(), None);
        if !self.from.contains("://") {
            return configured;
        }
        of_store(self.config.clone(), self.from.clone()).or_else(|error| configured.map_err(|_| error))
    }

    fn source(&self, settings: &Config) -> Result<Place, Failure> {
        let place = Place::read(&self.from, settings)?;
        if !place.config.store.url.is_remote() && !chosen(&place.config)?.is_in(&place.config.data) {
            return Err(Failure::Usage(format!("there is no store in {}", place.config.data.display())));
        }
        Ok(place)
    }

    fn target(&self, settings: &Config) -> Result<Place, Failure> {
        Ok(Place::read(&self.to, settings)?.into_target(&settings.store, self.to_password_file.clone()))
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

fn report(report: &Report, advice: &str, json: bool) -> Result<(), Failure> {
    if !json {
        return print(&format!("{report}\n{advice}\n"));
    }
    let line = serde_json::to_string(report).map_err(Failure::failed)?;
    print(&format!("{line}\n"))
}

/// On a terminal only.
pub fn progress_bar() -> ProgressBar {
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
