//! What shards say to the board, and what they learn from it: who has something, who comes first, how much may go.

use std::collections::{BTreeMap, BTreeSet};

use super::allowance::Valve;
use super::{Board, Reserve, Stand, Ticket};
use crate::name::Name;
use crate::settings::Rate;
use crate::store::ShardId;
use crate::time::{Millis, Timestamp};

/// The longest delivery that is handed out though there is no room for long ones.
const SHORT: usize = 16 << 10;

impl<R> Board<R> {
    /// A shard was opened, and is about to look what it has. Until it has done so, or is
    /// [forgotten](Board::forget_shard), nobody is given up.
    pub fn expect(&mut self, shard: ShardId) {
        self.expected.insert(shard);
    }

    /// Says how many bytes of deliveries may be handed out until it is said again. Without a word, any number.
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Whether a delivery of so many bytes may be handed out. A short one to a consumer that has got nothing yet
    /// always may: whoever leaves long answers unread does not keep others from their work.
    pub(crate) fn has_room(&self, bytes: usize, is_first: bool) -> bool {
        self.room > 0 || (is_first && bytes <= SHORT)
    }

    /// A delivery of so many bytes is handed out.
    pub(crate) fn fill(&mut self, bytes: usize) {
        self.room = self.room.saturating_sub(bytes as u64);
    }

    /// The queues that concern somebody and in which a shard has said to have something.
    pub(crate) fn meetings(&self, shard: ShardId) -> impl Iterator<Item = &Name> {
        self.meetings.get(&shard).into_iter().flatten()
    }

    /// How many deliveries could be handed out from a queue, at most `enough`.
    pub(crate) fn demand(&self, queue: &str, enough: usize) -> usize {
        let Some(known) = self.by_queue.get(queue) else { return 0 };
        let mut demand = 0;
        for ticket in &known.waiting {
            demand += self.waiting[ticket].reserve.max;
            if demand >= enough {
                return enough;
            }
        }
        demand
    }

    /// The consumer that has waited longest for a queue.
    pub(crate) fn longest_waiting(&self, queue: &str) -> Option<Ticket> {
        self.by_queue.get(queue)?.waiting.first().copied()
    }

    /// What a waiting consumer asked for.
    pub(crate) fn reserve(&self, ticket: Ticket) -> &Reserve {
        &self.waiting[&ticket].reserve
    }

    /// When a queue was served here last, as a count that rises.
    pub fn last_hand_out(&self, queue: &str) -> u64 {
        self.by_queue.get(queue).map_or(0, |known| known.last_hand_out)
    }

    /// How long a queue's rate lets nothing out from now on; `None` if it lets something out.
    pub(crate) fn rate_wait(&mut self, queue: &str, now: Timestamp) -> Option<Millis> {
        let wait = self.by_queue.get_mut(queue)?.valve.as_mut()?.wait(now);
        if wait > Millis::ZERO && self.shares_rates {
            self.dry.insert(Name::stored(queue));
        }
        (wait > Millis::ZERO).then_some(wait)
    }

    /// Whether its rate holds a queue back now.
    pub(crate) fn is_held_back(&self, queue: &str, now: Timestamp) -> bool {
        let valve = self.by_queue.get(queue).and_then(|known| known.valve.clone());
        valve.is_some_and(|mut valve| valve.wait(now) > Millis::ZERO)
    }

    /// Asks to hand out one delivery from a queue: granted, or to be tried again so much later.
    pub(crate) fn hand_out(&mut self, queue: &Name, now: Timestamp) -> Result<(), Millis> {
        let known = self.by_queue.get_mut(queue).expect("somebody waits for this queue");
        if let Some(valve) = &mut known.valve {
            valve.take(now)?;
        }
        self.hand_outs += 1;
        known.last_hand_out = self.hand_outs;
        Ok(())
    }

    /// Notes whether a shard has something in a queue.
    pub(crate) fn stock(&mut self, shard: ShardId, queue: &Name, stocked: bool) {
        if stocked {
            let known = self.by_queue.entry(queue.clone()).or_default();
            known.stocked.insert(shard);
            if known.concerns_somebody() {
                meet(&mut self.meetings, shard, queue);
            }
        } else if let Some(known) = self.by_queue.get_mut(queue) {
            known.stocked.remove(&shard);
            part(&mut self.meetings, shard, queue);
            self.tidy(queue);
        }
    }

    /// A shard has looked at the board and gave what it had, except from these queues, which have more to give.
    pub(crate) fn looked(&mut self, shard: ShardId, giving: &BTreeSet<Name>) {
        self.expected.remove(&shard);
        let all = (shard, Ticket(0))..=(shard, Ticket(u64::MAX));
        let unlooked: Vec<(ShardId, Ticket)> = self.unlooked.range(all).copied().collect();
        for entry in
            unlooked.into_iter().filter(|(_, ticket)| !self.waits_for_one_of(*ticket, giving)).collect::<Vec<_>>()
        {
            self.unlooked.remove(&entry);
            if let Some(waiting) = self.waiting.get_mut(&entry.1) {
                waiting.asked -= 1;
                if waiting.asked == 0 && waiting.stand == Stand::Here && self.abroad.is_any() {
                    waiting.reserve.queues.iter().for_each(|queue| self.abroad.is_free(queue, &self.by_queue[queue]));
                }
            }
        }
    }

    /// A shard is not there any more: nobody should wait for it to look.
    pub fn forget_shard(&mut self, shard: ShardId) {
        self.looked(shard, &BTreeSet::new());
        let stocked = self.by_queue.iter().filter(|(_, known)| known.stocked.contains(&shard));
        let queues: Vec<Name> = stocked.map(|(queue, _)| queue.clone()).collect();
        for queue in queues {
            self.stock(shard, &queue, false);
        }
        // The rates stay: whoever has the shard now keeps them too, and here it may be opened again with its bucket as it is.
        self.by_queue.values_mut().for_each(|known| _ = known.limited_by.remove(&shard));
    }

    /// A queue was deleted from a shard.
    pub(crate) fn forget_queue(&mut self, shard: ShardId, queue: &Name) {
        if let Some(known) = self.by_queue.get_mut(queue) {
            known.stocked.remove(&shard);
            part(&mut self.meetings, shard, queue);
            known.last_hand_out = 0;
            self.limit(shard, queue, None);
        }
    }

    /// A shard gives a queue a rate, or has none for it. What others have given stays: a queue that one of them has yet to
    /// hear the rate of comes to be there without one.
    pub(crate) fn limit(&mut self, shard: ShardId, queue: &Name, rate: Option<Rate>) {
        match rate {
            Some(rate) => {
                let known = self.by_queue.entry(queue.clone()).or_default();
                known.limited_by.insert(shard);
                if known.valve.as_ref().is_none_or(|valve| valve.rate() != rate) {
                    known.valve = Some(Valve::new(rate, !self.shares_rates));
                }
            }
            None => {
                if let Some(known) = self.by_queue.get_mut(queue) {
                    known.limited_by.remove(&shard);
                    known.valve.take_if(|_| known.limited_by.is_empty());
                    self.tidy(queue);
                }
            }
        }
    }
}

/// A queue that concerns somebody has something.
pub(super) fn meet(meetings: &mut BTreeMap<ShardId, BTreeSet<Name>>, shard: ShardId, queue: &Name) {
    meetings.entry(shard).or_default().insert(queue.clone());
}

/// It has nothing any more, or concerns nobody.
pub(super) fn part(meetings: &mut BTreeMap<ShardId, BTreeSet<Name>>, shard: ShardId, queue: &Name) {
    if let Some(queues) = meetings.get_mut(&shard) {
        queues.remove(queue);
        if queues.is_empty() {
            meetings.remove(&shard);
        }
    }
}
