//! Handing out: ready deliveries meet waiting consumers.
//!
//! The consumer that has waited longest comes first; among its queues the one that was served
//! longest ago, so that none starves, or the one whose first is the foremost, if it asked for that;
//! within a queue strictly by priority, time and arrival, or by priority and arrival.

use std::collections::BTreeSet;

use super::Shard;
use super::desk::Slot;
use super::directory::QueueIndex;
use super::ready::ReadySet;
use crate::answer::{Answer, Delivery, Lease};
use crate::board::{Board, Choice, Reserve, Ticket};
use crate::event::What;
use crate::name::Name;
use crate::settings::Order;
use crate::state::Phase;
use crate::task::{Content, unpack};
use crate::time::{Millis, Timestamp};

/// For how long those who wait for nothing are kept while a shard that was just opened reads what is overdue.
const PATIENCE: Millis = Millis::from_secs(5);

impl<R> Shard<R> {
    /// Gives waiting consumers what is ready, and lets go of those whose time to wait is over.
    pub fn serve(&mut self, board: &mut Board<R>) {
        for queue in std::mem::take(&mut self.forgotten) {
            board.forget_queue(self.id, &queue);
        }
        for (queue, rate) in std::mem::take(&mut self.limited) {
            board.limit(&queue, rate);
        }
        self.hungry = false;
        self.rate_wake = Timestamp::NEVER;
        let mut order = self.servable(board);
        while let Some((ticket, queue)) = order.pop_first() {
            let deliveries = self.hand_to(ticket, board);
            if deliveries.is_empty() {
                // The queue has nothing to give for now, so nobody else gets anything from it either.
                continue;
            }
            let (reserve, reply) = board.withdraw(ticket).expect("the consumer waits");
            self.answers.push((reply, Ok(Answer::Reserved(deliveries))));
            order.retain(|(waiting, _)| *waiting != ticket);
            for queue in reserve.queues.iter().chain([&queue]) {
                let next = board.longest_waiting(queue).filter(|_| self.may_serve(queue));
                order.extend(next.map(|ticket| (ticket, queue.clone())));
            }
        }
        for queue in std::mem::take(&mut self.restocked) {
            board.stock(self.id, &queue, self.stocked.contains(&queue));
        }
        // Who may get something in the step that follows at once is not sent away before it.
        if !self.hungry && self.has_caught_up() {
            board.looked(self.id);
            let over = board.expire(self.now).into_iter();
            self.answers.extend(over.map(|reply| (reply, Ok(Answer::Reserved(vec![])))));
        }
    }

    /// Whether everything that was due when the shard was opened was read and has fired: until then "nothing
    /// there" would be a guess. If that takes long, those who wait hear the guess.
    fn has_caught_up(&mut self) -> bool {
        if !self.is_catching_up {
            return true;
        }
        let overdue = self.wheel.next_at().is_some_and(|at| at <= self.opened_at.as_millis());
        let is_through = !overdue && self.horizon.at > self.opened_at;
        self.is_catching_up = !is_through && self.now < self.opened_at.plus(PATIENCE);
        !self.is_catching_up
    }

    /// The longest-waiting consumer of each queue that has something to give.
    fn servable(&self, board: &Board<R>) -> BTreeSet<(Ticket, Name)> {
        let both = self.wanted_and_stocked(board).filter(|queue| self.may_serve(queue));
        both.filter_map(|queue| Some((board.longest_waiting(queue)?, queue.clone()))).collect()
    }

    /// The queues that somebody waits for and that have something; the shorter list is walked.
    pub(super) fn wanted_and_stocked<'a>(&'a self, board: &'a Board<R>) -> impl Iterator<Item = &'a Name> {
        let (wanted, stocked) = (board.wanted(), &self.stocked);
        let (few, many) = if wanted.len() < stocked.len() { (wanted, stocked) } else { (stocked, wanted) };
        few.iter().filter(|queue| many.contains(*queue))
    }

    fn may_serve(&self, queue: &Name) -> bool {
        let queue = self.directory.queue_index(queue).map(|index| self.directory.queue(index));
        queue.is_some_and(|queue| !queue.ready.is_empty() && !queue.closing && !queue.is_paused(self.now))
    }

    /// Leases to a consumer as much as it asked for and is there.
    fn hand_to(&mut self, ticket: Ticket, board: &mut Board<R>) -> Vec<Delivery> {
        let reserve = board.reserve(ticket).clone();
        let queues = reserve.queues.iter().filter(|queue| self.may_serve(queue));
        let mut queues: Vec<(&Name, QueueIndex)> =
            queues.filter_map(|queue| Some((queue, self.directory.queue_index(queue)?))).collect();
        let ready = queues.iter().map(|(_, index)| self.directory.queue(*index).ready.len() as usize).sum();
        let mut deliveries = Vec::with_capacity(reserve.max.min(ready));
        while deliveries.len() < reserve.max {
            let next = match queues.len() {
                0 => break,
                1 => 0,
                _ if reserve.choice == Choice::Foremost => self.foremost(&queues),
                _ => longest_unserved(&queues, board),
            };
            let (queue, index) = queues[next];
            match self.hand_out(queue, index, &reserve, board) {
                Some(delivery) => deliveries.push(delivery),
                // It is at hand in the step that follows at once, and until then nothing comes before it.
                None if self.hungry && reserve.choice == Choice::Foremost => break,
                None => _ = queues.remove(next),
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

    /// Leases the next delivery of a queue, if it is in memory and the queue's rate allows it.
    fn hand_out(
        &mut self,
        queue: &Name,
        index: QueueIndex,
        reserve: &Reserve,
        board: &mut Board<R>,
    ) -> Option<Delivery> {
        let (_, position) = self.directory.queue(index).ready.first()?;
        debug_assert!(
            self.desk.by_seq(position.seq).is_none_or(|slot| self.desk[slot].is_awake_at(position)),
            "a row leaves the ready set when it moves"
        );
        // What is too old goes in the next step, if so much became too old at once that this one left it.
        let fresh = |slot: &Slot| self.now < self.desk[*slot].state.expires_at();
        let Some(slot) = self.desk.at(position).filter(fresh).filter(|slot| self.has_body(*slot)) else {
            self.hungry = true;
            return None;
        };
        if let Err(wait) = board.hand_out(queue, self.now) {
            self.rate_wake = self.rate_wake.min(self.now.plus(wait));
            return None;
        }
        Some(self.lease(slot, index, &reserve.consumer, reserve.lease))
    }

    /// Whether a row's body is in memory. A delivery's is its task's.
    pub(super) fn has_body(&mut self, slot: Slot) -> bool {
        if self.desk[slot].body.is_none() && self.desk[slot].is_part() {
            let task = self.desk.by_key(&self.desk[slot].key.of_task());
            self.desk[slot].body = task.and_then(|task| self.desk[task].body.clone());
        }
        self.desk[slot].body.is_some()
    }

    /// Gives a waiting row whose time has come to a consumer.
    pub(super) fn lease(&mut self, slot: Slot, queue: QueueIndex, consumer: &Name, lease: Option<Millis>) -> Delivery {
        let fired_at = self.desk[slot].at.max(self.opened_at);
        self.leave_ready(slot);
        self.touch(slot);
        let token = self.numbers.token();
        let queue = self.directory.queue(queue);
        let state = &mut self.desk[slot].state;
        let time = lease.or(state.lease).unwrap_or(queue.settings.lease);
        let until = self.now.plus(time.max(Millis(1)));
        state.phase = Phase::Leased { token, holder: consumer.clone() };
        state.queue = Some(queue.name.clone());
        state.attempts += 1;
        let (holder, attempt) = (consumer.clone(), state.attempts);
        self.hold_until(slot, until);
        self.note(slot, What::Leased { holder, attempt, until });
        let row = &self.desk[slot];
        let Content { form, headers, body } = unpack(row.body.as_ref().expect("it was looked for"));
        Delivery {
            topic: self.directory.topic(row.topic).name.clone(),
            id: Name::stored(row.key.id()),
            queue: row.state.queue.clone().expect("it was just set"),
            number: row.seq,
            body,
            form,
            headers,
            routing_key: row.state.routing_key.clone(),
            key: row.group.clone(),
            priority: row.state.priority,
            attempt: row.state.attempts,
            scheduled_at: row.state.scheduled_at,
            due: row.state.due,
            fired_at,
            lease: Lease { key: row.key.clone(), token },
            until,
        }
    }
}

/// Which of several queues was served longest ago.
fn longest_unserved<R>(queues: &[(&Name, QueueIndex)], board: &Board<R>) -> usize {
    let served = queues.iter().enumerate().map(|(index, (queue, _))| (board.last_hand_out(queue), index));
    served.min().map_or(0, |(_, index)| index)
}
