//! The committer: joins what waits of all shards into one commit, which takes its time, and lets
//! answers out only when it is durable.
//!
//! On the way to the store a commit may be tried again: when no answer comes, the next attempt says the same, and
//! an attempt that was given up for lost may still arrive, however late.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::store::{Batch, Fence, Refusal, ShardId, Store, StoreError, Tenure};
use punctual_core::{Command, Schedule};

use crate::Sabotage;
use crate::auditor::Promise;
use crate::clock::Moment;
use crate::demand::{Demand, Purpose, shard_of};
use crate::node::Item;
use crate::ownership::LEASE;
use crate::record::{StepRecord, Tag};
use crate::sabotage::tamper;
use crate::say;
use crate::store::Reach;
use crate::world::{Event, World};

/// How late an attempt may arrive that was given up for lost.
const STRAGGLES: Moment = 60_000;

/// How the attempts to bring a commit to the store go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The first one does it.
    Straight,
    /// It arrives, and its answer is lost: another one follows.
    AnswerLost,
    /// Another one follows and overtakes it: it arrives when all is over.
    Overtaken,
    /// It takes longer than the node waits, and arrives after it was given up.
    GivenUp,
}

/// A commit on its way.
pub(crate) struct Commit {
    pub node: usize,
    pub life: u64,
    items: Vec<Item>,
    /// What the store said, by item; `None` before it said anything.
    said: Option<Said>,
    /// How many attempts are on their way.
    attempts: usize,
    /// Whether there is more than one.
    is_repeated: bool,
    /// The places of items that have taken effect.
    effective: BTreeSet<usize>,
    /// Whether the node has heard what became of it.
    is_over: bool,
    /// Shards that the node has dropped since: it does not care any more.
    abandoned: Vec<(ShardId, Fence)>,
}

type Said = Result<Vec<Result<(), Refusal>>, StoreError>;

impl Commit {
    /// The node dropped a shard; gives the requests that will not be answered for it.
    pub fn abandon(&mut self, shard: ShardId) -> Vec<Tag> {
        let mut lost = Vec::new();
        for item in self.items.iter().filter(|item| item.record.shard == shard) {
            let ownership = (shard, item.record.fence);
            if !self.is_over && !self.abandoned.contains(&ownership) {
                lost.extend(item.record.answers.keys());
            }
        }
        let fences: Vec<_> = self.items.iter().filter(|item| item.record.shard == shard).collect();
        self.abandoned.extend(fences.iter().map(|item| (shard, item.record.fence)));
        lost
    }

    /// The store has lost what a shard committed after this: another attempt may take effect once more. Gives the steps.
    pub fn lose(&mut self, shard: ShardId, after: u64) -> Vec<&StepRecord> {
        let is_lost = |item: &Item| {
            let serial = item.record.batch.as_ref().map(|batch| batch.serial);
            item.record.shard == shard && serial.is_some_and(|serial| serial > after)
        };
        let lost = self.effective.extract_if(.., |place| is_lost(&self.items[*place]));
        lost.map(|place| &self.items[place].record).collect()
    }

    fn is_abandoned(&self, item: &Item) -> bool {
        self.abandoned.contains(&(item.record.shard, item.record.fence))
    }

    /// All requests that wait for it.
    pub fn tags(&self) -> Vec<Tag> {
        let items = self.items.iter().filter(|item| !self.is_over && !self.is_abandoned(item));
        items.flat_map(|item| item.record.answers.keys().copied()).collect()
    }
}

impl World {
    /// Sends what waits to the store, unless something is on its way.
    pub(crate) fn begin_commit(&mut self, index: usize) {
        if self.nodes[index].committing {
            return;
        }
        let mut items = self.nodes[index].take_items();
        if items.is_empty() {
            return;
        }
        if let Some(sabotage) = self.sabotage {
            items.iter_mut().for_each(|item| tamper(sabotage, item));
        }
        self.nodes[index].committing = true;
        let (shortest, longest) = self.profile.commit;
        let takes = self.rng.between(shortest, longest) + self.rng.below(self.slowness + 1);
        self.census.count("commits");
        if takes >= 1_000 {
            self.census.count("commits that took over a second");
        }
        let number = self.census.of("commits");
        let life = self.nodes[index].life;
        let commit = Commit {
            node: index,
            life,
            items,
            said: None,
            attempts: 0,
            is_repeated: false,
            effective: BTreeSet::new(),
            is_over: false,
            abandoned: Vec::new(),
        };
        self.commits.insert(number, commit);
        self.send_commit(number, takes);
    }

    /// Plans when the attempts of a commit reach the store, and when the node hears.
    fn send_commit(&mut self, number: u64, takes: Moment) {
        let reaches = self.rng.below(takes + 1);
        let course = std::mem::replace(&mut self.next_course, Course::Straight);
        // Often an answer is lost on a node that stands still, for so long that others take what it has.
        let stalls = course == Course::AnswerLost && self.nodes.len() > 1 && self.rng.percent(50);
        let later = self.rng.magnitude(if stalls { LEASE.0 } else { 1 }, STRAGGLES);
        if stalls {
            let index = self.commits[&number].node;
            self.stall(index, takes + later);
        }
        if course != Course::Straight {
            say!(self.trace, "* commit {number} goes this way: {course:?}, {later} ms later");
            self.census.count("commits tried again or given up");
        }
        let mut attempt = |delay: Moment, is_heard: bool| {
            let commit = self.commits.get_mut(&number).expect("it was just put there");
            commit.attempts += 1;
            commit.is_repeated = commit.attempts > 1;
            self.after(delay, Event::Effect(number, is_heard));
        };
        let over = match course {
            Course::Straight => {
                attempt(reaches, true);
                takes
            }
            Course::AnswerLost => {
                attempt(reaches, false);
                attempt(takes + later, true);
                takes + later
            }
            Course::Overtaken => {
                attempt(reaches, true);
                attempt(takes + later, false);
                takes
            }
            Course::GivenUp => {
                attempt(takes + later, false);
                takes
            }
        };
        self.after(over, Event::Done(number));
    }

    /// An attempt of a commit reaches the store.
    pub(crate) fn effect(&mut self, number: u64, is_heard: bool) {
        let Some(mut commit) = self.commits.remove(&number) else { return };
        commit.attempts -= 1;
        let batches: Vec<Batch> = commit.items.iter().filter_map(|item| item.record.batch.clone()).collect();
        let parts = batches.len();
        let shards = commit.items.iter().map(|item| item.record.shard);
        let before: BTreeMap<ShardId, Tenure> =
            shards.map(|shard| (shard, self.store.memory().tenure(shard))).collect();
        self.take_fate();
        let said = self.reached(commit.node).commit(batches);
        let took_effect = self.note_effects(&mut commit, &before);
        let is_late = commit.is_over && parts > 0;
        match &said {
            Err(error) => {
                say!(self.trace, "* commit {number} of node {} failed, {took_effect} kept: {error}", commit.node);
                let fate =
                    if took_effect > 0 { "commits that failed after their effect" } else { "commits that failed" };
                self.census.count(fate);
            }
            Ok(answers) if is_late => self.census.count(match answers.iter().any(Result::is_err) {
                true => "late attempts refused",
                false if took_effect > 0 => "late attempts that took effect",
                false => "late attempts that were there already",
            }),
            Ok(_) => {}
        }
        let said = match said {
            Err(_) if self.sabotage == Some(Sabotage::DoneUnreached) && self.reach(commit.node) == Reach::None => {
                Ok(vec![Ok(()); parts])
            }
            said => said,
        };
        if is_heard {
            commit.said = Some(self.as_told(&commit, said));
        }
        let node = &self.nodes[commit.node];
        let is_awaited = node.up && node.life == commit.life && !commit.is_over;
        if is_awaited || commit.attempts > 0 {
            self.commits.insert(number, commit);
        }
    }

    /// What the node is told of an attempt, by item. A refusal says that nothing was done, and if there was another
    /// attempt, it may have done it.
    fn as_told(&self, commit: &Commit, said: Said) -> Said {
        let answers = by_item(&commit.items, said?);
        let may_be_done = commit.is_repeated && self.sabotage != Some(Sabotage::HastyRefusals);
        match answers.iter().find_map(|answer| answer.as_ref().err()) {
            Some(refusal) if may_be_done => Err(StoreError::Unavailable(format!("it was tried before: {refusal}"))),
            _ => Ok(answers),
        }
    }

    /// Tells the auditor which steps have taken effect by now that had not before; says how many.
    fn note_effects(&mut self, commit: &mut Commit, before: &BTreeMap<ShardId, Tenure>) -> usize {
        let (mut took_effect, mut missing) = (0, BTreeSet::new());
        for (place, item) in commit.items.iter().enumerate() {
            let shard = item.record.shard;
            if commit.effective.contains(&place) {
                continue;
            }
            if !missing.contains(&shard) && self.took_effect(item, before[&shard]) {
                commit.effective.insert(place);
                took_effect += 1;
                self.audit(item);
                // The node has heard of it long since: it took effect before, and the store had lost it.
                if commit.is_over {
                    self.brought_back(commit.node, shard);
                }
            } else {
                // What a shard said after that is worth nothing.
                missing.insert(shard);
            }
        }
        took_effect
    }

    /// Whether a step is in the store and was not before. What a step that changes nothing says is true from then on.
    fn took_effect(&self, item: &Item, before: Tenure) -> bool {
        let record = &item.record;
        let after = self.store.memory().tenure(record.shard);
        let owned = before.fence == record.fence || self.sabotage == Some(Sabotage::UnfencedCommits);
        match &record.batch {
            _ if self.is_unfenced(item) => true,
            Some(batch) if batch.is_empty() => owned && batch.serial <= after.serial,
            Some(batch) => owned && before.serial < batch.serial && batch.serial <= after.serial,
            None => owned,
        }
    }

    fn audit(&mut self, item: &Item) {
        let record = &item.record;
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
        self.wrote_at_level(record.node, record.shard);
        self.check_exact(item);
    }

    /// Whether the fence of a step is not looked at; only to test the auditor.
    fn is_unfenced(&self, item: &Item) -> bool {
        self.sabotage == Some(Sabotage::UnfencedAnswers) && item.record.batch.as_ref().is_none_or(Batch::is_empty)
    }

    /// The node hears what became of a commit.
    pub(crate) fn done(&mut self, number: u64) {
        let Some(commit) = self.commits.get(&number) else { return };
        let node = &self.nodes[commit.node];
        if node.up && node.life == commit.life && !node.is_awake(self.moment) {
            let delay: Moment = node.stalled_until - self.moment;
            return self.after(delay, Event::Done(number));
        }
        let mut commit = self.commits.remove(&number).expect("it was just there");
        let index = commit.node;
        let node = &mut self.nodes[index];
        let is_awaited = node.up && node.life == commit.life;
        if is_awaited {
            node.committing = false;
            let no_answer = || Err(StoreError::Unavailable("the store did not answer in time".to_owned()));
            let said = commit.said.take().unwrap_or_else(no_answer);
            self.hear(&commit, said);
        }
        commit.is_over = true;
        if commit.attempts > 0 {
            self.commits.insert(number, commit);
        }
        if is_awaited && self.store.has_forgotten() {
            self.crash(index);
        }
    }

    /// Lets the answers of steps out that are durable, and drops the shards of others.
    fn hear(&mut self, commit: &Commit, said: Said) {
        let index = commit.node;
        let mut failed: BTreeMap<ShardId, StoreError> = BTreeMap::new();
        for (place, item) in commit.items.iter().enumerate().filter(|(_, item)| !commit.is_abandoned(item)) {
            let shard = item.record.shard;
            let answer = match &said {
                Ok(answers) => answers[place].clone().map_err(StoreError::from),
                Err(error) => Err(error.clone()),
            };
            let answer = if said.is_ok() && self.is_unfenced(item) { Ok(()) } else { answer };
            match answer {
                Ok(()) if !failed.contains_key(&shard) => {
                    self.nodes[index].committed(&item.record, self.moment);
                    self.release(index, item);
                }
                answer => {
                    self.lose(index, item.record.answers.keys().copied().collect());
                    if let Err(why) = answer {
                        self.check_refusal(item, &why, commit.effective.contains(&place));
                        failed.entry(shard).or_insert(why);
                    }
                }
            }
        }
        for (shard, why) in failed {
            self.count_refusal(&why, "deposed owners refused at a commit");
            self.drop_shard(index, shard, Some(&why));
        }
    }

    /// Nothing of what is refused was done.
    fn check_refusal(&mut self, item: &Item, why: &StoreError, took_effect: bool) {
        if took_effect && matches!(why, StoreError::Refused(_)) {
            let what = format!("step {} of shard {} took effect, but: {why}", item.record.step, item.record.shard.0);
            self.auditor.accuse(Promise::CertainAnswers, "", what);
        }
    }

    /// Counts a deposed owner that was refused.
    pub(crate) fn count_refusal(&mut self, why: &StoreError, deposed: &'static str) {
        if let StoreError::Refused(Refusal::Fenced { .. }) = why {
            self.census.count(deposed);
        }
    }

    /// Lets answers and dead letters out.
    fn release(&mut self, index: usize, item: &Item) {
        for (tag, reply) in &item.record.answers {
            let deliveries = item.record.deliveries().filter(|(to, _)| to == tag).map(|(_, delivery)| delivery.clone());
            if !self.answer_foreign(index, *tag, reply) && !self.answer_guest(index, *tag, deliveries.collect()) {
                self.give(*tag, reply.clone());
            }
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

/// What the store said of each step. One that has nothing to write and nothing to say was not asked about.
fn by_item(items: &[Item], answers: Vec<Result<(), Refusal>>) -> Vec<Result<(), Refusal>> {
    let mut answers = answers.into_iter();
    let answer = |item: &Item| match item.record.batch {
        Some(_) => answers.next().expect("the store answers each batch"),
        None => Ok(()),
    };
    items.iter().map(answer).collect()
}
