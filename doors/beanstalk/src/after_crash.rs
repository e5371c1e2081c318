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
        let leased = Listing::Live { topic: None, state: Some(LiveState::Leased), wakes, latest_first: false };
        let (mut from, mut given_back, mut out_of_reach) = (None, 0, 0);
        while left > 0 {
            let page = self.handle.list(leased.clone(), from, TOGETHER, Bodies::Without).await?;
            left = left.saturating_sub(page.tasks.len() as u64);
            let is_of_earlier_run = |task: &TaskView| match &task.delivery.standing {
                Standing::Leased { holder, .. } => self.is_of_earlier_run(holder),
                _ => false,
            };
            let abandoned = page.tasks.into_iter().filter(is_of_earlier_run);
            let leases: Vec<Lease> = abandoned.filter_map(|task| task.delivery.lease).collect();
            let found = leases.len();
            let left = self.handle.abandon(leases).await.len();
            given_back += found - left;
            out_of_reach += left;
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        match out_of_reach {
            0 => Ok(given_back),
            jobs => Err(Error::nothing_done(format!("{jobs} jobs are out of reach"))),
        }
    }
}
