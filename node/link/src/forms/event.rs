//! What happened, for those who watch.

use punctual_core::{Ending, Event, Reason, What};

use super::Unclear;
use super::field::Field;
use super::plain::KeyForm;

form! {
    EventForm of Event {
        #[prost(uint64, tag = 1)] at: u64,
        #[prost(message, optional, tag = 2)] task: Option<KeyForm>,
        #[prost(string, optional, tag = 3)] queue: Option<String>,
        #[prost(string, optional, tag = 4)] key: Option<String>,
        #[prost(message, optional, tag = 5)] what: Option<WhatForm>,
        #[prost(uint64, tag = 6)] number: u64,
        #[prost(string, optional, tag = 7)] by: Option<String>,
    }
}

choice! {
    WhatForm in what of What, What {
        1 Scheduled { #[prost(uint64, tag = 1)] due: u64, },
        2 Replaced { #[prost(uint64, tag = 1)] due: u64, },
        3 Rescheduled { #[prost(uint64, tag = 1)] due: u64, },
        4 Fired,
        5 Leased {
            #[prost(string, tag = 1)] holder: String,
            #[prost(uint32, tag = 2)] attempt: u32,
            #[prost(uint64, tag = 3)] until: u64,
        },
        6 Extended { #[prost(uint64, tag = 1)] until: u64, },
        7 Released { #[prost(uint64, tag = 1)] at: u64, },
        8 Failed { #[prost(uint64, tag = 1)] again: u64, },
        9 Done,
        10 Cancelled,
        11 Died(#[prost(uint32, tag = 1)] reason: u32),
        12 Forwarded,
        13 Replayed,
        14 Purged,
    }
}

numbered! { Ending { 1 Done, 2 Cancelled, 3 Forwarded, 4 Purged, } }

numbered! { Reason { 1 Rejected, 2 OutOfAttempts, 3 Expired, 4 PushedOut, 5 Unrouted, 6 Lost, } }
