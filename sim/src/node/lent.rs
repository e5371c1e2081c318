//! The consumers of a node that are lent to others, and the guests that come from those.

use std::collections::BTreeMap;

use punctual_center::{Lending, LinkId, Loan};
use punctual_core::store::ShardId;
use punctual_core::{Board, Name};

use super::SimulatedNode;
use crate::clock::{Moment, right_time};
use crate::record::Tag;

/// Both sides of lending, and what the simulation knows of the guests.
#[derive(Debug, Default)]
pub struct Lent {
    /// What decides.
    pub rules: Lending<Tag>,
    /// The requests that guests are known by, by their loans.
    pub guests: BTreeMap<(LinkId, u64), Tag>,
    /// The loans of guests that are not answered.
    open: BTreeMap<Tag, (LinkId, u64)>,
}

impl Lent {
    /// Takes a guest that is to be answered, if it is one.
    pub fn takes(&mut self, tag: Tag) -> Option<(LinkId, u64)> {
        self.open.remove(&tag)
    }
}

impl SimulatedNode {
    /// Both that lending is about.
    pub fn lending(&mut self) -> (&mut Lent, &mut Board<Tag>) {
        (&mut self.lent, &mut self.board)
    }

    /// A guest comes.
    pub fn host(&mut self, tag: Tag, on: LinkId, id: u64, consumer: Name) {
        self.lent.guests.insert((on, id), tag);
        self.lent.open.insert(tag, (on, id));
        self.posted.insert(tag, consumer);
    }

    /// A consumer is not on the board any more.
    pub fn sent_away(&mut self, tag: Tag) {
        self.lent.open.remove(&tag);
        self.posted.remove(&tag);
    }

    /// A shard should look at the board.
    pub fn poke(&mut self, shard: ShardId) {
        if let Some(seat) = self.seats.get_mut(&shard) {
            seat.poked = true;
        }
    }

    /// A consumer that is lent stays in line as well; only to test the auditor.
    pub fn stay_in_line(&mut self, loan: &Loan, moment: Moment) {
        let found = self.posted.iter().find(|(_, name)| **name == loan.consumer).map(|(tag, _)| *tag);
        let Some(tag) = found else { return };
        let reserve = loan.clone().into_reserve(right_time(moment + 60_000));
        let posted = self.board.post(reserve, tag);
        posted.ask.into_iter().for_each(|shard| self.poke(shard));
    }
}
