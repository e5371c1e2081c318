//! A step of a shard, split at its reads as the real node's is: a read may take its time, and meanwhile the world goes on.
//! Commits end, clocks are set, others take the shard, requests come, the process dies.

use std::collections::BTreeMap;

use punctual_chance::Chance;
use punctual_core::store::{Fence, Found, ShardId, StoreError};
use punctual_core::{Board, Command, Needs, Output, Reply, Request, Timestamp};

use super::{Item, Seat, SimulatedNode, Worked};
use crate::clock::{Moment, right_time};
use crate::record::{StepRecord, Tag};
use crate::store::{FaultyStore, Reached};

/// A step that is under way: when it began, and with what.
pub(super) struct UnderWay {
    /// The node's time.
    clock: Timestamp,
    /// The time that the shard is told.
    told_time: Timestamp,
    truth: Option<Timestamp>,
    pub told: Vec<(Tag, Command)>,
    read_at: BTreeMap<Tag, Timestamp>,
}

/// What comes next in a step.
pub(super) enum Next {
    Prepare(Vec<Request<Tag>>),
    /// These rows are read at last, as far as they were not found before, by want.
    Read(Needs, Vec<Option<Found>>),
}

/// How far a step went.
enum GoneOn {
    /// Up to a read that takes so long.
    Reading(Moment, Next),
    Done(Output<Tag>),
}

/// How rows are read.
pub struct Reads<'a> {
    /// Where from.
    pub store: Reached<'a>,
    /// How long a read takes at most.
    pub slowness: Moment,
    /// Draws how long it takes.
    pub rng: &'a mut Chance,
}

impl SimulatedNode {
    /// Begins a step with what waits for the shard.
    pub(super) fn begin_step(&mut self, shard: ShardId, moment: Moment, rng: &mut Chance) -> (UnderWay, Next) {
        let (clock, truth) = (self.believed.0, self.truth(moment));
        let seat = self.seats.get_mut(&shard).expect("it was just there");
        seat.hear();
        let mut requests = std::mem::take(&mut seat.inbox);
        seat.poked = false;
        if requests.len() > 1 && rng.percent(15) {
            // Usually a step takes all that waits; what comes a moment later is in the next one.
            seat.inbox = requests.split_off(rng.index(requests.len()).max(1));
        }
        let told = requests.iter().map(|request| (request.reply, request.command.clone())).collect();
        let read_at = requests.iter().map(|request| (request.reply, request.read_at)).collect();
        let told_time = clock.plus(self.early);
        (UnderWay { clock, told_time, truth, told, read_at }, Next::Prepare(requests))
    }

    /// Goes on with a step, up to its end or to a read that takes its time.
    pub(super) fn go_on(
        &mut self,
        shard: ShardId,
        (step, next): (UnderWay, Next),
        moment: Moment,
        reads: &mut Reads<'_>,
        worked: &mut Worked,
    ) {
        let seat = self.seats.get_mut(&shard).expect("it was just there");
        match seat.go_on(next, step.told_time, &mut self.board, moment, reads) {
            Ok(GoneOn::Reading(takes, next)) => {
                worked.reads.push((shard, seat.shard.tenure(), takes));
                seat.step = Some((step, next));
            }
            Ok(GoneOn::Done(output)) => {
                worked.steps += 1;
                self.end_step(shard, step, output);
            }
            Err(why) => {
                worked.steps += 1;
                worked.dropped.push((shard, seat.shard.tenure(), why));
                worked.lost.extend(step.told.into_iter().map(|(tag, _)| tag));
                let (lost, unbegun) = self.drop_seat(shard);
                worked.lost.extend(lost);
                worked.turned_away.push((shard, unbegun));
            }
        }
    }

    /// Sends what came of a step on its way to the committer.
    fn end_step(&mut self, shard: ShardId, step: UnderWay, output: Output<Tag>) {
        let seat = self.seats.get_mut(&shard).expect("it was just there");
        seat.wake = output.wake;
        seat.in_flight += 1;
        let answers: BTreeMap<Tag, Reply> = output.answers.into_iter().collect();
        let consumers = answers.keys().filter_map(|tag| self.posted.remove_entry(tag));
        let record = StepRecord {
            node: self.index,
            shard,
            fence: seat.fence,
            step: output.step,
            now: seat.shard.now(),
            clock: step.clock,
            clock_width: self.clock_width,
            truth: step.truth,
            requests: step.told,
            read_at: step.read_at,
            holders: consumers.collect(),
            answers,
            waited_since: self.starved_at,
            late: seat.take_late(),
            batch: output.batch,
        };
        self.waiting.push_back(Item { record, forwards: output.forwards });
    }

    /// A read of a shard has come to its end, if it is still owned under this fence.
    pub fn read_ended(&mut self, shard: ShardId, fence: Fence) {
        if let Some(seat) = self.seats.get_mut(&shard).filter(|seat| seat.fence == fence) {
            seat.has_read = true;
        }
    }
}

impl Seat {
    /// Goes on with a step, as far as reads let it.
    fn go_on(
        &mut self,
        mut next: Next,
        told_time: Timestamp,
        board: &mut Board<Tag>,
        moment: Moment,
        reads: &mut Reads<'_>,
    ) -> Result<GoneOn, StoreError> {
        let (id, tenure) = (self.shard.id(), self.shard.tenure());
        loop {
            let needs = match next {
                Next::Prepare(requests) => self.shard.prepare(told_time, requests, board),
                Next::Read(needs, early) => {
                    let read = |store: &FaultyStore| store.end_read(id, tenure, needs, early);
                    self.shard.supply(reads.store.ask(read)?)
                }
            };
            if needs.is_empty() {
                break;
            }
            let takes = if reads.slowness > 0 { reads.rng.below(reads.slowness + 1) } else { 0 };
            // For each want the store looks at some instant of that time; what is committed after it is not in what was
            // read. At the fence it looks last.
            let mut early = Vec::new();
            if takes > 0 && reads.rng.percent(70) {
                let keeps = *reads.rng.pick(&[50, 100]);
                let found = reads.store.ask(|store| store.begin_read(id, tenure, &needs))?;
                early.extend(found.into_iter().map(|found| reads.rng.percent(keeps).then_some(found)));
            }
            next = Next::Read(needs, early);
            if takes > 0 {
                return Ok(GoneOn::Reading(takes, next));
            }
        }
        self.shard.apply(told_time);
        self.shard.serve(board, right_time(moment));
        Ok(GoneOn::Done(self.shard.finish()))
    }
}
