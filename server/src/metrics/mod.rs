//! Numbers for Prometheus, read from the node and the store when somebody asks; nothing is counted for them here.
//!
//! `docs/operating.md` lists all of them; a test compares.

mod page;
mod shown;
mod snapshot;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use punctual_core::{Clock, Name, QueueView, Scope, TopicView};
use punctual_http::{Exposition, MetricsSource};
use punctual_node::{Error, Handle};

use crate::stores::OpenStore;
pub use page::{MetricsPage, Series, Unit};
use shown::Shown;
use snapshot::Snapshot;

/// Writes the numbers of a part of the server.
pub type Meter = Box<dyn Fn(&mut MetricsPage) + Send + Sync>;

/// Where the numbers come from.
pub struct Metrics {
    handle: Handle,
    clock: Arc<dyn Clock>,
    store: Arc<dyn OpenStore>,
    /// What the links to other servers count, if there are any.
    links: Option<Meter>,
    /// What doors count. One of them shows these numbers, so they come to be before any door.
    doors: OnceLock<Vec<Meter>>,
    /// Which topics and queues are shown by name.
    topics: Mutex<Shown>,
    queues: Mutex<Shown>,
}

impl Metrics {
    /// The numbers of a node and its store, with at most so many topics and queues by name.
    pub fn new(
        handle: Handle,
        clock: Arc<dyn Clock>,
        store: Arc<dyn OpenStore>,
        links: Option<Meter>,
        most: usize,
    ) -> Arc<Metrics> {
        Arc::new(Metrics {
            handle,
            clock,
            store,
            links,
            doors: OnceLock::new(),
            topics: Mutex::new(Shown::new(most)),
            queues: Mutex::new(Shown::new(most)),
        })
    }

    /// Shows what doors count, too. They are opened once.
    pub fn show_doors(&self, meters: Vec<Meter>) {
        _ = self.doors.set(meters);
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
        let happened = self.handle.happened_here(&names);
        let names: Vec<Name> = queues.iter().map(|queue| queue.counts.name.clone()).collect();
        let timings = self.handle.timings_here(&names);
        let snapshot = Snapshot {
            is_ready: self.handle.ready().is_ok(),
            hardship: self.handle.hardship(),
            now: self.handle.now(),
            clock_steps: self.clock.steps(),
            skew: self.clock.skew(),
            store: &*self.store,
            links: self.links.as_ref(),
            doors: self.doors.get().map_or(&[], Vec::as_slice),
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
