//! What a node tells about its own work: above all, how late deliveries were.

mod buckets;
mod happened;
mod recent;
mod ring;
mod timing;
mod tracks;

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use punctual_center::{Buckets, Busy, Gauges, Grain, Happened, MICROS, Pulse, Refusals, Series, Spread, Timing, Work};
use punctual_core::{Delivery, Event, Millis, Name, Scope, Subject, Timestamp};

use buckets::Filling;
use happened::{Busiest, Happenings};
use recent::Recent;
pub(crate) use timing::Queues;
use timing::Timings;
use tracks::Tracks;

use crate::archive::ArchiveStats;
use crate::error::Error;
use crate::sync::{Mutex, lock};

/// How many topics are looked at while the committer waits.
const LOOK: usize = 1_024;

/// How long it is not looked how much there is while nothing happens: what is removed because its time is over, goes unseen.
const UNSEEN: Millis = Millis::from_mins(1);

/// How a node has been working since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// When the node started.
    pub started_at: Timestamp,
    /// How late deliveries were handed over, in microseconds after they were due; at a further
    /// attempt, after they became available again.
    pub lateness_buckets: Buckets,
    /// The server's part of it: how long after they should have been deliveries were offered to consumers, in
    /// microseconds. What was due before the shard was opened should have been since then.
    pub offered_buckets: Buckets,
    /// The consumers' part of it: how long after they were offered deliveries were handed over, in microseconds. With
    /// a consumer waiting that is as long as it takes to write it down.
    pub taken_buckets: Buckets,
    /// How long the store took to make a commit durable, in microseconds.
    pub commit_time_buckets: Buckets,
    /// How many rows each commit changed.
    pub commit_changes_buckets: Buckets,
    /// How many commits failed or were refused, in part or wholly.
    pub failed_commits: u64,
    /// Commits that the store had confirmed and does not have any more.
    pub lost_commits: u64,
    /// How many stored counts turned out to be wrong and were put right.
    pub counts_mended: u64,
    /// How many steps the shards took that had an outcome.
    pub steps: u64,
    /// How many answers were given.
    pub answers: u64,
    /// How often what has happened to all topics, those included that are deleted.
    pub happened: Happened,
    /// The same without those that are deleted.
    pub present: Happened,
    /// How many requests were not carried out, by [`Error::code`].
    pub refusals: BTreeMap<&'static str, u64>,
    /// How the archive does, if there is one.
    pub archive: Option<ArchiveStats>,
    /// How many consumers wait.
    pub waiting_consumers: usize,
    /// How many requests wait in the inbox of each shard.
    pub inboxes: Vec<usize>,
}

/// How the values of a measurement are spread, to three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many values there are.
    pub count: u64,
    /// Their mean.
    pub mean: u64,
    /// Half of them are at most this.
    pub p50: u64,
    /// 90 percent of them are at most this.
    pub p90: u64,
    /// 99 percent of them are at most this.
    pub p99: u64,
    /// 999 of a thousand are at most this.
    pub p999: u64,
    /// The greatest of them.
    pub max: u64,
}

impl Distribution {
    /// How these values are spread.
    pub fn of(spread: &Spread) -> Distribution {
        let at = |of_thousand| spread.at_most(of_thousand);
        Distribution {
            count: spread.count(),
            mean: spread.mean(),
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: spread.max(),
        }
    }
}

/// Each value that was met stands for those that share its first three digits.
fn spread(histogram: &Histogram<u64>) -> Spread {
    let met = histogram.iter_recorded();
    Spread::rising(met.map(|met| (met.value_iterated_to(), met.count_since_last_iteration())))
}

/// Where the committer writes its measurements, once a round.
pub(crate) struct Meter {
    started_at: Timestamp,
    state: Mutex<Measured>,
    /// Apart from the others: whoever is refused counts it, the committer counts the rest.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
}

struct Measured {
    lateness: Histogram<u64>,
    recent_lateness: Recent,
    tracks: Tracks,
    /// When it was last looked how much there is, and how much had happened by then.
    gauged: Option<(Timestamp, Happened)>,
    offered: Histogram<u64>,
    taken: Histogram<u64>,
    queues: Timings,
    commit_time: Histogram<u64>,
    commit_changes: Histogram<u64>,
    lateness_buckets: Filling,
    commit_time_buckets: Filling,
    commit_changes_buckets: Filling,
    happenings: Happenings,
    failed_commits: u64,
    lost_commits: u64,
    counts_mended: u64,
    steps: u64,
    answers: u64,
}

/// What one round of the committer adds.
#[derive(Default)]
pub(crate) struct Round {
    lateness: Vec<Late>,
    pub commit: Option<(Duration, usize)>,
    pub failed: bool,
    pub steps: usize,
    pub answers: usize,
    pub mended: usize,
    /// What happened in each step, and which topics were gone after it.
    pub happened: Vec<(Vec<Event>, Vec<Name>)>,
    /// What was offered in each step, and what was taken.
    pub queues: Vec<Queues>,
}

/// How late a delivery was.
struct Late {
    topic: Name,
    queue: Name,
    micros: u64,
}

impl Round {
    /// Notes a delivery that is handed over at this time.
    pub fn note(&mut self, delivery: &Delivery, micros: u64) {
        let since = if delivery.attempt == 1 { delivery.due } else { delivery.fired_at };
        let micros = micros.saturating_sub(since.as_millis() * 1_000);
        self.lateness.push(Late { topic: delivery.topic.clone(), queue: delivery.queue.clone(), micros });
    }
}

impl Meter {
    /// When the node started.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Nothing is measured yet; so many topics, and so many queues, get series of their own.
    pub fn new(now: Timestamp, series: usize) -> Meter {
        // A day of lateness, an hour of commit, a billion changes: what lies above is counted as that.
        let histogram = |max| Histogram::new_with_max(max, 3).expect("the bounds are in order");
        let state = Measured {
            lateness: histogram(86_400_000_000),
            recent_lateness: Recent::new(&histogram(86_400_000_000)),
            tracks: Tracks::new(now, series),
            gauged: None,
            offered: histogram(86_400_000_000),
            taken: histogram(86_400_000_000),
            queues: Timings::default(),
            commit_time: histogram(3_600_000_000),
            commit_changes: histogram(1_000_000_000),
            lateness_buckets: Filling::new(MICROS),
            commit_time_buckets: Filling::new(MICROS),
            commit_changes_buckets: Filling::new(buckets::CHANGES),
            happenings: Happenings::default(),
            failed_commits: 0,
            lost_commits: 0,
            counts_mended: 0,
            steps: 0,
            answers: 0,
        };
        Meter { started_at: now, state: Mutex::new(state), refusals: Mutex::default() }
    }

    /// The store does not have so many commits any more that it had confirmed.
    pub fn lost(&self, commits: u64) {
        lock(&self.state).lost_commits += commits;
    }

    pub fn add(&self, round: &Round, now: Timestamp) {
        let mut state = lock(&self.state);
        // Before how late they were: what happens gives a topic its series.
        for (events, _) in &round.happened {
            state.tracks.count(events, now);
        }
        for Late { topic, queue, micros } in &round.lateness {
            state.lateness.saturating_record(*micros);
            state.recent_lateness.record(*micros, now);
            state.lateness_buckets.record(*micros);
            state.tracks.late(topic, queue, *micros, now);
        }
        for queues in &round.queues {
            let Measured { offered, taken, queues: timings, tracks, .. } = &mut *state;
            timings.add(queues, offered, taken);
            queues.gone.iter().for_each(|queue| tracks.forget_queue(queue));
        }
        if let Some((time, changes)) = round.commit {
            let (micros, changes) = (time.as_micros() as u64, changes as u64);
            state.commit_time.saturating_record(micros);
            state.commit_time_buckets.record(micros);
            state.commit_changes.saturating_record(changes);
            state.commit_changes_buckets.record(changes);
        }
        for (events, gone) in &round.happened {
            state.happenings.count(events);
            // A topic goes from each shard by itself, after all that happened to it there: when it is
            // gone from the last one, nothing of it is left here.
            for topic in gone {
                state.happenings.forget(topic);
                state.tracks.forget_topic(topic);
            }
        }
        state.failed_commits += u64::from(round.failed);
        state.counts_mended += round.mended as u64;
        state.steps += round.steps as u64;
        state.answers += round.answers as u64;
    }

    /// Counts a request that was not carried out.
    pub fn refuse(&self, error: &Error) {
        *lock(&self.refusals).entry(error.code()).or_default() += 1;
    }

    /// How the node is doing right now.
    pub fn pulse(&self, topics: &[Name], now: Timestamp) -> Pulse {
        let refused = lock(&self.refusals).values().sum();
        let topics = self.happened(topics);
        let mut state = lock(&self.state);
        let (happened, lateness) = (state.happenings.ever(), state.recent_lateness.read(now));
        Pulse { started_at: self.started_at, happened, refused, lateness, topics }
    }

    /// So many slots of the series of a topic or queue, or of all together, from the one of a time on.
    pub fn series(&self, of: Option<&Subject>, grain: Grain, from: Timestamp, slots: usize, now: Timestamp) -> Series {
        lock(&self.state).tracks.read(of, grain, from, slots, now)
    }

    /// The topics and the queues of which it is to be looked how much there is; nothing if that must be as before.
    pub fn wants_gauges(&self, now: Timestamp) -> Option<[Vec<Name>; 2]> {
        let state = lock(&self.state);
        let happened = state.happenings.ever();
        let is_as_before = |(at, by_then): &(Timestamp, Happened)| *by_then == happened && now.since(*at) < UNSEEN;
        let is_known = state.gauged.as_ref().is_some_and(is_as_before);
        (!is_known).then(|| state.tracks.names())
    }

    /// There is so much in all, and in some topics and queues.
    pub fn gauge(&self, all: &Gauges, some: &BTreeMap<Subject, Gauges>, now: Timestamp) {
        let mut state = lock(&self.state);
        state.gauged = Some((now, state.happenings.ever()));
        state.tracks.gauge(all, some, now);
    }

    /// How often what has happened to these topics, in their order. A topic that is deleted begins anew.
    pub fn happened(&self, topics: &[Name]) -> Vec<Happened> {
        let state = lock(&self.state);
        topics.iter().map(|topic| state.happenings.of(topic).cloned().unwrap_or_default()).collect()
    }

    /// The topics to which most has happened, of those that are meant. The committer is let in between.
    fn busiest(&self, most: usize, within: &Scope) -> Vec<Busy> {
        let mut busiest = Busiest::new(most);
        let mut after = None;
        loop {
            let is_meant = |topic: &Name| within.fits(topic);
            after = lock(&self.state).happenings.look_for_busiest(after.as_ref(), LOOK, &is_meant, &mut busiest);
            if after.is_none() {
                return busiest.into_topics();
            }
        }
    }

    /// How long deliveries of these queues took, in their order. A queue that is deleted begins anew.
    pub fn timings(&self, queues: &[Name]) -> Vec<Timing> {
        let state = lock(&self.state);
        queues.iter().map(|queue| state.queues.of(queue)).collect()
    }

    /// How the node has been working, for those who add up.
    pub fn work(&self, within: &Scope, most: usize, waiting_consumers: usize, waiting_requests: usize) -> Work {
        let busiest = self.busiest(most, within);
        let refusals = lock(&self.refusals).clone().into_iter();
        let state = lock(&self.state);
        Work {
            started_at: self.started_at,
            lateness: spread(&state.lateness),
            offered: spread(&state.offered),
            taken: spread(&state.taken),
            commit_time: spread(&state.commit_time),
            commit_changes: spread(&state.commit_changes),
            failed_commits: state.failed_commits,
            lost_commits: state.lost_commits,
            answers: state.answers,
            waiting_consumers: waiting_consumers as u64,
            waiting_requests: waiting_requests as u64,
            happened: state.happenings.ever(),
            busiest,
            refusals: refusals.map(|(code, count)| Refusals { code: code.into(), count }).collect(),
        }
    }

    pub fn read(&self, archive: Option<ArchiveStats>, waiting_consumers: usize, inboxes: Vec<usize>) -> Stats {
        let refusals = lock(&self.refusals).clone();
        let state = lock(&self.state);
        Stats {
            started_at: self.started_at,
            lateness_buckets: state.lateness_buckets.read(),
            offered_buckets: state.queues.all().offered,
            taken_buckets: state.queues.all().taken,
            commit_time_buckets: state.commit_time_buckets.read(),
            commit_changes_buckets: state.commit_changes_buckets.read(),
            failed_commits: state.failed_commits,
            lost_commits: state.lost_commits,
            counts_mended: state.counts_mended,
            steps: state.steps,
            answers: state.answers,
            happened: state.happenings.ever(),
            present: state.happenings.present(),
            refusals,
            archive,
            waiting_consumers,
            inboxes,
        }
    }
}
