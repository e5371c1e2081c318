//! Requests that come to a node that does not have their shard: passed on over links, by the same rules as the real node's.

use punctual_center::{Asking, Error, LinkId, Message, Order, Outcome, Place};
use punctual_core::store::{Fence, Held, Incarnation, ShardId};
use punctual_core::{Answer, Certainty, Command, Reply, Request};

use crate::Sabotage;
use crate::auditor::Promise;
use crate::clock::Moment;
use crate::demand::What;
use crate::links::{Frame, Side};
use crate::node::{Exchange, Foreign};
use crate::record::Tag;
use crate::say;
use crate::world::{Event, World};

/// How soon whoever denied to have a shard is asked again, and it is looked whose time is over.
const LOOK: Moment = 20;

impl World {
    /// A request of somebody at this node: it is carried out here, or passed on.
    pub(crate) fn bring(&mut self, index: usize, shard: ShardId, command: Command, tag: Tag) {
        if self.nodes[index].takes(shard) {
            self.nodes[index].receive(shard, command, tag, self.moment);
            return;
        }
        self.census.count("requests passed on");
        let now = self.moment * 1_000;
        self.nodes[index].exchange.own.insert(tag);
        self.pass(index, |exchange| exchange.passing.pass(shard, command, None, tag, now));
    }

    /// Decides something about what is passed on, and does what follows.
    fn pass(&mut self, index: usize, decide: impl FnOnce(&mut Exchange) -> Vec<Order<Tag>>) {
        let orders = decide(&mut self.nodes[index].exchange);
        for order in orders {
            match order {
                Order::Ask(of, message) => self.ask(index, &of, message),
                Order::Answer(tag, outcome) => {
                    self.nodes[index].exchange.own.remove(&tag);
                    self.conclude(index, tag, outcome);
                }
                Order::Here(shard, command, _, tag) => {
                    self.nodes[index].exchange.own.remove(&tag);
                    self.bring(index, shard, command, tag);
                }
            }
        }
        let node = &mut self.nodes[index];
        if node.exchange.passing.is_waiting() && !std::mem::replace(&mut node.exchange.is_looking, true) {
            let life = node.life;
            self.after(LOOK, Event::LookAfter(index, life));
        }
    }

    /// Puts a request on its way to another node.
    fn ask(&mut self, index: usize, of: &Incarnation, message: Message) {
        let Message::Ask { id, .. } = &message else { return };
        let (id, exchange) = (*id, &mut self.nodes[index].exchange);
        let (tag, on) = (exchange.passing.caller(id).copied(), exchange.link_to(of));
        if let Some(tag) = tag.filter(|tag| exchange.foreign.contains_key(tag)) {
            let what = format!("node {index} passes request {tag} on, which another node has passed on to it");
            self.auditor.accuse(Promise::OneHop, "", what);
        }
        let is_taken = on.is_some_and(|on| self.put(on, Side::Asker, Frame { message, tag }));
        if !is_taken {
            // The end of the link is about to be told.
            self.nodes[index].exchange.passing.unsent(&[id]);
        }
    }

    /// Tells whoever asked at a node what came of a request.
    fn conclude(&mut self, index: usize, tag: Tag, outcome: Outcome) {
        if let Some(caller) = self.nodes[index].exchange.foreign.remove(&tag) {
            // Only whoever passes on what was passed on to it comes here.
            let message = Message::Answered { id: caller.id, outcome };
            self.put(caller.on, Side::Asked, Frame { message, tag: Some(tag) });
            return;
        }
        match outcome {
            Ok(answer) => self.deliver(tag, Ok(answer)),
            Err(Error::Refused(refused)) => self.deliver(tag, Err(refused)),
            Err(error) => {
                say!(self.trace, "node {index} says to {tag}: {error}");
                match error.certainty() {
                    Certainty::NothingDone => {
                        self.check_given_up(index, tag);
                        self.after(5, Event::Deny(tag, error.to_string()));
                    }
                    Certainty::Unknown => {
                        self.census.count("unknown outcomes of what was passed on");
                        self.auditor.told_unknown(tag);
                        self.after(5, Event::Answer(tag, None));
                    }
                }
            }
        }
    }

    /// Nobody gives up what could be carried out at the same node.
    fn check_given_up(&mut self, index: usize, tag: Tag) {
        let shard = self.calls.get(&tag).and_then(|call| match &call.demand.what {
            What::Command(shard, _) => Some(*shard),
            What::Reserve(..) | What::Change(_) => None,
        });
        if shard.is_some_and(|shard| self.nodes[index].takes(shard)) {
            let what = format!("node {index} gives request {tag} up, though it has the shard");
            self.auditor.accuse(Promise::KeepsWorking, "", what);
        }
    }

    /// Whoever asked hears that nothing was done.
    pub(crate) fn deny_client(&mut self, tag: Tag, why: &str) {
        self.census.count("requests of which nothing was done");
        self.auditor.told_nothing_done(tag);
        if self.is_at_peace() && self.calls.contains_key(&tag) {
            let what = format!("request {tag} was given up though nothing goes wrong: {why}");
            self.auditor.accuse(Promise::KeepsWorking, "", what);
        }
        self.answer(tag, None);
    }

    /// Gives up what nobody could take, and asks again whoever denied to have a shard.
    pub(crate) fn look_after(&mut self, index: usize, life: u64) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::LookAfter(index, life));
        }
        node.exchange.is_looking = false;
        let now = self.moment * 1_000;
        self.pass(index, |exchange| {
            let mut orders = exchange.passing.expire(now);
            orders.extend(exchange.passing.try_again());
            orders
        });
    }

    /// There is a link to another node.
    pub(crate) fn linked(&mut self, index: usize, on: LinkId, to: &Incarnation) {
        self.pass(index, |exchange| {
            exchange.dialled.insert(on, to.clone());
            exchange.passing.linked(to)
        });
        self.lend_over(index, on);
    }

    /// It is gone, and these messages never left.
    pub(crate) fn unlinked(&mut self, index: usize, on: LinkId, unsent: &[u64]) {
        self.census.add("requests that never left", unsent.len() as u64);
        self.pass(index, |exchange| {
            let Some(who) = exchange.dialled.remove(&on) else { return Vec::new() };
            exchange.passing.unlinked(&who, unsent)
        });
        self.lend_no_more(index, on);
    }

    /// What another node says to what was asked of it.
    pub(crate) fn told(&mut self, index: usize, on: LinkId, frames: Vec<Frame>) {
        for frame in frames {
            match frame.message {
                Message::Stocked { .. } | Message::Served { .. } => self.told_of_lending(index, on, frame),
                Message::Answered { id, outcome } => {
                    self.pass(index, |exchange| exchange.passing.answered(id, outcome));
                }
                Message::NotHere { id, shard, fence, owner } => {
                    self.learn_place(index, shard, fence, owner.as_ref());
                    self.pass(index, |exchange| exchange.passing.not_here(id));
                }
                _ => {}
            }
        }
    }

    /// What another node asks of this one.
    pub(crate) fn asked(&mut self, index: usize, on: LinkId, frames: Vec<Frame>) {
        for frame in frames {
            match (frame.message, frame.tag) {
                (Message::Ask { id, shard, round, command, .. }, Some(tag)) => {
                    self.take_in(index, Foreign { on, id, shard, round }, tag, command);
                }
                (Message::Handed { shard, fence }, _) => self.handed_to(index, shard, fence),
                (message, _) => self.asked_to_borrow(index, on, message),
            }
        }
    }

    /// A request of another node: carried out if the shard is here, and if its round was not told otherwise.
    fn take_in(&mut self, index: usize, caller: Foreign, tag: Tag, command: Command) {
        let node = &mut self.nodes[index];
        let ignores_rounds = self.sabotage == Some(Sabotage::IgnoresRounds);
        let is_denied = node.exchange.is_denied(&caller) && !ignores_rounds;
        if !is_denied && node.takes(caller.shard) {
            node.exchange.foreign.insert(tag, caller);
            node.receive(caller.shard, command, tag, self.moment);
            if self.sabotage == Some(Sabotage::DoneAndDenied) {
                self.deny(index, caller, tag);
            }
            return;
        }
        match self.sabotage {
            Some(Sabotage::SecondHop) => {
                node.exchange.foreign.insert(tag, caller);
                self.bring(index, caller.shard, command, tag);
            }
            Some(Sabotage::DoneUnseen) => {
                let message = Message::Answered { id: caller.id, outcome: Ok(Answer::Noted) };
                self.put(caller.on, Side::Asked, Frame { message, tag: Some(tag) });
            }
            _ => self.deny(index, caller, tag),
        }
    }

    /// Tells a caller at another node that a shard is not here, and where it is.
    fn deny(&mut self, index: usize, caller: Foreign, tag: Tag) {
        self.census.count("requests of others that came to the wrong node");
        let exchange = &mut self.nodes[index].exchange;
        exchange.deny(&caller);
        let (fence, owner) = exchange.places.known(caller.shard);
        let message = Message::NotHere { id: caller.id, shard: caller.shard, fence, owner: owner.cloned() };
        self.put(caller.on, Side::Asked, Frame { message, tag: Some(tag) });
    }

    /// What waited for a shard that is not here any more: it is passed on, or whoever passed it on is told.
    pub(crate) fn turn_away(&mut self, index: usize, shard: ShardId, waiting: Vec<Request<Tag>>) {
        if !self.profile.linked {
            return self.lose(index, waiting.into_iter().map(|request| request.reply).collect());
        }
        for Request { command, reply: tag, .. } in waiting {
            match self.nodes[index].exchange.foreign.remove(&tag) {
                Some(caller) => self.deny(index, caller, tag),
                None => self.bring(index, shard, command, tag),
            }
        }
    }

    /// Somebody says who has a shard by this fence.
    pub(crate) fn learn_place(&mut self, index: usize, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) {
        if self.nodes[index].exchange.places.learn(shard, fence, owner) {
            self.place_changed(index, shard);
        }
    }

    /// The store has said who has a shard, and was asked so.
    pub(crate) fn told_place(&mut self, index: usize, asking: Asking, held: &Held) {
        let places = &mut self.nodes[index].exchange.places;
        if places.told(asking, held.shard, held.fence, held.by.as_ref()) {
            self.place_changed(index, held.shard);
        }
    }

    /// The store has just said who has a shard.
    pub(crate) fn correct_place(&mut self, index: usize, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) {
        self.nodes[index].exchange.places.correct(shard, fence, owner);
        self.place_changed(index, shard);
    }

    fn place_changed(&mut self, index: usize, shard: ShardId) {
        match self.nodes[index].exchange.places.place(shard) {
            Place::At(owner) => self.pass(index, |exchange| exchange.passing.moved(shard, Some(&owner))),
            Place::Nowhere => self.pass(index, |exchange| exchange.passing.moved(shard, None)),
            // It may not take requests yet: when it does, that is told.
            Place::Here => {}
        }
    }

    /// A shard takes requests here.
    pub(crate) fn shard_came(&mut self, index: usize, shard: ShardId) {
        self.pass(index, |exchange| exchange.passing.came_here(shard));
    }

    /// A shard takes no requests here any more: they wait until it is somewhere.
    pub(crate) fn shard_left(&mut self, index: usize, shard: ShardId) {
        self.pass(index, |exchange| exchange.passing.moved(shard, None));
        self.place_changed(index, shard);
    }

    /// Answers a caller at another node, if it is one.
    pub(crate) fn answer_foreign(&mut self, index: usize, tag: Tag, reply: &Reply) -> bool {
        let Some(caller) = self.nodes[index].exchange.foreign.remove(&tag) else { return false };
        let message = Message::Answered { id: caller.id, outcome: reply.clone().map_err(Error::from) };
        self.put(caller.on, Side::Asked, Frame { message, tag: Some(tag) });
        true
    }

    /// A shard of this node has lost these requests in the middle of its work.
    pub(crate) fn lose_foreign(&mut self, index: usize, tag: Tag) -> bool {
        self.auditor.in_doubt(tag);
        let Some(caller) = self.nodes[index].exchange.foreign.remove(&tag) else { return false };
        let outcome = Err(Error::unknown_outcome("the shard was lost while the request was under way"));
        let message = Message::Answered { id: caller.id, outcome };
        self.put(caller.on, Side::Asked, Frame { message, tag: Some(tag) });
        true
    }
}
