//! What connections held when the server was killed.
//!
//! A reservation ends with its connection. Leases are durable, though, and nobody was there to give them back: so the
//! door looks for them when it opens. Nothing in the node has to know of connections for that.

use punctual_core::store::Bodies;
use punctual_core::view::{Listing, LiveState, TaskView};
use punctual_core::{Lease, Standing, TimeRange, Timestamp};
use punctual_node::Error;

use crate::door::Door;

/// How many leases are looked at together.
const TOGETHER: usize = 1_000;

impl Door {
    /// Gives back what connections of an earlier run of this node's door hold. Leases are found by their ends: what
    /// has to be read is what wakes before the last of them does.
    pub(crate) async fn give_back_after_crash(&self) -> Result<usize, Error> {
        let mut left: u64 = self.handle.total().await?.leased;
        let wakes = TimeRange { from: self.handle.now(), until: Timestamp::NEVER };
        let leased = Listing::Live { topic: None, state: Some(LiveState::Leased), wakes };
        let (mut from, mut given_back) = (None, 0);
        while left > 0 {
            let page = self.handle.list(leased.clone(), from, TOGETHER, Bodies::Without).await?;
            left = left.saturating_sub(page.tasks.len() as u64);
            let is_of_earlier_run = |task: &TaskView| match &task.delivery.standing {
                Standing::Leased { holder, .. } => self.is_of_earlier_run(holder),
                _ => false,
            };
            let abandoned = page.tasks.into_iter().filter(is_of_earlier_run);
            let leases: Vec<Lease> = abandoned.filter_map(|task| task.delivery.lease).collect();
            given_back += leases.len();
            self.handle.abandon(leases).await;
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        Ok(given_back)
    }
}
