//! A delay center that is too simple to be wrong: all tasks in one map, looked through from end to
//! end for every question. No wheel, no pages, no store, no cache.
//!
//! What it says about a command is what the shard has to say. Only leases and the ids of forwarded
//! dead letters have names of their own here; the caller translates them.

mod admin;
mod consumers;
mod life;
mod look;
mod numbered;
mod requests;

use std::collections::BTreeMap;

use bytes::Bytes;
use punctual_core::store::{Key, Table};
use punctual_core::{
    Attempt, Form, Headers, Limits, Millis, Name, Phase, QueueSettings, Reply, ShardConfig, Standing, State, Task,
    Timestamp, TopicSettings, Undone, What,
};

pub use consumers::Consumer;
use life::LeadsTo;

/// The number of a row: rows that came earlier have lower ones.
pub type Number = u64;

/// A task, or its delivery in one of several queues.
#[derive(Clone, Debug)]
pub struct Row {
    pub topic: Name,
    pub id: Name,
    /// The queue, for one of several deliveries.
    pub part: Option<Name>,
    pub group: Option<Name>,
    pub table: Table,
    /// When it wakes, died or finished.
    pub at: Timestamp,
    pub state: State,
    pub headers: Headers,
    pub body: Bytes,
    pub form: Form,
    /// The queue in which it waits for a consumer.
    pub ready_in: Option<Name>,
    /// Its attempts that came to nothing, as far as they are remembered.
    pub attempts: Vec<Attempt>,
    /// Its time has come, and it waits for the end of a deletion.
    pub detained: bool,
    /// The id under which it was sent on as a dead letter.
    pub sent_as: Option<Name>,
}

/// A dead letter that is to be scheduled in another topic.
#[derive(Clone, Debug)]
pub struct Sent {
    pub number: Number,
    pub journey: Number,
    pub key: Key,
    pub task: Task,
}

/// All that the delay center knows.
#[derive(Clone, Debug)]
pub struct Model {
    pub now: Timestamp,
    /// When the command that is being carried out was read.
    pub from: Timestamp,
    /// When what is handed over now reaches its consumer.
    pub hand_over_at: Timestamp,
    pub opened_at: Timestamp,
    pub limits: Limits,
    pub create_on_use: bool,
    pub keeps_history: bool,
    pub topics: BTreeMap<Name, TopicSettings>,
    pub queues: BTreeMap<Name, QueueSettings>,
    /// What is being deleted, and how much went with it. It is over when everything comes to rest.
    pub closing_topics: BTreeMap<Name, u64>,
    pub closing_queues: BTreeMap<Name, u64>,
    /// The number of the latest change of settings that was adopted.
    pub adopted: u64,
    pub rows: BTreeMap<Number, Row>,
    pub consumers: Vec<Consumer>,
    /// Which hand-out was a queue's latest.
    pub served: BTreeMap<Name, u64>,
    /// Answers that consumers got since the caller took them.
    pub answers: Vec<(u64, Reply)>,
    /// Dead letters that were sent on since the caller took them.
    pub sent: Vec<Sent>,
    /// What happened since the caller took it: to which row, in which queue.
    pub events: Vec<(Key, Option<Name>, What)>,
    /// Whether something was removed because it was kept long enough, since the caller looked.
    pub forgot: bool,
    last_number: Number,
}

impl Model {
    pub fn new(now: Timestamp, config: &ShardConfig) -> Model {
        Model {
            now,
            from: now,
            hand_over_at: now,
            opened_at: now,
            limits: config.limits,
            create_on_use: config.create_on_use,
            keeps_history: config.keeps_history,
            topics: BTreeMap::new(),
            queues: BTreeMap::new(),
            closing_topics: BTreeMap::new(),
            closing_queues: BTreeMap::new(),
            adopted: 0,
            rows: BTreeMap::new(),
            consumers: Vec::new(),
            served: BTreeMap::new(),
            answers: Vec::new(),
            sent: Vec::new(),
            events: Vec::new(),
            forgot: false,
            last_number: 0,
        }
    }

    /// The process has restarted: what is ready was not written down, so it arrives again.
    pub fn reopen(&mut self, now: Timestamp) {
        self.now = now;
        self.opened_at = self.now;
        self.rows.values_mut().for_each(|row| row.ready_in = None);
    }

    /// The clock went back: what has come due and was not handed out waits for its time again.
    pub fn go_back(&mut self, now: Timestamp) {
        self.now = now;
        self.opened_at = self.opened_at.min(now);
        for row in self.rows.values_mut().filter(|row| row.at > now) {
            row.ready_in = None;
        }
    }

    /// Everything that happens by itself at the present time, and then consumers get what is ready.
    pub fn settle(&mut self) {
        self.closing_topics.clear();
        self.closing_queues.clear();
        self.rows.values_mut().for_each(|row| row.detained = false);
        self.wake();
        // What died just now may be kept for no time.
        while self.rows.values().any(|row| self.kept_until(row) <= self.now) {
            self.wake();
        }
        self.serve();
    }

    /// Notes what happens to a row.
    fn note(&mut self, number: Number, what: What) {
        let row = &self.rows[&number];
        let queue = row.ready_in.clone().or(row.state.queue.clone());
        self.events.push((row.key(), queue, what));
    }

    /// The highest number that was given.
    pub fn last_number(&self) -> Number {
        self.last_number
    }

    fn number(&mut self) -> Number {
        self.last_number += 1;
        self.last_number
    }

    fn row(&mut self, number: Number) -> &mut Row {
        self.rows.get_mut(&number).expect("the row exists")
    }

    /// The row under this key.
    pub fn find(&self, key: &Key) -> Option<Number> {
        let rows = self.rows.iter();
        let found = rows.filter(|(_, row)| row.key() == *key).map(|(number, _)| *number).collect::<Vec<_>>();
        assert!(found.len() <= 1, "{key:?} is there once");
        found.first().copied()
    }

    /// The numbers of all rows that fit, in time order.
    fn those(&self, fits: impl Fn(&Row) -> bool) -> Vec<Number> {
        let fitting = self.rows.iter().filter(|(_, row)| fits(row));
        let mut found: Vec<(Timestamp, Number)> = fitting.map(|(number, row)| (row.at, *number)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, number)| number).collect()
    }

    /// Where a row stands.
    pub fn standing(&self, number: Number) -> Standing {
        let row = &self.rows[&number];
        let parts = |finished: bool| match &row.state.phase {
            Phase::Spread(parts) => {
                let fitting = parts.iter().filter(|part| part.finished.is_some() == finished);
                fitting.map(|part| part.queue.clone()).collect()
            }
            _ => Vec::new(),
        };
        match &row.state.phase {
            Phase::Waiting if row.at <= self.now => Standing::Ready { since: row.at },
            Phase::Waiting => Standing::Scheduled { at: row.at },
            Phase::Leased { holder, .. } => Standing::Leased {
                queue: row.state.queue.clone().expect("it was handed out from a queue"),
                holder: holder.clone(),
                until: row.at,
            },
            Phase::Spread(_) => Standing::Spread { open: parts(false), finished: parts(true) },
            Phase::Forwarding { death, .. } | Phase::Dead(death) => {
                Standing::Dead { reason: death.reason, at: death.at }
            }
            Phase::Finished(ending) => Standing::Finished { ending: *ending, at: row.at },
        }
    }
}

impl Row {
    pub fn key(&self) -> Key {
        Key::new(&self.topic, &self.id, self.part.as_deref().unwrap_or(""))
    }

    /// It is due now, and its attempts count from zero; what was before is its past.
    pub fn recall(&mut self, now: Timestamp) {
        let (attempts, failures, delay) = (self.state.attempts, self.state.failures, self.delay());
        (self.state.attempts, self.state.failures, self.state.due) = (0, 0, now);
        let past = self.state.past_mut();
        (past.attempts, past.failures) = (past.attempts + attempts, past.failures + failures);
        past.delay = Some(delay);
    }

    /// Remembers how the attempt ended that is under way: the first two of these and the last six stay.
    pub fn remember(&mut self, at: Timestamp, undone: Undone, note: Option<&str>) {
        let Phase::Leased { holder, .. } = &self.state.phase else { unreachable!("it is with a consumer") };
        let (number, holder, note) = (self.state.attempts, holder.clone(), note.map(str::to_owned));
        self.attempts.push(Attempt { number, at, holder, undone, note });
        if self.attempts.len() > 8 {
            self.attempts.remove(2);
        }
    }

    /// The delay that it was last given.
    pub fn delay(&self) -> Millis {
        let given = self.state.past.as_deref().and_then(|past| past.delay);
        given.unwrap_or(self.state.due.since(self.state.scheduled_at))
    }

    pub fn is_waiting(&self) -> bool {
        self.table == Table::Live && self.state.phase == Phase::Waiting
    }

    /// The first instant at which it is not worth handing over any more.
    pub fn expires_at(&self) -> Timestamp {
        match self.state.ttl {
            Some(ttl) => self.state.due.plus(ttl).plus(Millis(1)),
            None => Timestamp::NEVER,
        }
    }
}
