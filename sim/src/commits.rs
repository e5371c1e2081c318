//! The committer: joins what waits of all shards into one commit, which takes its time, and lets
//! answers out only when it is durable.

use punctual_core::store::{Batch, Fence, Fenced, ShardId, Store, StoreError};
use punctual_core::{Answer, Command, Ending, Refused, Reply, Ruling, Schedule, ScheduleOutcome};
use punctual_memory::Fate;

use crate::Sabotage;
use crate::clock::Moment;
use crate::demand::{Demand, Purpose, shard_of};
use crate::node::Item;
use crate::record::Tag;
use crate::say;
use crate::world::{Event, World};

/// A commit on its way.
pub(crate) struct Commit {
    pub node: usize,
    pub life: u64,
    items: Vec<Item>,
    /// What the store said, by item; `None` before it said anything.
    said: Option<Result<Vec<Result<(), Fenced>>, StoreError>>,
    /// Shards that the node has dropped since: it does not care any more.
    abandoned: Vec<(ShardId, Fence)>,
}

impl Commit {
    /// The node dropped a shard; gives the requests that will not be answered for it.
    pub fn abandon(&mut self, shard: ShardId) -> Vec<Tag> {
        let mut lost = Vec::new();
        for item in self.items.iter().filter(|item| item.record.shard == shard) {
            let ownership = (shard, item.record.fence);
            if !self.abandoned.contains(&ownership) {
                lost.extend(item.record.answers.keys());
            }
        }
        let fences: Vec<_> = self.items.iter().filter(|item| item.record.shard == shard).collect();
        self.abandoned.extend(fences.iter().map(|item| (shard, item.record.fence)));
        lost
    }

    fn is_abandoned(&self, item: &Item) -> bool {
        self.abandoned.contains(&(item.record.shard, item.record.fence))
    }

    /// All requests that wait for it.
    pub fn tags(&self) -> Vec<Tag> {
        let items = self.items.iter().filter(|item| !self.is_abandoned(item));
        items.flat_map(|item| item.record.answers.keys().copied()).collect()
    }
}

impl World {
    /// Sends what waits to the store, unless something is on its way.
    pub(crate) fn begin_commit(&mut self, index: usize) {
        if self.nodes[index].committing {
            return;
        }
        let items = self.nodes[index].take_items();
        if items.is_empty() {
            return;
        }
        self.nodes[index].committing = true;
        let (shortest, longest) = self.profile.commit;
        let takes = self.rng.between(shortest, longest) + self.rng.below(self.slowness + 1);
        let until_effect = self.rng.below(takes + 1);
        let number = self.next_commit();
        let commit = Commit { node: index, life: self.nodes[index].life, items, said: None, abandoned: Vec::new() };
        self.commits.insert(number, commit);
        self.census.count("commits");
        if takes >= 1_000 {
            self.census.count("commits that took over a second");
        }
        self.after(until_effect, Event::Effect(number));
        self.after(takes, Event::Done(number));
    }

    fn next_commit(&self) -> u64 {
        self.census.of("commits")
    }

    /// The commit reaches the store.
    pub(crate) fn effect(&mut self, number: u64) {
        let Some(mut commit) = self.commits.remove(&number) else { return };
        if let Some(sabotage) = self.sabotage {
            commit.items.iter_mut().for_each(|item| tamper(sabotage, item));
        }
        // Each shard's answers are only worth something while it is owned, so a step that
        // changed nothing goes along too: as an empty batch, to have its fence checked.
        let batches: Vec<Batch> = commit.items.iter().map(batch_of).collect();
        let fate = self.take_fate(batches.len());
        let owners = self.store.owners();
        let said = self.store.commit(batches);
        let kept = match (&said, fate) {
            (Ok(_), _) => commit.items.len(),
            (Err(_), Some(Fate::Kept)) => commit.items.len(),
            (Err(_), Some(Fate::Partly(kept))) => kept,
            (Err(_), _) => 0,
        };
        let kept = if owners.is_err() { 0 } else { kept };
        for item in commit.items.iter().take(kept) {
            let record = &item.record;
            let owned = owners.iter().flatten().any(|owner| owner.shard == record.shard && owner.fence == record.fence);
            if owned || self.is_unfenced(item) {
                say!(
                    self.trace,
                    "step {} of shard {} at {} took effect: {:?} {:?} {:?}",
                    record.step,
                    record.shard.0,
                    record.now,
                    record.requests,
                    record.answers,
                    record.changes()
                );
                self.auditor.took_effect(record);
                self.check_exact(item);
            } else {
                self.census.count("fenced writes");
            }
        }
        if let Err(error) = &said {
            say!(self.trace, "* commit {number} of node {} failed, {kept} parts kept: {error}", commit.node);
            self.census.count(if kept > 0 { "commits that failed after their effect" } else { "commits that failed" });
        }
        let life = self.nodes[commit.node].life;
        commit.said = Some(said);
        if life == commit.life && self.nodes[commit.node].up {
            self.commits.insert(number, commit);
        }
    }

    fn is_unfenced(&self, item: &Item) -> bool {
        self.sabotage == Some(Sabotage::UnfencedAnswers) && item.record.batch.is_none()
    }

    /// The node hears what became of a commit.
    pub(crate) fn done(&mut self, number: u64) {
        let Some(commit) = self.commits.get(&number) else { return };
        let node = &self.nodes[commit.node];
        if node.up && node.life == commit.life && !node.is_awake(self.moment) {
            let delay: Moment = node.stalled_until - self.moment;
            return self.after(delay, Event::Done(number));
        }
        let commit = self.commits.remove(&number).expect("it was just there");
        let node = &mut self.nodes[commit.node];
        if !node.up || node.life != commit.life {
            return;
        }
        node.committing = false;
        let index = commit.node;
        let said = commit.said.as_ref().expect("a commit takes effect before the node hears of it");
        let mut failed: Vec<ShardId> = Vec::new();
        for (place, item) in commit.items.iter().enumerate() {
            let durable = said.as_ref().is_ok_and(|answers| answers[place].is_ok() || self.is_unfenced(item));
            if commit.is_abandoned(item) {
                continue;
            }
            if durable && !failed.contains(&item.record.shard) {
                self.nodes[index].committed(&item.record, self.moment);
                self.release(index, item);
            } else {
                self.lose(item.record.answers.keys().copied().collect());
                failed.push(item.record.shard);
            }
        }
        failed.dedup();
        for shard in failed {
            self.drop_shard(index, shard);
        }
        if self.store.has_forgotten() {
            self.crash(index);
        }
    }

    /// Lets answers and dead letters out.
    fn release(&mut self, index: usize, item: &Item) {
        for (tag, reply) in &item.record.answers {
            if self.rng.percent(self.profile.lost_answers) {
                self.census.count("answers lost");
                continue;
            }
            let latency = if self.profile.exact { 0 } else { self.rng.below(30) };
            self.after(latency, Event::Answer(*tag, Some(reply.clone())));
        }
        for forward in &item.forwards {
            let shard = shard_of(&forward.task.topic, &forward.id, self.profile.shards);
            let schedule = Schedule { task: forward.task.clone(), id: forward.id.clone(), id_is_new: false };
            let purpose =
                Purpose::Forward { origin: item.record.shard, key: forward.key.clone(), journey: forward.journey };
            let life = self.nodes[index].life;
            self.census.count("dead letters sent on");
            self.send(Demand::command(purpose, shard, Command::Schedule(Box::new(schedule))), Some((index, life)));
        }
    }
}

fn batch_of(item: &Item) -> Batch {
    let record = &item.record;
    record.batch.clone().unwrap_or_else(|| Batch {
        shard: record.shard,
        fence: record.fence,
        changes: Vec::new(),
        tallies: Vec::new(),
    })
}

/// What the auditor must notice.
fn tamper(sabotage: Sabotage, item: &mut Item) {
    match sabotage {
        Sabotage::SecondHolder => {
            let given = item.record.deliveries().next().map(|(tag, delivery)| (tag, delivery.clone()));
            if let Some((tag, delivery)) = given {
                item.record.answers.insert(Tag::MAX - tag, Ok(Answer::Reserved(vec![delivery])));
            }
        }
        Sabotage::UntrueCancel => {
            for reply in item.record.answers.values_mut() {
                if let Ok(Answer::Cancelled(ruling)) = reply {
                    *ruling = Ruling::Done(());
                }
            }
        }
        Sabotage::UntrueRemove => lie_about(item, |command, reply| {
            let refused = matches!(command, Command::Remove { .. }) && reply.is_err();
            refused.then_some(Ok(Answer::Removed(Ending::Cancelled)))
        }),
        Sabotage::StolenRemove => lie_about(item, |command, reply| {
            let lost = matches!(reply, Err(Refused::LeaseLost { .. }));
            let with_token = matches!(command, Command::Remove { token: Some(_), .. });
            (lost && with_token).then_some(Ok(Answer::Removed(Ending::Done)))
        }),
        Sabotage::DeniedTake => lie_about(item, |command, reply| {
            let taken = matches!(command, Command::Take(_)) && reply.is_ok();
            taken.then_some(Err(Refused::NothingThere))
        }),
        Sabotage::AlwaysNew => {
            let due = item.record.now;
            for reply in item.record.answers.values_mut() {
                if let Ok(Answer::Scheduled(scheduled)) = reply
                    && let ScheduleOutcome::Existed(_) = scheduled.outcome
                {
                    scheduled.outcome = ScheduleOutcome::Created { due };
                }
            }
        }
        _ => {}
    }
}

/// Gives some requests another answer.
fn lie_about(item: &mut Item, lie: impl Fn(&Command, &Reply) -> Option<Reply>) {
    for (tag, command) in &item.record.requests {
        if let Some(reply) = item.record.answers.get_mut(tag)
            && let Some(untrue) = lie(command, reply)
        {
            *reply = untrue;
        }
    }
}
