//! The beginning of a step: what is to happen in it, and what was read for that.

use std::collections::HashSet;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::desk::Slot;
use super::directory::{QueueIndex, Route};
use super::enqueue::Doomed;
use super::needs::{Fetched, Needs};
use super::stretch::{Reading, Stretch};
use super::{Request, Shard};
use crate::board::Board;
use crate::state::Reason;
use crate::store::{Key, Position, Row, Table};
use crate::time::{Millis, Timestamp};

const CAME: &str = "each stretch that was asked for came";

/// What is to happen in the step that is being prepared. While one happens, it collects what is left to the next.
#[derive(Debug)]
pub(super) struct Agenda<R> {
    pub requests: Vec<Request<R>>,
    /// Timers that have come.
    pub due: Vec<Position>,
    /// Ready deliveries to be given up, for which the store has to be asked first.
    pub doomed: Vec<Doomed>,
    /// Which places of which queues consumers wait for.
    pub demand: Vec<(QueueIndex, Range<usize>)>,
    /// Whether any consumer waits, so that what comes due now is better read with its body.
    pub somebody_waits: bool,
    /// How many bodies were asked for in this step that are only wished for, and how long those are that came.
    pub wished: usize,
    pub came: usize,
    /// Rows read ahead.
    pub slice: Option<Stretch>,
    /// Rows to count by minute.
    pub minutes: Option<Stretch>,
    /// Rows that may have been kept long enough.
    pub kept: Vec<(Table, Millis, Stretch)>,
    /// The next rows of each job.
    pub jobs: Vec<Stretch>,
    /// What was asked for and is not there.
    pub absent_keys: HashSet<Key, FixedState>,
    pub absent_bodies: HashSet<Key, FixedState>,
    pub absent_positions: HashSet<Position, FixedState>,
}

impl<R> Default for Agenda<R> {
    fn default() -> Self {
        Agenda {
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

impl<R> Agenda<R> {
    /// Whether something was left to the next step, which follows at once.
    pub fn is_any(&self) -> bool {
        !self.requests.is_empty() || !self.doomed.is_empty()
    }

    fn stretches(&mut self) -> impl Iterator<Item = &mut Stretch> {
        let kept = self.kept.iter_mut().map(|(_, _, stretch)| stretch);
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
        let postponed = std::mem::replace(&mut self.agenda.requests, requests);
        if !postponed.is_empty() {
            self.agenda.requests.splice(..0, postponed);
        }
        self.timers.take_due(self.now, self.config.fires, &mut self.agenda.due);
        self.agenda.due.extend(self.flight.take_overtaken().into_iter().filter(|position| position.at <= self.now));
        // The wheel gives equal times in the order in which timers were set; a restart would give them by number.
        self.agenda.due.sort_unstable();
        self.collect_expired();
        // What fires in this step is not among the ready yet: it is read with its body if anybody waits at all.
        self.collect_demand(board);
        self.agenda.slice = self.next_slice().map(Stretch::scan);
        self.agenda.minutes = self.forecast.next_slice(self.now).map(Stretch::scan);
        let due = self.retained.due(self.now);
        self.agenda.kept.extend(due.map(|(period, scan)| (scan.table, period, Stretch::scan(scan))));
        self.agenda.jobs = self.jobs.iter().map(|job| job.next_stretch()).collect();

        let mut needs = self.rows_needed();
        for stretch in self.agenda.stretches() {
            match &stretch.reading {
                Reading::Scan(scan) => needs.scans.push(scan.clone()),
                Reading::Find(find) => needs.finds.push(find.clone()),
                Reading::Nothing => {}
            }
        }
        needs
    }

    /// Calls off the step that is being prepared, and gives back those who asked for something in it: nothing of it was
    /// done. Who waits for what earlier steps have begun is not among them.
    pub fn call_off(&mut self) -> impl Iterator<Item = R> {
        std::mem::take(&mut self.agenda).requests.into_iter().map(|request| request.reply)
    }

    /// Takes what was read, and says what to read now that it is known.
    pub fn supply(&mut self, fetched: Fetched) -> Needs {
        let Fetched { needs, keys, keys_with_bodies, positions, positions_with_bodies, scans, finds } = fetched;
        // How long bodies are tells how many more may be asked for.
        let bodies = keys_with_bodies.iter().chain(&positions_with_bodies).flatten();
        self.agenda.came += bodies.map(|row| row.body.len()).sum::<usize>();
        for (wanted, rows, with_body) in [(needs.keys, keys, false), (needs.keys_with_bodies, keys_with_bodies, true)] {
            for (key, row) in wanted.into_iter().zip(rows) {
                if let Some(row) = row {
                    self.take_in(row, with_body);
                }
                // What is not there now is not asked for again, or the step would never have all that it needs.
                let there = self.desk.by_key(&key).is_some_and(|slot| !with_body || self.desk[slot].body().is_some());
                if !there && with_body {
                    self.agenda.absent_bodies.insert(key.clone());
                }
                if !there {
                    self.agenda.absent_keys.insert(key);
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
                    self.agenda.absent_positions.insert(position);
                }
            }
        }
        // Stretches are asked for once, in the first round; what they bring up is asked for in the rounds after it.
        let (mut scans, mut finds) = (scans.into_iter(), finds.into_iter());
        let mut on_desk: Vec<Row> = Vec::new();
        if scans.len() + finds.len() > 0 {
            for stretch in self.agenda.stretches() {
                match stretch.reading {
                    Reading::Scan(_) => stretch.fill(scans.next().expect(CAME)),
                    Reading::Find(_) => stretch.fill_by_number(finds.next().expect(CAME)),
                    Reading::Nothing => {}
                }
            }
            // What is read ahead or counted is taken from its stretch later; what may be changed has to be on the desk.
            let worked_on = self.agenda.kept.iter().map(|(_, _, stretch)| stretch).chain(&self.agenda.jobs);
            on_desk.extend(worked_on.flat_map(|stretch| stretch.rows.iter().cloned()));
        }
        for row in on_desk {
            self.take_in(row, false);
        }
        self.rows_needed()
    }

    /// Puts a row from the store on the desk.
    pub(super) fn take_in(&mut self, row: Row, with_body: bool) {
        let Some(topic) = self.directory.topic_index(row.key.topic()) else {
            // A topic goes after its last row, so the row was removed here, and the store has yet to hear of it.
            assert!(self.desk.knows(&row.key), "{:?} has a topic, or was deleted with it", row.key);
            return;
        };
        if let Some(slot) = self.desk.supply(row, topic, with_body) {
            let ready_in = self.find_ready(slot);
            self.desk.stand_in(slot, ready_in);
            self.take_in_held(slot);
        }
    }

    /// The queue in whose ready set a row stands. It is where the row would go now, unless what its topic
    /// feeds has changed since it fired: then it is one of those that were fed before.
    fn find_ready(&self, slot: Slot) -> Option<QueueIndex> {
        let row = &self.desk[slot];
        if !row.is_waiting() || row.at() > self.now {
            return None;
        }
        let (priority, position) = (row.state.priority, row.position());
        let holds = |index: &QueueIndex| self.directory.queue(*index).holds(priority, position);
        if let Some(queue) = &row.state.queue {
            return self.directory.queue_index(queue).filter(holds);
        }
        // Where it stands is not written down, since firing is not: it is found by looking where it can be.
        let likely = match self.directory.route(row.topic(), row.state.routing()).0 {
            Route::To(queue) | Route::Detained { queue, .. } => Some(queue),
            // A delivery whose queue was deleted stays one delivery.
            Route::ToSeveral(queues) if row.is_part() => queues.first().copied(),
            Route::Nowhere | Route::ToSeveral(_) => None,
        };
        likely.filter(holds).or_else(|| self.directory.fed_before(row.topic()).find(holds))
    }

    fn collect_expired(&mut self) {
        let is_any = self.timers.next_expiry() <= self.now;
        let most = if is_any { self.expiries_allowed() } else { 0 };
        while self.agenda.doomed.len() < most {
            let Some(position) = self.timers.take_expired(self.now) else { break };
            self.agenda.doomed.push(Doomed { position, reason: Reason::Expired, pushed_from: None });
        }
    }
}
