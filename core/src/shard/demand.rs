//! What consumers wait for has to be in memory, with its body, before it is handed out: how much of it a step reads.

use std::ops::Range;

use super::Shard;
use super::desk::Slot;
use super::directory::{Closed, QueueIndex};
use super::needs::Needs;
use crate::board::Board;
use crate::name::Name;
use crate::settings::Order;
use crate::state::Reason;
use crate::store::Position;
use crate::time::Timestamp;

/// How many bodies are asked for at first, when it is not known how long they are.
const FIRST_WISHES: usize = 64;

/// By what the first deliveries of several queues are compared: priority, time unless they go by arrival, number.
type Foremost = (u32, Timestamp, u64);

impl<R> Shard<R> {
    /// Which of the ready deliveries those who wait may get in this step.
    pub(super) fn collect_demand(&mut self, board: &Board<R>) {
        self.agenda.somebody_waits = !board.is_empty();
        if board.is_empty() {
            return;
        }
        let servable = self.servable(board).into_iter().map(|(_, queue)| queue);
        // What a rate holds back is not read: it could not be handed out, and its body would fill the memory meanwhile.
        let free = servable.filter(|queue| !board.is_held_back(queue, self.now));
        let queues: Vec<(QueueIndex, Name)> =
            free.filter_map(|queue| Some((self.directory.queue_index(&queue)?, queue))).collect();
        // The first of each queue, the foremost of all before the others: whoever waits for several queues may insist
        // on that very one, and a step in which nobody gets anything would be followed by the same step for ever.
        let mut firsts: Vec<(Foremost, QueueIndex)> =
            queues.iter().filter_map(|(index, _)| Some((self.foremost_of(*index)?, *index))).collect();
        firsts.sort_unstable();
        firsts.truncate(self.config.hand_outs.max(FIRST_WISHES));
        let mut left = self.config.hand_outs.saturating_sub(firsts.len());
        self.agenda.demand.extend(firsts.into_iter().map(|(_, index)| (index, 0..1)));
        // Those who come first when things are handed out come first here, too.
        for (index, queue) in queues {
            if left == 0 {
                break;
            }
            let wanted = board.demand(&queue, left + 1).min(self.directory.queue(index).ready.len() as usize);
            if wanted > 1 {
                self.agenda.demand.push((index, 1..wanted));
                left -= wanted - 1;
            }
        }
    }

    /// Where a queue's first delivery stands among those of other queues.
    fn foremost_of(&self, index: QueueIndex) -> Option<Foremost> {
        let ready = &self.directory.queue(index).ready;
        let (priority, position) = ready.first()?;
        let at = if ready.order() == Order::Arrival { Timestamp::ZERO } else { position.at };
        Some((priority, at, position.seq))
    }

    /// Takes out of the ready sets what consumers wait for and is not there, so that nobody waits for it again. A
    /// delivery whose task is gone has no body that could be handed over: it is a dead letter.
    pub(super) fn drop_absent(&mut self) {
        if self.agenda.absent_positions.is_empty() && self.agenda.absent_bodies.is_empty() {
            return;
        }
        for (index, places) in std::mem::take(&mut self.agenda.demand) {
            self.give_up_bodiless(index, &places);
            let ready = &self.directory.queue(index).ready;
            let absent = |(_, position): &(u32, Position)| self.agenda.absent_positions.contains(position);
            let absent: Vec<(u32, Position)> =
                ready.iter().take(places.end).skip(places.start).filter(absent).collect();
            for (priority, position) in absent {
                self.directory.leave_ready(index, priority, position);
            }
            let queue = self.directory.queue(index);
            if queue.ready.is_empty() {
                self.stock.run_out(&queue.name);
            }
        }
    }

    fn give_up_bodiless(&mut self, index: QueueIndex, places: &Range<usize>) {
        let is_bodiless = |slot: &Slot| {
            let row = &self.desk[*slot];
            row.body().is_none() && self.agenda.absent_bodies.contains(&row.key().of_task())
        };
        let ready = self.directory.queue(index).ready.iter().take(places.end).skip(places.start);
        let bodiless: Vec<Slot> =
            ready.filter_map(|(_, position)| self.desk.at(position)).filter(is_bodiless).collect();
        for slot in bodiless {
            match self.going(slot) {
                // Its task has been cleared away, and it is about to be.
                Some(Closed::Topic(_)) => _ = self.clear_up(slot),
                _ => self.die(slot, Reason::Lost, None),
            }
        }
    }

    /// How many bodies to ask for that are to be handed out, so that about as many bytes are read in a step as may
    /// be. How long they are is known from those that have come; without any, a few tell.
    pub(super) fn wishes(&self) -> usize {
        if self.agenda.wished == 0 {
            return FIRST_WISHES;
        }
        let length = (self.agenda.came / self.agenda.wished).max(1);
        self.config.read_bytes.saturating_sub(self.agenda.came) / length
    }

    /// The body of a row that is about to be handed over, as long as not too many are asked for.
    pub(super) fn wish_body(&self, slot: Slot, needs: &mut Needs, wishes: &mut usize) {
        if *wishes > 0 {
            let before = needs.keys_with_bodies.len();
            self.need_body(slot, needs);
            *wishes -= needs.keys_with_bodies.len() - before;
        }
    }
}
