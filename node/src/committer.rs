//! The committer: joins what all shards have to write, makes it durable, and lets the answers out.
//!
//! **Invariant**: nothing of a step is seen by anybody before the step's batch, and all batches of
//! its shard before it, are durable. Once a batch of a shard fails, nothing that the shard sent
//! under the same fence is written or answered any more: its memory was ahead of the store.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_core::store::{Batch, Fence, Refusal, Room, ShardId, StoreError};
use punctual_core::{Answer, Command, Mended, Millis, Output, Reply, Schedule, Timestamp, What};

use crate::caller::Caller;
use crate::error::Error;
use crate::shared::Shared;
use crate::stats::{Queues, Round};
use crate::sync::atomic::Ordering;
use crate::sync::{Condvar, Instant, Mutex, MutexGuard, lock};
use crate::tracer::Took;
use punctual_core::shard_of;

/// What a shard's step has to write and to say.
pub(crate) struct Sent {
    pub shard: ShardId,
    pub fence: Fence,
    /// When the step was taken, by the clock, in microseconds.
    pub micros: u64,
    /// When it happened.
    pub at: Instant,
    /// When what it hands out was thought to reach its consumers.
    pub hand_over_at: Timestamp,
    pub output: Output<Caller>,
}

/// The way from the runners to the committer.
#[derive(Default)]
pub(crate) struct Pipeline {
    state: Mutex<Queued>,
    bell: Condvar,
}

#[derive(Default)]
struct Queued {
    sent: Vec<Sent>,
    /// The committer, while its thread sleeps: who has something to commit may do it at once.
    at_rest: Option<Committer>,
    is_asleep: bool,
    is_closed: bool,
    /// A commit has panicked.
    is_broken: bool,
}

impl Pipeline {
    pub fn send(&self, sent: Sent) {
        let mut state = lock(&self.state);
        state.sent.push(sent);
        let was_asleep = std::mem::take(&mut state.is_asleep);
        drop(state);
        if was_asleep {
            self.bell.notify_one();
        }
    }

    /// Nothing more comes.
    pub fn close(&self) {
        lock(&self.state).is_closed = true;
        self.bell.notify_one();
    }

    /// All that waits, as soon as something does; `None` when nothing more comes or nothing more may be written.
    fn take(&self, committer: Committer) -> Option<(Vec<Sent>, Committer)> {
        let mut state = lock(&self.state);
        state.at_rest = Some(committer);
        while !state.is_broken {
            if state.is_wanted()
                && let Some(committer) = state.at_rest.take()
            {
                let sent = std::mem::take(&mut state.sent);
                return (!sent.is_empty()).then_some((sent, committer));
            }
            state = self.sleep(state);
        }
        None
    }

    /// Lets go of all that waits and comes, until nothing more does, after the committer came to grief: who waits for it
    /// hears that its outcome is unknown.
    pub fn discard(&self) {
        let mut state = lock(&self.state);
        state.at_rest = None;
        loop {
            let sent = std::mem::take(&mut state.sent);
            if !sent.is_empty() {
                drop(state);
                drop(sent);
                state = lock(&self.state);
            } else if state.is_closed {
                return;
            } else {
                state = self.sleep(state);
            }
        }
    }

    fn sleep<'a>(&self, mut state: MutexGuard<'a, Queued>) -> MutexGuard<'a, Queued> {
        state.is_asleep = true;
        state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.is_asleep = false;
        state
    }

    /// The committer, if it rests and nobody is before.
    fn borrow(&self) -> Option<BorrowedCommitter<'_>> {
        let mut state = lock(&self.state);
        if !state.sent.is_empty() {
            return None;
        }
        state.at_rest.take().map(|committer| BorrowedCommitter { pipeline: self, committer: Some(committer) })
    }
}

impl Queued {
    fn is_wanted(&self) -> bool {
        !self.sent.is_empty() || self.is_closed || self.is_broken
    }
}

/// The committer in the hands of somebody who has something to commit. If that ends in a panic, it does not come back, and
/// nothing more is written.
struct BorrowedCommitter<'a> {
    pipeline: &'a Pipeline,
    committer: Option<Committer>,
}

impl BorrowedCommitter<'_> {
    fn commit(mut self, shared: &Shared, sent: Sent) {
        let mut committer = self.committer.take().expect("it was borrowed just now");
        committer.commit(shared, vec![sent]);
        self.committer = Some(committer);
    }
}

impl Drop for BorrowedCommitter<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.pipeline.state);
        state.at_rest = self.committer.take();
        state.is_broken |= state.at_rest.is_none();
        let was_asleep = state.is_wanted() && std::mem::take(&mut state.is_asleep);
        drop(state);
        if was_asleep {
            self.pipeline.bell.notify_one();
        }
    }
}

impl Shared {
    /// Makes a step durable: here and now if the committer rests and nothing waits to be stepped; else
    /// the committer does it while the next step is taken.
    pub fn commit(&self, sent: Sent) {
        let borrowed = if self.inbox(sent.shard).is_quiet() { self.lane(sent.shard).borrow() } else { None };
        match borrowed {
            Some(borrowed) => borrowed.commit(self, sent),
            None => self.lane(sent.shard).send(sent),
        }
    }
}

/// Commits what comes on a lane until nothing more does.
pub(crate) fn run(shared: &Arc<Shared>, lane: &Pipeline) {
    let mut committer = Committer { lost: vec![None; shared.inboxes.len()] };
    while let Some((sent, taken)) = lane.take(committer) {
        committer = taken;
        committer.commit(shared, sent);
    }
}

struct Committer {
    /// By shard: the latest fence under which a batch has failed, and why.
    lost: Vec<Option<(Fence, String)>>,
}

impl Committer {
    fn commit(&mut self, shared: &Shared, mut sent: Vec<Sent>) {
        let mut round = Round::default();
        let spans = shared.commit_spans(&sent);
        let mut batches: Vec<Batch> = Vec::with_capacity(sent.len());
        // By step: which of the batches is its own, and its serial.
        let mut own: Vec<Option<(usize, u64)>> = Vec::with_capacity(sent.len());
        for sent in &mut sent {
            let batch = sent.output.batch.take().filter(|_| self.why_lost(sent.shard, sent.fence).is_none());
            own.push(batch.as_ref().map(|batch| (batches.len(), batch.serial)));
            batches.extend(batch);
        }
        let verdicts = write(shared, batches, &mut round);
        drop(spans);
        let mut kept = Vec::with_capacity(sent.len());
        for (sent, own) in sent.into_iter().zip(own) {
            let failure = own.and_then(|(own, serial)| match &verdicts {
                Ok(verdicts) => match &verdicts[own] {
                    Ok(()) => {
                        shared.inbox(sent.shard).confirmed(sent.fence, serial);
                        None
                    }
                    Err(refusal) => Some(refusal.to_string()),
                },
                Err(error) => Some(error.to_string()),
            });
            if let Some(why) = failure {
                round.failed = true;
                self.lose(shared, sent.shard, sent.fence, why);
            }
            match self.why_lost(sent.shard, sent.fence) {
                Some(why) => {
                    let error = Error::unknown_outcome(why);
                    for (caller, _) in sent.output.answers {
                        shared.answer(caller, Err(error.clone()));
                    }
                }
                None => kept.push(sent),
            }
        }
        let durable_at = Instant::now();
        let hand_over_at = shared.leaving.hand_over_at(&*shared.clock);
        for sent in &mut kept {
            if !make_up_for(shared, sent, hand_over_at) {
                take_back(shared, sent);
            }
        }
        // The shards go on first; the answers go out meanwhile.
        let marks: Vec<(ShardId, Fence, u64)> =
            kept.iter().map(|sent| (sent.shard, sent.fence, sent.output.step)).collect();
        for (shard, fence, step) in latest(&marks) {
            shared.inbox(shard).committed(fence, step);
        }
        for sent in kept {
            let_out(shared, sent, &mut round);
        }
        shared.leaving.note(durable_at.elapsed());
        for (shard, fence, step) in latest(&marks) {
            shared.inbox(shard).answered(fence, step);
        }
        shared.meter.add(&round, shared.clock.now());
        shared.tell_watchers(round.happened.into_iter().map(|(events, _)| events));
    }

    /// The shard's memory is ahead of the store, and is dropped.
    fn lose(&mut self, shared: &Shared, shard: ShardId, fence: Fence, why: String) {
        shared.inbox(shard).failed(fence, &why);
        self.lost[usize::from(shard.0)] = Some((fence, why));
    }

    fn why_lost(&self, shard: ShardId, fence: Fence) -> Option<&str> {
        let (lost, why) = self.lost[usize::from(shard.0)].as_ref()?;
        // Fences rise in one store; a shard that has gone to another one may have a lower one there.
        (fence == *lost).then_some(why)
    }
}

/// The latest step of each shard, given all in order.
fn latest(marks: &[(ShardId, Fence, u64)]) -> impl Iterator<Item = (ShardId, Fence, u64)> {
    let is_last = |index: usize| marks[index + 1..].iter().all(|(shard, _, _)| *shard != marks[index].0);
    (0..marks.len()).filter(move |index| is_last(*index)).map(|index| marks[index])
}

fn write(shared: &Shared, batches: Vec<Batch>, round: &mut Round) -> Result<Vec<Result<(), Refusal>>, StoreError> {
    if batches.is_empty() {
        return Ok(Vec::new());
    }
    let changes = batches.iter().map(|batch| batch.changes.len()).sum();
    let begun = Instant::now();
    let verdicts = shared.store.commit(batches);
    round.commit = Some((begun.elapsed(), changes));
    verdicts.inspect_err(|error| shared.heed(error))
}

/// Makes the leases of a step longer if its deliveries leave later than was thought; says whether it can.
fn make_up_for(shared: &Shared, sent: &mut Sent, hand_over_at: Timestamp) -> bool {
    let late = hand_over_at.since(sent.hand_over_at);
    let mut ends: Vec<&mut Timestamp> = Vec::new();
    if late > Millis::ZERO {
        for (_, reply) in &mut sent.output.answers {
            match reply {
                Ok(Answer::Reserved(deliveries)) => ends.extend(deliveries.iter_mut().map(|one| &mut one.until)),
                Ok(Answer::Extended(until)) => ends.push(until),
                _ => {}
            }
        }
    }
    if ends.is_empty() {
        return true;
    }
    let lease = Duration::from_millis(shared.config.ownership.0);
    if !shared.inbox(sent.shard).is_late(sent.fence, sent.output.step, late, lease) {
        return false;
    }
    for event in &mut sent.output.events {
        if let What::Leased { until, .. } | What::Extended { until } = &mut event.what {
            ends.push(until);
        }
    }
    ends.into_iter().for_each(|until| *until = until.plus(late));
    true
}

/// Takes back the deliveries of a step whose leases cannot be made as long as they should be: whoever opens the shard next
/// would end them before their consumers do.
fn take_back(shared: &Shared, sent: &mut Sent) {
    let is_given = |(_, reply): &mut (Caller, Reply)| matches!(reply, Ok(Answer::Reserved(given)) if !given.is_empty());
    let given: Vec<(Caller, Reply)> = sent.output.answers.extract_if(.., is_given).collect();
    for (caller, reply) in given {
        shared.give_back(reply.map_err(Error::Refused));
        shared.answer(caller, Err(Error::unknown_outcome("the shard was lost before a delivery could be handed over")));
    }
}

/// Lets out what a durable step has to say.
fn let_out(shared: &Shared, sent: Sent, round: &mut Round) {
    let Output { answers, forwards, rates, events, gone, gone_queues, offers, takes, mended, .. } = sent.output;
    let took = Took { from: sent.micros, until: shared.clock.micros() };
    round.queues.push(Queues { offers, offered: took.from, takes, taken: took.until, gone: gone_queues });
    round.steps += 1;
    round.answers += answers.len();
    round.mended += mended.len();
    for Mended { tally, stored, right } in mended {
        let shard = sent.shard.0;
        tracing::warn!(
            shard,
            ?tally,
            stored,
            right,
            "a stored count was wrong and has been corrected: please report this"
        );
    }
    let tracer = shared.config.tracer.as_deref();
    if let Some(tracer) = tracer {
        events.iter().for_each(|event| tracer.happened(event, took));
    }
    round.happened.push((events, gone));
    if !rates.is_empty() || round.happened.last().is_some_and(|(_, gone)| !gone.is_empty()) {
        shared.topic_changes.fetch_add(1, Ordering::Relaxed);
    }
    for (topic, rate) in rates {
        shared.entrances.limit(sent.shard, &topic, rate);
    }
    for (caller, mut reply) in answers {
        if let Ok(Answer::Reserved(deliveries)) = &mut reply
            && !deliveries.is_empty()
        {
            let micros = shared.clock.micros();
            deliveries.iter().for_each(|delivery| round.note(delivery, micros));
            if let Some(tracer) = tracer {
                deliveries.iter_mut().for_each(|delivery| tracer.handed_out(delivery, caller.span(), took));
            }
        }
        shared.answer(caller, reply.map_err(Error::Refused));
    }
    shared.pace.note(sent.at.elapsed());
    // Without room for new tasks they are not sent: no word comes, so they come out again.
    let forwards = if shared.store.room() == Room::Enough { forwards } else { Vec::new() };
    for forward in forwards {
        let to = shard_of(&forward.task.topic, &forward.id, shared.config.shards);
        let schedule = Schedule { task: forward.task, id: forward.id, id_is_new: false };
        let caller = Caller::Forwarder(sent.shard, forward.key, forward.journey);
        shared.tell(to, Command::Schedule(Box::new(schedule)), caller);
    }
}
