//! What a step has to read before everything can happen at one instant.

use super::Shard;
use super::desk::{Resident, Slot};
use super::directory::{Route, TopicIndex};
use crate::command::Command;
use crate::state::Phase;
use crate::store::{Bodies, Find, Key, Page, Position, Row, Scan, ShardId, Store, StoreError, Tenure, Want};
use crate::time::Timestamp;

/// Rows to read before the step can go on.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    pub(super) keys: Vec<Key>,
    pub(super) keys_with_bodies: Vec<Key>,
    pub(super) positions: Vec<Position>,
    pub(super) positions_with_bodies: Vec<Position>,
    pub(super) scans: Vec<Scan>,
    pub(super) finds: Vec<Find>,
}

/// The rows that were needed.
#[derive(Debug)]
pub struct Fetched {
    pub(super) needs: Needs,
    pub(super) keys: Vec<Option<Row>>,
    pub(super) keys_with_bodies: Vec<Option<Row>>,
    pub(super) positions: Vec<Option<Row>>,
    pub(super) positions_with_bodies: Vec<Option<Row>>,
    pub(super) scans: Vec<Page<Position>>,
    pub(super) finds: Vec<Page<u64>>,
}

impl Needs {
    /// Whether nothing is to be read.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.keys_with_bodies.is_empty()
            && self.positions.is_empty()
            && self.positions_with_bodies.is_empty()
            && self.scans.is_empty()
            && self.finds.is_empty()
    }

    /// Reads them, all at once, for the shard's owner.
    pub fn read(self, store: &dyn Store, shard: ShardId, tenure: Tenure) -> Result<Fetched, StoreError> {
        let mut wants: Vec<Want<'_>> = Vec::with_capacity(4 + self.scans.len() + self.finds.len());
        for (keys, bodies) in [(&self.keys, Bodies::Without), (&self.keys_with_bodies, Bodies::With)] {
            wants.extend((!keys.is_empty()).then_some(Want::Keys(keys, bodies)));
        }
        for (positions, bodies) in [(&self.positions, Bodies::Without), (&self.positions_with_bodies, Bodies::With)] {
            wants.extend((!positions.is_empty()).then_some(Want::Positions(positions, bodies)));
        }
        wants.extend(self.scans.iter().map(Want::Scan));
        wants.extend(self.finds.iter().map(Want::Find));
        let mut found = store.read(shard, tenure, &wants)?.into_iter();
        let mut next = || found.next().expect("a store answers each want");
        let mut each = |was_asked: bool| if was_asked { next().each() } else { Vec::new() };
        Ok(Fetched {
            keys: each(!self.keys.is_empty()),
            keys_with_bodies: each(!self.keys_with_bodies.is_empty()),
            positions: each(!self.positions.is_empty()),
            positions_with_bodies: each(!self.positions_with_bodies.is_empty()),
            scans: self.scans.iter().map(|_| next().span()).collect(),
            finds: self.finds.iter().map(|_| next().members()).collect(),
            needs: self,
        })
    }
}

impl<R> Shard<R> {
    /// The rows that are needed and, as far as is known by now, not in memory.
    pub(super) fn rows_needed(&mut self) -> Needs {
        let mut needs = Needs::default();
        let mut wishes = self.wishes();
        let before = wishes;
        self.rows_needed_by_timers(&mut needs, &mut wishes);
        for request in &self.agenda.requests {
            self.rows_needed_by(&request.command, request.read_at, &mut needs);
        }
        // What is ready comes after what fires, which is on its way to the desk in any case.
        for (queue, places) in &self.agenda.demand {
            for (_, position) in self.directory.queue(*queue).ready.iter().take(places.end).skip(places.start) {
                match self.desk.by_seq(position.seq) {
                    Some(slot) => self.wish_body(slot, &mut needs, &mut wishes),
                    None if self.agenda.absent_positions.contains(&position) || wishes == 0 => {}
                    None => {
                        wishes -= 1;
                        needs.positions_with_bodies.push(position);
                    }
                }
            }
        }
        let worked_on = self.agenda.kept.iter().map(|(_, _, stretch)| stretch).chain(&self.agenda.jobs);
        for row in worked_on.flat_map(|stretch| &stretch.rows) {
            self.need_relatives(&row.key, &mut needs);
        }
        for key in self.jobs.iter().flat_map(|job| job.left()) {
            self.need_relatives(key, &mut needs);
            self.need_key(key, &mut needs);
        }
        if !self.agenda.jobs.is_empty() {
            // Jobs also work on rows that the store does not show yet.
            for slot in self.desk.dirty() {
                self.need_relatives(self.desk[slot].key(), &mut needs);
            }
        }
        self.agenda.wished += before - wishes;
        needs
    }

    fn rows_needed_by_timers(&self, needs: &mut Needs, wishes: &mut usize) {
        for position in &self.agenda.due {
            match self.desk.by_seq(position.seq) {
                Some(slot) => match self.desk[slot].state.phase {
                    Phase::Waiting => {
                        self.need_namesakes(&self.desk[slot], needs);
                        if self.agenda.somebody_waits {
                            self.wish_body(slot, needs, wishes);
                        }
                    }
                    Phase::Forwarding { .. } => self.need_body(slot, needs),
                    _ => {}
                },
                None if self.agenda.absent_positions.contains(position) => {}
                None if self.agenda.somebody_waits && *wishes > 0 => {
                    *wishes -= 1;
                    needs.positions_with_bodies.push(*position);
                }
                None => needs.positions.push(*position),
            }
        }
        for doomed in &self.agenda.doomed {
            let known = self.desk.by_seq(doomed.position.seq).is_some();
            if !known && !self.agenda.absent_positions.contains(&doomed.position) {
                needs.positions.push(doomed.position);
            }
        }
    }

    fn rows_needed_by(&self, command: &Command, read_at: Timestamp, needs: &mut Needs) {
        match command {
            Command::Schedule(schedule) if !schedule.id_is_new => {
                let key = Key::task(&schedule.task.topic, &schedule.id);
                self.need_relatives(&key, needs);
                self.need_key(&key, needs);
                let topic = self.directory.topic_index(&schedule.task.topic);
                if let Some(topic) = topic.filter(|_| schedule.task.when.due(self.now, read_at) <= self.now) {
                    let routing_key = schedule.task.routing_key.as_deref().unwrap_or("");
                    self.need_parts_of(&key, topic, routing_key, needs);
                }
            }
            Command::Forget { topic, id, .. } => self.need_key(&Key::task(topic, id), needs),
            Command::Cancel { topic, id } => {
                let key = Key::task(topic, id);
                self.need_relatives(&key, needs);
                self.need_key(&key, needs);
            }
            Command::Reschedule(change) => {
                let key = Key::task(&change.topic, &change.id);
                self.need_relatives(&key, needs);
                match self.desk.by_key(&key) {
                    Some(slot) if change.body.is_some() => self.need_body(slot, needs),
                    _ => self.need_key(&key, needs),
                }
            }
            Command::Acknowledge(lease)
            | Command::Release { lease, .. }
            | Command::Reject { lease, .. }
            | Command::Extend { lease, .. } => {
                if !lease.key.queue().is_empty() {
                    self.need_key(&lease.key.of_task(), needs);
                }
                self.need_key(&lease.key, needs);
            }
            Command::Replay(selected) | Command::Purge(selected) => {
                let key = selected.key();
                self.need_relatives(&key, needs);
                self.need_key(&key, needs);
            }
            Command::Restore { topic, id } => self.need_key(&Key::task(topic, id), needs),
            Command::Revoke(revoke) => {
                let key = revoke.selected.key();
                self.need_relatives(&key, needs);
                self.need_key(&key, needs);
            }
            Command::Forwarded { key, .. } => {
                self.need_relatives(key, needs);
                self.need_key(key, needs);
            }
            Command::Remove { row, .. } | Command::Hasten { row } => {
                self.need_relatives(&row.key, needs);
                self.need_key(&row.key, needs);
            }
            Command::Take(take) => {
                self.need_relatives(&take.row.key, needs);
                match self.desk.by_key(&take.row.key) {
                    Some(slot) => self.need_body(slot, needs),
                    None => self.need_key(&take.row.key, needs),
                }
            }
            _ => {}
        }
    }

    /// A row, if it is not on the desk.
    fn need_key(&self, key: &Key, needs: &mut Needs) {
        if !self.desk.knows(key) && !self.agenda.absent_keys.contains(key) {
            needs.keys.push(key.clone());
        }
    }

    /// The task of a delivery, or the deliveries of a task that was broadcast.
    fn need_relatives(&self, key: &Key, needs: &mut Needs) {
        if !key.queue().is_empty() {
            self.need_key(&key.of_task(), needs);
        } else if let Some(slot) = self.desk.by_key(key) {
            let row = &self.desk[slot];
            match &row.state.phase {
                Phase::Spread(parts) => {
                    for part in parts.iter().filter(|part| part.finished.is_none()) {
                        self.need_key(&key.in_queue(&part.queue), needs);
                    }
                }
                Phase::Waiting => self.need_namesakes(row, needs),
                Phase::Leased { .. } | Phase::Dead(_) | Phase::Forwarding { .. } | Phase::Finished(_) => {}
            }
        }
    }

    fn need_namesakes(&self, row: &Resident, needs: &mut Needs) {
        if !row.is_part() {
            self.need_parts_of(row.key(), row.topic(), row.state.routing(), needs);
        }
    }

    /// The rows whose keys the deliveries of a task will have if it is broadcast. There are none, unless a store that an
    /// older version wrote has lost the task of the same id that they belonged to.
    fn need_parts_of(&self, key: &Key, topic: TopicIndex, routing_key: &str, needs: &mut Needs) {
        let feeds = self.directory.topic(topic).settings.feeds.as_ref();
        if feeds.is_none_or(|feeds| feeds.len() < 2) {
            return;
        }
        if let (Route::ToSeveral(queues), _) = self.directory.route(topic, routing_key) {
            for queue in queues {
                self.need_key(&key.in_queue(&self.directory.queue(queue).name), needs);
            }
        }
    }

    /// The body of a row that is on the desk; a delivery's is its task's.
    pub(super) fn need_body(&self, slot: Slot, needs: &mut Needs) {
        let row = &self.desk[slot];
        if row.body().is_some() {
            return;
        }
        let key = row.key().of_task();
        let task = if row.is_part() { self.desk.by_key(&key) } else { Some(slot) };
        let there = task.is_some_and(|task| self.desk[task].body().is_some());
        if !there && !self.agenda.absent_keys.contains(&key) {
            needs.keys_with_bodies.push(key);
        }
    }
}
