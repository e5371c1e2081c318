//! The generator: what clients do. It knows nothing of what is right; that is the auditor's.

use std::collections::BTreeMap;

use bytes::Bytes;
use punctual_chance::Chance;
use punctual_core::store::{Key, ShardId};
use punctual_core::{
    Adjustment, Answer, Back, Backoff, Binding, Chosen, Command, DEFAULT_MAX_LEASE, Delivery, Ending, Form, Matching,
    Millis, Name, Order, Overflow, Pattern, QueueSettings, Rate, Refused, Reply, Reschedule, Retry, Revoke, RowId,
    Schedule, Scope, Selected, Shift, Subject, Sweep, SweepAction, Take, Task, TimeRange, Timestamp, TopicSettings,
    When,
};

use crate::clock::{EPOCH, Moment};
use crate::demand::{Demand, Purpose, What, Wish, shard_of};
use crate::profile::{Kind, Profile};

/// The topic whose hand-overs are watched to the millisecond.
pub const QUIET: &str = "quiet";
/// The topic whose queue has a rate that nobody changes.
pub const PACED: &str = "paced";
/// Where dead letters of other topics go.
const GRAVES: &str = "graves";
const TOPICS: [&str; 9] = ["plain", "retry", "fan", "mortal", "small", "brief", QUIET, "circle", PACED];
/// How many topics there are whose settings nobody puts: they come to be by being used.
const NEW_TOPICS: u64 = 12;
const YEAR: u64 = 365 * 24 * 3_600_000;

/// The clients.
#[derive(Debug)]
pub struct Workload {
    rng: Chance,
    shards: u16,
    /// Whether nodes see to it that settings agree in all shards; else clients put them into each shard by itself.
    agrees: bool,
    kind: Kind,
    longest_delay: u64,
    topics: BTreeMap<Name, TopicSettings>,
    queues: BTreeMap<Name, QueueSettings>,
    /// Tasks that were scheduled, or that somebody tried to schedule.
    known: Vec<(Name, Name)>,
    /// Rows whose numbers were told.
    rows: Vec<RowId>,
    next_id: u64,
}

/// A name that is known to be one.
pub fn name(text: impl AsRef<str>) -> Name {
    Name::new(text).expect("the simulation uses visible names")
}

fn new_topic(number: u64) -> Name {
    name(format!("new-{number}"))
}

impl Workload {
    /// The clients of a run.
    pub fn new(profile: &Profile, rng: &mut Chance) -> Workload {
        let mut rng = rng.fork();
        let mut topics = BTreeMap::new();
        let mut queues = BTreeMap::new();
        for topic in TOPICS.into_iter().chain([GRAVES, "flood"]) {
            topics.insert(
                name(topic),
                TopicSettings { history: Millis(rng.magnitude(1_000, 90_000_000)), ..Default::default() },
            );
            queues.insert(name(topic), queue(&mut rng));
        }
        let settings = |topics: &mut BTreeMap<Name, TopicSettings>, topic: &str, feeds: Vec<Binding>| {
            topics.get_mut(topic).expect("it is one of them").feeds = Some(feeds);
        };
        let words =
            |queue: &str, pattern: &str| Binding { queue: name(queue), pattern: Pattern::Words(pattern.into()) };
        settings(
            &mut topics,
            "fan",
            vec![words("fan-a", "a.#"), words("fan-b", "#.b"), words("fan-c", "*.b"), words("fan-d", "only-d")],
        );
        for queue_name in ["fan-a", "fan-b", "fan-c", "fan-d"] {
            queues.insert(name(queue_name), queue(&mut rng));
        }
        let brief = topics.get_mut("brief").expect("it is one of them");
        (brief.history, brief.ttl) = (Millis::ZERO, Some(Millis(rng.magnitude(1, 100_000))));
        for (queue, to) in [("mortal", GRAVES), ("circle", "circle"), ("fan-b", GRAVES)] {
            let settings = queues.get_mut(queue).expect("it is one of them");
            settings.dead_letter = Some(name(to));
            settings.retry.attempts = settings.retry.attempts.clamp(1, 2);
        }
        for (queue, most) in [("small", 6), ("fan-c", 3)] {
            let small = queues.get_mut(queue).expect("it is one of them");
            small.max_length = Some(rng.between(1, most));
            small.overflow = *rng.pick(&[Overflow::Refuse, Overflow::DropOldest]);
        }
        let quiet = queues.get_mut(QUIET).expect("it is one of them");
        quiet.rate = None;
        let paced = queues.get_mut(PACED).expect("it is one of them");
        paced.rate = Some(rate(&mut rng));
        Workload {
            rng,
            shards: profile.shards,
            agrees: profile.linked,
            kind: profile.kind,
            longest_delay: profile.longest_delay,
            topics,
            queues,
            known: Vec::new(),
            rows: Vec::new(),
            next_id: 0,
        }
    }

    /// The queues that there are.
    pub fn queues(&self) -> Vec<Name> {
        self.queues.keys().cloned().chain((0..NEW_TOPICS).map(new_topic)).collect()
    }

    /// Puts all settings in force as they are meant to be.
    pub fn settings(&self) -> Vec<Demand> {
        let topics = self
            .topics
            .iter()
            .map(|(name, settings)| Adjustment::PutTopic { name: name.clone(), settings: Box::new(settings.clone()) });
        let queues = self
            .queues
            .iter()
            .map(|(name, settings)| Adjustment::PutQueue { name: name.clone(), settings: Box::new(settings.clone()) });
        let wishes: Vec<Wish> = topics.chain(queues).map(Wish::Put).collect();
        if self.agrees {
            return wishes.into_iter().map(|wish| Demand::change(Purpose::Insists, wish)).collect();
        }
        let of_shard = |shard| wishes.iter().map(move |wish| Demand::command(Purpose::Insists, shard, plainly(wish)));
        (0..self.shards).map(ShardId).flat_map(of_shard).collect()
    }

    /// Tasks for a far future.
    pub fn hoard(&mut self, count: u64) -> Vec<Demand> {
        let far = |rng: &mut Chance| When::After(Millis(rng.between(3 * YEAR, 50 * YEAR)));
        (0..count)
            .map(|_| {
                let when = far(&mut self.rng);
                self.schedule_new("plain", when)
            })
            .collect()
    }

    /// Many tasks that are due at one instant, and a few others of another topic among them.
    pub fn flood(&mut self, count: u64, moment: Moment) -> Vec<Demand> {
        let due = When::At(Timestamp::from_millis(EPOCH + moment + self.rng.between(1_000, 60_000)));
        let spread = self.rng.magnitude(1, 2_000);
        (0..count)
            .map(|number| {
                let topic = if number % 100 == 50 { QUIET } else { "flood" };
                let demand = self.schedule_new(topic, due);
                demand.after(self.rng.below(spread))
            })
            .collect()
    }

    fn schedule_new(&mut self, topic: &str, when: When) -> Demand {
        self.next_id += 1;
        let id = name(format!("n{}", self.next_id));
        self.schedule(name(topic), id, when)
    }

    fn schedule(&mut self, topic: Name, id: Name, when: When) -> Demand {
        self.next_id += 1;
        let mut task = Task::new(topic.clone(), Bytes::from(format!("{topic}/{id} body {}", self.next_id)));
        task.when = when;
        if self.rng.percent(10) {
            task.headers.push(("from".into(), self.next_id.to_string()));
        }
        task.key = self.rng.percent(30).then(|| name(format!("key-{}", self.rng.below(6))));
        task.priority = self.rng.percent(20).then(|| self.rng.below(4) as u32);
        task.ttl = self.rng.percent(10).then(|| Millis(self.rng.magnitude(1, 600_000)));
        task.lease = self.rng.percent(15).then(|| Millis(self.rng.magnitude(500, 60_000)));
        let longest = Millis(self.rng.magnitude(500, 60_000));
        task.max_lease = self.rng.percent(10).then(|| longest.max(task.lease.unwrap_or(longest)));
        task.retry = self.rng.percent(5).then(|| retry(&mut self.rng));
        task.replace = self.rng.percent(8);
        if &*topic == "fan" {
            let routing_key = *self.rng.pick(&["a.b", "a.b", "a.c", "a.x.b", "only-d", "nowhere"]);
            task.routing_key = Some(name(routing_key));
        }
        self.known.push((topic.clone(), id.clone()));
        let shard = shard_of(&topic, &id, self.shards);
        let schedule = Schedule { task, id, id_is_new: false };
        let purpose = if self.rng.percent(70) { Purpose::Insists } else { Purpose::Client };
        Demand::command(purpose, shard, Command::Schedule(Box::new(schedule)))
    }

    fn when(&mut self, moment: Moment) -> When {
        let delay = match self.rng.below(100) {
            0..25 => 0,
            25..95 => self.rng.magnitude(1, self.longest_delay),
            95..99 => self.rng.magnitude(YEAR, 400 * YEAR),
            _ => u64::MAX,
        };
        let at = (EPOCH + moment).saturating_add(delay);
        if self.rng.percent(20) { When::At(Timestamp::from_millis(at)) } else { When::After(Millis(delay)) }
    }

    /// Something that a client wants.
    pub fn act(&mut self, moment: Moment) -> Vec<Demand> {
        match self.rng.below(100) {
            0..48 => {
                let is_new = self.rng.percent(8);
                let topic = if is_new { new_topic(self.rng.below(NEW_TOPICS)) } else { name(*self.rng.pick(&TOPICS)) };
                let when = self.when(moment);
                let fresh = format!("n{}", self.next_id);
                let id = if self.rng.percent(30) { format!("r{}", self.rng.below(12)) } else { fresh };
                vec![self.schedule(topic, name(id), when)]
            }
            48..60 => self.about_one(|topic, id, _| Command::Cancel { topic, id }),
            60..69 => self.about_row(),
            69..78 => self.about_one(|topic, id, rng| {
                let shift = match rng.below(5) {
                    0 => None,
                    1 => Some(Shift::To(Timestamp::from_millis(EPOCH + moment + rng.magnitude(1, 1_000_000)))),
                    2 | 3 => Some(Shift::In(Millis(rng.magnitude(1, 1_000_000)))),
                    _ => Some(Shift::By(rng.magnitude(1, 1_000_000) as i64 * if rng.percent(50) { -1 } else { 1 })),
                };
                let body = rng.percent(20).then(|| Bytes::from(format!("{topic}/{id} other body {}", rng.draw())));
                let body = body.map(|body| (Form::Text, body));
                let priority = rng.percent(20).then(|| rng.below(4) as u32);
                Command::Reschedule(Box::new(Reschedule { topic, id, shift, priority, body }))
            }),
            78..84 => self.about_one(|topic, id, rng| {
                let queue =
                    (&*topic == "fan" && rng.percent(80)).then(|| name(*rng.pick(&["fan-a", "fan-b", "fan-c"])));
                let selected = Selected { topic, id, queue };
                if rng.percent(60) { Command::Replay(selected) } else { Command::Purge(selected) }
            }),
            84..86 => self.about_one(|topic, id, rng| {
                let selected = Selected { topic, id, queue: None };
                let after = Back::After(Millis(rng.magnitude(1, 60_000)));
                let back = *rng.pick(&[Back::Retry, Back::After(Millis::ZERO), after]);
                let note = rng.percent(50).then(|| "it hangs".to_owned());
                Command::Revoke(Box::new(Revoke { selected, holder: None, back, note }))
            }),
            86..89 => self.sweep(),
            89..93 => self.pause(moment),
            93..96 => self.change_settings(),
            96 => {
                let after = self.rng.percent(50).then(|| name(*self.rng.pick(&TOPICS)));
                let chosen = Chosen::After { name: after, limit: self.rng.index(4) };
                let look = match self.rng.index(3) {
                    0 => Command::Topics(chosen),
                    1 => Command::Queues(chosen),
                    _ => Command::Total,
                };
                self.everywhere(look)
            }
            97 | 98 => self.delete(moment),
            _ => self.everywhere(Command::Forecast { unit: punctual_core::Unit::Hour, slots: 48 }),
        }
    }

    /// Several things about one task, asked at once.
    pub fn together(&mut self, moment: Moment) -> Vec<Demand> {
        let when = self.when(moment);
        let first = self.schedule_new("plain", when);
        let What::Command(shard, command) = &first.what else { return Vec::new() };
        let Command::Schedule(schedule) = &**command else { return Vec::new() };
        let (shard, topic, id) = (*shard, schedule.task.topic.clone(), schedule.id.clone());
        let mut demands = vec![first];
        for _ in 0..self.rng.between(1, 3) {
            let (topic, id) = (topic.clone(), id.clone());
            let command = if self.rng.percent(30) {
                Command::Cancel { topic, id }
            } else {
                let shift = Some(Shift::In(Millis(self.rng.magnitude(1, 1_000_000))));
                Command::Reschedule(Box::new(Reschedule { topic, id, shift, priority: None, body: None }))
            };
            demands.push(Demand::command(Purpose::Client, shard, command));
        }
        demands
    }

    fn about_one(&mut self, command: impl Fn(Name, Name, &mut Chance) -> Command) -> Vec<Demand> {
        if self.known.is_empty() {
            return Vec::new();
        }
        // Mostly of those that came last: they are the ones about to happen.
        let recent = if self.rng.percent(70) { self.known.len().saturating_sub(20) } else { 0 };
        let index = recent + self.rng.index(self.known.len() - recent);
        let (topic, id) = self.known[index].clone();
        let shard = shard_of(&topic, &id, self.shards);
        vec![Demand::command(Purpose::Client, shard, command(topic, id, &mut self.rng))]
    }

    /// Something about one row by its number, which may be that of one that is gone.
    fn about_row(&mut self) -> Vec<Demand> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let recent = if self.rng.percent(70) { self.rows.len().saturating_sub(20) } else { 0 };
        let row = self.rows[recent + self.rng.index(self.rows.len() - recent)].clone();
        let shard = shard_of(row.key.topic(), row.key.id(), self.shards);
        let command = match self.rng.below(5) {
            0 | 1 => Command::Remove { row, token: None },
            2 => Command::Hasten { row },
            _ => {
                let lease = self.rng.percent(50).then(|| Millis(self.rng.magnitude(1, 30_000)));
                Command::Take(Box::new(Take { row, consumer: name("taker"), lease }))
            }
        };
        vec![Demand::command(Purpose::Client, shard, command)]
    }

    /// What a client does with a delivery that it took; maybe nothing, and then its lease ends.
    fn work_on(&mut self, delivery: &Delivery) -> Option<Demand> {
        let Delivery { number, lease, .. } = delivery;
        let shard = shard_of(lease.key.topic(), lease.key.id(), self.shards);
        let row = RowId { key: lease.key.clone(), number: *number };
        let command = match self.rng.below(4) {
            0 => return None,
            1 => Command::Acknowledge(lease.clone()),
            _ => Command::Remove { row, token: Some(lease.token) },
        };
        Some(Demand::command(Purpose::Client, shard, command).after(self.rng.below(20_000)))
    }

    /// Remembers the number of a row.
    fn learn(&mut self, demand: &Demand, reply: Option<&Reply>) {
        if let What::Command(_, command) = &demand.what
            && let (Command::Schedule(schedule), Some(Ok(Answer::Scheduled(scheduled)))) = (&**command, reply)
        {
            let key = Key::task(&schedule.task.topic, &schedule.id);
            self.rows.push(RowId { key, number: scheduled.number });
        }
    }

    fn sweep(&mut self) -> Vec<Demand> {
        let topic = self.rng.percent(50).then(|| name(*self.rng.pick(&TOPICS)));
        let key = name(format!("key-{}", self.rng.below(6)));
        let by = self.rng.magnitude(1, 100_000) as i64;
        let all = TimeRange::ALL;
        let (matching, action) = match self.rng.below(6) {
            0 | 1 => (Matching::Key { key, topic }, SweepAction::Cancel),
            2 => (Matching::Key { key, topic }, SweepAction::Shift(Shift::By(by))),
            3 => (Matching::Dead { topic, queue: None, died: all }, SweepAction::Replay),
            4 => (Matching::Dead { topic, queue: None, died: all }, SweepAction::Purge),
            _ => {
                let ending = *self.rng.pick(&[None, Some(Ending::Done), Some(Ending::Cancelled)]);
                (Matching::History { topic: name("plain"), finished: all, ending }, SweepAction::Replay)
            }
        };
        let dry_run = self.rng.percent(20);
        // Others want something else with the same rows in the same step.
        let other = match (&matching, action) {
            (Matching::Dead { .. }, SweepAction::Replay) => Some(SweepAction::Purge),
            (Matching::Dead { .. }, SweepAction::Purge) => Some(SweepAction::Replay),
            _ => None,
        };
        let mut demands = Vec::new();
        if let Some(action) = other.filter(|_| self.rng.percent(30)) {
            let sweep = Sweep { matching: matching.clone(), within: Scope::ALL, action, dry_run: false };
            demands.extend(self.everywhere(Command::Sweep(Box::new(sweep))));
        }
        demands.extend(self.everywhere(Command::Sweep(Box::new(Sweep {
            matching,
            within: Scope::ALL,
            action,
            dry_run,
        }))));
        demands
    }

    fn pause(&mut self, moment: Moment) -> Vec<Demand> {
        if self.rng.percent(40) {
            let paused = self.rng.percent(50);
            let name = name(*self.rng.pick(&["plain", "retry", GRAVES]));
            return self.wish(&Wish::PauseTopic { name, paused });
        }
        let until = Timestamp::from_millis(EPOCH + moment + self.rng.magnitude(1_000, 600_000));
        let until = *self.rng.pick(&[None, Some(until), Some(until), Some(Timestamp::NEVER)]);
        let name = name(*self.rng.pick(&["plain", "fan-a", "mortal", "small", GRAVES]));
        self.wish(&Wish::PauseQueue { name, until })
    }

    fn change_settings(&mut self) -> Vec<Demand> {
        if self.rng.percent(30) {
            let topic = name(*self.rng.pick(&["plain", "retry", "mortal"]));
            let settings = self.topics.get_mut(&topic).expect("it is one of them");
            settings.history = Millis(self.rng.magnitude(1, 90_000_000));
            let settings = Box::new(settings.clone());
            return self.wish(&Wish::Put(Adjustment::PutTopic { name: topic, settings }));
        }
        let queue_name = name(*self.rng.pick(&["plain", "retry", "fan-a", "mortal", "circle"]));
        let dead_letter = self.queues[&queue_name].dead_letter.clone();
        let settings = QueueSettings { dead_letter, ..queue(&mut self.rng) };
        self.queues.insert(queue_name.clone(), settings.clone());
        self.wish(&Wish::Put(Adjustment::PutQueue { name: queue_name, settings: Box::new(settings) }))
    }

    /// Somebody deletes a topic or a queue. Callers give up and others come to do the same, while producers go on.
    fn delete(&mut self, moment: Moment) -> Vec<Demand> {
        let is_topic = self.rng.percent(50);
        let topic = *self.rng.pick(&["plain", "fan", "mortal", "brief"]);
        let queue = *self.rng.pick(&["plain", "fan-a", "fan-b", "fan-c", "mortal", "small", GRAVES]);
        let mut demands = Vec::new();
        for _ in 0..*self.rng.pick(&[1, 1, 2, 3]) {
            let force = self.rng.percent(70);
            let subject = if is_topic { Subject::Topic(name(topic)) } else { Subject::Queue(name(queue)) };
            let after = if self.rng.percent(40) { 0 } else { self.rng.magnitude(1, 2_000) };
            let wish = Wish::Delete { subject, force };
            demands.extend(self.wish(&wish).into_iter().map(|demand| demand.after(after)));
        }
        for _ in 0..self.rng.below(6) {
            let when = self.when(moment);
            let after = self.rng.magnitude(1, 2_000);
            demands.push(self.schedule_new(topic, when).after(after));
        }
        demands
    }

    /// Somebody wants other settings.
    fn wish(&mut self, wish: &Wish) -> Vec<Demand> {
        match self.agrees {
            true => vec![Demand::change(Purpose::Client, wish.clone())],
            false => self.everywhere(plainly(wish)),
        }
    }

    fn everywhere(&mut self, command: Command) -> Vec<Demand> {
        (0..self.shards).map(|shard| Demand::command(Purpose::Client, ShardId(shard), command.clone())).collect()
    }

    /// What a client does about an answer, or about none: it asks again, with the same id.
    pub fn answered(&mut self, demand: &Demand, reply: Option<&Reply>) -> Vec<Demand> {
        self.learn(demand, reply);
        if let Some(Ok(Answer::Reserved(deliveries))) = reply {
            return deliveries.iter().filter_map(|delivery| self.work_on(delivery)).collect();
        }
        // Settings are put until they are in force: what is being deleted will be gone.
        let is_change = matches!(demand.what, What::Change(_));
        let again = match (&demand.purpose, reply) {
            (Purpose::Insists, None) => true,
            (Purpose::Client, None) => demand.tries < 3 && self.rng.percent(60),
            (
                Purpose::Insists,
                Some(Err(Refused::TopicPaused(_) | Refused::BeingDeleted(_) | Refused::QueueFull(_))),
            ) => is_change || demand.tries < 5 && self.rng.percent(50),
            // Now and then somebody asks again although all is well.
            (_, Some(Ok(_))) => demand.tries == 0 && self.rng.percent(3),
            _ => false,
        };
        if !again {
            return Vec::new();
        }
        let after = self.rng.magnitude(1, 60_000);
        vec![Demand { after, tries: demand.tries + 1, ..demand.clone() }]
    }

    /// The kind of run.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

/// The same as a command to a shard by itself.
fn plainly(wish: &Wish) -> Command {
    match wish.clone() {
        Wish::Put(Adjustment::PutTopic { name, settings }) => Command::PutTopic { name, settings },
        Wish::Put(Adjustment::PutQueue { name, settings }) => Command::PutQueue { name, settings },
        Wish::PauseTopic { name, paused } => Command::PauseTopic { name, paused },
        Wish::PauseQueue { name, until } => Command::PauseQueue { name, until },
        Wish::Put(Adjustment::Delete { subject, force }) | Wish::Delete { subject, force } => match subject {
            Subject::Topic(name) => Command::DeleteTopic { name, force },
            Subject::Queue(name) => Command::DeleteQueue { name, force },
        },
    }
}

fn retry(rng: &mut Chance) -> Retry {
    let first = Millis(rng.magnitude(1, 30_000));
    let backoff = match rng.below(3) {
        0 => Backoff::Fixed(Millis::ZERO),
        1 => Backoff::Fixed(first),
        _ => Backoff::Exponential { first, cap: Millis(120_000) },
    };
    Retry { attempts: rng.between(0, 4) as u32, backoff, jitter_percent: *rng.pick(&[0, 10, 100]) }
}

fn rate(rng: &mut Chance) -> Rate {
    Rate { per_second: rng.between(1, 20) as u32, burst: rng.between(1, 3) as u32 }
}

fn queue(rng: &mut Chance) -> QueueSettings {
    let lease = Millis(rng.magnitude(500, 60_000));
    let max_lease = if rng.percent(30) { lease } else { DEFAULT_MAX_LEASE };
    QueueSettings {
        lease,
        max_lease,
        retry: retry(rng),
        dead_retention: rng.percent(30).then(|| Millis(rng.magnitude(1, 10_000_000) - 1)),
        rate: rng.percent(15).then(|| rate(rng)),
        order: *rng.pick(&[Order::Due, Order::Due, Order::Arrival]),
        ..QueueSettings::default()
    }
}
