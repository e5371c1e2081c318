//! How long deliveries take, by queue: from when they should have been available until they are offered, which is the
//! server's part, and from then until they are taken, which is the consumers'.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use punctual_center::{MICROS, Timing};
use punctual_core::{Name, Timestamp};

use super::buckets::Filling;

/// What a step has offered and handed out.
pub(crate) struct Queues {
    pub offers: Vec<(Name, Timestamp)>,
    /// When it was offered.
    pub offered: u64,
    pub takes: Vec<(Name, Timestamp)>,
    /// When it was handed over.
    pub taken: u64,
    pub gone: Vec<Name>,
}

struct Filled {
    offered: Filling,
    taken: Filling,
}

impl Default for Filled {
    fn default() -> Filled {
        Filled { offered: Filling::new(MICROS), taken: Filling::new(MICROS) }
    }
}

impl Filled {
    fn read(&self) -> Timing {
        Timing { offered: self.offered.read(), taken: self.taken.read() }
    }
}

/// The measurements of all queues.
#[derive(Default)]
pub(super) struct Timings {
    queues: BTreeMap<Name, Filled>,
    all: Filled,
}

impl Timings {
    pub fn add(&mut self, step: &Queues, offered: &mut Histogram<u64>, taken: &mut Histogram<u64>) {
        let micros = |now: u64, since: &Timestamp| now.saturating_sub(since.as_millis() * 1_000);
        // A queue is looked up once for all of its deliveries that come one after the other.
        for offers in step.offers.chunk_by(|(one, _), (other, _)| one == other) {
            let queue = self.queues.entry(offers[0].0.clone()).or_default();
            for (_, since) in offers {
                let micros = micros(step.offered, since);
                queue.offered.record(micros);
                self.all.offered.record(micros);
                offered.saturating_record(micros);
            }
        }
        for takes in step.takes.chunk_by(|(one, _), (other, _)| one == other) {
            let queue = self.queues.entry(takes[0].0.clone()).or_default();
            for (_, since) in takes {
                let micros = micros(step.taken, since);
                queue.taken.record(micros);
                self.all.taken.record(micros);
                taken.saturating_record(micros);
            }
        }
        step.gone.iter().for_each(|queue| _ = self.queues.remove(queue));
    }

    pub fn of(&self, queue: &Name) -> Timing {
        self.queues.get(queue).map_or_else(|| Filled::default().read(), Filled::read)
    }

    pub fn all(&self) -> Timing {
        self.all.read()
    }
}
