//! The board: consumers that wait for deliveries, and the order in which they get them.
//!
//! A node has one board for all of its shards, so that the longest-waiting consumer is served
//! first whichever shard has something for it. Shards come to the board at the end of a step;
//! consumers are put on it without going through a shard.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::Refused;
use crate::name::Name;
use crate::rate::TokenBucket;
use crate::settings::Rate;
use crate::store::ShardId;
use crate::task::NO_LEASE;
use crate::time::{Millis, Timestamp};

/// The longest delivery that is handed out though there is no room for long ones.
const SHORT: usize = 16 << 10;

/// A consumer's request for deliveries.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// From any of these queues.
    pub queues: Vec<Name>,
    /// At most so many at once; at least one.
    pub max: usize,
    /// To work on each for so long; `None` means as long as its task or its queue gives.
    pub lease: Option<Millis>,
    /// Waiting until then for the first one.
    pub until: Timestamp,
    /// Under this name.
    pub consumer: Name,
    /// From which of its queues, if several have something.
    pub choice: Choice,
}

impl Reserve {
    /// Whether it can be meant.
    pub fn check(&self) -> Result<(), Refused> {
        let invalid = |field, why: &str| Err(Refused::Invalid { field, why: why.into() });
        if self.queues.is_empty() {
            return invalid("queues", "name at least one queue");
        }
        if self.max == 0 {
            return invalid("max", "ask for at least one delivery");
        }
        if self.lease == Some(Millis::ZERO) {
            return invalid("lease", NO_LEASE);
        }
        Ok(())
    }
}

/// From which of several queues a consumer gets its next delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// From the one that was served longest ago, so that none starves.
    #[default]
    InTurn,
    /// From the one whose next delivery comes before those of the others, as if all were one queue.
    Foremost,
}

/// A place on the board. Lower ones have waited longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Waiting consumers and what they wait for. `R` is what the caller needs to answer them.
#[derive(Debug)]
pub struct Board<R> {
    next_ticket: u64,
    waiting: BTreeMap<Ticket, Waiting<R>>,
    deadlines: BTreeSet<(Timestamp, Ticket)>,
    /// Shards that had something for a consumer when it came and have not looked at the board
    /// since: until then "nothing there" would be a guess.
    unlooked: BTreeSet<(ShardId, Ticket)>,
    /// Shards that were opened and have not told yet what they have: it may be for anybody.
    expected: BTreeSet<ShardId>,
    by_queue: BTreeMap<Name, ByQueue>,
    /// By shard: the queues that somebody waits for and in which it has something. Kept here so that no shard has to
    /// look at queues that concern nobody.
    meetings: BTreeMap<ShardId, BTreeSet<Name>>,
    /// How many bytes of deliveries may be handed out for now.
    room: u64,
    /// Counts hand-outs; a queue remembers its latest, so that the one served longest ago comes next.
    hand_outs: u64,
}

#[derive(Debug)]
struct Waiting<R> {
    reserve: Reserve,
    reply: R,
    /// How many shards have yet to look for this consumer.
    asked: usize,
}

/// What the board knows of a queue. It is kept while somebody waits for the queue, a shard has
/// something in it, it has a rate, or it was served: else a queue that is empty after each
/// delivery would always seem to have been served longest ago.
#[derive(Debug, Default)]
struct ByQueue {
    waiting: BTreeSet<Ticket>,
    stocked: BTreeSet<ShardId>,
    bucket: Option<TokenBucket>,
    last_hand_out: u64,
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
    pub fn post(&mut self, mut reserve: Reserve, reply: R) -> Posted {
        reserve.max = reserve.max.max(1);
        reserve.queues.sort_unstable();
        reserve.queues.dedup();
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let mut asked: Vec<ShardId> = Vec::new();
        for queue in &reserve.queues {
            let known = self.by_queue.entry(queue.clone()).or_default();
            if known.waiting.is_empty() {
                known.stocked.iter().for_each(|shard| meet(&mut self.meetings, *shard, queue));
            }
            known.waiting.insert(ticket);
            asked.extend(&known.stocked);
        }
        asked.sort_unstable();
        asked.dedup();
        self.deadlines.insert((reserve.until, ticket));
        self.waiting.insert(ticket, Waiting { reserve, reply, asked: asked.len() });
        self.unlooked.extend(asked.iter().map(|shard| (*shard, ticket)));
        Posted { ticket, ask: asked }
    }

    /// Takes a consumer off the board, if it is still there.
    pub fn withdraw(&mut self, ticket: Ticket) -> Option<(Reserve, R)> {
        let waiting = self.waiting.remove(&ticket)?;
        self.deadlines.remove(&(waiting.reserve.until, ticket));
        for queue in &waiting.reserve.queues {
            let known = self.by_queue.get_mut(queue).expect("a waiting consumer stands at its queues");
            known.waiting.remove(&ticket);
            if known.waiting.is_empty() {
                known.stocked.iter().for_each(|shard| part(&mut self.meetings, *shard, queue));
            }
            self.tidy(queue);
        }
        Some((waiting.reserve, waiting.reply))
    }

    /// Takes all consumers off the board.
    pub fn withdraw_all(&mut self) -> Vec<R> {
        let tickets: Vec<Ticket> = self.waiting.keys().copied().collect();
        tickets.into_iter().filter_map(|ticket| self.withdraw(ticket)).map(|(_, reply)| reply).collect()
    }

    /// A shard was opened, and is about to look what it has. Until it has done so, or is
    /// [forgotten](Board::forget_shard), nobody is given up.
    pub fn expect(&mut self, shard: ShardId) {
        self.expected.insert(shard);
    }

    /// Takes off the board all consumers whose time to wait is over, except those for whom some
    /// shard has yet to look.
    pub fn expire(&mut self, now: Timestamp) -> Vec<R> {
        self.expire_unless(now, &BTreeSet::new())
    }

    /// The same, except those who wait for one of these queues, which have more to give.
    pub(crate) fn expire_unless(&mut self, now: Timestamp, giving: &BTreeSet<Name>) -> Vec<R> {
        if !self.expected.is_empty() {
            return Vec::new();
        }
        let over: Vec<Ticket> = self
            .deadlines
            .range(..=(now, Ticket(u64::MAX)))
            .map(|(_, ticket)| *ticket)
            .filter(|ticket| self.waiting[ticket].asked == 0 && !self.waits_for_one_of(*ticket, giving))
            .collect();
        over.into_iter().filter_map(|ticket| self.withdraw(ticket)).map(|(_, reply)| reply).collect()
    }

    /// When the next consumer's time to wait is over.
    pub fn next_deadline(&self) -> Timestamp {
        self.deadlines.first().map_or(Timestamp::NEVER, |(until, _)| *until)
    }

    /// When the time to wait of a consumer is over next, of those for whom it is not over yet.
    /// The others are still there only because some shard has yet to look for them.
    pub fn next_deadline_after(&self, now: Timestamp) -> Timestamp {
        let after = self.deadlines.range((now, Ticket(u64::MAX))..).next();
        after.map_or(Timestamp::NEVER, |(until, _)| *until)
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

    /// How many consumers wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many consumers wait for a queue.
    pub fn waiting_for(&self, queue: &str) -> usize {
        self.by_queue.get(queue).map_or(0, |known| known.waiting.len())
    }

    /// The queues that somebody waits for and in which a shard has said to have something.
    pub(crate) fn meetings(&self, shard: ShardId) -> impl Iterator<Item = &Name> {
        self.meetings.get(&shard).into_iter().flatten()
    }

    fn waits_for_one_of(&self, ticket: Ticket, queues: &BTreeSet<Name>) -> bool {
        let waits = |waiting: &Waiting<R>| waiting.reserve.queues.iter().any(|queue| queues.contains(queue));
        !queues.is_empty() && self.waiting.get(&ticket).is_some_and(waits)
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

    /// When a queue was served last, as a count that rises.
    pub(crate) fn last_hand_out(&self, queue: &str) -> u64 {
        self.by_queue.get(queue).map_or(0, |known| known.last_hand_out)
    }

    /// How long a queue's rate lets nothing out from now on; `None` if it lets something out.
    pub(crate) fn rate_wait(&mut self, queue: &str, now: Timestamp) -> Option<Millis> {
        let wait = self.by_queue.get_mut(queue)?.bucket.as_mut()?.wait(now);
        (wait > Millis::ZERO).then_some(wait)
    }

    /// Whether its rate holds a queue back now.
    pub(crate) fn is_held_back(&self, queue: &str, now: Timestamp) -> bool {
        let bucket = self.by_queue.get(queue).and_then(|known| known.bucket.clone());
        bucket.is_some_and(|mut bucket| bucket.wait(now) > Millis::ZERO)
    }

    /// Asks to hand out one delivery from a queue: granted, or to be tried again so much later.
    pub(crate) fn hand_out(&mut self, queue: &Name, now: Timestamp) -> Result<(), Millis> {
        let known = self.by_queue.get_mut(queue).expect("somebody waits for this queue");
        if let Some(bucket) = &mut known.bucket {
            bucket.take(now)?;
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
            if !known.waiting.is_empty() {
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
    }

    /// A queue was deleted from a shard.
    pub(crate) fn forget_queue(&mut self, shard: ShardId, queue: &Name) {
        if let Some(known) = self.by_queue.get_mut(queue) {
            known.stocked.remove(&shard);
            part(&mut self.meetings, shard, queue);
            known.bucket = None;
            known.last_hand_out = 0;
            self.tidy(queue);
        }
    }

    /// Gives a queue a rate, or takes it away.
    pub(crate) fn limit(&mut self, queue: &Name, rate: Option<Rate>) {
        match rate {
            Some(rate) => {
                let known = self.by_queue.entry(queue.clone()).or_default();
                if known.bucket.as_ref().is_none_or(|bucket| bucket.rate() != rate) {
                    known.bucket = Some(TokenBucket::new(rate));
                }
            }
            None => {
                if let Some(known) = self.by_queue.get_mut(queue) {
                    known.bucket = None;
                    self.tidy(queue);
                }
            }
        }
    }

    fn tidy(&mut self, queue: &Name) {
        let known = &self.by_queue[queue];
        let idle = known.waiting.is_empty() && known.stocked.is_empty() && known.bucket.is_none();
        if idle && known.last_hand_out == 0 {
            self.by_queue.remove(queue);
        }
    }
}

/// A queue that somebody waits for has something.
fn meet(meetings: &mut BTreeMap<ShardId, BTreeSet<Name>>, shard: ShardId, queue: &Name) {
    meetings.entry(shard).or_default().insert(queue.clone());
}

/// It has nothing any more, or nobody waits.
fn part(meetings: &mut BTreeMap<ShardId, BTreeSet<Name>>, shard: ShardId, queue: &Name) {
    if let Some(queues) = meetings.get_mut(&shard) {
        queues.remove(queue);
        if queues.is_empty() {
            meetings.remove(&shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn reserve(queues: &[&str], until: u64) -> Reserve {
        Reserve {
            queues: queues.iter().map(|queue| name(queue)).collect(),
            max: 1,
            lease: None,
            until: Timestamp::from_millis(until),
            consumer: name("c"),
            choice: Choice::InTurn,
        }
    }

    #[test]
    fn the_longest_waiting_comes_first_at_each_of_its_queues() {
        let mut board = Board::default();
        let first = board.post(reserve(&["a", "b"], 10), 'x').ticket;
        let second = board.post(reserve(&["b"], 10), 'y').ticket;
        assert_eq!(board.longest_waiting("b"), Some(first));
        assert_eq!(board.withdraw(first).map(|(_, reply)| reply), Some('x'));
        assert_eq!(board.longest_waiting("b"), Some(second));
        assert_eq!(board.longest_waiting("a"), None);
    }

    #[test]
    fn a_consumer_is_not_given_up_before_the_shards_it_was_sent_to_have_looked() {
        let mut board = Board::default();
        let shard = ShardId(3);
        board.stock(shard, &name("a"), true);
        let posted = board.post(reserve(&["a"], 10), 'x');
        assert_eq!(posted.ask, [shard]);
        assert_eq!(board.expire(Timestamp::from_millis(10)), []);
        board.looked(shard, &BTreeSet::new());
        assert_eq!(board.expire(Timestamp::from_millis(9)), []);
        assert_eq!(board.expire(Timestamp::from_millis(10)), ['x']);
    }

    #[test]
    fn nobody_is_given_up_before_all_shards_that_were_opened_have_looked_or_are_gone() {
        let mut board = Board::default();
        board.post(reserve(&["a"], 10), 'x');
        board.expect(ShardId(0));
        board.expect(ShardId(1));
        assert_eq!(board.post(reserve(&["b"], 10), 'y').ask, []);
        assert_eq!(board.expire(Timestamp::from_millis(10)), []);
        board.looked(ShardId(0), &BTreeSet::new());
        assert_eq!(board.expire(Timestamp::from_millis(10)), []);
        board.forget_shard(ShardId(1));
        assert_eq!(board.expire(Timestamp::from_millis(10)), ['x', 'y']);
    }

    #[test]
    fn nothing_is_kept_for_queues_nobody_asks_for() {
        let mut board = Board::default();
        let ticket = board.post(reserve(&["a", "b"], 10), ()).ticket;
        board.stock(ShardId(0), &name("c"), true);
        board.stock(ShardId(0), &name("c"), false);
        board.withdraw(ticket);
        assert!(board.by_queue.is_empty() && board.meetings.is_empty() && board.deadlines.is_empty());
    }

    #[test]
    fn a_queue_that_was_served_is_remembered_until_it_is_deleted() {
        let mut board = Board::default();
        let ticket = board.post(reserve(&["a"], 10), ()).ticket;
        assert_eq!(board.hand_out(&name("a"), Timestamp::ZERO), Ok(()));
        board.withdraw(ticket);
        assert!(board.last_hand_out("a") > 0);
        board.forget_queue(ShardId(0), &name("a"));
        assert!(board.by_queue.is_empty());
    }

    #[test]
    fn a_rate_smooths_what_is_handed_out() {
        let mut board = Board::default();
        let queue = name("a");
        board.limit(&queue, Some(Rate { per_second: 10, burst: 1 }));
        board.post(reserve(&["a"], 10), ());
        assert_eq!(board.hand_out(&queue, Timestamp::from_millis(1_000)), Ok(()));
        assert_eq!(board.hand_out(&queue, Timestamp::from_millis(1_000)), Err(Millis(100)));
    }
}
