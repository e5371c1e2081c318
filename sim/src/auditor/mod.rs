//! The auditor: knows what must hold and believes nobody.
//!
//! It gets every step that took effect, in the order of the store, and every answer that a client
//! saw, and follows each row through them: each change must have a cause, each answer must say
//! what happened. At the end it compares its ledger with what the store really has.
//!
//! It shares no code with the shard beside the vocabulary, and none with the workload.

mod answers;
mod births;
mod bounds;
mod changes;
mod closing;
mod deletions;
mod guess;
mod ledger;
mod numbered;
mod owners;
mod rates;
mod requests;
mod rules;
mod standing;
#[cfg(test)]
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use punctual_core::store::{Key, ShardId};
use punctual_core::{Answer, Command, Delivery, Phase, Reply, Timestamp, Undone};

use crate::census::Census;
use crate::record::{StepRecord, Tag};
use births::Spreads;
pub use bounds::Bounds;
use changes::Written;
pub use closing::Books;
use guess::Guess;
pub use guess::Shadow;
pub use ledger::Ledger;
pub use owners::Grant;
use owners::Granted;
use rates::Rates;
use requests::Requests;
use rules::Context;

/// The promises of the design, and the books that must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// 1.
    NothingIsLost,
    /// 2.
    NeverEarly,
    /// 3.
    OneHolder,
    /// 4.
    CertainAnswers,
    /// 5.
    SameIdIsOneTask,
    /// 6.
    Bounded,
    /// 7.
    AnyTime,
    /// Counts, tallies and forecast agree with the rows.
    BooksAgree,
    /// Nobody takes a shard from a node whose lease lasts.
    OwnersInPeace,
    /// Shards are divided evenly when nothing goes wrong.
    Balanced,
    /// A request is carried out once at most, wherever it goes.
    OnlyOnce,
    /// What was asked at once about one task happens in its order.
    InOrder,
    /// A request that was passed on is not passed on again.
    OneHop,
    /// All shards have the same settings, and every change of them is made everywhere or nowhere.
    SettingsAgree,
    /// Nothing is written that a node which may be given it cannot read.
    Readable,
    /// A rate holds over all nodes together.
    RatesHold,
    /// A consumer that waits is served once, wherever it stands in line.
    OneTicket,
    /// Nothing panics and nothing runs in circles.
    KeepsWorking,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Promise::NothingIsLost => "promise 1, nothing is lost",
            Promise::NeverEarly => "promise 2, never early",
            Promise::OneHolder => "promise 3, one holder",
            Promise::CertainAnswers => "promise 4, certain answers",
            Promise::SameIdIsOneTask => "promise 5, the same id twice is one task",
            Promise::Bounded => "promise 6, bounded",
            Promise::AnyTime => "promise 7, any time",
            Promise::BooksAgree => "the books agree",
            Promise::OwnersInPeace => "owners are left in peace",
            Promise::Balanced => "shards are divided evenly",
            Promise::OnlyOnce => "nothing is carried out twice",
            Promise::InOrder => "what is asked at once happens in its order",
            Promise::SettingsAgree => "settings agree in all shards",
            Promise::Readable => "what is written can be read by all",
            Promise::RatesHold => "rates hold over all nodes",
            Promise::OneTicket => "a consumer is served once",
            Promise::OneHop => "what was passed on is not passed on again",
            Promise::KeepsWorking => "it keeps working",
        })
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub promise: Promise,
    /// Whose, as it is written in the trace; empty if it is about everything.
    pub subject: String,
    /// How.
    pub what: String,
}

/// Watches a run.
#[derive(Debug, Default)]
pub struct Auditor {
    ledgers: BTreeMap<ShardId, Ledger>,
    /// The ledgers as of when the store's copy fell behind.
    held: BTreeMap<ShardId, Ledger>,
    granted: Granted,
    requests: Requests,
    rates: Rates,
    written: Written,
    /// Whether nodes keep rates together.
    pub shares_rates: bool,
    violation: Option<Violation>,
    /// What was answered in steps that took effect and was not seen by the client yet.
    answered: BTreeMap<Tag, Reply>,
    /// Tasks that a client knows to be taken.
    confirmed: BTreeSet<Key>,
    /// Tasks that were taken in a step that took effect.
    ever: BTreeSet<Key>,
    /// How often what happened.
    pub census: Census,
}

impl Auditor {
    /// The first promise that was broken.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Notes that a promise was broken; only the first counts, the others may follow from it.
    pub fn accuse(&mut self, promise: Promise, subject: &str, what: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { promise, subject: subject.to_owned(), what });
        }
    }

    /// What a shard must hold.
    pub fn ledger(&self, shard: ShardId) -> Option<&Ledger> {
        self.ledgers.get(&shard)
    }

    /// All that must be there.
    pub fn rows(&self) -> impl Iterator<Item = (&Key, &Shadow)> {
        self.ledgers.values().flat_map(|ledger| &ledger.rows)
    }

    /// A step took effect: it is in the store, whether or not anybody gets to know.
    pub fn took_effect(&mut self, record: &StepRecord) {
        if self.violation.is_some() {
            return;
        }
        let mut ledger = self.ledgers.remove(&record.shard).unwrap_or_default();
        if let Err((promise, subject, what)) = self.follow(&mut ledger, record) {
            let what = format!("{what}\n  in step {} of shard {} at {}", record.step, record.shard.0, record.now);
            self.accuse(promise, &subject, what);
        }
        self.ledgers.insert(record.shard, ledger);
    }

    fn follow(&mut self, ledger: &mut Ledger, record: &StepRecord) -> Verdict {
        check_order(ledger, record)?;
        self.carry_out(record)?;
        self.follow_rates(ledger, record)?;
        self.follow_paced(ledger, record)?;
        let after = ledger.after(record).map_err(|what| (Promise::NothingIsLost, String::new(), what))?;
        let mut settings = ledger.settings.clone();
        let adopted = changes::adopted(record, ledger.adopted.last().copied().unwrap_or(0));
        settings.learn(record);
        ledger.begin_jobs(record);
        settings.adopt(&adopted, &ledger.deletions);
        let mut keys: BTreeSet<Key> = after.keys().cloned().collect();
        keys.extend(record.requests.iter().filter_map(|(_, command)| command.row()));
        keys.extend(record.deliveries().map(|(_, delivery)| delivery.lease.key.clone()));
        let mut spreads = Spreads::default();
        for key in &keys {
            let before = ledger.rows.get(key);
            let now_there = after.get(key).map_or(before, Option::as_ref);
            let context = Context {
                key,
                now: record.now,
                settings: &settings,
                queue_after: now_there.and_then(|row| row.state.queue.clone()),
                due_after: now_there.map(|row| row.state.due),
                late: &record.late,
                sweeps: ledger.sweeps.values().map(|sweeping| &sweeping.sweep).collect(),
                deletions: ledger.deletions.iter().collect(),
                task_before: ledger.rows.get(&key.of_task()),
            };
            // What was handed out and deleted in one step had the body that it had before.
            let task = after.get(&key.of_task()).and_then(Option::as_ref).or(context.task_before);
            self.explain(&context, before, now_there, task, &mut spreads, record)?;
        }
        self.check_leases(ledger, record)?;
        for (tag, command) in &record.requests {
            if let (Command::Take(_), Some(Ok(_))) = (command, record.answers.get(tag)) {
                self.census.count("taken");
            }
            if let (Command::Schedule(schedule), Some(Ok(_))) = (command, record.answers.get(tag)) {
                self.ever.insert(Key::task(&schedule.task.topic, &schedule.id));
            }
        }
        self.count_endings(ledger, &after);
        ledger.apply(after);
        ledger.settings = settings;
        ledger.adopted.extend(adopted.into_iter().map(|(number, _)| number));
        ledger.settings.settle();
        for task in keys.iter().map(Key::of_task).collect::<BTreeSet<Key>>() {
            if let Some(trouble) = ledger.family_trouble(&task) {
                return Err((Promise::NothingIsLost, format!("{task:?}"), trouble));
            }
        }
        self.end_sweeps(ledger, record)?;
        if let Some(trouble) = ledger.end_deletions(record) {
            return Err((Promise::CertainAnswers, String::new(), trouble));
        }
        self.answered.extend(record.answers.iter().map(|(tag, reply)| (*tag, reply.clone())));
        Ok(())
    }

    /// Looks for a way from what a row was to what it is, by what was asked and answered.
    fn explain(
        &mut self,
        context: &Context<'_>,
        before: Option<&Shadow>,
        after: Option<&Shadow>,
        task: Option<&Shadow>,
        spreads: &mut Spreads,
        record: &StepRecord,
    ) -> Verdict {
        let key = context.key;
        let subject_text = format!("{key:?}");
        let born = spreads.births(context, task);
        let mut guesses = vec![Guess::of(before)];
        guesses.extend(context.made_up_for(&guesses[0]));
        guesses = context.with_births(context.cleared(context.closure(guesses)), &born);
        spreads.note(key, &guesses);
        for (tag, command) in &record.requests {
            let about = command.row();
            let concerns =
                about.as_ref().is_some_and(|about| about == key || about.of_task() == *key || *about == key.of_task());
            let Some(reply) = record.answers.get(tag).filter(|_| concerns) else { continue };
            let about = about.expect("it concerns this row");
            let from = record.counts_from(*tag);
            let next: Vec<Guess> =
                guesses.iter().flat_map(|guess| context.answered(guess, &about, command, reply, task, from)).collect();
            if next.is_empty() {
                let what = format!("{command:?} was answered {reply:?}, but the row can only be one of {guesses:?}");
                return Err((answers::promise_of(command, reply), subject_text, what));
            }
            guesses = context.with_births(context.cleared(context.closure(next)), &born);
            spreads.note(key, &guesses);
        }
        guesses = context.jobs(guesses);
        for (tag, delivery) in record.served().filter(|(_, delivery)| delivery.lease.key == *key) {
            let next: Vec<Guess> = guesses
                .iter()
                .filter_map(|guess| context.delivered(guess, delivery, record.holders.get(&tag), task))
                .collect();
            if next.is_empty() {
                let what =
                    format!("it was handed over to request {tag} as {delivery:?}, but can only be one of {guesses:?}");
                return Err((blame_delivery(&guesses, delivery, context.now), subject_text, what));
            }
            guesses = next;
        }
        if guesses.iter().any(|guess| guess.fits(after)) {
            return Ok(());
        }
        let what = format!("it was {before:?}\n  and is {after:?}\n  but should be one of {guesses:?}");
        Err((blame_change(before, after), subject_text, what))
    }

    /// Lease tokens are never used twice, and nothing is handed over before the clock has shown its time.
    fn check_leases(&mut self, ledger: &mut Ledger, record: &StepRecord) -> Verdict {
        for (_, delivery) in record.deliveries() {
            self.census.count("deliveries");
            if delivery.attempt > 1 {
                self.census.count("deliveries again");
            }
            let subject = format!("{:?}", delivery.lease.key);
            if delivery.due > record.clock {
                let what = format!("due {} but handed over when the clock showed {}", delivery.due, record.clock);
                return Err((Promise::NeverEarly, subject, what));
            }
            if !ledger.tokens.insert(delivery.lease.token) {
                let what = format!("lease token {} was given twice", delivery.lease.token);
                return Err((Promise::OneHolder, subject, what));
            }
        }
        Ok(())
    }

    /// When a sweep over a key is answered, what it was about has been dealt with.
    fn end_sweeps(&mut self, ledger: &mut Ledger, record: &StepRecord) -> Verdict {
        let ended: Vec<Tag> = ledger.sweeps.keys().filter(|tag| record.answers.contains_key(tag)).copied().collect();
        for sweeping in ended.iter().filter_map(|tag| ledger.sweeps.remove(tag)) {
            self.census.count("sweeps audited");
            if let Some(key) = sweeping.unswept.first() {
                let what = format!("{:?} was answered, but it waits as if nothing had happened", sweeping.sweep);
                return Err((Promise::CertainAnswers, format!("{key:?}"), what));
            }
        }
        Ok(())
    }

    /// A client saw an answer.
    pub fn seen(&mut self, tag: Tag, command: Option<&Command>, reply: &Reply) {
        let answered = self.answered.remove(&tag);
        if answered.as_ref() != Some(reply) {
            let subject = command.and_then(Command::row).map(|key| format!("{key:?}")).unwrap_or_default();
            let what = format!("request {tag} was answered {reply:?}, but what took effect is {answered:?}");
            self.accuse(Promise::CertainAnswers, &subject, what);
        }
        if let (Some(Command::Schedule(schedule)), Ok(Answer::Scheduled(_))) = (command, reply) {
            self.confirmed.insert(Key::task(&schedule.task.topic, &schedule.id));
        }
    }

    /// A shard was opened anew: sweeps that had not ended are forgotten. Deletions go on.
    pub fn reopened(&mut self, shard: ShardId) {
        if let Some(ledger) = self.ledgers.get_mut(&shard) {
            ledger.sweeps.clear();
        }
    }

    /// What takes effect from now on may be lost.
    pub fn hold(&mut self) {
        self.held = self.ledgers.clone();
    }

    /// All that has taken effect in a shard since then is lost, and nothing else. Only that tokens of leases were given
    /// stays true: who got them may still come with them.
    pub fn go_back(&mut self, shard: ShardId) {
        let mut held = self.held.get(&shard).cloned().unwrap_or_default();
        if let Some(lost) = self.ledgers.remove(&shard) {
            held.tokens = lost.tokens;
        }
        self.ledgers.insert(shard, held);
    }

    /// A step that was lost may take effect once more, since it was not confirmed yet: with the same tokens.
    pub fn take_back(&mut self, record: &StepRecord) {
        self.uncarry(record);
        self.unpace(record);
        if let Some(ledger) = self.ledgers.get_mut(&record.shard) {
            record.deliveries().for_each(|(_, delivery)| _ = ledger.tokens.remove(&delivery.lease.token));
        }
    }

    fn count_endings(&mut self, ledger: &Ledger, after: &BTreeMap<Key, Option<Shadow>>) {
        for (key, row) in after {
            let known = ledger.rows.get(key);
            let is_another = known.map(|row| row.seq) != row.as_ref().map(|row| row.seq);
            let before = known.map(|row| &row.state.phase);
            if let (Some(Phase::Leased { .. }), Some(row)) = (before, row)
                && row
                    .state
                    .log
                    .as_ref()
                    .and_then(|log| log.attempts().last())
                    .is_some_and(|it| it.undone == Undone::Revoked)
            {
                self.census.count("revoked");
            }
            match (before, row.as_ref().map(|row| &row.state.phase)) {
                (Some(Phase::Leased { .. }), Some(Phase::Waiting)) => self.census.count("attempts that failed"),
                (Some(Phase::Spread(_)), _) => {}
                (_, Some(Phase::Spread(_))) => self.census.count("broadcasts"),
                (Some(Phase::Forwarding { .. }), Some(Phase::Finished(_)) | None) => self.census.count("forwards"),
                (Some(Phase::Dead(_)), Some(Phase::Dead(_))) => {}
                (_, Some(Phase::Dead(death))) => self.census.count(death.reason.as_str()),
                (Some(Phase::Finished(_)), None) => self.census.count("history forgotten"),
                (Some(Phase::Dead(_)), None) => self.census.count("dead letters removed"),
                (Some(Phase::Finished(_)), Some(_)) if is_another => self.census.count("armed again"),
                (Some(Phase::Dead(_) | Phase::Finished(_)), Some(Phase::Waiting | Phase::Leased { .. })) => {
                    self.census.count("replays");
                }
                _ => {}
            }
        }
    }
}

type Verdict = Result<(), (Promise, String, String)>;

/// The steps of a shard take effect in their order, under rising fences, and its time is the clock's: the right time where
/// the clock is right.
fn check_order(ledger: &mut Ledger, record: &StepRecord) -> Verdict {
    let broken = |promise, what: String| Err((promise, String::new(), what));
    if let Some((fence, step)) = ledger.last.filter(|last| (record.fence, record.step) <= *last) {
        return broken(Promise::OneHolder, format!("{:?} took effect after {fence:?} step {step}", record.fence));
    }
    if record.now != record.clock {
        let what = format!("the shard's time is {}, but that of its node is {}", record.now, record.clock);
        return broken(Promise::NeverEarly, what);
    }
    if let Some(truth) = record.truth.filter(|truth| *truth != record.now) {
        let what = format!("the shard's time is {}, though its clock was right and showed {truth}", record.now);
        return broken(Promise::NeverEarly, what);
    }
    ledger.last = Some((record.fence, record.step));
    Ok(())
}

fn blame_delivery(guesses: &[Guess], delivery: &Delivery, now: Timestamp) -> Promise {
    let early = |guess: &Guess| matches!(guess, Guess::Row(row) if row.is_waiting() && row.at > now);
    let held = |guess: &Guess| matches!(guess, Guess::Row(row) if matches!(row.state.phase, Phase::Leased { .. }));
    if delivery.due > now || guesses.iter().any(early) {
        Promise::NeverEarly
    } else if guesses.iter().any(held) {
        Promise::OneHolder
    } else {
        Promise::CertainAnswers
    }
}

fn blame_change(before: Option<&Shadow>, after: Option<&Shadow>) -> Promise {
    let leased = |row: Option<&Shadow>| row.is_some_and(|row| matches!(row.state.phase, Phase::Leased { .. }));
    match (before, after) {
        (Some(_), None) => Promise::NothingIsLost,
        _ if leased(before) || leased(after) => Promise::OneHolder,
        (None, Some(_)) => Promise::SameIdIsOneTask,
        _ => Promise::CertainAnswers,
    }
}
