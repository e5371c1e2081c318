//! The board: consumers that wait for deliveries, and the order in which they get them.
//!
//! A node has one board for all of its shards, so that the longest-waiting consumer is served
//! first whichever shard has something for it. Shards come to the board at the end of a step;
//! consumers are put on it without going through a shard. A consumer may be lent to another node's board:
//! it keeps its place here, and nobody here serves it meanwhile (`elsewhere.rs`).

mod allowance;
mod elsewhere;
mod reserve;
mod shards;

use std::collections::{BTreeMap, BTreeSet};

pub use elsewhere::{Candidate, Elsewhere};
pub use reserve::{Choice, Reserve};

use crate::name::Name;
use crate::store::ShardId;
use crate::time::{Millis, Timestamp};
use allowance::Valve;
use elsewhere::Abroad;

/// For how long a consumer that does not want to wait is kept because another node may have something for it.
const PATIENCE: Millis = Millis(1_000);

/// A place on the board. Lower ones have waited longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Waiting consumers and what they wait for. `R` is what the caller needs to answer them.
#[derive(Debug)]
pub struct Board<R> {
    next_ticket: u64,
    waiting: BTreeMap<Ticket, Waiting<R>>,
    /// Those who are here, by when their time to wait is over.
    deadlines: BTreeSet<(Timestamp, Ticket)>,
    /// Shards that had something for a consumer when it came and have not looked at the board
    /// since: until then "nothing there" would be a guess.
    unlooked: BTreeSet<(ShardId, Ticket)>,
    /// Shards that were opened and have not told yet what they have: it may be for anybody.
    expected: BTreeSet<ShardId>,
    by_queue: BTreeMap<Name, ByQueue>,
    /// By shard: the queues that somebody waits for, here or elsewhere, and in which it has something. Kept here so that no
    /// shard has to look at queues that concern nobody.
    meetings: BTreeMap<ShardId, BTreeSet<Name>>,
    /// How many bytes of deliveries may be handed out for now.
    room: u64,
    /// Counts hand-outs; a queue remembers its latest, so that the one served longest ago comes next.
    hand_outs: u64,
    /// Whether other nodes hand out from the same queues, within the same rates.
    shares_rates: bool,
    /// Queues that could have been served if their rates had let them.
    dry: BTreeSet<Name>,
    /// What is to be heard by who deals with other nodes.
    abroad: Abroad,
}

#[derive(Debug)]
struct Waiting<R> {
    reserve: Reserve,
    reply: R,
    /// How many shards have yet to look for this consumer.
    asked: usize,
    stand: Stand,
}

/// Where a consumer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// On this board, which is its own.
    Here,
    /// On this board, though it waits on another node's.
    Guest,
    /// On another node's board: none of the shards here serves it.
    Lent,
}

/// What the board knows of a queue. It is kept while somebody waits for the queue, a shard has
/// something in it, it has a rate, or it was served: else a queue that is empty after each
/// delivery would always seem to have been served longest ago.
#[derive(Debug, Default)]
struct ByQueue {
    /// Those who are here.
    waiting: BTreeSet<Ticket>,
    stocked: BTreeSet<ShardId>,
    /// What keeps its rate, until the last of the shards here that have given it one takes it away.
    valve: Option<Valve>,
    limited_by: BTreeSet<ShardId>,
    last_hand_out: u64,
    /// What is known of other nodes, if they were told that the queue is wanted.
    wanted: Option<elsewhere::Wanted>,
    /// Somebody elsewhere wants to know when there is something to give that nobody here takes.
    is_watched: bool,
}

impl ByQueue {
    /// Whether it concerns anybody what shards have in it.
    fn concerns_somebody(&self) -> bool {
        !self.waiting.is_empty() || self.is_watched
    }

    fn is_idle(&self) -> bool {
        let nobody = !self.concerns_somebody() && self.wanted.is_none();
        nobody && self.stocked.is_empty() && self.valve.is_none() && self.last_hand_out == 0
    }
}

impl<R> Default for Board<R> {
    fn default() -> Self {
        Board {
            next_ticket: 0,
            waiting: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            unlooked: BTreeSet::new(),
            expected: BTreeSet::new(),
            by_queue: BTreeMap::new(),
            meetings: BTreeMap::new(),
            room: u64::MAX,
            hand_outs: 0,
            shares_rates: false,
            dry: BTreeSet::new(),
            abroad: Abroad::default(),
        }
    }
}

/// What to do after a consumer was put on the board.
#[derive(Debug)]
pub struct Posted {
    /// Its place.
    pub ticket: Ticket,
    /// The shards that have something for it and should look at the board. When there are none
    /// and the consumer does not want to wait, [`Board::expire`] gives it up at once.
    pub ask: Vec<ShardId>,
}

impl<R> Board<R> {
    /// Puts a consumer on the board.
    pub fn post(&mut self, reserve: Reserve, reply: R) -> Posted {
        self.put(reserve, reply, Stand::Here)
    }

    fn put(&mut self, mut reserve: Reserve, reply: R, stand: Stand) -> Posted {
        reserve.max = reserve.max.max(1);
        reserve.queues.sort_unstable();
        reserve.queues.dedup();
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting.insert(ticket, Waiting { reserve, reply, asked: 0, stand });
        Posted { ticket, ask: self.line_up(ticket) }
    }

    /// Puts a consumer into the lines of its queues, at its place, and says which shards should look for it.
    fn line_up(&mut self, ticket: Ticket) -> Vec<ShardId> {
        let waiting = self.waiting.get_mut(&ticket).expect("it is on the board");
        let mut ask: Vec<ShardId> = Vec::new();
        for queue in &waiting.reserve.queues {
            let known = self.by_queue.entry(queue.clone()).or_default();
            if !known.concerns_somebody() {
                known.stocked.iter().for_each(|shard| shards::meet(&mut self.meetings, *shard, queue));
            }
            known.waiting.insert(ticket);
            ask.extend(&known.stocked);
            if waiting.stand == Stand::Here {
                self.abroad.came(queue, known);
            }
        }
        ask.sort_unstable();
        ask.dedup();
        self.deadlines.insert((waiting.reserve.until, ticket));
        // A shard may have been on its way already, if the consumer was lent meanwhile.
        waiting.asked += ask.iter().filter(|shard| self.unlooked.insert((**shard, ticket))).count();
        ask
    }

    /// Takes a consumer out of the lines of its queues.
    fn step_out(&mut self, ticket: Ticket) {
        let reserve = &self.waiting[&ticket].reserve;
        self.deadlines.remove(&(reserve.until, ticket));
        for queue in &reserve.queues {
            let known = self.by_queue.get_mut(queue).expect("a waiting consumer stands at its queues");
            known.waiting.remove(&ticket);
            if !known.concerns_somebody() {
                known.stocked.iter().for_each(|shard| shards::part(&mut self.meetings, *shard, queue));
            }
            if known.is_idle() {
                self.by_queue.remove(queue);
            }
        }
    }

    /// Takes a consumer off the board, if it is still there or lent.
    pub fn withdraw(&mut self, ticket: Ticket) -> Option<(Reserve, R)> {
        if self.waiting.get(&ticket)?.stand != Stand::Lent {
            self.step_out(ticket);
        }
        let Waiting { reserve, reply, .. } = self.waiting.remove(&ticket)?;
        Some((reserve, reply))
    }

    /// Takes all consumers off the board.
    pub fn withdraw_all(&mut self) -> Vec<R> {
        let tickets: Vec<Ticket> = self.waiting.keys().copied().collect();
        tickets.into_iter().filter_map(|ticket| self.withdraw(ticket)).map(|(_, reply)| reply).collect()
    }

    /// Takes off the board all consumers whose time to wait is over, except those for whom some
    /// shard has yet to look, or another node may have something.
    pub fn expire(&mut self, now: Timestamp) -> Vec<R> {
        self.expire_unless(now, &BTreeSet::new())
    }

    /// The same, except those who wait for one of these queues, which have more to give.
    pub(crate) fn expire_unless(&mut self, now: Timestamp, giving: &BTreeSet<Name>) -> Vec<R> {
        let over: Vec<Ticket> = self
            .deadlines
            .range(..=(now, Ticket(u64::MAX)))
            .map(|(_, ticket)| *ticket)
            .filter(|ticket| !self.may_get_something(*ticket, now) && !self.waits_for_one_of(*ticket, giving))
            .collect();
        over.into_iter().filter_map(|ticket| self.withdraw(ticket)).map(|(_, reply)| reply).collect()
    }

    /// Whether it is not known yet that there is nothing for a consumer. A guest is told what is known: if there turns
    /// out to be more, its node will hear of it.
    fn may_get_something(&self, ticket: Ticket, now: Timestamp) -> bool {
        let waiting = &self.waiting[&ticket];
        let is_guest = waiting.stand == Stand::Guest;
        waiting.asked > 0 || (!is_guest && (!self.expected.is_empty() || self.is_hoped_for(&waiting.reserve, now)))
    }

    /// When the next consumer's time to wait is over.
    pub fn next_deadline(&self) -> Timestamp {
        self.deadlines.first().map_or(Timestamp::NEVER, |(until, _)| *until)
    }

    /// When the time to wait of a consumer is over next, of those for whom it is not over yet.
    /// The others are still there only because some shard has yet to look for them, or another node: for that there
    /// is a time, too.
    pub fn next_deadline_after(&self, now: Timestamp) -> Timestamp {
        let after = self.deadlines.range((now, Ticket(u64::MAX))..).next();
        let after = after.map_or(Timestamp::NEVER, |(until, _)| *until);
        let kept = self.deadlines.range((now.minus(PATIENCE), Ticket(u64::MAX))..).next();
        let kept = kept.filter(|_| self.abroad.is_any()).map_or(Timestamp::NEVER, |(until, _)| until.plus(PATIENCE));
        after.min(kept)
    }

    /// How many consumers wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What those wait for who have come to this board, also while they are lent, who has waited longest first. Who comes
    /// from another node waits there.
    pub fn own(&self) -> impl Iterator<Item = &Reserve> {
        self.waiting.values().filter(|waiting| waiting.stand != Stand::Guest).map(|waiting| &waiting.reserve)
    }

    /// How many consumers wait for a queue.
    pub fn waiting_for(&self, queue: &str) -> usize {
        self.by_queue.get(queue).map_or(0, |known| known.waiting.len())
    }

    fn waits_for_one_of(&self, ticket: Ticket, queues: &BTreeSet<Name>) -> bool {
        let waits = |waiting: &Waiting<R>| waiting.reserve.queues.iter().any(|queue| queues.contains(queue));
        !queues.is_empty() && self.waiting.get(&ticket).is_some_and(waits)
    }

    fn tidy(&mut self, queue: &Name) {
        if self.by_queue.get(queue).is_some_and(ByQueue::is_idle) {
            self.by_queue.remove(queue);
        }
    }
}

#[cfg(test)]
mod tests;
