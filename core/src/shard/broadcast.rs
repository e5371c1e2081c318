//! Broadcast: a task that goes to several queues has one delivery in each of them, a row of its own. The task's row
//! sleeps until the last of them has ended.

use super::Shard;
use super::desk::{Resident, Slot};
use super::directory::QueueIndex;
use crate::answer::Standing;
use crate::name::Name;
use crate::state::{Ending, Part, Phase};
use crate::store::Key;
use crate::time::Timestamp;

impl<R> Shard<R> {
    /// Gives a task one delivery in each of several queues, where it should have been `since` then.
    pub(super) fn spread(&mut self, slot: Slot, queues: &[QueueIndex], since: Timestamp) {
        self.touch(slot);
        let names: Vec<Name> = queues.iter().map(|queue| self.directory.queue(*queue).name.clone()).collect();
        let part = |queue: &Name| Part { queue: queue.clone(), finished: None };
        let row = self.desk.edit(slot);
        row.enter(Phase::Spread(names.iter().map(part).collect()), Timestamp::LAST);
        let (task, topic, due, group) = (row.key().clone(), row.topic(), row.state.due, row.group().cloned());
        for queue in names {
            let mut state = self.desk[slot].state.clone();
            state.phase = Phase::Waiting;
            state.queue = Some(queue.clone());
            // What happened to the task before is not the past of this row; but what a sweep did to it can be taken back.
            (state.past, state.log) = (None, None);
            let key = task.in_queue(&queue);
            // One that lost its task, as it may be in stores that older versions wrote: this task has its id now.
            if let Some(orphan) = self.desk.by_key(&key) {
                self.erase(orphan);
            }
            let seq = self.numbers.row();
            let part = Resident::new(key, seq, group.clone(), topic, state, None);
            let part = self.desk.insert(part);
            self.desk.edit(part).move_to(due.min(self.now));
            self.arrive(part, since);
        }
    }

    pub(super) fn end_part(&mut self, task: Slot, queue: &Name, ending: Ending) {
        self.touch(task);
        let now = self.now;
        let Phase::Spread(parts) = &mut self.desk.edit(task).state.phase else { return };
        if let Some(part) = parts.iter_mut().find(|part| part.queue == *queue) {
            part.finished = Some((ending, now));
        }
        if parts.iter().all(|part| part.finished.is_some()) {
            let done = parts.iter().any(|part| matches!(part.finished, Some((Ending::Done, _))));
            self.end(task, if done { Ending::Done } else { ending });
        }
    }

    /// The rows that have to change to change a task, if it is not too late: the task itself, or
    /// all of its deliveries if none was handed out.
    pub(super) fn open_parts(&self, slot: Slot) -> Result<Vec<Slot>, Standing> {
        let row = &self.desk[slot];
        if row.is_waiting() {
            return Ok(vec![slot]);
        }
        let Phase::Spread(parts) = &row.state.phase else { return Err(self.standing(slot)) };
        let mut open = Vec::with_capacity(parts.len());
        for part in parts {
            let part = self.desk.by_key(&row.key().in_queue(&part.queue)).filter(|_| part.finished.is_none());
            match part {
                Some(part) if self.desk[part].is_waiting() => open.push(part),
                Some(part) => return Err(self.standing(part)),
                None => return Err(self.standing(slot)),
            }
        }
        Ok(open)
    }

    /// The keys of the deliveries of a task that was broadcast, as far as they are not finished.
    pub(super) fn open_part_keys(&self, slot: Slot) -> Vec<Key> {
        let row = &self.desk[slot];
        let Phase::Spread(parts) = &row.state.phase else { return Vec::new() };
        let open = parts.iter().filter(|part| part.finished.is_none());
        open.map(|part| row.key().in_queue(&part.queue)).collect()
    }

    /// Whether it is one of several deliveries of a task that is not there. Its task was asked for with it.
    pub(super) fn is_orphan(&self, slot: Slot) -> bool {
        self.desk[slot].is_part() && self.desk.by_key(&self.desk[slot].key().of_task()).is_none()
    }
}
