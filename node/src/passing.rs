//! Requests to shards that are not here.
//!
//! What to do is decided by [`Passing`](punctual_center::Passing); here it is done. Asks leave under the lock under which they
//! were decided, so that what concerns one shard is asked in its order. Callers are answered, and inboxes filled, when the
//! lock is free again: both may lead back here.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_center::{Order, Place};
use punctual_core::Request;
use punctual_core::store::ShardId;

use crate::caller::Caller;
use crate::error::Error;
use crate::peers::Exchange;
use crate::shared::Shared;

/// How soon whoever denied to have a shard is asked again, and it is looked whose time is over.
const LOOK: Duration = Duration::from_millis(20);

impl Shared {
    /// Passes requests on that have come for a shard that is not here.
    pub fn pass_on(&self, shard: ShardId, requests: Vec<Request<Caller>>) {
        let own = self.deny_foreign(shard, requests);
        if !self.peers.has_links() {
            let why = format!("{shard} is with another server, and this one has no way to it");
            return own.into_iter().for_each(|request| self.answer(request.reply, Err(Error::nothing_done(&*why))));
        }
        let now = self.clock.steady_micros();
        self.pass(|exchange| {
            let pass = |Request { command, by, reply, .. }| exchange.passing.pass(shard, command, by, reply, now);
            own.into_iter().flat_map(pass).collect()
        });
    }

    /// Denies what came from other nodes, and gives back the rest. It is not passed on once more: who asked asks again where the
    /// shard is.
    pub fn deny_foreign(&self, shard: ShardId, requests: Vec<Request<Caller>>) -> Vec<Request<Caller>> {
        let (mut own, mut foreign) = (Vec::new(), Vec::new());
        for request in requests {
            match request.reply {
                Caller::Foreign(caller) => foreign.push(caller),
                reply => own.push(Request { reply, ..request }),
            }
        }
        self.deny(shard, foreign);
        own
    }

    /// It has become known where a shard is.
    pub fn place_changed(&self, shard: ShardId) {
        if !self.peers.has_links() {
            return;
        }
        match self.place(shard) {
            Place::At(owner) => self.pass(|exchange| exchange.passing.moved(shard, Some(&owner))),
            Place::Nowhere => self.pass(|exchange| exchange.passing.moved(shard, None)),
            // It may not take requests yet: when it does, that is told.
            Place::Here => {}
        }
    }

    /// A shard takes requests here: those that waited for it to be somewhere are brought to it.
    pub fn shard_came(&self, shard: ShardId) {
        if self.peers.has_links() {
            self.pass(|exchange| exchange.passing.came_here(shard));
        }
    }

    /// A shard takes no more requests here, and it is not known where it will be.
    pub fn shard_left(&self, shard: ShardId) {
        if self.peers.has_links() {
            self.pass(|exchange| exchange.passing.moved(shard, None));
            self.place_changed(shard);
        }
    }

    /// Decides something about what is passed on, and does what follows.
    pub fn pass(&self, decide: impl FnOnce(&mut Exchange) -> Vec<Order<Caller>>) {
        let mut exchange = self.peers.lock();
        let orders = decide(&mut exchange);
        let left = self.peers.ask(&mut exchange, orders);
        let waits = exchange.passing.is_waiting();
        drop(exchange);
        if waits {
            self.peers.bell.notify_one();
        }
        self.carry_out(left);
    }

    fn carry_out(&self, orders: Vec<Order<Caller>>) {
        let mut here: BTreeMap<ShardId, Vec<Request<Caller>>> = BTreeMap::new();
        for order in orders {
            match order {
                Order::Answer(caller, outcome) => self.answer(caller, outcome),
                Order::Here(shard, command, by, caller) => {
                    here.entry(shard).or_default().push(self.request(command, by, caller));
                }
                Order::Ask(..) => unreachable!("what is asked has left"),
            }
        }
        for (shard, requests) in here {
            let has_left = self.inbox(shard).is_away();
            if has_left {
                // It left before it was said that it came: what is passed on would be brought back here, and so for ever.
                self.shard_left(shard);
            }
            _ = self.bring_all(shard, requests, false);
            if has_left && !self.inbox(shard).is_away() {
                self.shard_came(shard);
            }
        }
    }
}

/// Gives up what nobody could take, and asks again whoever denied to have a shard, until the node stops.
pub(crate) fn look_after(shared: &Arc<Shared>) {
    let bell = &shared.peers.bell;
    let mut exchange = shared.peers.lock();
    while !exchange.is_closed {
        if !exchange.passing.is_waiting() && !exchange.inquiries.is_waiting() {
            exchange = bell.wait(exchange).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        exchange = bell.wait_timeout(exchange, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        let now = shared.clock.steady_micros();
        exchange.inquiries.expire(now);
        let mut orders = exchange.passing.expire(now);
        orders.extend(exchange.passing.try_again());
        let left = shared.peers.ask(&mut exchange, orders);
        drop(exchange);
        shared.carry_out(left);
        exchange = shared.peers.lock();
    }
}
