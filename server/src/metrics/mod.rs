//! Numbers for Prometheus, read from the node and the store when somebody asks; nothing is counted for them here.
//!
//! `docs/operating.md` lists all of them; a test compares.

mod shown;
mod snapshot;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use punctual_almanac::Almanac;
use punctual_beanstalk::counters::Counters;
use punctual_node::Handle;

use shown::Shown;
use snapshot::Snapshot;

/// What begins every metric's name.
const PREFIX: &str = "punctual";

/// A text to come.
type Text = Pin<Box<dyn Future<Output = String> + Send>>;

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
    pub fn into_source(self: Arc<Metrics>) -> Arc<dyn Fn() -> Text + Send + Sync> {
        Arc::new(move || {
            let metrics = Arc::clone(&self);
            Box::pin(async move { metrics.text().await })
        })
    }

    /// All numbers as they are now, in the OpenMetrics text format.
    async fn text(&self) -> String {
        // A node that is stopping or overloaded does not count; everything else is shown all the same.
        let counts = self.handle.counts().await.ok();
        let stats = self.handle.stats();
        let names = counts.iter().flat_map(|counts| &counts.topics).map(|topic| &topic.name);
        let topics = lock(&self.topics).choose(names.chain(stats.topics.keys()));
        let queues =
            lock(&self.queues).choose(counts.iter().flat_map(|counts| &counts.queues).map(|queue| &queue.name));
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
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(snapshot));
        let mut text = String::new();
        match encode(&mut text, &registry) {
            Ok(()) => text,
            Err(_) => unreachable!("writing to a text does not fail"),
        }
    }
}

fn lock(shown: &Mutex<Shown>) -> std::sync::MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
