//! The side of lending where deliveries are: remembers who wants what, and tells them in turn when there is something.
//!
//! A queue is watched on the board while somebody wants it who was not told of it: then a shard that has something to
//! give, which nobody here takes, offers it ([`Board::take_offers`]). One is told for each offer, another one a moment later if
//! there is still something: a single delivery does not call the consumers of all nodes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use punctual_core::store::ShardId;
use punctual_core::{Board, Delivery, Millis, Name, Ticket, Timestamp};

use super::Consequences;
use crate::links::LinkId;
use crate::message::{Loan, Message};

/// After so long somebody else is told of what is still there.
const HEAD_START: Millis = Millis(5);

/// How long a queue is left alone, at most, that has something and gave nothing to who came for it.
const LONGEST_PAUSE: Millis = Millis(256);

#[derive(Debug, Default)]
pub(super) struct Borrower {
    queues: BTreeMap<Name, Wanted>,
    /// The queues that are wanted on a link.
    by_link: BTreeMap<LinkId, BTreeSet<Name>>,
    /// What was asked for and not answered, because the shards here have not said yet what they have.
    unanswered: BTreeMap<LinkId, BTreeSet<Name>>,
    guests: BTreeMap<(LinkId, u64), Guest>,
    /// When to watch a queue again.
    timers: BTreeSet<(Timestamp, Name)>,
}

/// A queue that other nodes want.
#[derive(Debug, Default)]
struct Wanted {
    /// Who is to be told when there is something, the next one first.
    untold: VecDeque<LinkId>,
    /// Who was told, and may come at any time.
    told: BTreeSet<LinkId>,
    /// How many loans in a row got nothing although there was something.
    vain: u32,
}

#[derive(Debug)]
struct Guest {
    ticket: Ticket,
    queues: Vec<Name>,
}

impl Borrower {
    pub fn is_alone(&self) -> bool {
        self.by_link.is_empty() && self.guests.is_empty() && self.timers.is_empty()
    }

    pub fn wakes_at(&self) -> Timestamp {
        self.timers.first().map_or(Timestamp::NEVER, |(at, _)| *at)
    }

    pub fn wanted(&mut self, on: LinkId, queues: Vec<Name>) {
        self.by_link.entry(on).or_default().extend(queues.iter().cloned());
        self.unanswered.entry(on).or_default().extend(queues);
    }

    pub fn unwanted<R>(&mut self, on: LinkId, queues: &[Name], board: &mut Board<R>) {
        let wanted = self.by_link.get_mut(&on);
        let unanswered = self.unanswered.get_mut(&on);
        for list in [wanted, unanswered].into_iter().flatten() {
            queues.iter().for_each(|queue| _ = list.remove(queue));
        }
        if self.by_link.get(&on).is_some_and(BTreeSet::is_empty) {
            self.by_link.remove(&on);
        }
        queues.iter().for_each(|queue| self.leave(on, queue, board));
    }

    pub fn left<R>(&mut self, on: LinkId, board: &mut Board<R>, then: &mut Consequences<R>) {
        self.unanswered.remove(&on);
        for queue in self.by_link.remove(&on).unwrap_or_default() {
            self.leave(on, &queue, board);
        }
        let all = (on, 0)..=(on, u64::MAX);
        let guests: Vec<(LinkId, u64)> = self.guests.range(all).map(|(guest, _)| *guest).collect();
        guests.into_iter().for_each(|(on, id)| self.recalled(on, id, board, then));
    }

    fn leave<R>(&mut self, on: LinkId, queue: &Name, board: &mut Board<R>) {
        let Some(wanted) = self.queues.get_mut(queue) else { return };
        wanted.told.remove(&on);
        wanted.untold.retain(|link| *link != on);
        if wanted.untold.is_empty() {
            board.unwatch(queue);
        }
        if wanted.told.is_empty() && wanted.untold.is_empty() {
            self.queues.remove(queue);
        }
    }

    /// A guest comes; says which shards should look for it.
    pub fn lent<R>(
        &mut self,
        on: LinkId,
        id: u64,
        loan: Loan,
        reply: R,
        board: &mut Board<R>,
        now: Timestamp,
    ) -> Vec<ShardId> {
        let queues = loan.queues.clone();
        let posted = board.host(loan.into_reserve(now), reply);
        self.guests.insert((on, id), Guest { ticket: posted.ticket, queues });
        posted.ask
    }

    /// A guest goes. If it is being served just now, what it gets goes back when that is known.
    pub fn recalled<R>(&mut self, on: LinkId, id: u64, board: &mut Board<R>, then: &mut Consequences<R>) {
        if let Some(guest) = self.guests.remove(&(on, id)) {
            then.gone.extend(board.withdraw(guest.ticket).map(|(_, reply)| reply));
        }
    }

    pub fn answered<R>(
        &mut self,
        on: LinkId,
        id: u64,
        deliveries: Vec<Delivery>,
        board: &mut Board<R>,
        now: Timestamp,
        then: &mut Consequences<R>,
    ) {
        let Some(Guest { queues, .. }) = self.guests.remove(&(on, id)) else {
            then.unwanted.extend(deliveries);
            return;
        };
        let is_in_vain = deliveries.is_empty();
        for delivery in &deliveries {
            self.queues.entry(delivery.queue.clone()).and_modify(|wanted| wanted.vain = 0);
        }
        let empty: Vec<Name> = queues.into_iter().filter(|queue| is_in_vain || !board.is_stocked(queue)).collect();
        for queue in &empty {
            let Some(wanted) = self.queues.get_mut(queue) else { continue };
            if !wanted.told.remove(&on) {
                continue;
            }
            wanted.untold.push_back(on);
            // It is stocked, and yet gave nothing: its shards cannot give for now, and will say that they can.
            if is_in_vain && board.is_stocked(queue) {
                let pause = Millis(1 << wanted.vain.min(8)).min(LONGEST_PAUSE);
                wanted.vain = wanted.vain.saturating_add(1);
                self.timers.insert((now.plus(pause), queue.clone()));
            } else {
                then.look.extend(board.watch(queue));
            }
        }
        then.reply.push((on, Message::Served { id, deliveries, empty }));
    }

    /// Sees to what has changed on the board, and to the time.
    pub fn look<R>(&mut self, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) {
        if !self.unanswered.is_empty() && board.knows_its_stock() {
            for (on, queues) in std::mem::take(&mut self.unanswered) {
                self.tell_stock(on, queues, board, then);
            }
        }
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            let (_, queue) = self.timers.pop_first().expect("it was just there");
            if self.queues.get(&queue).is_some_and(|wanted| !wanted.untold.is_empty()) {
                then.look.extend(board.watch(&queue));
            }
        }
        for queue in board.take_offers() {
            self.tell_next(queue, now, then);
        }
    }

    /// Answers to a node that wants queues.
    fn tell_stock<R>(&mut self, on: LinkId, queues: BTreeSet<Name>, board: &mut Board<R>, then: &mut Consequences<R>) {
        for queue in &queues {
            let wanted = self.queues.entry(queue.clone()).or_default();
            wanted.untold.retain(|link| *link != on);
            wanted.told.remove(&on);
            if board.is_stocked(queue) {
                wanted.told.insert(on);
            } else {
                wanted.untold.push_back(on);
                board.watch(queue);
            }
        }
        let (full, empty): (Vec<Name>, Vec<Name>) = queues.into_iter().partition(|queue| board.is_stocked(queue));
        for (queues, is_stocked) in [(full, true), (empty, false)].into_iter().filter(|(queues, _)| !queues.is_empty())
        {
            then.reply.push((on, Message::Stocked { queues, is_stocked }));
        }
    }

    /// There is something in a queue: tells one of those who want to know.
    fn tell_next<R>(&mut self, queue: Name, now: Timestamp, then: &mut Consequences<R>) {
        let Some(wanted) = self.queues.get_mut(&queue) else { return };
        let Some(next) = wanted.untold.pop_front() else { return };
        wanted.told.insert(next);
        if !wanted.untold.is_empty() {
            self.timers.insert((now.plus(HEAD_START), queue.clone()));
        }
        then.reply.push((next, Message::Stocked { queues: vec![queue], is_stocked: true }));
    }
}
