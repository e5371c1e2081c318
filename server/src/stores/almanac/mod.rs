//! The almanac, in a directory of its own in the data directory.

mod inspect;

use std::path::Path;
use std::sync::Arc;

use punctual_almanac::{Almanac, Directory, OpenError, SyncPolicy};
use punctual_wire::StoreStats;

use super::shared_secret::kept_secret;
use super::{Copied, Listing, OpenStore, Opened, Opening, Storage, Unopened};
use crate::commands::counted;
use crate::config::{Config, Synced};
use crate::data::{DataDirectory, trouble};
use crate::failure::Failure;
use crate::metrics::{MetricsPage, Series, Unit};

const DIRECTORY: &str = "almanac";

/// The embedded store.
pub struct Embedded;

impl Storage for Embedded {
    fn schemes(&self) -> &'static [&'static str] {
        &["almanac"]
    }

    fn form(&self) -> &'static str {
        "almanac"
    }

    fn knows(&self, setting: &str) -> bool {
        ["store.memory", "store.journal", "store.sync", "store.reserve"].contains(&setting)
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Opened, Unopened> {
        let data = DataDirectory::open(&opening.config.data)?;
        let place = data.path().join(DIRECTORY);
        let disk = Directory::open(&place).map_err(|error| {
            let place = place.display();
            trouble(&format!("cannot open the store's directory {place}"), &error)
        })?;
        let settings = punctual_almanac::Config {
            must_exist: data.was_used(),
            accepts_loss: opening.is_forced,
            ..settings(opening.config)
        };
        let clock = Arc::clone(&opening.clock);
        let almanac = Almanac::open(Arc::new(disk), settings, clock).map_err(|error| match error {
            OpenError::Io { what, error } => trouble(&what, &error),
            error if error.is_loss() => Failure::Failed(format!(
                "{error}. `punctual serve --force-open` continues without what is lost, and logs what that is"
            )),
            error => Failure::failed(error),
        })?;
        for loss in almanac.losses() {
            tracing::error!(
                loss,
                "the store has lost confirmed tasks; continuing without them, because of --force-open"
            );
        }
        let (secret, data) = (data.secret()?, Some(data.path().to_owned()));
        // What was moved here from another store has brought along what vouches for its leases.
        let secret = kept_secret(&almanac)?.unwrap_or(secret);
        let store = Arc::new(almanac);
        Ok(Opened { face: Arc::clone(&store) as _, store, secret, data })
    }

    fn is_in(&self, data: &Path) -> bool {
        data.join(DIRECTORY).exists()
    }

    /// What is linked is never written to again, so neither can spoil the other.
    fn copy(&self, from: &Path, to: &Path) -> Result<Copied, Failure> {
        let done = punctual_almanac::backup(&from.join(DIRECTORY), &to.join(DIRECTORY)).map_err(Failure::failed)?;
        let (runs, linked, copied) = (done.runs, done.linked, done.copied);
        Ok(Copied {
            words: format!("{} ({linked} of them linked), {copied} bytes copied", counted(runs as u64, "run")),
            numbers: vec![("runs", runs.into()), ("linked", linked.into()), ("copied_bytes", copied.into())],
        })
    }

    fn check(&self, config: &Config, json: bool) -> Result<bool, Failure> {
        inspect::check(&config.data, json)
    }

    fn show(&self, config: &Config, listing: &Listing, json: bool) -> Result<bool, Failure> {
        inspect::show(&config.data, listing, json)
    }

    fn migrate(&self, _: &Config) -> Result<String, Failure> {
        Ok("the almanac needs no migration: files of older versions are read, and replaced as they are merged".into())
    }
}

fn settings(config: &Config) -> punctual_almanac::Config {
    let defaults = punctual_almanac::Config::default();
    let journal = config.store.journal.0;
    punctual_almanac::Config {
        memory: config.store.memory.as_usize(),
        journal,
        segment: defaults.segment.min(journal),
        reserve: config.store.reserve.0,
        sync: match config.store.sync {
            Synced::Always => SyncPolicy::Always,
            Synced::Within(time) => SyncPolicy::Every(time.as_duration()),
        },
        ..defaults
    }
}

impl OpenStore for Almanac {
    fn line(&self) -> String {
        self.to_string()
    }

    fn whereabouts(&self) -> &'static str {
        "on disk"
    }

    fn stats(&self) -> StoreStats {
        let usage = self.usage();
        let memory = usage.recent_bytes + usage.key_bytes + usage.block_bytes;
        let (memory_bytes, disk_bytes) = (memory as u64, usage.run_bytes + usage.journal_bytes);
        StoreStats { kind: "almanac".into(), memory_bytes, disk_bytes, link: None }
    }

    fn meter(&self, page: &mut MetricsPage) {
        let usage = self.usage();
        let parts = |parts: &[(&str, u64)]| parts.iter().map(|(part, bytes)| ([(*part).to_owned()], *bytes)).collect();
        let memory: Series<1> = parts(&[
            ("recent", usage.recent_bytes as u64),
            ("keys", usage.key_bytes as u64),
            ("blocks", usage.block_bytes as u64),
        ]);
        page.gauges("store_memory", "Memory used by the store, by purpose.", Some(Unit::Bytes), ["part"], &memory);
        let disk: Series<1> = parts(&[("runs", usage.run_bytes), ("journal", usage.journal_bytes)]);
        page.gauges("store_disk", "Disk space used by the store, by purpose.", Some(Unit::Bytes), ["part"], &disk);
        page.gauge("store_runs", "Runs in the store.", None, usage.runs as u64);
        page.gauge("store_run_rows", "Live rows in the runs of the store.", None, usage.rows_in_runs);
        page.gauge(
            "store_free_segments",
            "Journal segments that are free for reuse.",
            None,
            usage.free_segments as u64,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_store_are_its_own() {
        let (settings, store) = (settings(&Config::default()), punctual_almanac::Config::default());
        assert_eq!(settings.memory, store.memory);
        assert_eq!((settings.journal, settings.reserve), (store.journal, store.reserve));
        assert_eq!(settings.sync, store.sync);
    }
}
