//! The store in memory, for trying things out and for tasks that may be forgotten: nothing of it is on disk.

use std::path::Path;
use std::sync::Arc;

use punctual_memory::MemoryStore;
use punctual_wire::StoreStats;

use super::shared_secret::shared_secret;
use super::{Copied, Listing, OpenStore, Opened, Opening, Storage, Unopened};
use crate::config::Config;
use crate::failure::Failure;
use crate::metrics::MetricsPage;

/// The store in memory.
pub struct Forgetful;

impl Storage for Forgetful {
    fn schemes(&self) -> &'static [&'static str] {
        &["memory"]
    }

    fn form(&self) -> &'static str {
        "memory"
    }

    fn knows(&self, _: &str) -> bool {
        false
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Opened, Unopened> {
        let store = MemoryStore::new(Arc::clone(&opening.clock));
        let secret = shared_secret(&store)?;
        let store = Arc::new(store);
        Ok(Opened { face: Arc::clone(&store) as _, store, secret, data: None })
    }

    fn is_in(&self, _: &Path) -> bool {
        false
    }

    fn copy(&self, _: &Path, _: &Path) -> Result<Copied, Failure> {
        Err(Failure::Usage("the store is in memory and cannot be backed up: use `punctual export`".into()))
    }

    fn check(&self, _: &Config, _: bool) -> Result<bool, Failure> {
        Err(out_of_sight())
    }

    fn show(&self, _: &Config, _: &Listing, _: bool) -> Result<bool, Failure> {
        Err(out_of_sight())
    }

    fn migrate(&self, _: &Config) -> Result<String, Failure> {
        Ok("the store in memory has no layout to bring up to date".into())
    }
}

fn out_of_sight() -> Failure {
    Failure::Usage(
        "the store is in the memory of a server, where only the server sees it: ask it, as in `punctual list`".into(),
    )
}

impl OpenStore for MemoryStore {
    fn line(&self) -> String {
        "tasks are kept in memory only: when the server stops, all of them are forgotten".into()
    }

    fn whereabouts(&self) -> &'static str {
        "forgotten, because the store was in memory"
    }

    fn stats(&self) -> StoreStats {
        StoreStats { kind: "memory".into(), ..StoreStats::default() }
    }

    fn meter(&self, _: &mut MetricsPage) {}
}
