//! Consumers that wait at one node and get what others have: they are lent over links, by the same rules as the real node's.

use punctual_center::{Consequences, LinkId, Message};
use punctual_core::{Answer, Back, Board, Command, Delivery, Reply, Timestamp};

use crate::Sabotage;
use crate::clock::right_time;
use crate::demand::{Demand, Purpose, shard_of};
use crate::links::{Frame, Side};
use crate::node::Lent;
use crate::record::Tag;
use crate::world::World;

impl World {
    /// Decides something about lending, and does what follows. The request is that of a consumer elsewhere, if any.
    fn lend(&mut self, index: usize, about: Option<Tag>, decide: impl FnOnce(&mut Lent, &mut Board<Tag>, Timestamp)) {
        let (lent, board) = self.nodes[index].lending();
        decide(lent, board, right_time(self.moment));
        self.see_to_lending(index, about);
    }

    /// Says what is to be said to other nodes, and gives consumers what they got there.
    pub(crate) fn see_to_lending(&mut self, index: usize, about: Option<Tag>) {
        let Consequences { say, reply, served, unwanted, look, gone } =
            self.nodes[index].lent.rules.take_consequences();
        for (on, message) in say {
            if let (Message::Lend { loan, .. }, Some(Sabotage::ServedTwice)) = (&message, self.sabotage) {
                self.nodes[index].stay_in_line(loan, self.moment);
            }
            let is_forgotten =
                self.sabotage == Some(Sabotage::ForgottenLoans) && matches!(message, Message::Lend { .. });
            if !is_forgotten {
                self.put(on, Side::Asker, Frame { message, tag: None });
            }
        }
        for (on, message) in reply {
            let tag = match &message {
                Message::Served { id, .. } => self.nodes[index].lent.guests.get(&(on, *id)).copied(),
                _ => None,
            };
            self.put(on, Side::Asked, Frame { message, tag });
        }
        for (tag, deliveries) in served {
            self.census.count("consumers served by another node");
            if let Some(guest) = about {
                self.auditor.lent(guest, tag);
            }
            self.nodes[index].sent_away(tag);
            self.give(tag, Ok(Answer::Reserved(deliveries)));
        }
        self.census.add("deliveries whose consumer had left", unwanted.len() as u64);
        let demands = unwanted.iter().map(|delivery| self.abandon(delivery)).collect();
        self.demand(demands);
        look.into_iter().for_each(|shard| self.nodes[index].poke(shard));
        gone.into_iter().for_each(|tag| self.nodes[index].sent_away(tag));
    }

    fn abandon(&self, Delivery { lease, .. }: &Delivery) -> Demand {
        let shard = shard_of(lease.key.topic(), lease.key.id(), self.profile.shards);
        let back = Command::Release { lease: lease.clone(), back: Back::Abandoned, priority: None, note: None };
        Demand::command(Purpose::Note, shard, back)
    }

    /// Gives a consumer of a node what it got; once.
    pub(crate) fn give(&mut self, tag: Tag, reply: Reply) {
        if matches!(&reply, Ok(Answer::Reserved(deliveries)) if !deliveries.is_empty()) {
            self.auditor.gave(tag);
        }
        self.deliver(tag, reply);
    }

    /// What a guest got, or that it gets nothing; says whether it is one.
    pub(crate) fn answer_guest(&mut self, index: usize, tag: Tag, deliveries: Vec<Delivery>) -> bool {
        let node = &mut self.nodes[index];
        let Some((on, id)) = node.lent.takes(tag) else { return false };
        if node.up {
            self.lend(index, None, |lent, board, now| lent.rules.answered(on, id, deliveries, board, now));
        }
        true
    }

    /// There is a link to another node: it may have something.
    pub(crate) fn lend_over(&mut self, index: usize, on: LinkId) {
        self.lend(index, None, |lent, board, now| lent.rules.linked(on, board, now));
    }

    /// It is gone: who was lent over it is back.
    pub(crate) fn lend_no_more(&mut self, index: usize, on: LinkId) {
        self.lend(index, None, |lent, board, now| lent.rules.unlinked(on, board, now));
    }

    /// Nobody comes on this link any more, and its guests go.
    pub(crate) fn guests_leave(&mut self, index: usize, on: LinkId) {
        self.lend(index, None, |lent, board, _| lent.rules.left(on, board));
    }

    /// What another node says to what was lent to it.
    pub(crate) fn told_of_lending(&mut self, index: usize, on: LinkId, frame: Frame) {
        self.lend(index, frame.tag, |lent, board, now| lent.rules.told(on, frame.message, board, now));
    }

    /// What another node lends to this one, or wants to.
    pub(crate) fn asked_to_borrow(&mut self, index: usize, on: LinkId, message: Message) {
        self.next_tag += 1;
        let tag = self.next_tag;
        if let Message::Lend { id, loan } = &message {
            self.census.count("consumers lent");
            self.nodes[index].host(tag, on, *id, loan.consumer.clone());
        }
        self.lend(index, None, |lent, board, now| lent.rules.asked(on, message, |_| tag, board, now));
    }
}
