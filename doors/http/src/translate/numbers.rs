//! Numbers: what happened, and how much there is.

use punctual_core::Total;
use punctual_node::{Buckets, Happened};
use punctual_wire as wire;

pub(crate) fn happened(happened: &Happened) -> wire::Happened {
    wire::Happened {
        scheduled: happened.scheduled,
        rescheduled: happened.rescheduled,
        fired: happened.fired,
        leased: happened.leased,
        released: happened.released,
        failed: happened.failed,
        done: happened.done,
        cancelled: happened.cancelled,
        dead: happened.dead.iter().sum(),
        replayed: happened.replayed,
    }
}

pub(crate) fn total(total: Total) -> wire::Total {
    let Total { topics, queues, waiting, ready, leased, dead, history, .. } = total;
    wire::Total { topics, queues, waiting, ready, leased, dead, history }
}

pub(crate) fn timing(buckets: &Buckets) -> wire::Timing {
    wire::Timing { count: buckets.count, mean: buckets.mean(), p50: buckets.at_most(500), p99: buckets.at_most(990) }
}
