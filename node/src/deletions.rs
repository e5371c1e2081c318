//! Deletions that somebody here waits for: from when a topic or queue is told to go until the last shard has cleared it
//! away. They go by the numbers under which they were written down.
//!
//! Whoever deletes the same meanwhile joins and hears the same. A second deletion would meet what was made anew in shards
//! that are done already.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::error::Error;
use crate::sync::{Mutex, lock};

/// How many rows went.
pub(crate) type Ended = Result<u64, Error>;

/// Those who wait for the end of one.
type Listeners = Vec<oneshot::Sender<Ended>>;

#[derive(Default)]
pub(crate) struct Deletions(Mutex<BTreeMap<u64, Listeners>>);

impl Deletions {
    /// Begins to wait for the end of one.
    pub fn begin(&self, number: u64) -> oneshot::Receiver<Ended> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.0).entry(number).or_default().push(sender);
        receiver
    }

    /// Joins those who wait, if anybody does.
    pub fn join(&self, number: u64) -> Option<oneshot::Receiver<Ended>> {
        let (sender, receiver) = oneshot::channel();
        let mut awaited = lock(&self.0);
        let waiting = awaited.get_mut(&number)?;
        // Those who gave up and asked again are not kept twice.
        waiting.retain(|sender| !sender.is_closed());
        waiting.push(sender);
        Some(receiver)
    }

    pub fn is_awaited(&self, number: u64) -> bool {
        lock(&self.0).contains_key(&number)
    }

    /// One has ended: all who wait for it hear how.
    pub fn end(&self, number: u64, ended: &Ended) {
        let waiting = lock(&self.0).remove(&number);
        for sender in waiting.into_iter().flatten() {
            _ = sender.send(ended.clone());
        }
    }

    /// The node ends: who waits hears that it is not known how far it came.
    pub fn abandon(&self) {
        lock(&self.0).clear();
    }
}
