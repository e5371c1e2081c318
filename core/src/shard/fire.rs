//! Coming due: where a task goes when its time has come, and when it is given up.

use super::desk::{Resident, Slot};
use super::directory::{QueueIndex, Route, TopicIndex};
use super::{Closed, Doomed, Shard, Timer};
use crate::event::What;
use crate::name::Name;
use crate::settings::QueueSettings;
use crate::state::{Death, Ending, Part, Phase, Reason};
use crate::store::{Position, Table};
use crate::time::{Millis, Timestamp};

impl<R> Shard<R> {
    /// A timer has come. What that means depends on the row's phase; a timer whose row has moved on means nothing.
    pub(super) fn fire(&mut self, position: Position) {
        let Some(slot) = self.desk.at(position) else { return };
        self.desk[slot].timer = None;
        match self.going(slot) {
            Some(Closed::Topic(_)) => {
                self.clear_up(slot);
                return;
            }
            // It counts until the deletion of its queue comes to it, and nothing else happens to it any more.
            Some(Closed::Queue(_)) if !self.desk[slot].is_waiting() => return,
            _ => {}
        }
        match self.desk[slot].state.phase {
            Phase::Waiting if self.desk[slot].ready_in.is_none() => {
                self.firing = Some(position.at.max(self.opened_at));
                self.arrive(slot);
                self.firing = None;
            }
            Phase::Leased { .. } if self.is_on_its_way(slot) => self.look_again(position),
            Phase::Leased { .. } => self.lapse(slot),
            Phase::Forwarding { .. } if !self.may_grow() => self.hold_up(slot),
            Phase::Forwarding { .. } => self.forward(slot),
            Phase::Waiting | Phase::Spread(_) | Phase::Dead(_) | Phase::Finished(_) => {}
        }
    }

    /// Lets a row wait for a time, which may have come already. It is not to stand in a ready set.
    pub(super) fn wait_until(&mut self, slot: Slot, at: Timestamp) {
        self.touch(slot);
        self.clear_timer(slot);
        let row = &mut self.desk[slot];
        row.state.phase = Phase::Waiting;
        row.table = Table::Live;
        // The clock may show less than when it was first handed out, if the shard was opened anew
        // since. At its expiry it is woken too, to be given up.
        row.at = at.max(row.state.due).min(row.state.expires_at());
        if row.at <= self.now { self.arrive(slot) } else { self.set_timer(slot) }
    }

    /// A waiting row's time has come: it becomes ready in its queue, or in all that its topic feeds.
    fn arrive(&mut self, slot: Slot) {
        if !self.may_grow() && !self.arrives_unwritten(slot) {
            return self.hold_up(slot);
        }
        if let Some(own) = self.desk[slot].state.queue.clone() {
            match self.directory.queue_index(&own) {
                Some(queue) if self.is_leaving_behind(queue) => return self.detain(slot, queue),
                Some(queue) => return self.enqueue(slot, queue),
                None => {
                    // Its queue was deleted.
                    self.touch(slot);
                    self.desk[slot].state.queue = None;
                }
            }
        }
        match self.route(slot) {
            Route::Nowhere => {
                let is_old = self.desk[slot].state.expires_at() <= self.now;
                self.die(slot, if is_old { Reason::Expired } else { Reason::Unrouted }, None);
            }
            Route::To(queue) => self.enqueue(slot, queue),
            // A delivery whose queue was deleted stays one delivery.
            Route::ToSeveral(queues) if self.desk[slot].is_part() => self.enqueue(slot, queues[0]),
            Route::ToSeveral(queues) => self.spread(slot, &queues),
            // Its time had come before its only queue was deleted, so it was there.
            Route::Detained { queue, is_only: true } if self.was_due_before_closing(slot, queue) => {
                self.enqueue(slot, queue);
            }
            Route::Detained { queue, .. } => self.detain(slot, queue),
        }
    }

    /// Whether a queue goes at the end of this step and leaves what waits for a retry there behind.
    fn is_leaving_behind(&self, queue: QueueIndex) -> bool {
        self.directory.queue(queue).closing.as_ref().is_some_and(|closing| !closing.is_forced)
    }

    fn was_due_before_closing(&self, slot: Slot, queue: QueueIndex) -> bool {
        let closing = self.directory.queue(queue).closing.as_ref();
        closing.is_some_and(|closing| closing.is_forced && self.desk[slot].at < closing.since)
    }

    /// Lets a row whose time has come wait for the end of a deletion: it goes to the next queue of that name.
    fn detain(&mut self, slot: Slot, queue: QueueIndex) {
        let row = (self.desk[slot].topic, self.desk[slot].position());
        let closing = self.directory.queue_mut(queue).closing.as_mut();
        closing.expect("only what is being deleted detains").detained.push(row);
    }

    /// A deletion is over: what waited for that fires.
    pub(super) fn set_free(&mut self, detained: Vec<(TopicIndex, Position)>) {
        for (topic, position) in detained {
            match self.desk.at(position) {
                Some(slot) if self.desk[slot].timer.is_none() => self.set_timer(slot),
                Some(_) => {}
                None => _ = self.wheel.insert(position.at.as_millis(), Timer { seq: position.seq, topic }),
            }
        }
    }

    /// Where a task goes; queues that are missing come to be, if they may.
    pub(super) fn route(&mut self, slot: Slot) -> Route {
        let (topic, routing_key) = (self.desk[slot].topic, self.desk[slot].state.routing_key.clone());
        self.route_to(topic, routing_key.as_ref())
    }

    pub(super) fn route_to(&mut self, topic: TopicIndex, routing_key: Option<&Name>) -> Route {
        let routing_key = routing_key.map_or("", |key| key.as_str());
        let (route, missing) = self.directory.route(topic, routing_key);
        if missing.is_empty() || !self.config.create_on_use {
            return route;
        }
        for queue in missing {
            self.ensure_queue(&queue);
        }
        self.directory.route(topic, routing_key).0
    }

    pub(super) fn ensure_queue(&mut self, name: &Name) -> QueueIndex {
        match self.directory.queue_index(name) {
            Some(index) => index,
            None => self.create_queue(name, QueueSettings::default()),
        }
    }

    /// Puts a row into a queue's ready set. This is not written: once its time has come, a
    /// waiting row is ready by definition.
    fn enqueue(&mut self, slot: Slot, queue: QueueIndex) {
        let is_old = self.desk[slot].state.expires_at() <= self.now;
        if is_old || self.directory.queue(queue).refuses_newcomers() {
            self.desk[slot].ready_in = Some(queue);
            return self.die(slot, if is_old { Reason::Expired } else { Reason::PushedOut }, None);
        }
        let row = &mut self.desk[slot];
        let (priority, position, expires_at) = (row.state.priority, row.position(), row.state.expires_at());
        row.ready_in = Some(queue);
        row.offered_at = Some(self.now);
        self.offers.push((self.directory.queue(queue).name.clone(), self.firing.unwrap_or(self.now)));
        self.note(slot, What::Fired);
        if expires_at < Timestamp::NEVER {
            self.expiries.insert((expires_at, position));
        }
        if self.desk[slot].state.queue.is_none() {
            self.directory.note_fed(self.desk[slot].topic, queue);
        }
        let is_only = self.directory.enter_ready(queue, priority, position);
        let (index, queue) = (queue, self.directory.queue(queue));
        if is_only {
            self.stocked.insert(queue.name.clone());
            self.restocked.insert(queue.name.clone());
        }
        let too_many = queue.settings.max_length.is_some_and(|max| queue.ready.len() > max);
        if too_many && let Some((priority, position)) = queue.ready.least_urgent() {
            match self.desk.at(position) {
                Some(slot) => self.die(slot, Reason::PushedOut, None),
                None => {
                    self.directory.leave_ready(index, priority, position);
                    self.directory.queue_mut(index).leaving.insert(position);
                    self.doomed.push(Doomed { position, reason: Reason::PushedOut, pushed_from: Some(index) });
                }
            }
        }
    }

    /// Takes a row out of the ready set it stands in, if any.
    pub(super) fn leave_ready(&mut self, slot: Slot) -> Option<QueueIndex> {
        let row = &mut self.desk[slot];
        let index = row.ready_in.take()?;
        let (priority, position, expires_at) = (row.state.priority, row.position(), row.state.expires_at());
        if expires_at < Timestamp::NEVER {
            self.expiries.remove(&(expires_at, position));
        }
        self.directory.queue_mut(index).leaving.remove(&position);
        if self.directory.leave_ready(index, priority, position) {
            let queue = self.directory.queue(index);
            self.stocked.remove(&queue.name);
            self.restocked.insert(queue.name.clone());
        }
        Some(index)
    }

    /// Gives a task one delivery in each of several queues.
    fn spread(&mut self, slot: Slot, queues: &[QueueIndex]) {
        self.touch(slot);
        let names: Vec<Name> = queues.iter().map(|queue| self.directory.queue(*queue).name.clone()).collect();
        let part = |queue: &Name| Part { queue: queue.clone(), finished: None };
        let row = &mut self.desk[slot];
        row.state.phase = Phase::Spread(names.iter().map(part).collect());
        row.at = Timestamp::LAST;
        let (task, topic, due, group) = (row.key.clone(), row.topic, row.state.due, row.group.clone());
        for queue in names {
            let mut state = self.desk[slot].state.clone();
            state.phase = Phase::Waiting;
            state.queue = Some(queue.clone());
            // What happened to the task before is not the past of this row.
            (state.past, state.log) = (None, None);
            let key = task.in_queue(&queue);
            // One that lost its task, as it may be in stores that older versions wrote: this task has its id now.
            if let Some(orphan) = self.desk.by_key(&key) {
                self.erase(orphan);
            }
            let seq = self.numbers.row();
            let part = Resident::new(key, seq, group.clone(), topic, state, None);
            let part = self.desk.insert(part);
            self.desk[part].at = due.min(self.now);
            self.arrive(part);
        }
    }

    /// Gives a delivery up: a dead letter, or on its way to the topic that takes them.
    pub(super) fn die(&mut self, slot: Slot, reason: Reason, note: Option<String>) {
        let ready_in = self.leave_ready(slot);
        self.touch(slot);
        self.clear_timer(slot);
        if let Some(queue) = ready_in {
            self.desk[slot].state.queue = Some(self.directory.queue(queue).name.clone());
        }
        self.note(slot, What::Died(reason));
        let death = Death { reason, at: self.now, note };
        let queue = self.desk[slot].state.queue.clone();
        let queue = queue.and_then(|queue| self.directory.queue_index(&queue));
        let to = queue.and_then(|queue| self.directory.queue(queue).settings.dead_letter.clone());
        match to {
            Some(to) => {
                let number = self.numbers.token();
                let row = &mut self.desk[slot];
                row.state.phase = Phase::Forwarding { to, number, death };
                row.table = Table::Live;
                row.at = self.now;
                self.set_timer(slot);
            }
            None => self.bury(slot, death),
        }
    }

    /// Puts a delivery among the dead letters.
    pub(super) fn bury(&mut self, slot: Slot, death: Death) {
        self.touch(slot);
        self.clear_timer(slot);
        let row = &mut self.desk[slot];
        row.table = Table::Dead;
        row.at = self.now;
        row.state.phase = Phase::Dead(death);
        if let Some(period) = self.kept_for(slot) {
            self.dead.note(period, self.desk[slot].position());
        }
    }

    /// Ends a delivery, and with its last delivery the task.
    pub(super) fn end(&mut self, slot: Slot, ending: Ending) {
        self.note_end(slot, ending);
        self.leave_ready(slot);
        self.touch(slot);
        self.clear_timer(slot);
        if self.desk[slot].is_part() {
            self.desk[slot].gone = true;
            let task = self.desk[slot].key.of_task();
            let queue = Name::stored(self.desk[slot].key.queue());
            // It was asked for with its delivery. Stores that older versions wrote may have lost it.
            if let Some(task) = self.desk.by_key(&task) {
                self.end_part(task, &queue, ending);
            }
            return;
        }
        let row = &mut self.desk[slot];
        row.table = Table::History;
        row.at = self.now;
        row.state.phase = Phase::Finished(ending);
        match self.kept_for(slot) {
            Some(Millis::ZERO) | None => self.desk[slot].gone = true,
            Some(_) if !self.history.takes_rows() => self.desk[slot].gone = true,
            Some(period) => self.history.note(period, self.desk[slot].position()),
        }
    }

    fn note_end(&mut self, slot: Slot, ending: Ending) {
        let what = match ending {
            Ending::Done => What::Done,
            Ending::Cancelled => What::Cancelled,
            Ending::Forwarded => What::Forwarded,
            // Who purges says so; at the end of its retention a dead letter goes silently.
            Ending::Purged => return,
        };
        // A task that was broadcast ends with the last of its deliveries, which have said how they ended.
        if !matches!(self.desk[slot].state.phase, Phase::Spread(_)) {
            self.note(slot, what);
        }
    }

    fn end_part(&mut self, task: Slot, queue: &Name, ending: Ending) {
        self.touch(task);
        let now = self.now;
        let Phase::Spread(parts) = &mut self.desk[task].state.phase else { return };
        if let Some(part) = parts.iter_mut().find(|part| part.queue == *queue) {
            part.finished = Some((ending, now));
        }
        if parts.iter().all(|part| part.finished.is_some()) {
            let done = parts.iter().any(|part| matches!(part.finished, Some((Ending::Done, _))));
            self.end(task, if done { Ending::Done } else { ending });
        }
    }

    /// How long a row is kept where it stands; `None` means until something happens to it.
    pub(super) fn kept_for(&self, slot: Slot) -> Option<Millis> {
        let row = &self.desk[slot];
        match row.table {
            Table::History => Some(self.directory.topic(row.topic).settings.history),
            Table::Dead => {
                let queue = self.directory.queue_index(row.state.queue.as_ref()?)?;
                self.directory.queue(queue).settings.dead_retention
            }
            Table::Live | Table::Settings => None,
        }
    }

    /// Removes a finished task or a dead letter.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.desk[slot].table == Table::Dead && self.desk[slot].is_part() {
            return self.end(slot, Ending::Purged);
        }
        self.erase(slot);
    }

    /// Removes a row, whatever it is.
    pub(super) fn erase(&mut self, slot: Slot) {
        self.leave_ready(slot);
        self.touch(slot);
        self.clear_timer(slot);
        self.desk[slot].gone = true;
    }

    /// Starts a row's timer if it is near; a far one stays in the store until the horizon reaches it.
    pub(super) fn set_timer(&mut self, slot: Slot) {
        let row = &self.desk[slot];
        let sleeps = matches!(row.state.phase, Phase::Spread(_)) || row.ready_in.is_some();
        if row.gone || row.table != Table::Live || sleeps {
            return;
        }
        let position = row.position();
        if position < self.horizon {
            let handle = self.wheel.insert(position.at.as_millis(), Timer { seq: position.seq, topic: row.topic });
            self.desk[slot].timer = Some(handle);
        } else {
            self.next_far = self.next_far.min(position.at);
        }
    }

    pub(super) fn clear_timer(&mut self, slot: Slot) {
        if let Some(handle) = self.desk[slot].timer.take() {
            self.wheel.cancel(handle);
        }
    }
}
