//! What stands in a queue, and who holds what of it, for those who look.
//!
//! **Invariant**: a row is among the held ones of its queue if and only if it is on the desk, with a consumer, and counted as
//! such. A row that is with a consumer stays on the desk; one that was handed out before the shard was opened comes there when
//! it is needed, or when the end of its lease draws near.

use std::collections::BTreeMap;

use super::Shard;
use super::desk::Slot;
use super::directory::Queue;
use super::positions::Positions;
use crate::line::{Holder, Holders, InLine, Leases, Line, Lined, Stage};
use crate::name::Name;
use crate::scope::Scope;
use crate::settings::Order;
use crate::state::Phase;
use crate::store::{Position, TallyKind};
use crate::sweep::TimeRange;

/// How many deliveries are looked at to say who holds them, so that nobody holds up the shard.
const LOOK: usize = 10_000;

/// The deliveries of a queue that are with a consumer, by the ends of their leases.
#[derive(Debug, Default)]
pub(super) struct Held {
    positions: Positions,
    len: u64,
}

impl Held {
    pub fn insert(&mut self, position: Position) {
        self.len += u64::from(self.positions.insert(position));
    }

    pub fn remove(&mut self, position: Position) {
        self.len -= u64::from(self.positions.remove(position));
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Those that are wanted, in the direction in which they are.
    fn part(&self, wanted: &Leases) -> Box<dyn Iterator<Item = Position> + '_> {
        let TimeRange { from, until } = wanted.ends;
        if wanted.latest_first {
            let before = wanted.from.min(Position::start_of(until));
            Box::new(self.positions.before(before).take_while(move |position| position.at >= from))
        } else {
            let first = wanted.from.max(Position::start_of(from));
            Box::new(self.positions.from(first).take_while(move |position| position.at < until))
        }
    }
}

impl<R> Shard<R> {
    /// A row that is with a consumer has come onto the desk as the store has it.
    pub(super) fn take_in_held(&mut self, slot: Slot) {
        let row = &self.desk[slot];
        let queue = row.state.queue.as_ref().filter(|_| row.is_leased());
        let position = row.position();
        if let Some(index) = queue.and_then(|queue| self.directory.queue_index(queue)) {
            self.directory.hold(index, position);
        }
    }

    /// A part of what stands in a queue.
    pub fn line(&self, line: &Line) -> Lined {
        let Some(index) = self.directory.queue_index(&line.queue) else {
            return Lined { order: Order::Due, entries: Vec::new(), unknown: 0 };
        };
        let queue = self.directory.queue(index);
        match line.stage {
            Stage::Ready => {
                let entry = |(priority, position)| InLine { priority, position };
                let from = queue.ready.from(line.from.priority, line.from.position);
                Lined { order: queue.ready.order(), entries: from.take(line.limit).map(entry).collect(), unknown: 0 }
            }
            Stage::Leased => {
                let entry = |position| InLine { priority: 0, position };
                let from = queue.held.positions.from(line.from.position);
                let entries = from.take(line.limit).map(entry).collect();
                Lined { order: Order::Due, entries, unknown: unknown(queue, queue.held.len) }
            }
        }
    }

    /// A part of what is with consumers, of all queues together.
    pub fn leases(&self, wanted: &Leases) -> Lined {
        // The queues by what comes next of each: no more than that, and what is asked for, is looked at.
        let mut queues: BTreeMap<Position, Box<dyn Iterator<Item = Position> + '_>> = BTreeMap::new();
        let mut known = 0;
        for queue in self.directory.holding() {
            known += queue.held.len;
            let mut positions = queue.held.part(wanted);
            if let Some(first) = positions.next() {
                queues.insert(first, positions);
            }
        }
        let mut entries = Vec::new();
        while entries.len() < wanted.limit {
            let next = if wanted.latest_first { queues.pop_last() } else { queues.pop_first() };
            let Some((position, mut rest)) = next else { break };
            entries.push(InLine { priority: 0, position });
            if let Some(next) = rest.next() {
                queues.insert(next, rest);
            }
        }
        Lined { order: Order::Due, entries, unknown: self.total().leased.saturating_sub(known) }
    }

    /// Who holds deliveries of a queue, or of any in a scope.
    pub fn holders(&self, queue: Option<&Name>, within: &Scope) -> Holders {
        let is_meant = |held: &&Queue| queue.is_none_or(|queue| *queue == held.name) && within.fits(&held.name);
        let (mut holders, mut left, mut seen) = (BTreeMap::new(), LOOK, 0);
        let one = queue.map(|queue| self.directory.queue_index(queue).map(|index| self.directory.queue(index)));
        let queues: Vec<&Queue> = match one {
            Some(one) => one.into_iter().filter(is_meant).collect(),
            None => self.directory.holding().filter(is_meant).collect(),
        };
        let mut leased = 0;
        for of in queues {
            leased += of.count(TallyKind::QueueLeased);
            for position in of.held.positions.iter().take(left) {
                let Some(slot) = self.desk.by_seq(position.seq) else { continue };
                let row = &self.desk[slot];
                let Phase::Leased { holder, .. } = &row.state.phase else { continue };
                let (name, next_end) = (holder.clone(), position.at);
                let held = Holder { name, queue: of.name.clone(), leases: 1, oldest: row.leased_at(), next_end };
                seen += 1;
                holders
                    .entry((of.name.clone(), holder.clone()))
                    .and_modify(|known: &mut Holder| known.add(&held))
                    .or_insert(held);
            }
            left = LOOK.saturating_sub(seen as usize);
        }
        // A queue of which nothing is in memory is not looked at, and counts all the same.
        let leased = if queue.is_none() && within.is_all() { self.total().leased } else { leased };
        Holders { holders: holders.into_values().collect(), unknown: leased.saturating_sub(seen) }
    }
}

/// How many deliveries of a queue are with a consumer beside so many.
fn unknown(queue: &Queue, known: u64) -> u64 {
    queue.count(TallyKind::QueueLeased).saturating_sub(known)
}
