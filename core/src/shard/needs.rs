//! What a step has to read before everything can happen at one instant.

use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::desk::{Resident, Slot};
use super::directory::{QueueIndex, Route, TopicIndex};
use super::page::{Page, Wanted};
use super::{Doomed, Request, Shard, Timer};
use crate::board::Board;
use crate::command::Command;
use crate::name::Name;
use crate::settings::Order;
use crate::state::{Phase, Reason};
use crate::store::{Bodies, Find, Key, Position, Row, Scan, ShardId, Store, StoreError, Table};
use crate::time::{Millis, Timestamp};

/// How many bodies are asked for at first, when it is not known how long they are.
const FIRST_WISHES: usize = 64;

/// By what the first deliveries of several queues are compared: priority, time unless they go by arrival, number.
type Foremost = (u32, Timestamp, u64);

/// Rows to read before the step can go on.
#[derive(Debug, Default)]
pub struct Needs {
    keys: Vec<Key>,
    keys_with_bodies: Vec<Key>,
    positions: Vec<Position>,
    positions_with_bodies: Vec<Position>,
    scans: Vec<Scan>,
    finds: Vec<Find>,
}

/// The rows that were needed.
#[derive(Debug)]
pub struct Fetched {
    needs: Needs,
    keys: Vec<Option<Row>>,
    keys_with_bodies: Vec<Option<Row>>,
    positions: Vec<Option<Row>>,
    positions_with_bodies: Vec<Option<Row>>,
    scans: Vec<Vec<Row>>,
    finds: Vec<Vec<Row>>,
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

    /// Reads them.
    pub fn read(self, store: &dyn Store, shard: ShardId) -> Result<Fetched, StoreError> {
        let get = |keys: &[Key], bodies| if keys.is_empty() { Ok(Vec::new()) } else { store.get(shard, keys, bodies) };
        let fetch = |positions: &[Position], bodies| {
            if positions.is_empty() { Ok(Vec::new()) } else { store.fetch(shard, positions, bodies) }
        };
        Ok(Fetched {
            keys: get(&self.keys, Bodies::Without)?,
            keys_with_bodies: get(&self.keys_with_bodies, Bodies::With)?,
            positions: fetch(&self.positions, Bodies::Without)?,
            positions_with_bodies: fetch(&self.positions_with_bodies, Bodies::With)?,
            scans: self.scans.iter().map(|scan| store.scan(shard, scan)).collect::<Result<_, _>>()?,
            finds: self.finds.iter().map(|find| store.find(shard, find)).collect::<Result<_, _>>()?,
            needs: self,
        })
    }
}

/// What is to happen in the step that is being prepared.
#[derive(Debug)]
pub(super) struct Pending<R> {
    pub requests: Vec<Request<R>>,
    /// Timers that have come.
    pub due: Vec<Position>,
    pub doomed: Vec<Doomed>,
    /// Which places of which queues consumers wait for.
    demand: Vec<(QueueIndex, Range<usize>)>,
    /// Whether any consumer waits, so that what comes due now is better read with its body.
    somebody_waits: bool,
    /// How many bodies were asked for in this step that are only wished for, and how long those are that came.
    wished: usize,
    came: usize,
    /// Rows read ahead.
    pub slice: Option<Page>,
    /// Rows to count by minute.
    pub minutes: Option<Page>,
    /// Rows that may have been kept long enough.
    pub kept: Vec<(Table, Millis, Page)>,
    /// The next rows of each job.
    pub jobs: Vec<Page>,
    /// What was asked for and is not there.
    absent_keys: HashSet<Key, FixedState>,
    absent_bodies: HashSet<Key, FixedState>,
    absent_positions: HashSet<Position, FixedState>,
}

impl<R> Default for Pending<R> {
    fn default() -> Self {
        Pending {
            requests: Vec::new(),
            due: Vec::new(),
            doomed: Vec::new(),
            demand: Vec::new(),
            somebody_waits: false,
            wished: 0,
            came: 0,
            slice: None,
            minutes: None,
            kept: Vec::new(),
            jobs: Vec::new(),
            absent_keys: HashSet::default(),
            absent_bodies: HashSet::default(),
            absent_positions: HashSet::default(),
        }
    }
}

impl<R> Pending<R> {
    fn pages(&mut self) -> impl Iterator<Item = &mut Page> {
        let kept = self.kept.iter_mut().map(|(_, _, page)| page);
        self.slice.iter_mut().chain(&mut self.minutes).chain(kept).chain(&mut self.jobs)
    }
}

impl<R> Shard<R> {
    /// Begins a step at `now`, which may be before that of the last one: then the clock was wrong, and the shard
    /// goes back with it.
    pub fn prepare(&mut self, now: Timestamp, requests: Vec<Request<R>>, board: &Board<R>) -> Needs {
        if now < self.now {
            self.go_back(now);
        }
        self.now = now;
        self.pending.requests = requests;
        if !self.postponed.is_empty() {
            self.pending.requests.splice(..0, self.postponed.drain(..));
        }
        self.pending.doomed = std::mem::take(&mut self.doomed);
        // Taking a timer out of the wheel is cheap, firing it is not: all come out, so that none hides behind others.
        while let Some((at, Timer { seq, topic })) = self.wheel.pop(self.now.as_millis()) {
            self.late.push(topic, Position { at: Timestamp::from_millis(at), seq });
        }
        for (topic, position) in self.late.take(self.config.fires) {
            // Its time may have gone again, with a clock that was ahead.
            match position.at <= self.now {
                true => self.pending.due.push(position),
                false => _ = self.wheel.insert(position.at.as_millis(), Timer { seq: position.seq, topic }),
            }
        }
        self.pending.due.extend(self.handed.take_overtaken().into_iter().filter(|position| position.at <= self.now));
        // The wheel gives equal times in the order in which timers were set; a restart would give them by number.
        self.pending.due.sort_unstable();
        self.collect_expired();
        self.collect_demand(board);
        self.pending.slice = self.next_slice().map(Page::scan);
        self.pending.minutes = self.forecast.next_slice(self.now).map(Page::scan);
        for retention in [&self.history, &self.dead] {
            let due = retention.due(self.now);
            self.pending.kept.extend(due.map(|(period, scan)| (scan.table, period, Page::scan(scan))));
        }
        self.pending.jobs = self.jobs.iter().map(|job| job.next_page()).collect();

        let mut needs = self.rows_needed();
        for page in self.pending.pages() {
            match &page.wanted {
                Wanted::Scan(scan) => needs.scans.push(scan.clone()),
                Wanted::Find(find) => needs.finds.push(find.clone()),
            }
        }
        needs
    }

    /// Takes what was read, and says what to read now that it is known.
    pub fn supply(&mut self, fetched: Fetched) -> Needs {
        let Fetched { needs, keys, keys_with_bodies, positions, positions_with_bodies, scans, finds } = fetched;
        let bodies = keys_with_bodies.iter().chain(&positions_with_bodies).flatten();
        self.pending.came += bodies.map(|row| row.body.len()).sum::<usize>();
        for (wanted, rows, with_body) in [(needs.keys, keys, false), (needs.keys_with_bodies, keys_with_bodies, true)] {
            for (key, row) in wanted.into_iter().zip(rows) {
                if let Some(row) = row {
                    self.take_in(row, with_body);
                }
                let there = self.desk.by_key(&key).is_some_and(|slot| !with_body || self.desk[slot].body.is_some());
                if !there && with_body {
                    self.pending.absent_bodies.insert(key.clone());
                }
                if !there {
                    self.pending.absent_keys.insert(key);
                }
            }
        }
        let by_position =
            [(needs.positions, positions, false), (needs.positions_with_bodies, positions_with_bodies, true)];
        for (wanted, rows, with_body) in by_position {
            for (position, row) in wanted.into_iter().zip(rows) {
                if let Some(row) = row {
                    self.take_in(row, with_body);
                }
                // The store may show a row that is removed here.
                if self.desk.by_seq(position.seq).is_none() {
                    self.pending.absent_positions.insert(position);
                }
            }
        }
        let (mut scans, mut finds) = (scans.into_iter(), finds.into_iter());
        let mut on_desk: Vec<Row> = Vec::new();
        if scans.len() + finds.len() > 0 {
            for page in self.pending.pages() {
                let rows = match page.wanted {
                    Wanted::Scan(_) => scans.next(),
                    Wanted::Find(_) => finds.next(),
                };
                page.rows = rows.expect("each page that was asked for came");
            }
            let worked_on = self.pending.kept.iter().map(|(_, _, page)| page).chain(&self.pending.jobs);
            on_desk.extend(worked_on.flat_map(|page| page.rows.iter().cloned()));
        }
        for row in on_desk {
            self.take_in(row, false);
        }
        self.rows_needed()
    }

    /// Puts a row from the store on the desk.
    pub(super) fn take_in(&mut self, row: Row, with_body: bool) {
        let Some(topic) = self.directory.topic_index(row.key.topic()) else {
            assert!(self.desk.knows(&row.key), "{:?} has a topic, or was deleted with it", row.key);
            return;
        };
        if let Some(slot) = self.desk.supply(row, topic, with_body) {
            let ready_in = self.find_ready(slot);
            self.desk[slot].ready_in = ready_in;
        }
    }

    /// The queue in whose ready set a row stands. It is where the row would go now, unless what its topic
    /// feeds has changed since it fired: then it is one of those that were fed before.
    fn find_ready(&self, slot: Slot) -> Option<QueueIndex> {
        let row = &self.desk[slot];
        if !row.is_waiting() || row.at > self.now {
            return None;
        }
        let (priority, position) = (row.state.priority, row.position());
        let holds = |index: &QueueIndex| self.directory.queue(*index).holds(priority, position);
        if let Some(queue) = &row.state.queue {
            return self.directory.queue_index(queue).filter(holds);
        }
        let likely = match self.directory.route(row.topic, row.state.routing()).0 {
            Route::To(queue) | Route::Detained { queue, .. } => Some(queue),
            // A delivery whose queue was deleted stays one delivery.
            Route::ToSeveral(queues) if row.is_part() => queues.first().copied(),
            Route::Nowhere | Route::ToSeveral(_) => None,
        };
        likely.filter(holds).or_else(|| self.directory.fed_before(row.topic).find(holds))
    }

    fn collect_expired(&mut self) {
        let is_any = self.expiries.first().is_some_and(|(at, _)| *at <= self.now);
        let most = if is_any { self.expiries_allowed() } else { 0 };
        while self.pending.doomed.len() < most {
            let Some((at, position)) = self.expiries.first().copied().filter(|(at, _)| *at <= self.now) else { break };
            self.expiries.remove(&(at, position));
            self.pending.doomed.push(Doomed { position, reason: Reason::Expired, pushed_from: None });
        }
    }

    fn collect_demand(&mut self, board: &Board<R>) {
        self.pending.somebody_waits = !board.is_empty();
        if board.is_empty() {
            return;
        }
        let servable = self.servable(board).into_iter().map(|(_, queue)| queue);
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
        self.pending.demand.extend(firsts.into_iter().map(|(_, index)| (index, 0..1)));
        // Those who come first when things are handed out come first here, too.
        for (index, queue) in queues {
            if left == 0 {
                break;
            }
            let wanted = board.demand(&queue, left + 1).min(self.directory.queue(index).ready.len() as usize);
            if wanted > 1 {
                self.pending.demand.push((index, 1..wanted));
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
        if self.pending.absent_positions.is_empty() && self.pending.absent_bodies.is_empty() {
            return;
        }
        for (index, places) in std::mem::take(&mut self.pending.demand) {
            self.give_up_bodiless(index, &places);
            let ready = &self.directory.queue(index).ready;
            let absent = |(_, position): &(u32, Position)| self.pending.absent_positions.contains(position);
            let absent: Vec<(u32, Position)> =
                ready.iter().take(places.end).skip(places.start).filter(absent).collect();
            for (priority, position) in absent {
                self.directory.leave_ready(index, priority, position);
            }
            let queue = self.directory.queue(index);
            if queue.ready.is_empty() && self.stocked.remove(&queue.name) {
                self.restocked.insert(queue.name.clone());
            }
        }
    }

    fn give_up_bodiless(&mut self, index: QueueIndex, places: &Range<usize>) {
        let is_bodiless = |slot: &Slot| {
            let row = &self.desk[*slot];
            row.body.is_none() && self.pending.absent_bodies.contains(&row.key.of_task())
        };
        let ready = self.directory.queue(index).ready.iter().take(places.end).skip(places.start);
        let bodiless: Vec<Slot> =
            ready.filter_map(|(_, position)| self.desk.at(position)).filter(is_bodiless).collect();
        for slot in bodiless {
            self.die(slot, Reason::Lost, None);
        }
    }

    /// The rows that are needed and, as far as is known by now, not in memory.
    fn rows_needed(&mut self) -> Needs {
        let mut needs = Needs::default();
        let mut wishes = self.wishes();
        let before = wishes;
        self.rows_needed_by_timers(&mut needs, &mut wishes);
        for request in &self.pending.requests {
            self.rows_needed_by(&request.command, request.read_at, &mut needs);
        }
        for (queue, places) in &self.pending.demand {
            for (_, position) in self.directory.queue(*queue).ready.iter().take(places.end).skip(places.start) {
                match self.desk.by_seq(position.seq) {
                    Some(slot) => self.wish_body(slot, &mut needs, &mut wishes),
                    None if self.pending.absent_positions.contains(&position) || wishes == 0 => {}
                    None => {
                        wishes -= 1;
                        needs.positions_with_bodies.push(position);
                    }
                }
            }
        }
        let worked_on = self.pending.kept.iter().map(|(_, _, page)| page).chain(&self.pending.jobs);
        for row in worked_on.flat_map(|page| &page.rows) {
            self.need_relatives(&row.key, &mut needs);
        }
        for key in self.jobs.iter().flat_map(|job| job.left()) {
            self.need_relatives(key, &mut needs);
            self.need_key(key, &mut needs);
        }
        if !self.pending.jobs.is_empty() {
            // Jobs also work on rows that the store does not show yet.
            for slot in self.desk.dirty() {
                self.need_relatives(&self.desk[slot].key, &mut needs);
            }
        }
        self.pending.wished += before - wishes;
        needs
    }

    /// How many bodies to ask for that are to be handed out, so that about as many bytes are read in a step as may
    /// be. How long they are is known from those that have come; without any, a few tell.
    fn wishes(&self) -> usize {
        if self.pending.wished == 0 {
            return FIRST_WISHES;
        }
        let length = (self.pending.came / self.pending.wished).max(1);
        self.config.read_bytes.saturating_sub(self.pending.came) / length
    }

    fn rows_needed_by_timers(&self, needs: &mut Needs, wishes: &mut usize) {
        for position in &self.pending.due {
            match self.desk.by_seq(position.seq) {
                Some(slot) => match self.desk[slot].state.phase {
                    Phase::Waiting => {
                        self.need_namesakes(&self.desk[slot], needs);
                        if self.pending.somebody_waits {
                            self.wish_body(slot, needs, wishes);
                        }
                    }
                    Phase::Forwarding { .. } => self.need_body(slot, needs),
                    _ => {}
                },
                None if self.pending.absent_positions.contains(position) => {}
                None if self.pending.somebody_waits && *wishes > 0 => {
                    *wishes -= 1;
                    needs.positions_with_bodies.push(*position);
                }
                None => needs.positions.push(*position),
            }
        }
        for doomed in &self.pending.doomed {
            let known = self.desk.by_seq(doomed.position.seq).is_some();
            if !known && !self.pending.absent_positions.contains(&doomed.position) {
                needs.positions.push(doomed.position);
            }
        }
    }

    /// The body of a row that is about to be handed over, as long as not too many are asked for.
    fn wish_body(&self, slot: Slot, needs: &mut Needs, wishes: &mut usize) {
        if *wishes > 0 {
            let before = needs.keys_with_bodies.len();
            self.need_body(slot, needs);
            *wishes -= needs.keys_with_bodies.len() - before;
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
        if !self.desk.knows(key) && !self.pending.absent_keys.contains(key) {
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
            self.need_parts_of(&row.key, row.topic, row.state.routing(), needs);
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
    fn need_body(&self, slot: Slot, needs: &mut Needs) {
        let row = &self.desk[slot];
        if row.body.is_some() {
            return;
        }
        let key = row.key.of_task();
        let task = if row.is_part() { self.desk.by_key(&key) } else { Some(slot) };
        let there = task.is_some_and(|task| self.desk[task].body.is_some());
        if !there && !self.pending.absent_keys.contains(&key) {
            needs.keys_with_bodies.push(key);
        }
    }
}
