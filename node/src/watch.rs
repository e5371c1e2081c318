//! Watching: events go to whoever wants to see them, after they are durable and after the answers.
//!
//! **Invariant**: watching never holds anything up. A watcher that does not keep up loses the oldest
//! rounds and hears how many; when nobody watches, nothing is kept.

use std::fmt;
use std::sync::{Arc, PoisonError};

use punctual_core::Event;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

use crate::sync::RwLock;

/// How many rounds are kept for a watcher that is slow. A round is what the node makes durable at
/// once: a few events while little happens, some thousands under load.
const ROUNDS: usize = 1_024;

/// Sees what happens on a node, from when it was made. At most 1,024 rounds are kept for it: who takes longer
/// than that loses the oldest ones, and is told.
pub struct Watch {
    rounds: Receiver<Arc<[Event]>>,
}

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// What became durable in one round, in the order in which it happened in each shard.
    Events(Arc<[Event]>),
    /// The watcher was too slow, and did not see so many rounds.
    Missed(u64),
}

impl Watch {
    /// Waits for the next thing to see; `None` when the node has stopped and all was seen.
    ///
    /// Dropping the future loses nothing: the next call sees it.
    pub async fn next(&mut self) -> Option<Watched> {
        match self.rounds.recv().await {
            Ok(events) => Some(Watched::Events(events)),
            Err(RecvError::Lagged(rounds)) => Some(Watched::Missed(rounds)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// All who watch.
pub(crate) struct Watchers {
    /// `None` once the node has stopped: handles outlive it, and watchers must not wait for ever.
    rounds: RwLock<Option<Sender<Arc<[Event]>>>>,
}

impl Watchers {
    pub fn new() -> Watchers {
        Watchers { rounds: RwLock::new(Some(broadcast::Sender::new(ROUNDS))) }
    }

    pub fn watch(&self) -> Watch {
        let rounds = self.rounds.read().unwrap_or_else(PoisonError::into_inner);
        let rounds = match &*rounds {
            Some(rounds) => rounds.subscribe(),
            // Its sender goes at once, and so there is nothing to see.
            None => broadcast::channel(1).1,
        };
        Watch { rounds }
    }

    /// Tells of a round what happened in each of its steps.
    pub fn tell(&self, steps: impl Iterator<Item = Vec<Event>>) {
        let rounds = self.rounds.read().unwrap_or_else(PoisonError::into_inner);
        let Some(rounds) = rounds.as_ref().filter(|rounds| rounds.receiver_count() > 0) else { return };
        let events: Vec<Event> = steps.flatten().collect();
        if !events.is_empty() {
            // Who watched may have gone meanwhile.
            _ = rounds.send(events.into());
        }
    }

    /// Nothing more comes.
    pub fn close(&self) {
        *self.rounds.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
