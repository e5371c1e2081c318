//! Keeping the shards: their claims are renewed in time, or given up in time.
//!
//! The store refuses what comes under an old fence, so nothing is ever written twice. This is about
//! answers that need no write: a node that could not renew a claim while it lasted says nothing more.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_core::store::StoreError;

use crate::shared::Shared;
use crate::sync::{Condvar, Instant, Mutex, lock};

/// Tells a thread to end.
#[derive(Default)]
pub(crate) struct Closing {
    is_closed: Mutex<bool>,
    bell: Condvar,
}

impl Closing {
    pub fn close(&self) {
        *lock(&self.is_closed) = true;
        self.bell.notify_all();
    }

    /// Sleeps; says whether to go on.
    pub fn sleep(&self, time: Duration) -> bool {
        let closed = lock(&self.is_closed);
        let closed = self.bell.wait_timeout_while(closed, time, |closed| !*closed);
        !*closed.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Renews the claims until it is told to end.
pub(crate) fn renew(shared: &Arc<Shared>) {
    let lease = Duration::from_millis(shared.config.ownership.0);
    while shared.closing.sleep(lease / 3) {
        for (shard, inbox) in shared.shards() {
            let Some((fence, claimed_at)) = inbox.claim() else { continue };
            let now = Instant::now();
            match shared.store.renew(shard, fence, shared.config.ownership) {
                Ok(()) => inbox.renewed(fence, now),
                Err(error @ StoreError::Fenced(_)) => inbox.failed(fence, &error.to_string()),
                Err(StoreError::Poisoned(why)) => shared.poison(&why),
                Err(StoreError::Unavailable(why)) => {
                    if claimed_at.elapsed() >= lease {
                        inbox.failed(fence, &format!("the claim on {shard:?} could not be renewed in time: {why}"));
                    }
                }
            }
        }
    }
}
