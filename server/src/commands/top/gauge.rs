//! What the screen shows: two looks at the server's counters, and the rates between them.

use std::cmp::Reverse;

use punctual_client::{Client, Error};
use punctual_wire::{Forecast, Happened, ListNames, QueueInfo, Stats, Unit};

/// How many minutes of the forecast are shown.
const MINUTES: u32 = 120;
/// How many queues are looked at; with more, the first ones by name.
const QUEUES: u32 = 1_000;

/// One look at the server.
#[derive(Clone, Debug)]
pub struct Sample {
    pub stats: Stats,
    pub queues: Vec<QueueInfo>,
    pub forecast: Forecast,
}

impl Sample {
    /// Asks for everything at once, so that the numbers belong together as well as they can.
    pub async fn take(client: &Client) -> Result<Sample, Error> {
        let queues = ListNames { limit: Some(QUEUES), cursor: None };
        let (stats, queues, forecast) =
            tokio::try_join!(client.stats(), client.list_queues(&queues), client.forecast(Unit::Minute, MINUTES))?;
        Ok(Sample { stats, queues: queues.queues, forecast })
    }
}

/// How often something happened, in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub scheduled: f64,
    pub fired: f64,
    pub done: f64,
    pub failed: f64,
    pub dead: f64,
    pub cancelled: f64,
    pub answers: f64,
    pub refusals: f64,
}

impl Rates {
    /// From the differences of the counters. A server that was started anew began to count anew, so
    /// there is nothing to compare.
    fn between(before: &Stats, after: &Stats) -> Rates {
        let millis = after.now.0.saturating_sub(before.now.0);
        if before.started_at != after.started_at || millis == 0 {
            return Rates::default();
        }
        let seconds = millis as f64 / 1e3;
        // Who has to do with some topics only is told of these.
        let happened = |stats: &Stats, count: fn(&Happened) -> u64| match &stats.happened {
            Some(happened) => count(happened),
            None => stats.topics.values().map(count).sum(),
        };
        let rate = |count: fn(&Happened) -> u64| {
            happened(after, count).saturating_sub(happened(before, count)) as f64 / seconds
        };
        let refusals = |stats: &Stats| stats.refusals.iter().flat_map(|refusals| refusals.values()).sum::<u64>();
        Rates {
            scheduled: rate(|happened| happened.scheduled),
            fired: rate(|happened| happened.fired),
            done: rate(|happened| happened.done),
            failed: rate(|happened| happened.failed),
            dead: rate(|happened| happened.dead),
            cancelled: rate(|happened| happened.cancelled),
            answers: after.answers.unwrap_or(0).saturating_sub(before.answers.unwrap_or(0)) as f64 / seconds,
            refusals: refusals(after).saturating_sub(refusals(before)) as f64 / seconds,
        }
    }
}

/// By what the queues are sorted, most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Ready,
    Leased,
    Dead,
    Name,
}

impl Sort {
    /// The next one, round and round.
    pub fn next(self) -> Sort {
        match self {
            Sort::Ready => Sort::Leased,
            Sort::Leased => Sort::Dead,
            Sort::Dead => Sort::Name,
            Sort::Name => Sort::Ready,
        }
    }

    /// Its name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Ready => "ready",
            Sort::Leased => "leased",
            Sort::Dead => "dead",
            Sort::Name => "name",
        }
    }
}

/// All that is on the screen.
#[derive(Clone, Debug)]
pub struct View {
    pub url: String,
    pub sample: Option<Sample>,
    pub rates: Rates,
    pub sort: Sort,
    /// Why the numbers are old.
    pub trouble: Option<String>,
}

impl View {
    /// Of a server that was not looked at yet.
    pub fn new(url: &str) -> View {
        View { url: url.into(), sample: None, rates: Rates::default(), sort: Sort::default(), trouble: None }
    }

    /// Takes in the newest look.
    pub fn show(&mut self, sample: Sample) {
        self.rates =
            self.sample.as_ref().map_or(Rates::default(), |before| Rates::between(&before.stats, &sample.stats));
        self.sample = Some(sample);
        self.trouble = None;
    }

    /// The queues in the order of the screen.
    pub fn queues(&self) -> Vec<&QueueInfo> {
        let mut queues: Vec<&QueueInfo> = self.sample.iter().flat_map(|sample| &sample.queues).collect();
        match self.sort {
            Sort::Ready => queues.sort_by_key(|queue| Reverse((queue.ready, queue.leased, queue.dead))),
            Sort::Leased => queues.sort_by_key(|queue| Reverse((queue.leased, queue.ready, queue.dead))),
            Sort::Dead => queues.sort_by_key(|queue| Reverse((queue.dead, queue.ready, queue.leased))),
            Sort::Name => queues.sort_by(|one, other| one.name.cmp(&other.name)),
        }
        queues
    }
}
