//! Why something was not done.

use punctual_center::Error;
use punctual_core::{Certainty, Refused};

use super::Unclear;
use super::answer::StandingForm;
use super::field::Field;

choice! {
    ErrorForm in error of Error, Error {
        1 Refused(#[prost(message, optional, tag = 1)] refused: Option<RefusedForm>),
        2 Overloaded,
        3 Full(#[prost(string, tag = 1)] why: String),
        4 Unavailable {
            #[prost(string, tag = 1)] why: String,
            #[prost(uint32, tag = 2)] certainty: u32,
        },
        5 Stopping,
    }
}

choice! {
    RefusedForm in refused of Refused, Refused {
        1 BodyTooLarge {
            #[prost(uint64, tag = 1)] bytes: u64,
            #[prost(uint64, tag = 2)] limit: u64,
        },
        2 HeadersTooLarge {
            #[prost(uint64, tag = 1)] entries: u64,
            #[prost(uint64, tag = 2)] bytes: u64,
        },
        3 TopicPaused(#[prost(string, tag = 1)] topic: String),
        4 BeingDeleted(#[prost(string, tag = 1)] name: String),
        5 RateLimited {
            #[prost(string, tag = 1)] topic: String,
            #[prost(uint64, tag = 2)] retry_after: u64,
        },
        6 NoSuchTopic(#[prost(string, tag = 1)] topic: String),
        7 NoSuchQueue(#[prost(string, tag = 1)] queue: String),
        8 QueueFull(#[prost(string, tag = 1)] queue: String),
        9 NotEmpty {
            #[prost(string, tag = 1)] name: String,
            #[prost(uint64, tag = 2)] rows: u64,
        },
        10 LeaseLost { #[prost(message, optional, tag = 1)] now: Option<StandingForm>, },
        11 NothingThere,
        12 Invalid {
            #[prost(string, tag = 1)] field: String,
            #[prost(string, tag = 2)] why: String,
        },
        13 BadSettings(#[prost(string, tag = 1)] why: String),
    }
}

numbered! { Certainty { 1 NothingDone, 2 Unknown, } }
