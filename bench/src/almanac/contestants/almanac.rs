//! The almanac, as it comes.

use std::path::Path;
use std::sync::Arc;

use punctual_almanac::{Almanac, Config, Directory};
use punctual_core::store::Store;
use punctual_node::SystemClock;

use super::Contestant;
use super::stored::Stored;

/// The store in this directory, made if there is none.
pub fn store(directory: &Path) -> Arc<dyn Store> {
    let disk = Arc::new(Directory::open(directory).expect("the directory opens"));
    Arc::new(Almanac::open(disk, Config::default(), Arc::new(SystemClock)).expect("the almanac opens"))
}

pub fn open(directory: &Path) -> Box<dyn Contestant> {
    Box::new(Stored::new(store(directory)))
}
