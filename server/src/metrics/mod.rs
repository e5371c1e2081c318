//! Numbers for Prometheus, read from the node and the store when somebody asks; nothing is counted for them here.
//!
//! `docs/operating.md` lists all of them; a test compares.

mod page;
mod shown;
mod snapshot;

use std::sync::{Arc, Mutex, PoisonError};

use punctual_almanac::Almanac;
use punctual_beanstalk::counters::Counters;
use punctual_core::{Counts, Scope};
use punctual_http::{Exposition, MetricsSource};
use punctual_node::Handle;

use shown::Shown;
use snapshot::Snapshot;

/// Where the numbers come from.
pub struct Metrics {
    handle: Handle,
    almanac: Arc<Almanac>,
    /// What the beanstalk door counts, if it is open.
    beanstalk: Option<Arc<Counters>>,
    /// Which topics and queues are shown by name.
    topics: Mutex<Shown>,
    queues: Mutex<Shown>,
}

impl Metrics {
    /// The numbers of a node, its store and its beanstalk door, with at most so many topics and queues by name.
    pub fn new(handle: Handle, almanac: Arc<Almanac>, beanstalk: Option<Arc<Counters>>, most: usize) -> Arc<Metrics> {
        Arc::new(Metrics {
            handle,
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
        let mut counts = self.handle.counts().await.ok();
        let mut stats = self.handle.stats();
        let names = counts.iter().flat_map(|counts| &counts.topics).map(|topic| &topic.name);
        let topics = lock(&self.topics).choose(names.chain(stats.topics.keys()));
        let queues =
            lock(&self.queues).choose(counts.iter().flat_map(|counts| &counts.queues).map(|queue| &queue.name));
        if let Some(Counts { topics, queues }) = &mut counts {
            topics.retain(|topic| within.fits(&topic.name));
            queues.retain(|queue| within.fits(&queue.name));
        }
        stats.topics.retain(|topic, _| within.fits(topic));
        let snapshot = Snapshot {
            is_ready: self.handle.ready().is_ok(),
            now: self.handle.now(),
            usage: self.almanac.usage(),
            beanstalk: self.beanstalk.clone(),
            counts: counts.unwrap_or_default(),
            stats,
            topics,
            queues,
        };
        snapshot.text(format, within.is_all())
    }
}

fn lock(shown: &Mutex<Shown>) -> std::sync::MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
