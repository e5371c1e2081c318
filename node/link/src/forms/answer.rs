//! What came of a request.

use punctual_core::{
    Answer, Drawn, First, Holder, Holders, Lined, Preview, QueueCounts, QueueView, Ruling, ScheduleOutcome, Scheduled,
    Standing, SweepEnd, SweepProgress, Swept, Timestamp, TopicCounts, TopicView, Total,
};

use super::Unclear;
use super::command::InLineForm;
use super::field::Field;
use super::plain::{KeyForm, PositionForm};
use super::settings::{QueueSettingsForm, TopicSettingsForm};
use super::task::DeliveryForm;

choice! {
    AnswerForm in answer of Answer, Answer {
        1 Scheduled(#[prost(message, optional, tag = 1)] scheduled: Option<ScheduledForm>),
        2 Cancelled(#[prost(message, optional, tag = 1)] ruling: Option<RulingForm>),
        3 Rescheduled(#[prost(message, optional, tag = 1)] ruling: Option<DueRulingForm>),
        4 Reserved(#[prost(message, repeated, tag = 1)] deliveries: Vec<DeliveryForm>),
        5 Acknowledged,
        6 Released(#[prost(message, optional, tag = 1)] standing: Option<StandingForm>),
        7 Rejected,
        8 Extended(#[prost(uint64, tag = 1)] until: u64),
        9 Removed(#[prost(uint32, tag = 1)] ending: u32),
        10 Hastened(#[prost(message, optional, tag = 1)] standing: Option<StandingForm>),
        11 Replayed(#[prost(message, optional, tag = 1)] standing: Option<StandingForm>),
        12 Purged,
        13 Swept(#[prost(message, optional, tag = 1)] swept: Option<SweptForm>),
        14 Topic(#[prost(message, optional, tag = 1)] settings: Option<TopicSettingsForm>),
        15 Queue(#[prost(message, optional, tag = 1)] settings: Option<QueueSettingsForm>),
        16 Deleted(#[prost(uint64, tag = 1)] rows: u64),
        17 Noted,
        18 Topics(#[prost(message, repeated, tag = 1)] topics: Vec<TopicViewForm>),
        19 Queues(#[prost(message, repeated, tag = 1)] queues: Vec<QueueViewForm>),
        20 Total(#[prost(message, optional, tag = 1)] total: Option<TotalForm>),
        21 First(#[prost(message, optional, tag = 1)] first: Option<FirstForm>),
        22 Forecast(#[prost(message, repeated, tag = 1)] slots: Vec<SlotForm>),
        23 Drawn(#[prost(message, optional, tag = 1)] drawn: Option<DrawnForm>),
        24 Preview(#[prost(message, optional, tag = 1)] preview: Option<PreviewForm>),
        25 Sweeps(#[prost(message, repeated, tag = 1)] sweeps: Vec<SweepProgressForm>),
        40 Line(#[prost(message, optional, tag = 1)] lined: Option<LinedForm>),
        41 Holders(#[prost(message, optional, tag = 1)] holders: Option<HoldersForm>),
    }
}

form! {
    LinedForm of Lined {
        #[prost(uint32, tag = 1)] order: u32,
        #[prost(message, repeated, tag = 2)] entries: Vec<InLineForm>,
        #[prost(uint64, tag = 3)] unknown: u64,
    }
}

form! {
    HoldersForm of Holders {
        #[prost(message, repeated, tag = 1)] holders: Vec<HolderForm>,
        #[prost(uint64, tag = 2)] unknown: u64,
    }
}

form! {
    HolderForm of Holder {
        #[prost(string, tag = 1)] name: String,
        #[prost(string, tag = 2)] queue: String,
        #[prost(uint64, tag = 3)] leases: u64,
        #[prost(uint64, optional, tag = 4)] oldest: Option<u64>,
        #[prost(uint64, tag = 5)] next_end: u64,
    }
}

form! {
    ScheduledForm of Scheduled {
        #[prost(string, tag = 1)] id: String,
        #[prost(uint64, tag = 2)] number: u64,
        #[prost(message, optional, tag = 3)] outcome: Option<ScheduleOutcomeForm>,
    }
}

choice! {
    ScheduleOutcomeForm in schedule_outcome of ScheduleOutcome, ScheduleOutcome {
        1 Created { #[prost(uint64, tag = 1)] due: u64, },
        2 Replaced { #[prost(uint64, tag = 1)] due: u64, },
        3 Existed(#[prost(message, optional, tag = 1)] standing: Option<StandingForm>),
    }
}

choice! {
    RulingForm in ruling of Ruling<()>, Ruling {
        1 Done(#[prost(bool, tag = 1)] is_done: bool),
        2 TooLate(#[prost(message, optional, tag = 1)] standing: Option<StandingForm>),
        3 Unknown,
    }
}

choice! {
    DueRulingForm in due_ruling of Ruling<Timestamp>, Ruling {
        1 Done(#[prost(uint64, tag = 1)] due: u64),
        2 TooLate(#[prost(message, optional, tag = 1)] standing: Option<StandingForm>),
        3 Unknown,
    }
}

choice! {
    StandingForm in standing of Standing, Standing {
        1 Scheduled { #[prost(uint64, tag = 1)] at: u64, },
        2 Ready { #[prost(uint64, tag = 1)] since: u64, },
        3 Leased {
            #[prost(string, tag = 1)] queue: String,
            #[prost(string, tag = 2)] holder: String,
            #[prost(uint64, tag = 3)] until: u64,
        },
        4 Spread {
            #[prost(string, repeated, tag = 1)] open: Vec<String>,
            #[prost(string, repeated, tag = 2)] finished: Vec<String>,
        },
        5 Finished {
            #[prost(uint32, tag = 1)] ending: u32,
            #[prost(uint64, tag = 2)] at: u64,
        },
        6 Dead {
            #[prost(uint32, tag = 1)] reason: u32,
            #[prost(uint64, tag = 2)] at: u64,
        },
    }
}

form! {
    PreviewForm of Preview {
        #[prost(message, optional, tag = 1)] swept: Option<SweptForm>,
        #[prost(bool, tag = 2)] more: bool,
        #[prost(message, repeated, tag = 3)] samples: Vec<KeyForm>,
    }
}

form! {
    SweepProgressForm of SweepProgress {
        #[prost(uint64, tag = 1)] number: u64,
        #[prost(message, optional, tag = 2)] swept: Option<SweptForm>,
        #[prost(message, optional, tag = 3)] ended: Option<SweepEndForm>,
    }
}

form! {
    SweepEndForm of SweepEnd {
        #[prost(uint64, tag = 1)] at: u64,
        #[prost(bool, tag = 2)] is_stopped: bool,
    }
}

form! {
    SweptForm of Swept {
        #[prost(uint64, tag = 1)] matched: u64,
        #[prost(uint64, tag = 2)] changed: u64,
        #[prost(uint64, tag = 3)] too_late: u64,
        #[prost(uint64, tag = 4)] no_room: u64,
    }
}

form! {
    TopicViewForm of TopicView {
        #[prost(message, optional, tag = 1)] settings: Option<TopicSettingsForm>,
        #[prost(message, optional, tag = 2)] counts: Option<TopicCountsForm>,
    }
}

form! {
    TopicCountsForm of TopicCounts {
        #[prost(string, tag = 1)] name: String,
        #[prost(uint64, tag = 2)] waiting: u64,
        #[prost(uint64, tag = 3)] leased: u64,
        #[prost(uint64, tag = 4)] dead: u64,
        #[prost(uint64, tag = 5)] history: u64,
    }
}

form! {
    QueueViewForm of QueueView {
        #[prost(message, optional, tag = 1)] settings: Option<QueueSettingsForm>,
        #[prost(message, optional, tag = 2)] counts: Option<QueueCountsForm>,
        #[prost(uint64, optional, tag = 3)] oldest: Option<u64>,
    }
}

form! {
    QueueCountsForm of QueueCounts {
        #[prost(string, tag = 1)] name: String,
        #[prost(uint64, tag = 2)] ready: u64,
        #[prost(uint64, tag = 3)] urgent: u64,
        #[prost(uint64, tag = 4)] leased: u64,
        #[prost(uint64, tag = 5)] dead: u64,
    }
}

form! {
    TotalForm of Total {
        #[prost(uint64, tag = 1)] topics: u64,
        #[prost(uint64, tag = 2)] queues: u64,
        #[prost(uint64, tag = 3)] waiting: u64,
        #[prost(uint64, tag = 4)] ready: u64,
        #[prost(uint64, tag = 5)] urgent: u64,
        #[prost(uint64, tag = 6)] leased: u64,
        #[prost(uint64, tag = 7)] dead: u64,
        #[prost(uint64, tag = 8)] dead_in_queues: u64,
        #[prost(uint64, tag = 9)] history: u64,
    }
}

form! {
    FirstForm of First {
        #[prost(uint32, tag = 1)] priority: u32,
        #[prost(message, optional, tag = 2)] position: Option<PositionForm>,
    }
}

form! {
    DrawnForm of Drawn {
        #[prost(uint32, tag = 1)] tokens: u32,
        #[prost(uint64, tag = 2)] wait: u64,
    }
}

/// How much comes due in a slot of a forecast.
#[derive(prost::Message)]
pub(super) struct SlotForm {
    #[prost(uint64, tag = 1)]
    at: u64,
    #[prost(uint64, tag = 2)]
    due: u64,
}

impl Field<(Timestamp, u64)> for SlotForm {
    fn put((at, due): &(Timestamp, u64)) -> SlotForm {
        SlotForm { at: Field::put(at), due: *due }
    }
    fn take(self) -> Result<(Timestamp, u64), Unclear> {
        Ok((Field::take(self.at)?, self.due))
    }
}
