//! What goes wrong: nodes die or stall, clocks jump, the store fails.

use punctual_core::store::Store;
use punctual_memory::Fate;

use crate::auditor::Promise;
use crate::clock::Moment;
use crate::commits::Course;
use crate::node::{DOUBT, Item};
use crate::ownership::LEASE;
use crate::profile::{Fault, Kind};
use crate::say;
use crate::workload::QUIET;
use crate::world::{Event, World};

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

impl World {
    /// One thing goes wrong, and the next is planned.
    pub(crate) fn fault(&mut self) {
        if self.draining || self.faults_left == 0 {
            return;
        }
        self.faults_left -= 1;
        let fault = *self.rng.pick(&self.profile.faults.1);
        let index = self.rng.index(self.nodes.len());
        self.bring_about(fault, index);
        let gap = 2 * self.profile.length / self.profile.faults.0;
        let gap = if self.rng.percent(20) { self.rng.below(1_000) } else { self.rng.below(gap) };
        self.after(gap, Event::Fault);
    }

    fn bring_about(&mut self, fault: Fault, index: usize) {
        match fault {
            Fault::Crash => self.crash(index),
            Fault::Stall => {
                // Beside others that is often long enough to lose everything to them.
                let shortest = if self.nodes.len() > 1 && self.rng.percent(50) { LEASE.0 } else { 10 };
                let length = self.rng.magnitude(shortest, 5 * MINUTE);
                self.stall(index, length);
            }
            Fault::ClockBack => self.set_clock(index, -1),
            Fault::ClockForward => self.set_clock(index, 1),
            Fault::ClockBlip => self.blip(index),
            Fault::Drift => {
                let ppm = self.rng.below(100_000) as i64 - 50_000;
                say!(self.trace, "* the clock of node {index} drifts by {ppm} ppm");
                self.census.count("drifts");
                self.nodes[index].now(self.moment);
                self.nodes[index].clock.drift(self.moment, ppm);
                self.nodes[index].right_from = Moment::MAX;
                self.be_noticed(index);
            }
            Fault::FailedCommit => {
                let fate = match self.rng.below(3) {
                    0 => Fate::Lost,
                    1 => Fate::Kept,
                    _ => Fate::Partly(self.rng.below(3) as usize),
                };
                say!(self.trace, "* the next commit is to fail: {fate:?}");
                self.next_fate = Some(fate);
            }
            Fault::Cut => {
                let length = self.rng.magnitude(10, 2 * MINUTE);
                say!(self.trace, "* the store is away for {length} ms");
                self.census.count("times the store was away");
                self.store.memory().faults().cut();
                self.after(length, Event::Heal);
            }
            Fault::Slow => {
                self.slowness = self.rng.magnitude(100, 2 * MINUTE);
                say!(self.trace, "* commits take up to {} ms longer", self.slowness);
                let length = self.rng.magnitude(1_000, 5 * MINUTE);
                self.after(length, Event::Hurry);
            }
            Fault::SlowReads => {
                self.read_slowness = self.rng.magnitude(5, MINUTE);
                say!(self.trace, "* reads take up to {} ms", self.read_slowness);
                let length = self.rng.magnitude(1_000, 30 * MINUTE);
                self.after(length, Event::ReadFast);
            }
            Fault::FailedRead => {
                self.census.count("reads that failed");
                let reads = self.rng.below(30);
                self.store.fail_read_after(reads);
            }
            Fault::Release => self.give_back(index),
            Fault::Repeat => {
                self.next_course = *self.rng.pick(&[Course::AnswerLost, Course::Overtaken, Course::GivenUp]);
            }
            Fault::FailOver => self.fall_behind(index),
            Fault::BreakLink => self.break_some_link(),
            Fault::CutWay => {
                let (other, is_one_way) = (self.another(index), self.rng.percent(50));
                self.cut_way(index, other, is_one_way);
            }
            Fault::SlowWay => {
                let other = self.another(index);
                self.slow_way(index, other);
            }
            Fault::CutOff => self.cut_off(index),
            Fault::StoreClock => self.set_store_clock(),
            Fault::Leave => self.begin_to_leave(index),
            Fault::Assign => self.assign(index),
        }
    }

    /// Any node but this one.
    fn another(&mut self, index: usize) -> usize {
        (index + 1 + self.rng.index(self.nodes.len() - 1)) % self.nodes.len()
    }

    /// A node does nothing for so long.
    pub(crate) fn stall(&mut self, index: usize, length: Moment) {
        say!(self.trace, "* node {index} stalls for {length} ms");
        self.census.count("stalls");
        let node = &mut self.nodes[index];
        node.stalled_until = node.stalled_until.max(self.moment + length);
    }

    fn set_clock(&mut self, index: usize, direction: i64) {
        let by = direction * self.rng.magnitude(1, 3 * DAY) as i64;
        say!(self.trace, "* the clock of node {index} is set by {by} ms");
        self.census.count(if by < 0 { "clock steps back" } else { "clock steps forward" });
        self.nodes[index].now(self.moment);
        self.nodes[index].right_from = Moment::MAX;
        self.nodes[index].clock.step(self.moment, by);
        // Some correct it at once, by half or all of it; some start the node anew.
        if self.rng.percent(50) {
            let error = self.nodes[index].clock.error(self.moment);
            self.nodes[index].clock.step(self.moment, -error / 2);
        }
        if self.rng.percent(30) {
            self.nodes[index].now(self.moment);
            self.set_clock_right(index);
        }
        if self.rng.percent(30) {
            self.crash(index);
        }
        self.be_noticed(index);
    }

    /// Usually somebody notices a clock that is wrong, sooner or later. Without that a step would be the last that is
    /// known of a clock: nothing that the node believes from then on could be held against the right time.
    fn be_noticed(&mut self, index: usize) {
        if self.rng.percent(70) {
            let after = self.rng.magnitude(1_000, 60 * MINUTE);
            self.after(after, Event::SetRight(index));
        }
    }

    /// Somebody has noticed, unless the clock has been set right meanwhile.
    pub(crate) fn notice_clock(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if node.right_from == Moment::MAX {
            say!(self.trace, "* the clock of node {index} is set right");
            self.census.count("clocks set right");
            if node.up {
                node.now(self.moment);
            }
            self.set_clock_right(index);
        }
    }

    /// Sets a clock right. A step forward is doubted first, and it takes a look to notice it; a step back is followed
    /// at once, and so is whatever the clock shows when the process starts.
    pub(crate) fn set_clock_right(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.clock.set_right(self.moment);
        node.blip = 0;
        if node.up {
            node.now(self.moment);
        }
        let is_doubted = node.up && node.is_in_doubt();
        node.right_from = self.moment + if is_doubted { DOUBT + 2_000 } else { 0 };
    }

    /// A clock is far ahead for a moment, and then as it was before. Nobody may notice.
    fn blip(&mut self, index: usize) {
        let by = self.rng.magnitude(1_100, 36_500 * DAY) as i64;
        let length = self.rng.magnitude(100, DOUBT - 2_000);
        let node = &mut self.nodes[index];
        if node.blip != 0 || !node.up || node.is_in_doubt() {
            return;
        }
        say!(self.trace, "* the clock of node {index} is {by} ms ahead for {length} ms");
        self.census.count("clock blips");
        node.now(self.moment);
        node.clock.step(self.moment, by);
        node.blip = by;
        node.now(self.moment);
        self.after(length, Event::EndBlip(index, by));
    }

    /// The clock is as it was before it went wrong, unless somebody has set it meanwhile.
    pub(crate) fn end_blip(&mut self, index: usize, by: i64) {
        let node = &mut self.nodes[index];
        if node.blip != by {
            return;
        }
        node.now(self.moment);
        node.clock.step(self.moment, -by);
        node.blip = 0;
        // Who started in that moment believed it, and follows at once when it is right again.
        if node.clock.error(self.moment) == 0 && !node.clock.is_drifting() {
            node.right_from = node.right_from.min(self.moment);
        }
        if node.up {
            node.now(self.moment);
        }
    }

    /// A node gives one of its shards back, so that another can have it: one that is meant, or whoever comes first.
    pub(crate) fn give_back(&mut self, index: usize) {
        let owned: Vec<_> = self.nodes[index].seats().map(|(shard, seat)| (*shard, seat.fence)).collect();
        if owned.is_empty() || !self.nodes[index].is_awake(self.moment) {
            return;
        }
        let (shard, fence) = *self.rng.pick(&owned);
        let others = self.nodes[index].membership.others();
        let to = if others.is_empty() || self.rng.percent(50) { None } else { Some(self.rng.pick(&others)) };
        if self.reached(index).release(shard, fence, to).is_ok() {
            self.census.count(if to.is_some() { "shards handed on" } else { "shards given back" });
            self.drop_shard(index, shard, None);
        }
    }

    /// A node dies, with all that it had in memory. What it had sent to the store may arrive there or not.
    pub(crate) fn crash(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if !node.up {
            return;
        }
        self.census.count("crashes");
        say!(self.trace, "* node {index} dies");
        let mut lost = node.crash();
        let under_way: Vec<u64> =
            self.commits.iter().filter(|(_, commit)| commit.node == index).map(|(number, _)| *number).collect();
        for number in under_way {
            lost.extend(self.commits[&number].tags());
            if self.rng.percent(50) {
                self.commits.remove(&number);
            }
        }
        self.end_links(index);
        self.lose(index, lost);
        let pause = self.rng.magnitude(10, 2 * MINUTE);
        self.after(pause, Event::Start(index));
    }

    /// Lets the commit that reaches the store fail, if one is to.
    pub(crate) fn take_fate(&mut self) {
        if let Some(fate) = self.next_fate.take() {
            self.store.memory().faults().fail_next_commit(fate);
        }
    }

    /// In runs in which nothing delays it, a hand-over to somebody who waits is exact.
    pub(crate) fn check_exact(&mut self, item: &Item) {
        if !self.profile.exact {
            return;
        }
        let record = &item.record;
        for (_, delivery) in record.deliveries().filter(|(_, delivery)| delivery.queue.as_str() == QUIET) {
            let waited = record.waited_since < delivery.due && delivery.attempt == 1;
            self.census.add("hand-overs checked to the millisecond", u64::from(waited));
            if waited && delivery.due != record.now {
                let promise = if self.profile.kind == Kind::Flood { Promise::Bounded } else { Promise::AnyTime };
                let late = record.now.since(delivery.due);
                let what = format!("it was due {} and handed over {late} later, though somebody waited", delivery.due);
                self.auditor.accuse(promise, &format!("{:?}", delivery.lease.key), what);
            }
        }
    }
}
