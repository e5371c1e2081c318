//! The consumers: they take deliveries and do with them what consumers do: work, dawdle, give
//! back, refuse, ask for more time, or die.

use punctual_chance::Chance;
use punctual_core::{Answer, Back, Choice, Command, Delivery, Lease, Millis, Name, Reply, Reserve, RowId, Timestamp};

use crate::clock::{EPOCH, Moment};
use crate::demand::{Demand, Purpose, What, shard_of};
use crate::profile::Profile;
use crate::workload::{QUIET, name};

/// How many consumers do nothing but wait for the topic whose hand-overs are watched.
const WATCHERS: usize = 4;

/// All consumers of a run.
#[derive(Debug)]
pub struct Consumers {
    rng: Chance,
    shards: u16,
    /// The queues that each asks for.
    queues: Vec<Vec<Name>>,
    /// How long they rest and wait at most.
    patience: Moment,
    /// How long those wait who do nothing else.
    forever: Millis,
    /// Whether it does not matter in the end where one waits.
    linked: bool,
    /// From now on everybody works well.
    good: bool,
}

impl Consumers {
    /// Some that ask for several queues, one for each queue, and those that watch.
    pub fn new(profile: &Profile, all: &[Name], rng: &mut Chance) -> Consumers {
        let mut rng = rng.fork();
        let busy = rng.between(1, 4);
        let mut queues: Vec<Vec<Name>> = (0..WATCHERS).map(|_| vec![name(QUIET)]).collect();
        let others: Vec<Name> = all.iter().filter(|queue| &***queue != QUIET).cloned().collect();
        for _ in 0..busy {
            let count = rng.between(1, 5);
            queues.push((0..count).map(|_| rng.pick(&others).clone()).collect());
        }
        queues.push(others);
        let patience = (profile.length / 60).max(60_000);
        // With several nodes, or answers that get lost, one has to look elsewhere now and then.
        let forever = match (profile.exact, profile.nodes) {
            (true, _) => Millis(u64::MAX),
            (false, 1) => Millis::from_hours(1),
            (false, _) => Millis::from_mins(5),
        };
        Consumers { linked: profile.linked, rng, shards: profile.shards, queues, patience, forever, good: false }
    }

    /// From now on they take everything and acknowledge it.
    pub fn behave(&mut self) {
        self.good = true;
        if self.linked {
            self.forever = Millis(u64::MAX);
        }
    }

    /// All ask for the first time.
    pub fn begin(&mut self) -> Vec<Demand> {
        (0..self.queues.len()).map(|index| self.ask(index)).collect()
    }

    fn watches(&self, index: usize) -> bool {
        index < WATCHERS
    }

    fn ask(&mut self, index: usize) -> Demand {
        let forever = self.good || self.watches(index);
        let wait = match self.rng.below(10) {
            _ if forever => self.forever,
            0 | 1 => Millis::ZERO,
            _ => Millis(self.rng.magnitude(1_000, self.patience)),
        };
        let rest = if forever { 0 } else { self.rng.below(self.patience / 2) };
        let reserve = Reserve {
            queues: self.queues[index].clone(),
            max: if self.watches(index) { 1 } else { self.rng.magnitude(1, 8) as usize },
            lease: self.lease(),
            until: Timestamp::ZERO,
            consumer: name(format!("consumer-{index}")),
            choice: *self.rng.pick(&[Choice::InTurn, Choice::InTurn, Choice::Foremost]),
        };
        Demand { purpose: Purpose::Consumer(index), what: What::Reserve(reserve, wait), after: rest, tries: 0 }
    }

    /// Some ask for a lease of their own, a few for one that is over before they can say anything.
    fn lease(&mut self) -> Option<Millis> {
        match self.rng.below(20) {
            0 if !self.good => Some(Millis(self.rng.magnitude(1, 100))),
            1..6 => Some(Millis(self.rng.magnitude(2_000, 120_000))),
            _ => None,
        }
    }

    /// What a consumer does with what it got, or about getting no answer; it always asks again.
    pub fn reserved(&mut self, index: usize, reply: Option<&Reply>, moment: Moment) -> Vec<Demand> {
        let mut demands = Vec::new();
        if let Some(Ok(Answer::Reserved(deliveries))) = reply {
            for delivery in deliveries {
                self.work_on(index, delivery, moment, &mut demands);
            }
        }
        let mut ask = self.ask(index);
        if reply.is_none() {
            ask.after += 500;
        }
        demands.push(ask);
        demands
    }

    fn work_on(&mut self, index: usize, delivery: &Delivery, moment: Moment, demands: &mut Vec<Demand>) {
        let lease = delivery.lease.clone();
        let row = || RowId { key: delivery.lease.key.clone(), number: delivery.number };
        // By the consumer's own clock, which is right; the node's may not be.
        let length = delivery.until.as_millis().saturating_sub(EPOCH + moment).clamp(1, 600_000);
        let work = self.rng.below(length / 2 + 1);
        let mut say = |consumers: &mut Consumers, command: Command, after: Moment| {
            demands.push(consumers.about(index, &lease, command, after));
        };
        if self.good || self.watches(index) {
            return say(self, Command::Acknowledge(lease.clone()), 0);
        }
        match self.rng.below(100) {
            0..40 => say(self, Command::Acknowledge(lease.clone()), work),
            40..50 => say(self, Command::Remove { row: row(), token: Some(lease.token) }, work),
            50..56 => say(self, Command::Acknowledge(lease.clone()), length + 1 + work),
            // After its lease it may still remove what nobody else holds.
            56..62 => say(self, Command::Remove { row: row(), token: Some(lease.token) }, length + 1 + work),
            62..64 => say(self, Command::Remove { row: row(), token: None }, work),
            64..67 => say(self, Command::Hasten { row: row() }, length + 1 + work),
            67..73 => {}
            73..80 => {
                let note = self.rng.percent(50).then(|| format!("not yet, at {moment}"));
                let priority = self.rng.percent(30).then(|| self.rng.below(4) as u32);
                say(self, Command::Release { lease: lease.clone(), back: Back::Retry, priority, note }, work);
            }
            80..87 => {
                let after = |millis| Back::After(Millis(millis));
                let back = *self.rng.pick(&[Back::Abandoned, after(0), after(1), after(5_000), after(300_000)]);
                say(self, Command::Release { lease: lease.clone(), back, priority: None, note: None }, work);
            }
            87..93 => {
                let priority = self.rng.percent(30).then(|| self.rng.below(4) as u32);
                say(self, Command::Reject { lease: lease.clone(), note: Some("no".into()), priority }, work);
            }
            _ => {
                let by = self.rng.percent(50).then(|| Millis(self.rng.magnitude(1, 100_000)));
                say(self, Command::Extend { lease: lease.clone(), by }, work / 2);
                let work = work + self.rng.below(length);
                say(self, Command::Acknowledge(lease.clone()), work);
            }
        }
    }

    fn about(&self, index: usize, lease: &Lease, command: Command, after: Moment) -> Demand {
        let shard = shard_of(lease.key.topic(), lease.key.id(), self.shards);
        Demand::command(Purpose::Work(index), shard, command).after(after)
    }

    /// A consumer was not told whether its word was heard: half of them say it again.
    pub fn unheard(&mut self, demand: &Demand) -> Vec<Demand> {
        if demand.tries > 3 || self.rng.percent(50) {
            return Vec::new();
        }
        vec![Demand { after: self.rng.below(5_000), tries: demand.tries + 1, ..demand.clone() }]
    }
}
