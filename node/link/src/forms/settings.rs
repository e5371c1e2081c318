//! Settings of topics and queues, and how they change.

use punctual_core::{
    Adjustment, Adopt, Backoff, Binding, Order, Overflow, Pattern, PauseNote, QueueSettings, Rate, Retry, Subject,
    TopicSettings,
};

use super::Unclear;
use super::field::Field;

form! {
    TopicSettingsForm of TopicSettings {
        #[prost(string, optional, tag = 1)] owner: Option<String>,
        #[prost(message, optional, tag = 2)] feeds: Option<FeedsForm>,
        #[prost(uint64, tag = 3)] history: u64,
        #[prost(bool, tag = 4)] paused: bool,
        #[prost(message, optional, tag = 5)] rate: Option<RateForm>,
        #[prost(uint32, tag = 6)] priority: u32,
        #[prost(uint64, optional, tag = 7)] ttl: Option<u64>,
        #[prost(message, optional, tag = 8)] pause: Option<PauseNoteForm>,
    }
}

form! {
    PauseNoteForm of PauseNote {
        #[prost(string, tag = 1)] by: String,
        #[prost(uint64, tag = 2)] since: u64,
        #[prost(string, optional, tag = 3)] reason: Option<String>,
    }
}

/// A list that may also not be there, which is not the same as an empty one.
#[derive(prost::Message)]
pub(super) struct FeedsForm {
    #[prost(message, repeated, tag = 1)]
    bindings: Vec<BindingForm>,
}

impl Field<Vec<Binding>> for FeedsForm {
    fn put(value: &Vec<Binding>) -> FeedsForm {
        FeedsForm { bindings: Field::put(value) }
    }
    fn take(self) -> Result<Vec<Binding>, Unclear> {
        Field::take(self.bindings)
    }
}

form! {
    BindingForm of Binding {
        #[prost(string, tag = 1)] queue: String,
        #[prost(message, optional, tag = 2)] pattern: Option<PatternForm>,
    }
}

choice! {
    PatternForm in pattern of Pattern, Pattern {
        1 All,
        2 Words(#[prost(string, tag = 1)] words: String),
    }
}

form! {
    QueueSettingsForm of QueueSettings {
        #[prost(uint64, tag = 1)] lease: u64,
        #[prost(uint64, tag = 2)] max_lease: u64,
        #[prost(message, optional, tag = 3)] retry: Option<RetryForm>,
        #[prost(uint64, optional, tag = 4)] max_length: Option<u64>,
        #[prost(uint32, tag = 5)] overflow: u32,
        #[prost(string, optional, tag = 6)] dead_letter: Option<String>,
        #[prost(uint64, optional, tag = 7)] dead_retention: Option<u64>,
        #[prost(uint64, optional, tag = 8)] paused_until: Option<u64>,
        #[prost(message, optional, tag = 9)] rate: Option<RateForm>,
        #[prost(uint32, tag = 10)] order: u32,
        #[prost(message, optional, tag = 11)] pause: Option<PauseNoteForm>,
    }
}

form! {
    AdoptForm of Adopt {
        #[prost(uint64, tag = 1)] number: u64,
        #[prost(message, optional, tag = 2)] adjustment: Option<AdjustmentForm>,
        #[prost(bool, tag = 3)] to_its_end: bool,
    }
}

choice! {
    AdjustmentForm in adjustment of Adjustment, Adjustment {
        1 PutTopic {
            #[prost(string, tag = 1)] name: String,
            #[prost(message, optional, tag = 2)] settings: Option<TopicSettingsForm>,
        },
        2 PutQueue {
            #[prost(string, tag = 1)] name: String,
            #[prost(message, optional, tag = 2)] settings: Option<QueueSettingsForm>,
        },
        3 Delete {
            #[prost(message, optional, tag = 1)] subject: Option<SubjectForm>,
            #[prost(bool, tag = 2)] force: bool,
        },
    }
}

choice! {
    SubjectForm in subject of Subject, Subject {
        1 Topic(#[prost(string, tag = 1)] name: String),
        2 Queue(#[prost(string, tag = 1)] name: String),
    }
}

form! {
    RetryForm of Retry {
        #[prost(uint32, tag = 1)] attempts: u32,
        #[prost(message, optional, tag = 2)] backoff: Option<BackoffForm>,
        #[prost(uint32, tag = 3)] jitter_percent: u32,
    }
}

choice! {
    BackoffForm in backoff of Backoff, Backoff {
        1 Fixed(#[prost(uint64, tag = 1)] wait: u64),
        2 Exponential {
            #[prost(uint64, tag = 1)] first: u64,
            #[prost(uint64, tag = 2)] cap: u64,
        },
    }
}

form! {
    RateForm of Rate {
        #[prost(uint32, tag = 1)] per_second: u32,
        #[prost(uint32, tag = 2)] burst: u32,
    }
}

numbered! { Overflow { 1 Refuse, 2 DropOldest, } }

numbered! { Order { 1 Due, 2 Arrival, } }
