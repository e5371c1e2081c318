//! The side of lending where consumers wait: tells others what is wanted, and lends to who has something.
//!
//! What others have is noted on the board ([`Board::hear`]), because nobody may be sent away before it is known. Memory
//! goes with the queues that were waited for lately, times the links; nothing is said twice of one of them.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::{Board, Delivery, Elsewhere, Millis, Name, Ticket, Timestamp};

use super::Consequences;
use crate::links::LinkId;
use crate::message::{Loan, Message};

/// How often it is seen whether a queue is still wanted: one for which nobody has come for so long is not. Whoever
/// asks again and again without waiting does so more often, and costs no words.
const WANTED_FOR: Millis = Millis(10_000);

/// How long nothing is lent on a link on which too much waits.
const REST: Millis = Millis(100);

/// How long a node may leave a word unanswered before nobody is kept because of it.
const SILENCE: Millis = Millis(1_000);

/// How long a loan may last. A node that takes longer has trouble of its own: who is lent to it comes back, and it
/// is left alone for as long again.
const LONGEST_LOAN: Millis = Millis(5_000);

/// How many consumers of a queue are lent on one link at once, at most.
const MOST: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Lender {
    links: BTreeMap<LinkId, Linked>,
    /// Links on which too much waits, and when to go on.
    resting: BTreeSet<(Timestamp, LinkId)>,
    /// The queues of which others were told, and when to see whether they are still wanted.
    wanted: BTreeSet<(Timestamp, Name)>,
    /// Who is lent, and by which loan.
    lent: BTreeMap<Ticket, (LinkId, u64)>,
    /// Queues of which more may be lent than before.
    eased: BTreeSet<Name>,
    /// The number of the next loan.
    next: u64,
}

/// What goes on on one link.
#[derive(Debug, Default)]
struct Linked {
    windows: BTreeMap<Name, Window>,
    /// In the order in which they were made.
    loans: BTreeMap<u64, Out>,
    /// Since when it was asked what it has and has said nothing.
    asked_at: Option<Timestamp>,
    /// It is not waited for until it says something.
    is_silent: bool,
}

/// How much of a queue is lent on one link at once. It begins with one, so that a single delivery does not draw all idle
/// consumers to its node, and doubles with each that is served, so that many deliveries do.
#[derive(Debug)]
struct Window {
    most: usize,
    out: usize,
    /// When somebody was lent last, in hand-outs of the board.
    last: u64,
}

impl Default for Window {
    fn default() -> Self {
        Window { most: 1, out: 0, last: 0 }
    }
}

/// Somebody who is lent.
#[derive(Debug)]
struct Out {
    ticket: Ticket,
    since: Timestamp,
    /// The queue for which this was done; it may be served from another one of its queues.
    queue: Name,
}

/// What somebody got who was lent.
pub(super) struct Service {
    pub id: u64,
    pub deliveries: Vec<Delivery>,
    /// The queues that have nothing left.
    pub empty: Vec<Name>,
}

impl Lender {
    pub fn is_alone(&self) -> bool {
        self.links.is_empty() && self.resting.is_empty()
    }

    pub fn wakes_at(&self) -> Timestamp {
        let wanted = self.wanted.first().map_or(Timestamp::NEVER, |(at, _)| *at);
        let resting = self.resting.first().map_or(Timestamp::NEVER, |(at, _)| *at);
        self.links.values().map(Linked::wakes_at).fold(wanted.min(resting), Timestamp::min)
    }

    pub fn linked<R>(&mut self, on: LinkId, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) {
        if self.is_alone() {
            board.listen(true);
        }
        let queues: Vec<Name> = self.wanted.iter().map(|(_, queue)| queue.clone()).collect();
        self.links.entry(on).or_default().want(on, &queues, board, now, then);
    }

    pub fn unlinked<R>(&mut self, on: LinkId, board: &mut Board<R>, then: &mut Consequences<R>) {
        self.resting.retain(|(_, link)| *link != on);
        self.let_go(on, board, then);
        if self.is_alone() {
            board.listen(false);
            std::mem::take(&mut self.wanted).iter().for_each(|(_, queue)| board.want(queue, false));
        }
    }

    /// Too much waits on a link. Who was lent on it comes back; should it get something all the same, that goes back.
    pub fn is_full<R>(&mut self, on: LinkId, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) {
        self.rest(on, REST, board, now, then);
    }

    /// Lends nothing on a link for so long, and asks anew after it.
    fn rest<R>(
        &mut self,
        on: LinkId,
        length: Millis,
        board: &mut Board<R>,
        now: Timestamp,
        then: &mut Consequences<R>,
    ) {
        if self.links.contains_key(&on) {
            self.resting.insert((now.plus(length), on));
            self.let_go(on, board, then);
        }
    }

    /// Minds those who take too long to answer.
    fn mind_the_slow<R>(&mut self, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) {
        let mut slow = Vec::new();
        for (on, link) in self.links.iter_mut().filter(|(_, link)| link.wakes_at() <= now) {
            if link.loans.values().next().is_some_and(|out| out.since.plus(LONGEST_LOAN) <= now) {
                slow.push(*on);
                then.say.extend(link.loans.keys().map(|id| (*on, Message::Recall { id: *id })));
            }
            (link.asked_at, link.is_silent) = (None, true);
            self.wanted.iter().for_each(|(_, queue)| board.stop_awaiting(there(*on), queue));
        }
        for on in slow {
            self.rest(on, LONGEST_LOAN, board, now, then);
        }
    }

    /// Takes back all who are lent on a link.
    fn let_go<R>(&mut self, on: LinkId, board: &mut Board<R>, then: &mut Consequences<R>) {
        let Some(link) = self.links.remove(&on) else { return };
        self.wanted.iter().for_each(|(_, queue)| board.hear(there(on), queue, false));
        for out in link.loans.into_values() {
            self.lent.remove(&out.ticket);
            then.look.extend(board.take_back(out.ticket));
        }
    }

    pub fn stocked<R>(&mut self, on: LinkId, queues: &[Name], is_stocked: bool, board: &mut Board<R>) {
        if let Some(link) = self.links.get_mut(&on) {
            (link.asked_at, link.is_silent) = (None, false);
            queues.iter().for_each(|queue| board.hear(there(on), queue, is_stocked));
        }
    }

    pub fn served<R>(
        &mut self,
        on: LinkId,
        service: Service,
        board: &mut Board<R>,
        now: Timestamp,
        then: &mut Consequences<R>,
    ) {
        let Service { id, deliveries, empty } = service;
        let is_in_vain = deliveries.is_empty();
        let Some(out) = self.links.get_mut(&on).and_then(|link| link.end(id, is_in_vain, &empty)) else {
            // It was recalled.
            then.unwanted.extend(deliveries);
            return;
        };
        self.lent.remove(&out.ticket);
        empty.iter().for_each(|queue| board.hear(there(on), queue, false));
        if is_in_vain {
            then.look.extend(board.take_back(out.ticket));
        } else {
            match board.withdraw(out.ticket) {
                Some((_, reply)) => then.served.push((reply, deliveries)),
                None => then.unwanted.extend(deliveries),
            }
        }
        if is_in_vain && !empty.contains(&out.queue) {
            // It was not understood: what either side thinks of the other is put right by asking anew.
            self.rest(on, LONGEST_LOAN, board, now, then);
        }
        self.eased.insert(out.queue);
    }

    pub fn withdrawn<R>(&mut self, ticket: Ticket, then: &mut Consequences<R>) {
        let Some((on, id)) = self.lent.remove(&ticket) else { return };
        let link = self.links.get_mut(&on).expect("who was lent on a link that is gone came back");
        let out = link.loans.remove(&id).expect("who is lent has a loan");
        if let Some(window) = link.windows.get_mut(&out.queue) {
            window.out -= 1;
        }
        self.eased.insert(out.queue);
        then.say.push((on, Message::Recall { id }));
    }

    /// Sees to what has changed on the board, and to the time.
    pub fn look<R>(&mut self, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) {
        while let Some(entry) = self.resting.first().filter(|(at, _)| *at <= now).copied() {
            self.resting.remove(&entry);
            self.linked(entry.1, board, now, then);
        }
        self.mind_the_slow(board, now, then);
        self.unwant(board, now, then);
        let mut queues = board.take_news();
        queues.append(&mut self.eased);
        let is_new = |queue: &&Name| !board.is_wanted(queue) && board.candidate(queue).is_some();
        let new: Vec<Name> = queues.iter().filter(is_new).cloned().collect();
        self.want(new, board, now, then);
        for queue in &queues {
            while self.lend_one(queue, board, now, then) {}
        }
    }

    /// Tells others of queues for which somebody has come to wait.
    fn want<R>(&mut self, queues: Vec<Name>, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) {
        if queues.is_empty() {
            return;
        }
        for queue in &queues {
            board.want(queue, true);
            self.wanted.insert((now.plus(WANTED_FOR), queue.clone()));
        }
        for (on, link) in &mut self.links {
            link.want(*on, &queues, board, now, then);
        }
    }

    /// Tells others of queues for which nobody has waited for a while.
    fn unwant<R>(&mut self, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) {
        let mut queues = Vec::new();
        while self.wanted.first().is_some_and(|(at, _)| *at <= now) {
            let (_, queue) = self.wanted.pop_first().expect("it was just there");
            if board.is_still_wanted(&queue) {
                self.wanted.insert((now.plus(WANTED_FOR), queue));
            } else {
                board.want(&queue, false);
                self.links.values_mut().for_each(|link| link.forget(&queue));
                queues.push(queue);
            }
        }
        if !queues.is_empty() {
            then.say.extend(self.links.keys().map(|on| (*on, Message::Unwant { queues: queues.clone() })));
        }
    }

    /// Lends the consumer that has waited longest for a queue to the node that was lent one longest ago, if it has
    /// something. If shards here have something for it, too, both sides take turns, so that neither starves.
    fn lend_one<R>(&mut self, queue: &Name, board: &mut Board<R>, now: Timestamp, then: &mut Consequences<R>) -> bool {
        let Some(candidate) = board.candidate(queue) else { return false };
        let open = board.stocked_elsewhere(queue).filter_map(|at| {
            let link = self.links.get(&LinkId(at.0))?;
            let window = link.windows.get(queue);
            let last = window.map_or(0, |window| window.last);
            window.is_none_or(|window| window.out < window.most).then_some((last, LinkId(at.0)))
        });
        let Some((last, on)) = open.min() else { return false };
        if candidate.is_expected_here && last >= board.last_hand_out(queue) {
            return false;
        }
        let (reserve, count) = board.lend(candidate.ticket);
        let loan = Loan::of(reserve);
        let id = self.next;
        self.next += 1;
        let link = self.links.get_mut(&on).expect("it was just there");
        let window = link.windows.entry(queue.clone()).or_default();
        (window.out, window.last) = (window.out + 1, count);
        link.loans.insert(id, Out { ticket: candidate.ticket, since: now, queue: queue.clone() });
        self.lent.insert(candidate.ticket, (on, id));
        then.say.push((on, Message::Lend { id, loan }));
        true
    }
}

impl Linked {
    /// Says which queues are wanted.
    fn want<R>(
        &mut self,
        on: LinkId,
        queues: &[Name],
        board: &mut Board<R>,
        now: Timestamp,
        then: &mut Consequences<R>,
    ) {
        if queues.is_empty() {
            return;
        }
        if !self.is_silent {
            self.asked_at.get_or_insert(now);
            queues.iter().for_each(|queue| board.await_word(there(on), queue));
        }
        then.say.push((on, Message::Want { queues: queues.to_vec() }));
    }

    /// When it takes too long to answer.
    fn wakes_at(&self) -> Timestamp {
        let silence = self.asked_at.map_or(Timestamp::NEVER, |at| at.plus(SILENCE));
        let loan = self.loans.values().next().map_or(Timestamp::NEVER, |out| out.since.plus(LONGEST_LOAN));
        silence.min(loan)
    }

    /// A loan is over.
    fn end(&mut self, id: u64, was_in_vain: bool, empty: &[Name]) -> Option<Out> {
        let out = self.loans.remove(&id)?;
        if let Some(window) = self.windows.get_mut(&out.queue) {
            window.out -= 1;
            if was_in_vain {
                window.most = 1;
            } else if !empty.contains(&out.queue) {
                window.most = (window.most * 2).min(MOST);
            }
        }
        Some(out)
    }

    /// A queue is not wanted any more. What is still lent for it is remembered.
    fn forget(&mut self, queue: &Name) {
        if self.windows.get(queue).is_some_and(|window| window.out == 0) {
            self.windows.remove(queue);
        }
    }
}

/// A link as the board calls it.
fn there(on: LinkId) -> Elsewhere {
    Elsewhere(on.0)
}
