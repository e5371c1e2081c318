//! The committer: joins what all shards have to write, makes it durable, and lets the answers out.
//!
//! **Invariant**: nothing of a step is seen by anybody before the step's batch, and all batches of
//! its shard before it, are durable. Once a batch of a shard fails, nothing that the shard sent
//! under the same fence is written or answered any more: its memory was ahead of the store.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use punctual_core::store::{Batch, Fence, ShardId, StoreError};
use punctual_core::{Answer, Command, Output, Schedule};

use crate::caller::Caller;
use crate::error::Error;
use crate::lock::lock;
use crate::routing::shard_of;
use crate::shared::Shared;
use crate::stats::Round;

/// What a shard's step has to write and to say.
pub(crate) struct Sent {
    pub shard: ShardId,
    pub fence: Fence,
    pub output: Output<Caller>,
}

/// The way from the runners to the committer.
#[derive(Default)]
pub(crate) struct Pipeline {
    state: Mutex<Waiting>,
    bell: Condvar,
}

#[derive(Default)]
struct Waiting {
    sent: Vec<Sent>,
    is_asleep: bool,
    is_closed: bool,
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

    /// All that waits, as soon as something does; `None` when nothing more comes.
    fn take(&self) -> Option<Vec<Sent>> {
        let mut state = lock(&self.state);
        while state.sent.is_empty() {
            if state.is_closed {
                return None;
            }
            state.is_asleep = true;
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_asleep = false;
        }
        Some(std::mem::take(&mut state.sent))
    }
}

/// Commits until nothing more comes.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut committer = Committer { shared, lost: vec![None; shared.inboxes.len()] };
    while let Some(sent) = shared.pipeline.take() {
        committer.commit(sent);
    }
}

/// Lets go of what waits, after the committer came to grief: who waits for it hears that its outcome is unknown.
pub(crate) fn drain(shared: &Arc<Shared>) {
    while shared.pipeline.take().is_some() {}
}

struct Committer<'a> {
    shared: &'a Shared,
    /// By shard: the latest fence under which a batch has failed, and why.
    lost: Vec<Option<(Fence, String)>>,
}

impl Committer<'_> {
    fn commit(&mut self, mut sent: Vec<Sent>) {
        let mut round = Round::default();
        let mut batches: Vec<Batch> = Vec::with_capacity(sent.len());
        // By step: which of the batches is its own.
        let mut own: Vec<Option<usize>> = Vec::with_capacity(sent.len());
        for sent in &mut sent {
            let batch = sent.output.batch.take().filter(|_| self.why_lost(sent.shard, sent.fence).is_none());
            own.push(batch.as_ref().map(|_| batches.len()));
            batches.extend(batch);
        }
        let verdicts = self.write(batches, &mut round);
        let mut kept = Vec::with_capacity(sent.len());
        for (sent, own) in sent.into_iter().zip(own) {
            let failure = own.and_then(|own| match &verdicts {
                Ok(verdicts) => verdicts[own].err().map(|fenced| fenced.to_string()),
                Err(error) => Some(error.to_string()),
            });
            if let Some(why) = failure {
                round.failed = true;
                self.lose(sent.shard, sent.fence, why);
            }
            match self.why_lost(sent.shard, sent.fence) {
                Some(why) => {
                    let error = Error::unknown_outcome(why);
                    for (caller, _) in sent.output.answers {
                        self.shared.answer(caller, Err(error.clone()));
                    }
                }
                None => kept.push(sent),
            }
        }
        // The shards go on first; the answers go out meanwhile.
        let marks: Vec<(ShardId, Fence, u64)> =
            kept.iter().map(|sent| (sent.shard, sent.fence, sent.output.step)).collect();
        for (shard, fence, step) in latest(&marks) {
            self.shared.inbox(shard).committed(fence, step);
        }
        for sent in kept {
            self.let_out(sent, &mut round);
        }
        for (shard, fence, step) in latest(&marks) {
            self.shared.inbox(shard).answered(fence, step);
        }
        self.shared.meter.add(&round);
        self.shared.watchers.tell(round.happened.into_iter().map(|(events, _)| events));
    }

    fn write(
        &self,
        batches: Vec<Batch>,
        round: &mut Round,
    ) -> Result<Vec<Result<(), punctual_core::store::Fenced>>, StoreError> {
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let changes = batches.iter().map(|batch| batch.changes.len()).sum();
        let begun = Instant::now();
        let verdicts = self.shared.store.commit(batches);
        round.commit = Some((begun.elapsed(), changes));
        if let Err(StoreError::Poisoned(why)) = &verdicts {
            self.shared.poison(why);
        }
        verdicts
    }

    /// The shard's memory is ahead of the store, and is dropped.
    fn lose(&mut self, shard: ShardId, fence: Fence, why: String) {
        self.shared.inbox(shard).failed(fence, &why);
        self.lost[usize::from(shard.0)] = Some((fence, why));
    }

    fn why_lost(&self, shard: ShardId, fence: Fence) -> Option<&str> {
        let (lost, why) = self.lost[usize::from(shard.0)].as_ref()?;
        (fence <= *lost).then_some(why)
    }

    /// Lets out what a durable step has to say.
    fn let_out(&self, sent: Sent, round: &mut Round) {
        let Output { answers, forwards, rates, events, gone, .. } = sent.output;
        round.steps += 1;
        round.answers += answers.len();
        round.happened.push((events, gone));
        for (topic, rate) in rates {
            self.shared.entrances.limit(&topic, rate);
        }
        for (caller, reply) in answers {
            if let Ok(Answer::Reserved(deliveries)) = &reply
                && !deliveries.is_empty()
            {
                let micros = self.shared.clock.micros();
                deliveries.iter().for_each(|delivery| round.note(delivery, micros));
            }
            self.shared.answer(caller, reply.map_err(Error::Refused));
        }
        for forward in forwards {
            let to = shard_of(&forward.task.topic, &forward.id, self.shared.config.shards);
            let schedule = Schedule { task: forward.task, id: forward.id, id_is_new: false };
            let caller = Caller::Forwarder(sent.shard, forward.key);
            self.shared.inbox(to).tell(Command::Schedule(Box::new(schedule)), caller);
        }
    }
}

/// The latest step of each shard, given all in order.
fn latest(marks: &[(ShardId, Fence, u64)]) -> impl Iterator<Item = (ShardId, Fence, u64)> {
    let is_last = |index: usize| marks[index + 1..].iter().all(|(shard, _, _)| *shard != marks[index].0);
    (0..marks.len()).filter(move |index| is_last(*index)).map(|index| marks[index])
}
