//! Handing out: ready deliveries meet waiting consumers.
//!
//! The consumer that has waited longest comes first; among its queues the one that was served
//! longest ago, so that none starves, or the one whose first is the foremost, if it asked for that;
//! within a queue strictly by priority, time and arrival, or by priority and arrival.

use std::collections::{BTreeMap, BTreeSet};

use super::Shard;
use super::desk::Slot;
use super::directory::QueueIndex;
use super::ready::ReadySet;
use crate::answer::{Answer, Delivery};
use crate::board::{Board, Choice, Reserve, Ticket};
use crate::name::Name;
use crate::settings::Order;
use crate::store::Position;
use crate::time::Timestamp;
use crate::written::written;

/// How many rows that go with a deletion are cleared away in one step on the way to those that are handed out.
const CLEARED: usize = 256;

impl<R> Shard<R> {
    /// Gives waiting consumers what is ready, and lets go of those whose time to wait is over by `time`: that of
    /// the clock by which they wait, which need not be the shard's.
    pub fn serve(&mut self, board: &mut Board<R>, time: Timestamp) {
        self.stock.begin_serving(board, self.id());
        let mut order = self.servable(board);
        let mut shares = Shares::new(self.hand_outs(), order.len());
        while let Some((ticket, _)) = order.pop_first() {
            let deliveries = self.hand_to(ticket, board, &mut shares);
            if deliveries.is_empty() {
                // The queue has nothing to give for now, so nobody else gets anything from it either.
                continue;
            }
            let (reserve, reply) = board.withdraw(ticket).expect("the consumer waits");
            self.draft.answer(reply, Ok(Answer::Reserved(deliveries)));
            // It may have been the first in line at several queues: at each of them the next one steps up.
            for queue in reserve.queues {
                let next = board.longest_waiting(&queue).filter(|_| self.may_serve(&queue));
                let place = (ticket, queue);
                order.remove(&place);
                order.extend(next.map(|ticket| (ticket, place.1)));
            }
        }
        self.stock.tell(board, self.id());
        self.offer(board);
        // Who may get something in the step that follows at once is not sent away before it.
        if self.timers.have_caught_up(self.now) {
            board.looked(self.id(), self.stock.giving());
            for reply in board.expire_unless(time, self.stock.giving()) {
                self.draft.answer(reply, Ok(Answer::Reserved(vec![])));
            }
        }
    }

    /// The longest-waiting consumer of each queue that has something to give.
    pub(super) fn servable(&self, board: &Board<R>) -> BTreeSet<(Ticket, Name)> {
        if self.hand_outs() == 0 {
            return BTreeSet::new();
        }
        let both = board.meetings(self.id()).filter(|queue| self.may_serve(queue));
        both.filter_map(|queue| Some((board.longest_waiting(queue)?, queue.clone()))).collect()
    }

    fn may_serve(&self, queue: &Name) -> bool {
        let queue = self.directory.queue_index(queue).map(|index| self.directory.queue(index));
        queue.is_some_and(|queue| !queue.ready.is_empty() && queue.closing.is_none() && !queue.is_paused(self.now))
    }

    /// Lets other nodes know what nobody here takes, if they want to.
    fn offer(&mut self, board: &mut Board<R>) {
        let may_give = self.hand_outs() > 0;
        let watched: Vec<Name> =
            board.watched(self.id()).filter(|queue| may_give && self.may_serve(queue)).cloned().collect();
        for queue in watched {
            match board.rate_wait(&queue, self.now) {
                Some(wait) => self.stock.hold_back(self.now.plus(wait)),
                None => board.offer(&queue),
            }
        }
    }

    /// Leases to a consumer as much as it asked for and is there, within what its queues may give in one step.
    fn hand_to(&mut self, ticket: Ticket, board: &mut Board<R>, shares: &mut Shares) -> Vec<Delivery> {
        let reserve = board.reserve(ticket).clone();
        let queues = reserve.queues.iter().filter(|queue| self.may_serve(queue));
        let mut queues: Vec<(&Name, QueueIndex)> =
            queues.filter_map(|queue| Some((queue, self.directory.queue_index(queue)?))).collect();
        // Room for what there is, not for what is asked for: many ask for thousands and get one.
        let ready = queues.iter().map(|(_, index)| self.directory.queue(*index).ready.len() as usize).sum();
        let mut deliveries = Vec::with_capacity(reserve.max.min(ready).min(self.config.hand_outs));
        let mut left = Left { bytes: self.config.answer_bytes, is_first: true };
        while deliveries.len() < reserve.max {
            let next = match queues.len() {
                0 => break,
                1 => 0,
                _ if reserve.choice == Choice::Foremost => self.foremost(&queues),
                _ => longest_unserved(&queues, board),
            };
            let (queue, index) = queues[next];
            if !shares.has_some(index) {
                self.stock.keep_giving(queue);
                // Whoever wants the foremost of all does not get one of another queue before it.
                if reserve.choice == Choice::Foremost {
                    break;
                }
                queues.remove(next);
                continue;
            }
            match self.hand_out(queue, index, &reserve, board, left, shares) {
                Handed::Out(delivery, bytes) => {
                    shares.take(index);
                    left.take(bytes);
                    deliveries.push(*delivery);
                }
                Handed::TooMuch => break,
                Handed::Nothing => {
                    // It is at hand in the step that follows at once, and until then nothing comes before it.
                    if reserve.choice == Choice::Foremost && self.stock.giving().contains(queue) {
                        break;
                    }
                    queues.remove(next);
                }
            }
        }
        deliveries
    }

    /// Which of several queues has the first of all that they have: by arrival if all of them are ordered so,
    /// else by time.
    fn foremost(&self, queues: &[(&Name, QueueIndex)]) -> usize {
        let sets = || queues.iter().map(|(_, index)| &self.directory.queue(*index).ready).enumerate();
        let by_arrival = sets().all(|(_, ready)| ready.is_empty() || ready.order() == Order::Arrival);
        let first = |(place, ready): (usize, &ReadySet)| {
            let (priority, position) = ready.first()?;
            let at = if by_arrival { Timestamp::ZERO } else { position.at };
            Some((priority, at, position.seq, place))
        };
        sets().filter_map(first).min().map_or(0, |(_, _, _, place)| place)
    }

    /// Leases the next delivery of a queue, if it is in memory, the queue's rate allows it, and there is room for it in
    /// the consumer's answer and among all answers.
    fn hand_out(
        &mut self,
        queue: &Name,
        index: QueueIndex,
        reserve: &Reserve,
        board: &mut Board<R>,
        left: Left,
        shares: &mut Shares,
    ) -> Handed {
        // First of all: nothing is read for a queue that its rate holds back, so it is not waited for either.
        if let Some(wait) = board.rate_wait(queue, self.now) {
            self.stock.hold_back(self.now.plus(wait));
            return Handed::Nothing;
        }
        let Some(position) = self.next_in(index, shares) else { return Handed::Nothing };
        debug_assert!(
            self.desk.by_seq(position.seq).is_none_or(|slot| self.desk[slot].is_awake_at(position)),
            "a row leaves the ready set when it moves"
        );
        // What is too old goes in the next step, if so much became too old at once that this one left it.
        let fresh = |slot: &Slot| self.now < self.desk[*slot].state.expires_at();
        let at_hand = self.desk.at(position);
        let Some(slot) = at_hand.filter(fresh).filter(|slot| self.desk.has_body(*slot)) else {
            // Without room it may take a while until it goes.
            if self.may_grow() || at_hand.is_none_or(|slot| self.now < self.desk[slot].state.expires_at()) {
                self.stock.keep_giving(queue);
            }
            return Handed::Nothing;
        };
        let body = self.desk[slot].body().expect("it was looked for");
        let fits = |bytes: usize| left.has_room(bytes) && board.has_room(bytes, left.is_first);
        // What is too long as it is stored is not counted in every step in which it waits for room.
        let Some(bytes) = Some(body).filter(|body| fits(body.len())).map(written).filter(|bytes| fits(*bytes)) else {
            return Handed::TooMuch;
        };
        // Nothing stands in its way any more: only what leaves counts for the rate and fills the answers.
        board.hand_out(queue, self.now).expect("its rate was asked");
        board.fill(bytes);
        Handed::Out(Box::new(self.lease(slot, index, &reserve.consumer, reserve.lease)), bytes)
    }

    /// The next delivery of a queue. Those whose topics are being deleted are cleared away on the way to it, but only so
    /// many in a step: if there are more, the queue gives what comes after them in the step that follows at once.
    fn next_in(&mut self, index: QueueIndex, shares: &mut Shares) -> Option<Position> {
        loop {
            let (_, position) = self.directory.queue(index).ready.first()?;
            let Some(slot) = self.desk.at(position).filter(|slot| self.going(*slot).is_some()) else {
                return Some(position);
            };
            if shares.clearings == 0 {
                self.stock.keep_giving(&self.directory.queue(index).name);
                return None;
            }
            shares.clearings -= 1;
            self.clear_up(slot);
        }
    }
}

/// What came of trying to hand out a queue's next delivery.
enum Handed {
    /// A delivery, and how many bytes of an answer it takes.
    Out(Box<Delivery>, usize),
    /// The consumer has enough, or all answers together have.
    TooMuch,
    Nothing,
}

/// What a consumer's answer has room for.
#[derive(Clone, Copy)]
struct Left {
    bytes: usize,
    is_first: bool,
}

impl Left {
    fn has_room(self, bytes: usize) -> bool {
        self.is_first || bytes <= self.bytes
    }

    fn take(&mut self, bytes: usize) {
        *self = Left { bytes: self.bytes.saturating_sub(bytes), is_first: false };
    }
}

/// How much may still be handed out in a step, in all and from each queue. Queues share a step, so that one from
/// which much is taken does not hold up the others; what is left over is handed out in the steps that follow at once.
struct Shares {
    left: usize,
    most: usize,
    taken: BTreeMap<QueueIndex, usize>,
    /// How many rows that go with a deletion may still be cleared away.
    clearings: usize,
}

impl Shares {
    fn new(in_all: usize, queues: usize) -> Shares {
        let most = (in_all / queues.max(1)).max(in_all / 32).max(1);
        Shares { left: in_all.max(1), most, taken: BTreeMap::new(), clearings: CLEARED }
    }

    fn has_some(&self, queue: QueueIndex) -> bool {
        self.left > 0 && self.taken.get(&queue).is_none_or(|taken| *taken < self.most)
    }

    fn take(&mut self, queue: QueueIndex) {
        self.left -= 1;
        *self.taken.entry(queue).or_default() += 1;
    }
}

/// Which of several queues was served longest ago.
fn longest_unserved<R>(queues: &[(&Name, QueueIndex)], board: &Board<R>) -> usize {
    let served = queues.iter().enumerate().map(|(index, (queue, _))| (board.last_hand_out(queue), index));
    served.min().map_or(0, |(_, index)| index)
}
