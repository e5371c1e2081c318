//! What may happen to a row by itself and what each command does to it: the rules of the design,
//! written down a second time and in another way than the shard does it.

use punctual_core::store::{Key, Table};
use punctual_core::{
    Back, Death, Ending, Millis, Name, Phase, QueueSettings, Reason, Retry, Revoke, Shift, Standing, State, Sweep,
    SweepAction, Timestamp, TopicSettings, Undone,
};
use punctual_core::{Matching, Schedule};

use super::deletions::Deletion;
use super::guess::{Body, Candidate, Guess, Shadow};
use super::ledger::Settings;
use super::standing::is_true;

/// How long a dead letter on its way waits for word.
const PATIENCE: (Millis, Millis) = (Millis::from_secs(60), Millis::from_hours(6));

/// What the rules depend on beside the row.
pub(super) struct Context<'a> {
    pub key: &'a Key,
    pub now: Timestamp,
    pub settings: &'a Settings,
    /// The queue that the row has after the step: where it was ready when it died.
    pub queue_after: Option<Name>,
    /// The due time that the row has after the step.
    pub due_after: Option<Timestamp>,
    /// By how much leases may have been made longer, since their deliveries were handed over so late.
    pub late: &'a [Millis],
    /// Sweeps that are under way.
    pub sweeps: Vec<&'a Sweep>,
    /// Deletions that are under way.
    pub deletions: Vec<&'a Deletion>,
    /// What the row's task was before the step.
    pub task_before: Option<&'a Shadow>,
}

impl Context<'_> {
    pub fn topic(&self) -> Vec<TopicSettings> {
        self.settings.topic(self.key.topic())
    }

    fn queue(&self, name: Option<&Name>) -> Vec<QueueSettings> {
        name.map_or_else(Vec::new, |name| self.settings.queue(name))
    }

    /// The queues that a row may be ready in: the one it names, or those that its topic feeds.
    fn likely_queues(&self, row: &Candidate) -> Vec<QueueSettings> {
        if let Some(name) = self.queue_after.as_ref().or(row.state.queue.as_ref()) {
            return self.settings.queue(name);
        }
        let fed = |topic: TopicSettings| match topic.feeds {
            None => self.settings.queue(self.key.topic()),
            Some(feeds) => feeds.iter().flat_map(|binding| self.settings.queue(&binding.queue)).collect(),
        };
        self.topic().into_iter().flat_map(fed).collect()
    }

    fn is_part(&self) -> bool {
        !self.key.queue().is_empty()
    }

    /// Everything that may have become of a row by itself.
    pub fn closure(&self, guesses: Vec<Guess>) -> Vec<Guess> {
        let mut all: Vec<Guess> = Vec::new();
        let mut fresh = guesses;
        while let Some(guess) = fresh.pop() {
            if all.contains(&guess) {
                continue;
            }
            if let Guess::Row(row) = &guess {
                fresh.extend(self.by_itself(row));
            }
            all.push(guess);
        }
        all
    }

    /// The same with what may come to be where there is none, or none any more.
    pub fn with_births(&self, guesses: Vec<Guess>, born: &[Guess]) -> Vec<Guess> {
        if born.is_empty() || !guesses.contains(&Guess::Gone) {
            return guesses;
        }
        self.cleared(self.closure(guesses.into_iter().chain(born.iter().cloned()).collect()))
    }

    /// What sweeps and deletions may have done, one after the other in either order.
    pub fn jobs(&self, mut guesses: Vec<Guess>) -> Vec<Guess> {
        for _ in 0..self.sweeps.len() + self.deletions.len() {
            let rows = guesses.iter().filter_map(|guess| match guess {
                Guess::Row(row) => Some(row),
                Guess::Gone => None,
            });
            let changed: Vec<Guess> = rows
                .flat_map(|row| {
                    let swept = self.sweeps.iter().flat_map(|sweep| self.swept(row, sweep));
                    swept.chain(self.deletions.iter().flat_map(|deletion| self.deleted(row, deletion)))
                })
                .collect();
            if changed.is_empty() {
                break;
            }
            guesses = self.closure(guesses.into_iter().chain(changed).collect());
        }
        guesses
    }

    /// What deletions may have done. They take effect when somebody asks for a row, or when they come to it.
    pub fn cleared(&self, guesses: Vec<Guess>) -> Vec<Guess> {
        let rows = guesses.iter().filter_map(|guess| match guess {
            Guess::Row(row) => Some(row),
            Guess::Gone => None,
        });
        let gone = rows.flat_map(|row| self.deletions.iter().flat_map(|deletion| self.deleted(row, deletion)));
        let gone: Vec<Guess> = gone.collect();
        self.closure(guesses.into_iter().chain(gone).collect())
    }

    /// What a deletion may do to a row.
    fn deleted(&self, row: &Candidate, deletion: &Deletion) -> Vec<Guess> {
        match deletion {
            Deletion::Topic(name) if self.key.topic() == name.as_str() => vec![Guess::Gone],
            Deletion::Topic(_) => Vec::new(),
            Deletion::Queue(name) => {
                let own = row.state.queue.as_ref() == Some(name);
                let ready = row.is_waiting() && row.at <= self.now && row.state.queue.is_none();
                match row.table {
                    Table::Live if own || (ready && self.may_feed(name)) => self.end(row, Ending::Cancelled),
                    // What has died in this very step does not say where.
                    Table::Dead if own || (row.at == self.now && self.may_feed(name)) => vec![Guess::Gone],
                    _ => Vec::new(),
                }
            }
        }
    }

    fn may_feed(&self, queue: &Name) -> bool {
        self.topic().iter().any(|topic| match &topic.feeds {
            None => self.key.topic() == queue.as_str(),
            Some(feeds) => feeds.iter().any(|binding| binding.queue == *queue),
        })
    }

    /// Whether the topic is being deleted, so that nothing is handed out from it again.
    pub fn is_closing(&self) -> bool {
        let closes =
            |deletion: &&Deletion| matches!(deletion, Deletion::Topic(name) if self.key.topic() == name.as_str());
        self.deletions.iter().any(closes)
    }

    /// What a row may be after word has come of when its delivery was handed over.
    pub fn made_up_for(&self, guess: &Guess) -> Vec<Guess> {
        let Guess::Row(row) = guess else { return Vec::new() };
        let late = self.late.iter().filter(|_| matches!(row.state.phase, Phase::Leased { .. }));
        let longer = |late: &Millis| {
            let mut row = (**row).clone();
            row.set_at(row.at.plus(*late));
            Guess::row(row)
        };
        late.map(longer).collect()
    }

    fn by_itself(&self, row: &Candidate) -> Vec<Guess> {
        let mut next = Vec::new();
        match &row.state.phase {
            Phase::Waiting if row.at <= self.now => self.arrive(row, &mut next),
            Phase::Leased { .. } if row.at <= self.now => next.extend(self.lapse(row)),
            Phase::Forwarding { death, .. } if row.at <= self.now => {
                let mut sent = row.clone();
                let dead_for = self.now.since(death.at).0;
                sent.set_at(self.now.plus(Millis(dead_for / 2).clamp(PATIENCE.0, PATIENCE.1)));
                next.push(Guess::row(sent));
                next.push(self.bury(row, death.clone()));
            }
            Phase::Spread(_) => {
                // Whether its deliveries really ended is checked with their rows.
                let endings = [Ending::Done, Ending::Cancelled, Ending::Forwarded, Ending::Purged];
                next.extend(endings.into_iter().flat_map(|ending| self.end(row, ending)));
            }
            Phase::Dead(_) => {
                let old =
                    |queue: &QueueSettings| queue.dead_retention.is_some_and(|period| row.at.plus(period) <= self.now);
                if self.queue(row.state.queue.as_ref()).iter().any(old) {
                    next.push(Guess::Gone);
                }
            }
            Phase::Finished(_) if self.topic().iter().any(|topic| row.at.plus(topic.history) <= self.now) => {
                next.push(Guess::Gone);
            }
            _ => {}
        }
        next
    }

    fn arrive(&self, row: &Candidate, next: &mut Vec<Guess>) {
        if row.state.expires_at() <= self.now {
            next.extend(self.die(row, Reason::Expired));
        }
        if self.likely_queues(row).iter().any(|queue| queue.max_length.is_some()) {
            next.extend(self.die(row, Reason::PushedOut));
        }
        if self.is_part() || row.state.queue.is_some() {
            return;
        }
        for feeds in self.topic().into_iter().filter_map(|topic| topic.feeds) {
            let takers = feeds.iter().filter(|binding| binding.pattern.fits(row.state.routing())).count();
            if takers == 0 {
                next.extend(self.die(row, Reason::Unrouted));
            } else if takers > 1 {
                let mut spread = row.clone();
                spread.state.phase = Phase::Spread(Vec::new());
                spread.set_at(Timestamp::LAST);
                next.push(Guess::row(spread));
            }
        }
    }

    fn die(&self, row: &Candidate, reason: Reason) -> Vec<Guess> {
        let death = Death { reason, at: self.now, note: None };
        let mut targets: Vec<Option<Name>> = match reason {
            Reason::Unrouted => vec![None],
            _ => self.likely_queues(row).into_iter().map(|queue| queue.dead_letter).collect(),
        };
        if self.queue_after.as_ref().or(row.state.queue.as_ref()).is_none() {
            // It has not got to a queue, or is gone by the end of the step and does not tell.
            targets.push(None);
        }
        let fate = |to: Option<Name>| match to {
            None => self.bury(row, death.clone()),
            Some(to) => {
                let mut leaving = row.clone();
                leaving.state.phase = Phase::Forwarding { to, number: 0, death: death.clone() };
                leaving.table = Table::Live;
                leaving.set_at(self.now);
                Guess::row(leaving)
            }
        };
        targets.into_iter().map(fate).collect()
    }

    fn bury(&self, row: &Candidate, death: Death) -> Guess {
        let mut dead = row.clone();
        dead.state.phase = Phase::Dead(death);
        dead.table = Table::Dead;
        dead.set_at(self.now);
        Guess::row(dead)
    }

    /// A lease ended without a word.
    fn lapse(&self, row: &Candidate) -> Vec<Guess> {
        let mut row = row.clone();
        row.state.log_attempt(row.at, Undone::Lapsed, None);
        self.fail(&row, self.now)
    }

    /// An attempt failed at this time.
    fn fail(&self, row: &Candidate, at: Timestamp) -> Vec<Guess> {
        let own = row.state.retry.map(|retry| vec![retry]);
        let queues = || self.queue(row.state.queue.as_ref()).into_iter().map(|queue| queue.retry).collect();
        let policies: Vec<Retry> = own.unwrap_or_else(queues);
        let mut next = Vec::new();
        for policy in policies {
            let mut failed = row.clone();
            failed.state.failures += 1;
            if policy.is_exhausted(failed.state.failures) {
                next.extend(self.die(&failed, Reason::OutOfAttempts));
                continue;
            }
            let wait = Retry { jitter_percent: 0, ..policy }.wait(failed.state.failures, 0);
            let longest = Millis(wait.0 + wait.0 * u64::from(policy.jitter_percent) / 100);
            failed.state.phase = Phase::Waiting;
            let within = |at: Timestamp| at.max(failed.state.due).min(failed.state.expires_at());
            (failed.at, failed.latest) = (within(at.plus(wait)), within(at.plus(longest)));
            next.push(Guess::row(failed));
        }
        next
    }

    fn wait_until(&self, mut row: Candidate, at: Timestamp) -> Guess {
        row.state.phase = Phase::Waiting;
        row.table = Table::Live;
        let at = at.max(row.state.due).min(row.state.expires_at());
        row.set_at(at);
        Guess::row(row)
    }

    pub fn end(&self, row: &Candidate, ending: Ending) -> Vec<Guess> {
        if self.is_part() {
            return vec![Guess::Gone];
        }
        let mut ended = row.clone();
        ended.state.phase = Phase::Finished(ending);
        ended.table = Table::History;
        ended.set_at(self.now);
        let fate = |topic: TopicSettings| match topic.history {
            Millis::ZERO => Guess::Gone,
            _ => Guess::row(ended.clone()),
        };
        self.topic().into_iter().map(fate).collect()
    }

    /// A task that was just taken.
    pub fn created(&self, schedule: &Schedule, due: Timestamp, number: u64, from: Timestamp) -> Vec<Guess> {
        let task = &schedule.task;
        if due != task.when.due(self.now, from) {
            return Vec::new();
        }
        let make = |topic: TopicSettings| {
            let state = State {
                phase: Phase::Waiting,
                scheduled_at: from.min(due),
                due,
                priority: task.priority.unwrap_or(topic.priority),
                ttl: task.ttl.or(topic.ttl),
                retry: task.retry,
                routing_key: task.routing_key.clone(),
                queue: None,
                attempts: 0,
                failures: 0,
                lease: task.lease,
                past: None,
                max_lease: task.max_lease,
                log: None,
                swept: None,
            };
            let at = due.min(state.expires_at());
            Guess::row(Candidate {
                table: Table::Live,
                seq: Some(number),
                at,
                latest: at,
                group: task.key.clone(),
                state,
                body: Body::EndsWith(task.body.clone()),
            })
        };
        self.topic().into_iter().map(make).collect()
    }

    /// One of the deliveries that a task was spread to.
    pub fn born(&self, mut task: Candidate) -> Guess {
        let at = task.state.due.min(self.now);
        task.state.phase = Phase::Waiting;
        (task.state.past, task.state.log) = (None, None);
        task.table = Table::Live;
        task.seq = None;
        task.body = Body::Exactly(Default::default());
        task.set_at(at);
        Guess::row(task)
    }

    /// What a shift makes of a row. If it failed in this very step, the auditor does not know how long its jitter
    /// was: then the due time that was `told`, or that the row has after the step, counts if it is possible.
    pub fn shifted(&self, row: &Candidate, shift: Shift, told: Option<Timestamp>, from: Timestamp) -> Guess {
        let mut moved = row.clone();
        let (earliest, latest) = (shift.apply(row.at, self.now, from), shift.apply(row.latest, self.now, from));
        let possible = |due: &Timestamp| (earliest..=latest).contains(due);
        let at = told.into_iter().chain(self.due_after).find(possible).unwrap_or(earliest);
        moved.state.due = at;
        self.wait_until(moved, at)
    }

    pub fn released(
        &self,
        row: &Candidate,
        back: Back,
        priority: Option<u32>,
        note: Option<&str>,
        from: Timestamp,
    ) -> Vec<Guess> {
        let mut row = row.clone();
        let undone = match back {
            Back::Retry => Undone::Failed,
            Back::After(_) => Undone::Released,
            Back::Abandoned => Undone::Abandoned,
        };
        row.state.log_attempt(self.now, undone, note);
        row.state.priority = priority.unwrap_or(row.state.priority);
        if back != Back::Abandoned {
            row.state.past_mut().releases += 1;
        }
        self.given_back(row, back, from)
    }

    pub fn revoked(&self, row: &Candidate, revoke: &Revoke, from: Timestamp) -> Vec<Guess> {
        let mut row = row.clone();
        row.state.log_attempt(self.now, Undone::Revoked, revoke.note.as_deref());
        self.given_back(row, revoke.back, from)
    }

    fn given_back(&self, mut row: Candidate, back: Back, from: Timestamp) -> Vec<Guess> {
        if let Back::After(delay) = back {
            row.state.past_mut().delay = Some(delay);
        }
        let due = row.state.due.min(self.now);
        match back {
            Back::Retry => self.fail(&row, from),
            Back::After(Millis::ZERO) | Back::Abandoned => vec![self.wait_until(row, due)],
            Back::After(delay) => vec![self.wait_until(row, from.plus(delay))],
        }
    }

    pub fn rejected(&self, row: &Candidate, priority: Option<u32>, note: Option<&str>) -> Vec<Guess> {
        let mut row = row.clone();
        row.state.log_attempt(self.now, Undone::Rejected, note);
        row.state.priority = priority.unwrap_or(row.state.priority);
        row.state.past_mut().rejections += 1;
        self.die(&row, Reason::Rejected)
    }

    /// What may have become of a row, as far as it stands where it was told to stand.
    pub fn stands(&self, guesses: Vec<Guess>, standing: &Standing) -> Vec<Guess> {
        let fits = |guess: &Guess| matches!(guess, Guess::Row(row) if is_true(standing, row, self.now));
        self.closure(guesses).into_iter().filter(fits).collect()
    }

    /// Whether there may be no room for a row that is to be ready.
    pub fn may_be_full(&self, row: &Candidate) -> bool {
        self.likely_queues(row).iter().any(|queue| queue.max_length.is_some())
    }

    pub fn forwarded(&self, row: &Candidate, journey: u64, refused: bool) -> Vec<Guess> {
        if !row.is_on_journey(journey) {
            return Vec::new();
        }
        match &row.state.phase {
            Phase::Forwarding { death, .. } if refused => vec![self.bury(row, death.clone())],
            Phase::Forwarding { .. } => self.end(row, Ending::Forwarded),
            _ => Vec::new(),
        }
    }

    pub fn replayed(&self, row: &Candidate) -> Guess {
        let mut again = row.clone();
        again.begin_anew();
        again.keep_delay();
        again.state.past_mut().replays += 1;
        again.state.due = self.now;
        if row.table == Table::History {
            again.state.queue = None;
        }
        self.wait_until(again, self.now)
    }

    fn swept(&self, row: &Candidate, sweep: &Sweep) -> Vec<Guess> {
        let of_topic = |topic: Option<&Name>| topic.is_none_or(|topic| self.key.topic() == topic.as_str());
        if sweep.dry_run {
            return Vec::new();
        }
        match (&sweep.matching, sweep.action) {
            (Matching::Key { key, topic }, action) => {
                if row.group.as_ref() != Some(key) || !of_topic(topic.as_ref()) || !row.is_waiting() {
                    return Vec::new();
                }
                match action {
                    SweepAction::Shift(shift) => vec![self.shifted(row, shift, None, self.now)],
                    _ => self.end(row, Ending::Cancelled),
                }
            }
            (Matching::Dead { topic, queue, died }, action) => {
                let of_queue = queue.is_none() || *queue == row.state.queue;
                let fits = row.table == Table::Dead && of_topic(topic.as_ref()) && of_queue;
                if !fits || !(died.from..died.until).contains(&row.at) {
                    return Vec::new();
                }
                match action {
                    SweepAction::Replay => vec![self.replayed(row)],
                    _ => vec![Guess::Gone],
                }
            }
            (Matching::History { topic, finished, ending }, _) => {
                let ended_so = ending.is_none_or(|ending| row.state.phase == Phase::Finished(ending));
                let fits = row.table == Table::History && of_topic(Some(topic)) && ended_so;
                let in_time = (finished.from..finished.until).contains(&row.at);
                if fits && in_time { vec![self.replayed(row)] } else { Vec::new() }
            }
            (Matching::Tasks(_) | Matching::Changed { .. }, _) => unreachable!("the workload draws none"),
        }
    }
}
