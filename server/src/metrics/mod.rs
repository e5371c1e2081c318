//! Numbers for Prometheus, read from the node and the store when somebody asks; nothing is counted for them here.
//!
//! `docs/operating.md` lists all of them; a test compares.

mod page;
mod shown;
mod snapshot;

use std::sync::{Arc, Mutex, PoisonError};

use punctual_almanac::Almanac;
use punctual_beanstalk::counters::Counters;
use punctual_core::{Name, QueueView, Scope, TopicView};
use punctual_http::{Exposition, MetricsSource};
use punctual_node::{DoubtingClock, Error, Handle};

use shown::Shown;
use snapshot::Snapshot;

/// Where the numbers come from.
pub struct Metrics {
    handle: Handle,
    clock: Arc<DoubtingClock>,
    almanac: Arc<Almanac>,
    /// What the beanstalk door counts, if it is open.
    beanstalk: Option<Arc<Counters>>,
    /// Which topics and queues are shown by name.
    topics: Mutex<Shown>,
    queues: Mutex<Shown>,
}

impl Metrics {
    /// The numbers of a node, its store and its beanstalk door, with at most so many topics and queues by name.
    pub fn new(
        handle: Handle,
        clock: Arc<DoubtingClock>,
        almanac: Arc<Almanac>,
        beanstalk: Option<Arc<Counters>>,
        most: usize,
    ) -> Arc<Metrics> {
        Arc::new(Metrics {
            handle,
            clock,
            almanac,
            beanstalk,
            topics: Mutex::new(Shown::new(most)),
            queues: Mutex::new(Shown::new(most)),
        })
    }

    /// The same as what the door calls.
    pub fn into_source(self: Arc<Metrics>) -> MetricsSource {
        Arc::new(move |within, format| {
            let metrics = Arc::clone(&self);
            Box::pin(async move { metrics.text(&within, format).await })
        })
    }

    /// The numbers as they are now: of topics and queues in a scope, and of the node if that is all of them.
    async fn text(&self, within: &Scope, format: Exposition) -> String {
        // A node that is stopping or overloaded does not count; everything else is shown all the same.
        let total = self.handle.total().await.ok().filter(|_| within.is_all());
        let (topics, queues) =
            (self.topics(within).await.unwrap_or_default(), self.queues(within).await.unwrap_or_default());
        let names: Vec<Name> = topics.iter().map(|topic| topic.counts.name.clone()).collect();
        let happened = self.handle.happened_to(&names);
        let names: Vec<Name> = queues.iter().map(|queue| queue.counts.name.clone()).collect();
        let timings = self.handle.timings(&names);
        let snapshot = Snapshot {
            is_ready: self.handle.ready().is_ok(),
            hardship: self.handle.hardship(),
            now: self.handle.now(),
            clock_steps: self.clock.steps(),
            usage: self.almanac.usage(),
            beanstalk: self.beanstalk.clone(),
            total: total.unwrap_or_default(),
            stats: self.handle.stats(),
            topics: topics.into_iter().map(|topic| topic.counts).zip(happened).collect(),
            queues: queues.into_iter().zip(timings).collect(),
        };
        snapshot.text(format, within.is_all())
    }
}

impl Metrics {
    /// The topics that are shown by name. What is not is not looked at. Who has to do with some topics only is shown
    /// the first of these.
    async fn topics(&self, within: &Scope) -> Result<Vec<TopicView>, Error> {
        let shown = lock(&self.topics).clone();
        if !within.is_all() {
            return Ok(self.handle.topics(None, shown.room(0), |name| within.fits(name)).await?.entries);
        }
        let mut topics = self.handle.topics_named(shown.names()).await?;
        let room = shown.room(topics.len());
        if room > 0 {
            topics.extend(self.handle.topics(None, room, |name| !shown.contains(name)).await?.entries);
        }
        lock(&self.topics).show(topics.iter().map(|topic| &topic.counts.name));
        Ok(topics)
    }

    /// The same for queues.
    async fn queues(&self, within: &Scope) -> Result<Vec<QueueView>, Error> {
        let shown = lock(&self.queues).clone();
        if !within.is_all() {
            return Ok(self.handle.queues(None, shown.room(0), |name| within.fits(name)).await?.entries);
        }
        let mut queues = self.handle.queues_named(shown.names()).await?;
        let room = shown.room(queues.len());
        if room > 0 {
            queues.extend(self.handle.queues(None, room, |name| !shown.contains(name)).await?.entries);
        }
        lock(&self.queues).show(queues.iter().map(|queue| &queue.counts.name));
        Ok(queues)
    }
}

fn lock(shown: &Mutex<Shown>) -> std::sync::MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
