//! Where a row goes when its time has come, and whether there is room for it.

use std::collections::BTreeMap;

use super::Shard;
use super::desk::Slot;
use super::directory::{Queue, Route, TopicIndex};
use crate::answer::Refused;
use crate::name::Name;
use crate::store::Table;
use crate::task::Task;

impl<R> Shard<R> {
    /// Where a task goes; queues that are missing come to be, if they may.
    pub(super) fn route(&mut self, slot: Slot) -> Route {
        let (topic, routing_key) = (self.desk[slot].topic(), self.desk[slot].state.routing_key.clone());
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

    /// Where a row goes that is ready now.
    fn place_of(&self, slot: Slot) -> Route {
        let row = &self.desk[slot];
        let own = row.state.queue.as_ref().filter(|_| row.table() != Table::History);
        let own = own.and_then(|queue| self.directory.queue_index(queue));
        let route = || match self.directory.route(row.topic(), row.state.routing()).0 {
            // A delivery whose queue was deleted stays one delivery.
            Route::ToSeveral(queues) if row.is_part() => Route::To(queues[0]),
            route => route,
        };
        own.map_or_else(route, Route::To)
    }

    /// A task that is due at once is refused if a queue that refuses newcomers is full. Queues that
    /// have yet to be made have room.
    pub(super) fn check_room(&self, task: &Task, topic: Option<TopicIndex>) -> Result<(), Refused> {
        let routing_key = task.routing_key.as_deref().unwrap_or("");
        let route = match topic {
            Some(topic) => self.directory.route(topic, routing_key).0,
            // A new topic feeds the queue of its name.
            None => self.directory.queue_index(&task.topic).map_or(Route::Nowhere, Route::To),
        };
        self.check_route(route, Queue::refuses_newcomers)
    }

    /// The same for a task or delivery that is to be ready now and was not.
    pub(super) fn check_place(&self, slot: Slot) -> Result<(), Refused> {
        self.check_route(self.place_of(slot), Queue::refuses_newcomers)
    }

    /// Whether there is room for what is brought back: a dead letter, a finished task, or what is hastened. It pushes out
    /// nothing, whoever gives way to newcomers: of many that are brought back each would push out the one before, and
    /// they would be dead again while the answer says that they are back.
    pub(super) fn check_return(&self, slot: Slot) -> Result<(), Refused> {
        self.check_route(self.place_of(slot), |queue| queue.is_full_with(0))
    }

    /// The same for one of many that are only looked at: those before it are promised their places, and it is if it
    /// has one.
    pub(super) fn promise_return(&self, slot: Slot, promised: &mut BTreeMap<Name, u64>) -> Result<(), Refused> {
        let more = |queue: &Queue| promised.get(&queue.name).copied().unwrap_or(0);
        self.check_route(self.place_of(slot), |queue| queue.is_full_with(more(queue)))?;
        for queue in self.place_of(slot).queues() {
            *promised.entry(self.directory.queue(queue).name.clone()).or_default() += 1;
        }
        Ok(())
    }

    fn check_route(&self, route: Route, has_no_room: impl Fn(&Queue) -> bool) -> Result<(), Refused> {
        let queues = route.queues().into_iter().map(|queue| self.directory.queue(queue));
        match queues.filter(|queue| queue.closing.is_none()).find(|queue| has_no_room(queue)) {
            Some(queue) => Err(Refused::QueueFull(queue.name.clone())),
            None => Ok(()),
        }
    }
}
