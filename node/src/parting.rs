//! How a node takes leave of the others, so that nothing is on its way to it when it hangs up.
//!
//! Its shards are with others by then, but what was asked of it before that was known may still be under way. The node denies it
//! like anything else for a shard that is not here, and it is asked elsewhere; if the link were gone first, its caller
//! would have to hear that nobody knows what came of it. So whoever leaves says so, and hangs up when all others have said that
//! they ask nothing more.

use std::sync::PoisonError;
use std::time::Duration;

use punctual_center::{LinkId, Message};

use crate::peers::Exchange;
use crate::shared::Shared;

/// How long a node waits for the others: those of earlier versions do not know what is wanted, and one may be hung.
const PATIENCE: Duration = Duration::from_secs(1);

impl Shared {
    /// Tells all others that this node is leaving, and waits until they ask nothing more of it.
    pub fn take_leave(&self) {
        let mut exchange = self.peers.lock();
        exchange.is_leaving = true;
        let links: Vec<LinkId> = exchange.joined.keys().copied().collect();
        drop(exchange);
        for on in links {
            self.peers.reply(on, Message::Leaving);
        }
        let may_ask = |exchange: &mut Exchange| exchange.joined.values().any(|joined| !joined.has_parted);
        let wait = self.peers.parted.wait_timeout_while(self.peers.lock(), PATIENCE, may_ask);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    /// Another node is leaving. Asks leave under the lock, so none comes after this word.
    pub fn say_farewell(&self, on: LinkId) {
        let mut exchange = self.peers.lock();
        if let Some(who) = exchange.dialled.get(&on).cloned() {
            exchange.passing.leaving(&who);
            _ = self.peers.say(on, Message::Farewell);
        }
    }

    /// Another node asks nothing more on this link.
    pub fn parted(&self, on: LinkId) {
        if let Some(joined) = self.peers.lock().joined.get_mut(&on) {
            joined.has_parted = true;
        }
        self.peers.parted.notify_all();
    }
}
