//! How the work of a node goes.

use punctual_center::{
    Account, Buckets, Busy, Consumer, Consumers, Gauges, Grain, Happened, Inquiry, MICROS, Pulse, Refusals, Series,
    Slot, Spread, Timing, Work,
};
use punctual_core::Reason;

use super::Unclear;
use super::command::ScopeForm;
use super::field::Field;
use super::settings::SubjectForm;

choice! {
    InquiryForm in inquiry of Inquiry, Inquiry {
        1 Work {
            #[prost(message, optional, tag = 1)] within: Option<ScopeForm>,
            #[prost(uint64, tag = 2)] most: u64,
        },
        2 Topics(#[prost(string, repeated, tag = 1)] topics: Vec<String>),
        3 Queues(#[prost(string, repeated, tag = 1)] queues: Vec<String>),
        4 Consumers {
            #[prost(string, optional, tag = 1)] queue: Option<String>,
            #[prost(message, optional, tag = 2)] within: Option<ScopeForm>,
            #[prost(uint64, tag = 3)] most: u64,
        },
        5 Pulse {
            #[prost(string, repeated, tag = 1)] topics: Vec<String>,
        },
        6 Series {
            #[prost(message, optional, tag = 1)] of: Option<SubjectForm>,
            #[prost(uint32, tag = 2)] grain: u32,
            #[prost(uint64, tag = 3)] from: u64,
            #[prost(uint64, tag = 4)] slots: u64,
        },
    }
}

choice! {
    AccountForm in account of Account, Account {
        1 Work(#[prost(message, optional, tag = 1)] work: Option<WorkForm>),
        2 Topics(#[prost(message, repeated, tag = 1)] happened: Vec<HappenedForm>),
        3 Queues(#[prost(message, repeated, tag = 1)] timings: Vec<TimingForm>),
        4 Consumers(#[prost(message, optional, tag = 1)] consumers: Option<ConsumersForm>),
        5 Pulse(#[prost(message, optional, tag = 1)] pulse: Option<PulseForm>),
        6 Series(#[prost(message, optional, tag = 1)] series: Option<SeriesForm>),
    }
}

form! {
    PulseForm of Pulse {
        #[prost(uint64, tag = 1)] started_at: u64,
        #[prost(message, optional, tag = 2)] happened: Option<HappenedForm>,
        #[prost(uint64, tag = 3)] refused: u64,
        #[prost(message, optional, tag = 4)] lateness: Option<SpreadForm>,
        #[prost(message, repeated, tag = 5)] topics: Vec<HappenedForm>,
    }
}

numbered! {
    Grain {
        1 TenSeconds,
        2 Minute,
    }
}

form! {
    SeriesForm of Series {
        #[prost(uint64, optional, tag = 1)] known_since: Option<u64>,
        #[prost(message, repeated, tag = 2)] slots: Vec<SlotForm>,
    }
}

form! {
    SlotForm of Slot {
        #[prost(uint64, tag = 1)] scheduled: u64,
        #[prost(uint64, tag = 2)] fired: u64,
        #[prost(uint64, tag = 3)] done: u64,
        #[prost(uint64, tag = 4)] failed: u64,
        #[prost(uint64, tag = 5)] died: u64,
        #[prost(uint64, tag = 6)] cancelled: u64,
        #[prost(uint64, repeated, tag = 7)] lateness: Vec<u64>,
        #[prost(message, optional, tag = 8)] gauges: Option<GaugesForm>,
    }
}

form! {
    GaugesForm of Gauges {
        #[prost(uint64, tag = 1)] waiting: u64,
        #[prost(uint64, tag = 2)] ready: u64,
        #[prost(uint64, tag = 3)] leased: u64,
        #[prost(uint64, tag = 4)] dead: u64,
    }
}

form! {
    ConsumersForm of Consumers {
        #[prost(string, tag = 1)] node: String,
        #[prost(message, repeated, tag = 2)] longest: Vec<ConsumerForm>,
        #[prost(uint64, tag = 3)] count: u64,
    }
}

form! {
    ConsumerForm of Consumer {
        #[prost(string, tag = 1)] name: String,
        #[prost(string, repeated, tag = 2)] queues: Vec<String>,
        #[prost(uint64, tag = 3)] max: u64,
    }
}

form! {
    WorkForm of Work {
        #[prost(uint64, tag = 1)] started_at: u64,
        #[prost(message, optional, tag = 2)] lateness: Option<SpreadForm>,
        #[prost(message, optional, tag = 3)] offered: Option<SpreadForm>,
        #[prost(message, optional, tag = 4)] taken: Option<SpreadForm>,
        #[prost(message, optional, tag = 5)] commit_time: Option<SpreadForm>,
        #[prost(message, optional, tag = 6)] commit_changes: Option<SpreadForm>,
        #[prost(uint64, tag = 7)] failed_commits: u64,
        #[prost(uint64, tag = 8)] lost_commits: u64,
        #[prost(uint64, tag = 9)] answers: u64,
        #[prost(uint64, tag = 10)] waiting_consumers: u64,
        #[prost(uint64, tag = 11)] waiting_requests: u64,
        #[prost(message, optional, tag = 12)] happened: Option<HappenedForm>,
        #[prost(message, repeated, tag = 13)] busiest: Vec<BusyForm>,
        #[prost(message, repeated, tag = 14)] refusals: Vec<RefusalsForm>,
    }
}

form! {
    BusyForm of Busy {
        #[prost(string, tag = 1)] topic: String,
        #[prost(uint64, tag = 2)] bustle: u64,
    }
}

form! {
    RefusalsForm of Refusals {
        #[prost(string, tag = 1)] code: String,
        #[prost(uint64, tag = 2)] count: u64,
    }
}

form! {
    HappenedForm of Happened {
        #[prost(uint64, tag = 1)] scheduled: u64,
        #[prost(uint64, tag = 2)] rescheduled: u64,
        #[prost(uint64, tag = 3)] fired: u64,
        #[prost(uint64, tag = 4)] leased: u64,
        #[prost(uint64, tag = 5)] extended: u64,
        #[prost(uint64, tag = 6)] released: u64,
        #[prost(uint64, tag = 7)] failed: u64,
        #[prost(uint64, tag = 8)] done: u64,
        #[prost(uint64, tag = 9)] cancelled: u64,
        #[prost(uint64, repeated, tag = 10)] dead: Vec<u64>,
        #[prost(uint64, tag = 11)] forwarded: u64,
        #[prost(uint64, tag = 12)] replayed: u64,
        #[prost(uint64, tag = 13)] purged: u64,
    }
}

/// By reason. A version that has fewer of them leaves out the last ones.
impl Field<[u64; Reason::ALL.len()]> for Vec<u64> {
    fn put(value: &[u64; Reason::ALL.len()]) -> Vec<u64> {
        value.to_vec()
    }
    fn take(self) -> Result<[u64; Reason::ALL.len()], Unclear> {
        let mut counts = [0; Reason::ALL.len()];
        counts.iter_mut().zip(self).for_each(|(count, said)| *count = said);
        Ok(counts)
    }
}

form! {
    TimingForm of Timing {
        #[prost(message, optional, tag = 1)] offered: Option<BucketsForm>,
        #[prost(message, optional, tag = 2)] taken: Option<BucketsForm>,
    }
}

/// Counts by the bounds that every version has.
#[derive(prost::Message)]
pub(super) struct BucketsForm {
    #[prost(uint64, repeated, tag = 1)]
    counts: Vec<u64>,
    #[prost(uint64, tag = 2)]
    count: u64,
    #[prost(uint64, tag = 3)]
    sum: u64,
}

impl Field<Buckets> for BucketsForm {
    fn put(value: &Buckets) -> BucketsForm {
        BucketsForm { counts: value.counts.clone(), count: value.count, sum: value.sum }
    }
    fn take(self) -> Result<Buckets, Unclear> {
        if self.counts.len() != MICROS.len() {
            return Err(Unclear::because(format_args!("{} counts", self.counts.len())));
        }
        Ok(Buckets { bounds: MICROS, counts: self.counts, count: self.count, sum: self.sum })
    }
}
needed!(BucketsForm, Buckets);

/// Values, each less the one before, and how often each was met.
#[derive(prost::Message)]
pub(super) struct SpreadForm {
    #[prost(uint64, repeated, tag = 1)]
    steps: Vec<u64>,
    #[prost(uint64, repeated, tag = 2)]
    counts: Vec<u64>,
}

impl Field<Spread> for SpreadForm {
    fn put(value: &Spread) -> SpreadForm {
        let mut before = 0;
        let step = |(value, _): &(u64, u64)| value - std::mem::replace(&mut before, *value);
        SpreadForm {
            steps: value.values().iter().map(step).collect(),
            counts: value.values().iter().map(|(_, count)| *count).collect(),
        }
    }
    fn take(self) -> Result<Spread, Unclear> {
        let mut value: u64 = 0;
        let values = self.steps.into_iter().map(|step| {
            value = value.saturating_add(step);
            value
        });
        Ok(Spread::of(values.zip(self.counts)))
    }
}
needed!(SpreadForm, Spread);
