//! The loop of a worker. At most one request for deliveries and one about deliveries are under way at a time; what
//! comes up meanwhile goes into the next.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use punctual_wire::{Action, Answer, Delivery, Do, Reserve, Settled, Span};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tracing::Instrument;

use super::backlog::Backlog;
use super::failure::Failure;
use super::handler::Handlers;
use super::held::{Extension, Held};
use super::job::Job;
use super::outbox::{Note, Outbox, Word, request};
use super::pace::Pace;
use super::{Settings, Summary, USUAL_LEASE};
use crate::backoff::Waits;
use crate::client::Client;
use crate::error::Error;
use crate::leases::ACTIONS;
use crate::transport::Repeat;

/// An empty answer that comes sooner than this was not waited for; asking again at once would be a busy loop.
const TOO_SOON: Duration = Duration::from_millis(50);

/// After a request that failed, at least about so long.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// When nothing is to be done, look again after this.
const IDLE: Duration = Duration::from_secs(3_600);

/// A worker at work.
pub(super) struct Run {
    client: Client,
    handlers: Handlers,
    pub settings: Settings,
    held: Held,
    pub backlog: Backlog,
    pub outbox: Outbox,
    pace: Pace,
    pub jobs: JoinSet<Result<(), Failure>>,
    pub running: HashMap<Id, Running>,
    pub fetches: JoinSet<Fetched>,
    fetch_waits: Waits,
    fetch_at: Instant,
    pub settlings: JoinSet<Sent>,
    /// How many notes are being sent.
    pub under_way: usize,
    settle_waits: Waits,
    settle_at: Instant,
    pub summary: Summary,
}

/// A handler at work.
pub(super) struct Running {
    number: u64,
    since: Instant,
    queue: String,
    id: String,
}

/// The answer to a request for deliveries.
pub(super) struct Fetched {
    asked_at: Instant,
    answer: Result<Vec<Delivery>, Error>,
}

/// The answer to a request about deliveries.
pub(super) struct Sent {
    sent_at: Instant,
    notes: Vec<Note>,
    answer: Result<Vec<Answer<Settled>>, Error>,
}

impl Run {
    pub fn new(client: Client, handlers: Handlers, settings: Settings) -> Run {
        let (first, longest) = (FIRST_WAIT, Duration::from_secs(10));
        let now = Instant::now();
        Run {
            client,
            handlers,
            held: Held::default(),
            settle_waits: Waits::new(first, longest),
            settings,
            backlog: Backlog::default(),
            outbox: Outbox::default(),
            pace: Pace::default(),
            jobs: JoinSet::new(),
            running: HashMap::new(),
            fetches: JoinSet::new(),
            fetch_waits: Waits::new(first, longest),
            fetch_at: now,
            settlings: JoinSet::new(),
            under_way: 0,
            settle_at: now,
            summary: Summary::default(),
        }
    }

    /// Works until the shutdown comes or until waiting does not help, and then leaves in order.
    pub async fn until(mut self, shutdown: impl Future<Output = ()>) -> Result<Summary, Error> {
        let mut shutdown = pin!(shutdown);
        let ended = loop {
            self.begin_jobs();
            self.begin_fetch();
            self.begin_settling();
            let wake_at = self.wake_at();
            tokio::select! {
                () = &mut shutdown => break Ok(()),
                Some(finished) = self.jobs.join_next_with_id() => self.finished(finished),
                Some(fetched) = self.fetches.join_next() => {
                    if let Err(error) = self.fetched(fetched) {
                        break Err(error);
                    }
                }
                Some(sent) = self.settlings.join_next() => self.settled(sent),
                () = tokio::time::sleep_until(wake_at) => self.tick(),
            }
        };
        let summary = self.leave().await;
        tracing::info!(?summary, "the worker has stopped");
        ended.map(|()| summary)
    }

    /// When there is something to do besides what is under way.
    pub fn wake_at(&self) -> Instant {
        let now = Instant::now();
        let mut wake_at = now + IDLE;
        if let Some(at) = self.held.wake_at() {
            wake_at = wake_at.min(at);
        }
        if self.fetches.is_empty() && self.fetch_at > now {
            wake_at = wake_at.min(self.fetch_at);
        }
        if self.settlings.is_empty() && !self.outbox.is_empty() {
            wake_at = wake_at.min(self.settle_at);
        }
        wake_at
    }

    /// Sees to the leases.
    pub fn tick(&mut self) {
        let now = Instant::now();
        let lost = self.held.end(now);
        if lost > 0 {
            tracing::warn!(lost, "leases ran out, because the server could not be asked to extend them");
            self.summary.lost += lost as u64;
        }
        for Extension { number, token, by, ends_at } in self.held.extend(now) {
            let action = Action { after: Some(by.into()), ..Action::new(Do::Extend, token) };
            self.outbox.push(Note::new(number, action, ends_at));
        }
    }

    fn begin_jobs(&mut self) {
        while self.running.len() < self.settings.concurrency {
            let Some((number, delivery)) = self.backlog.pop() else { return };
            // What was lost while it waited here is somebody else's.
            let Some(lost) = self.held.watch(number) else { continue };
            let (queue, id) = (delivery.queue.clone(), delivery.id.clone());
            let span = tracing::info_span!("job", queue, topic = delivery.topic, id, attempt = delivery.attempt);
            match self.handlers.work(Job::new(delivery, lost)) {
                Some(work) => {
                    let handle = self.jobs.spawn(work.instrument(span));
                    self.running.insert(handle.id(), Running { number, since: Instant::now(), queue, id });
                }
                None => {
                    tracing::error!(queue, id, "the server handed out a delivery that was not asked for");
                    self.conclude(number, Err(Failure::retry("this worker does not handle this queue")));
                }
            }
        }
    }

    fn begin_fetch(&mut self) {
        let ahead = self.pace.ahead(self.settings.concurrency, self.settings.prefetch);
        let room = (self.settings.concurrency + ahead).saturating_sub(self.running.len() + self.backlog.len());
        // Half of what is fetched ahead may be used up first, so that a fetch brings several.
        let is_low = self.backlog.len() * 2 <= ahead;
        // If the server does not hear what became of the last ones, more would make it worse.
        let is_heard = self.outbox.len() < ACTIONS;
        if room == 0 || !is_low || !is_heard || !self.fetches.is_empty() || Instant::now() < self.fetch_at {
            return;
        }
        let reserve = Reserve {
            queues: self.handlers.queues(),
            max: Some(u32::try_from(room.min(ACTIONS)).unwrap_or(u32::MAX)),
            lease: self.settings.lease.map(Span::from),
            wait: Some(Span::from(self.settings.wait)),
            consumer: Some(self.settings.consumer.clone()),
        };
        let client = self.client.clone();
        self.fetches.spawn(async move {
            let asked_at = Instant::now();
            Fetched { asked_at, answer: client.reserve(reserve).await }
        });
    }

    /// Takes what was fetched. Only what waiting does not mend is an error.
    pub fn fetched(&mut self, fetched: Result<Fetched, JoinError>) -> Result<(), Error> {
        // A fetch is only ever stopped on purpose.
        let Ok(Fetched { asked_at, answer }) = fetched else { return Ok(()) };
        let now = Instant::now();
        match answer {
            Ok(deliveries) if deliveries.is_empty() && now - asked_at < TOO_SOON => {
                self.fetch_at = now + self.fetch_waits.next(None);
            }
            Ok(deliveries) => {
                self.fetch_waits.reset();
                for delivery in deliveries {
                    let length = self.settings.lease_of(&delivery);
                    let number = self.held.insert(delivery.lease.clone(), length, now);
                    self.backlog.push(number, delivery);
                }
            }
            Err(error) if is_final(&error) => {
                tracing::error!(%error, "the server refuses this worker");
                return Err(error);
            }
            Err(error) => {
                let wait = self.fetch_waits.next(error.retry_after());
                tracing::warn!(%error, ?wait, "deliveries could not be fetched; trying again");
                self.fetch_at = now + wait;
            }
        }
        Ok(())
    }

    /// Takes what became of a handler.
    pub fn finished(&mut self, finished: Result<(Id, Result<(), Failure>), JoinError>) {
        let id = match &finished {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(running) = self.running.remove(&id) else { return };
        self.pace.note(running.since.elapsed());
        let (queue, id) = (running.queue, running.id);
        let outcome = match finished {
            Ok((_, outcome)) => outcome,
            Err(error) if error.is_panic() => {
                self.summary.panicked += 1;
                Err(Failure::retry(format!("the handler panicked: {}", said(error))))
            }
            // It was stopped at the end of the grace period.
            Err(_) => return self.give_back(running.number),
        };
        if let Err(failure) = &outcome {
            let rejected = failure.is_rejection();
            tracing::warn!(queue, id, rejected, "a delivery was not done: {failure}");
        }
        if !self.conclude(running.number, outcome) {
            tracing::warn!(queue, id, "the lease was lost before the work was done: its outcome is not sent");
        }
    }

    /// Says what became of a delivery, unless its lease is lost.
    fn conclude(&mut self, number: u64, outcome: Result<(), Failure>) -> bool {
        let Some((token, ends_at)) = self.held.remove(number) else { return false };
        let action = match outcome {
            Ok(()) => Action::new(Do::Acknowledge, token),
            Err(failure) => failure.action(token),
        };
        self.outbox.push(Note::new(number, action, ends_at));
        true
    }

    /// Gives a delivery back to where it stood, unless its lease is lost.
    pub fn give_back(&mut self, number: u64) {
        if let Some((token, ends_at)) = self.held.remove(number) {
            let action = Action { after: Some(Span(0)), ..Action::new(Do::Release, token) };
            self.outbox.push(Note { given_back: true, ..Note::new(number, action, ends_at) });
        }
    }

    /// The shortest of the leases that matter now.
    fn shortest_lease(&self) -> Duration {
        self.held.shortest().unwrap_or(USUAL_LEASE)
    }

    /// Sends what waits to be said.
    pub fn begin_settling(&mut self) {
        if !self.settlings.is_empty() || Instant::now() < self.settle_at {
            return;
        }
        let notes = self.outbox.take(|number| self.held.has(number));
        if notes.is_empty() {
            return;
        }
        self.under_way = notes.len();
        let client = self.client.clone();
        // What is stuck must not keep the leases from being extended by the next request.
        let limit = (self.shortest_lease() / 3).max(Duration::from_millis(500));
        self.settlings.spawn(async move {
            let sent_at = Instant::now();
            let actions = request(&notes);
            // The outbox repeats by itself, together with what has come up meanwhile.
            let answer = client.settle_plainly(&actions, Repeat::Never, Some(limit)).await;
            Sent { sent_at, notes, answer: answer.map(|(answers, _)| answers) }
        });
    }

    /// Takes the server's answers.
    pub fn settled(&mut self, sent: Result<Sent, JoinError>) {
        self.under_way = 0;
        let Ok(Sent { sent_at, notes, answer }) = sent else { return };
        let now = Instant::now();
        let before = self.outbox.len();
        let (words, asked) = match answer {
            Ok(answers) => (self.outbox.heard(notes, answers, now), None),
            Err(error) => {
                tracing::warn!(%error, notes = notes.len(), "the outcome of deliveries could not be sent to the server");
                (self.outbox.unheard(notes, error.may_have_happened(), now), error.retry_after())
            }
        };
        let failed = words.iter().any(|word| matches!(word, Word::NotExtended(_)));
        if failed || self.outbox.len() > before {
            let wait = self.settle_waits.next(asked);
            // Leases must be extended before they end, so unless the server asks for more the waits stay well below
            // their length.
            let longest = (self.shortest_lease() / 6).max(FIRST_WAIT);
            self.settle_at = now + if asked.is_some() { wait } else { wait.min(longest) };
        } else {
            self.settle_waits.reset();
        }
        for word in words {
            self.take_word(word, sent_at, now);
        }
    }

    fn take_word(&mut self, word: Word, sent_at: Instant, now: Instant) {
        match word {
            Word::Answered(note, Answer::Done(_)) => match note.action.what {
                Do::Acknowledge => self.summary.done += 1,
                Do::Reject => self.summary.rejected += 1,
                Do::Release if note.given_back => self.summary.given_back += 1,
                Do::Release => self.summary.failed += 1,
                Do::Extend => self.held.extended(note.number, sent_at),
            },
            Word::Answered(note, Answer::Refused { problem }) if note.action.what == Do::Extend => {
                if problem.code != "lease-lost" {
                    self.held.not_extended(note.number, now);
                } else if self.held.lose(note.number) {
                    tracing::warn!(%problem, "a lease was lost while its delivery was being worked on");
                    self.summary.lost += 1;
                }
            }
            Word::Answered(note, Answer::Refused { problem }) => {
                tracing::warn!(%problem, what = ?note.action.what, "the server refused the outcome of a delivery");
                self.summary.lost += 1;
            }
            Word::TooLate(note) => {
                tracing::warn!(what = ?note.action.what, "a lease ran out before the outcome could be sent to the server");
                self.summary.lost += 1;
            }
            Word::NotExtended(note) => self.held.not_extended(note.number, now),
        }
    }
}

/// Whether waiting does not mend it: the request is wrong, or the server does not want this caller.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Problem(problem) => matches!(problem.status, 400 | 401 | 403 | 422),
        Error::Unreachable { .. } | Error::Timeout { .. } | Error::BadAnswer { .. } => false,
        Error::NoServer { tried } => tried.iter().all(|tried| is_final(&tried.error)),
        _ => true,
    }
}

/// What a panic said.
fn said(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "no message".into() };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
