//! Deletions under way: from when a topic or queue is told to go until the last shard has cleared it away.
//!
//! Whoever deletes it meanwhile joins and hears the same. A second deletion would meet what was made anew in shards that
//! are done already.

use std::collections::BTreeMap;

use punctual_core::Name;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::sync::{Mutex, lock};

/// A topic or a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Topic,
    Queue,
}

/// How many rows went.
pub(crate) type Ended = Result<u64, Error>;

/// Those who wait for the end of one.
type Listeners = Vec<oneshot::Sender<Ended>>;

#[derive(Default)]
pub(crate) struct Deletions(Mutex<BTreeMap<(What, Name), Listeners>>);

impl Deletions {
    /// Begins one; its first caller hears of its end.
    pub fn begin(&self, what: What, name: &Name) -> oneshot::Receiver<Ended> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.0).entry((what, name.clone())).or_default().push(sender);
        receiver
    }

    /// Joins one that is under way.
    pub fn join(&self, what: What, name: &Name) -> Option<oneshot::Receiver<Ended>> {
        let (sender, receiver) = oneshot::channel();
        let mut under_way = lock(&self.0);
        let waiting = under_way.get_mut(&(what, name.clone()))?;
        // Those who gave up and asked again are not kept twice.
        waiting.retain(|sender| !sender.is_closed());
        waiting.push(sender);
        Some(receiver)
    }

    pub fn is_under_way(&self, what: What, name: &Name) -> bool {
        lock(&self.0).contains_key(&(what, name.clone()))
    }

    /// One has ended: all who wait for it hear how.
    pub fn end(&self, what: What, name: &Name, ended: &Ended) {
        let waiting = lock(&self.0).remove(&(what, name.clone()));
        for sender in waiting.into_iter().flatten() {
            _ = sender.send(ended.clone());
        }
    }

    /// The node ends: who waits hears that it is not known how far it came.
    pub fn abandon(&self) {
        lock(&self.0).clear();
    }
}
