//! What is asked of a shard.

use punctual_core::{
    Among, Back, Chosen, Command, InLine, Leases, Line, Matching, Name, NumberedSweep, Reschedule, Revoke, RowId,
    Schedule, Scope, Select, Selected, Shift, Stage, Sweep, SweepAction, Take, TimeRange, Unit,
};

use super::Unclear;
use super::field::Field;
use super::plain::{KeyForm, LeaseForm, PositionForm};
use super::settings::{AdoptForm, QueueSettingsForm, SubjectForm, TopicSettingsForm};
use super::task::{BodyForm, TaskForm};

choice! {
    CommandForm in command of Command, Command {
        1 Schedule(#[prost(message, optional, tag = 1)] schedule: Option<ScheduleForm>),
        2 Cancel {
            #[prost(string, tag = 1)] topic: String,
            #[prost(string, tag = 2)] id: String,
        },
        3 Reschedule(#[prost(message, optional, tag = 1)] change: Option<RescheduleForm>),
        4 Acknowledge(#[prost(message, optional, tag = 1)] lease: Option<LeaseForm>),
        5 Release {
            #[prost(message, optional, tag = 1)] lease: Option<LeaseForm>,
            #[prost(message, optional, tag = 2)] back: Option<BackForm>,
            #[prost(uint32, optional, tag = 3)] priority: Option<u32>,
            #[prost(string, optional, tag = 4)] note: Option<String>,
        },
        6 Reject {
            #[prost(message, optional, tag = 1)] lease: Option<LeaseForm>,
            #[prost(string, optional, tag = 2)] note: Option<String>,
            #[prost(uint32, optional, tag = 3)] priority: Option<u32>,
        },
        7 Extend {
            #[prost(message, optional, tag = 1)] lease: Option<LeaseForm>,
            #[prost(uint64, optional, tag = 2)] by: Option<u64>,
        },
        8 Revoke(#[prost(message, optional, tag = 1)] revoke: Option<RevokeForm>),
        9 Remove {
            #[prost(message, optional, tag = 1)] row: Option<RowIdForm>,
            #[prost(uint64, optional, tag = 2)] token: Option<u64>,
        },
        10 Hasten { #[prost(message, optional, tag = 1)] row: Option<RowIdForm>, },
        11 Take(#[prost(message, optional, tag = 1)] take: Option<TakeForm>),
        12 Replay(#[prost(message, optional, tag = 1)] selected: Option<SelectedForm>),
        13 Purge(#[prost(message, optional, tag = 1)] selected: Option<SelectedForm>),
        14 Forget {
            #[prost(string, tag = 1)] topic: String,
            #[prost(string, tag = 2)] id: String,
            #[prost(uint64, tag = 3)] finished_at: u64,
        },
        15 Sweep(#[prost(message, optional, tag = 1)] sweep: Option<SweepForm>),
        16 PutTopic {
            #[prost(string, tag = 1)] name: String,
            #[prost(message, optional, tag = 2)] settings: Option<TopicSettingsForm>,
        },
        17 PutQueue {
            #[prost(string, tag = 1)] name: String,
            #[prost(message, optional, tag = 2)] settings: Option<QueueSettingsForm>,
        },
        18 PauseTopic {
            #[prost(string, tag = 1)] name: String,
            #[prost(bool, tag = 2)] paused: bool,
        },
        19 PauseQueue {
            #[prost(string, tag = 1)] name: String,
            #[prost(uint64, optional, tag = 2)] until: Option<u64>,
        },
        20 DeleteTopic {
            #[prost(string, tag = 1)] name: String,
            #[prost(bool, tag = 2)] force: bool,
        },
        21 DeleteQueue {
            #[prost(string, tag = 1)] name: String,
            #[prost(bool, tag = 2)] force: bool,
        },
        22 Forwarded {
            #[prost(message, optional, tag = 1)] key: Option<KeyForm>,
            #[prost(uint64, tag = 2)] journey: u64,
            #[prost(string, optional, tag = 3)] refused: Option<String>,
        },
        23 Topics(#[prost(message, optional, tag = 1)] chosen: Option<ChosenForm>),
        24 Queues(#[prost(message, optional, tag = 1)] chosen: Option<ChosenForm>),
        25 Total,
        26 First { #[prost(string, tag = 1)] queue: String, },
        27 Forecast {
            #[prost(uint32, tag = 1)] unit: u32,
            #[prost(uint64, tag = 2)] slots: u64,
        },
        28 Adopt(#[prost(message, optional, tag = 1)] adopt: Option<AdoptForm>),
        29 Draw {
            #[prost(message, optional, tag = 1)] from: Option<SubjectForm>,
            #[prost(uint32, tag = 2)] tokens: u32,
        },
        30 Restore {
            #[prost(string, tag = 1)] topic: String,
            #[prost(string, tag = 2)] id: String,
        },
        31 Preview(#[prost(message, optional, tag = 1)] sweep: Option<SweepForm>),
        32 BeginSweep(#[prost(message, optional, tag = 1)] sweep: Option<NumberedSweepForm>),
        33 StopSweep { #[prost(uint64, tag = 1)] number: u64, },
        34 Sweeps,
        40 Line(#[prost(message, optional, tag = 1)] line: Option<LineForm>),
        41 Holders {
            #[prost(string, optional, tag = 1)] queue: Option<String>,
            #[prost(message, optional, tag = 2)] within: Option<ScopeForm>,
        },
        42 Leases(#[prost(message, optional, tag = 1)] leases: Option<LeasesForm>),
    }
}

form! {
    LineForm of Line {
        #[prost(string, tag = 1)] queue: String,
        #[prost(uint32, tag = 2)] stage: u32,
        #[prost(message, optional, tag = 3)] from: Option<InLineForm>,
        #[prost(uint64, tag = 4)] limit: u64,
    }
}

numbered! {
    Stage {
        1 Ready,
        2 Leased,
    }
}

form! {
    InLineForm of InLine {
        #[prost(uint32, tag = 1)] priority: u32,
        #[prost(message, optional, tag = 2)] position: Option<PositionForm>,
    }
}

form! {
    LeasesForm of Leases {
        #[prost(message, optional, tag = 1)] from: Option<PositionForm>,
        #[prost(message, optional, tag = 2)] ends: Option<TimeRangeForm>,
        #[prost(bool, tag = 3)] latest_first: bool,
        #[prost(uint64, tag = 4)] limit: u64,
    }
}

form! {
    ScheduleForm of Schedule {
        #[prost(message, optional, tag = 1)] task: Option<TaskForm>,
        #[prost(string, tag = 2)] id: String,
        #[prost(bool, tag = 3)] id_is_new: bool,
    }
}

form! {
    RescheduleForm of Reschedule {
        #[prost(string, tag = 1)] topic: String,
        #[prost(string, tag = 2)] id: String,
        #[prost(message, optional, tag = 3)] shift: Option<ShiftForm>,
        #[prost(uint32, optional, tag = 4)] priority: Option<u32>,
        #[prost(message, optional, tag = 5)] body: Option<BodyForm>,
    }
}

choice! {
    ShiftForm in shift of Shift, Shift {
        1 To(#[prost(uint64, tag = 1)] at: u64),
        2 In(#[prost(uint64, tag = 1)] delay: u64),
        3 By(#[prost(sint64, tag = 1)] millis: i64),
    }
}

choice! {
    BackForm in back of Back, Back {
        1 Retry,
        2 After(#[prost(uint64, tag = 1)] wait: u64),
        3 Abandoned,
    }
}

form! {
    RowIdForm of RowId {
        #[prost(message, optional, tag = 1)] key: Option<KeyForm>,
        #[prost(uint64, tag = 2)] number: u64,
    }
}

form! {
    TakeForm of Take {
        #[prost(message, optional, tag = 1)] row: Option<RowIdForm>,
        #[prost(string, tag = 2)] consumer: String,
        #[prost(uint64, optional, tag = 3)] lease: Option<u64>,
    }
}

form! {
    RevokeForm of Revoke {
        #[prost(message, optional, tag = 1)] selected: Option<SelectedForm>,
        #[prost(string, optional, tag = 2)] holder: Option<String>,
        #[prost(message, optional, tag = 3)] back: Option<BackForm>,
        #[prost(string, optional, tag = 4)] note: Option<String>,
    }
}

form! {
    SelectedForm of Selected {
        #[prost(string, tag = 1)] topic: String,
        #[prost(string, tag = 2)] id: String,
        #[prost(string, optional, tag = 3)] queue: Option<String>,
    }
}

form! {
    SweepForm of Sweep {
        #[prost(message, optional, tag = 1)] matching: Option<MatchingForm>,
        #[prost(message, optional, tag = 2)] within: Option<ScopeForm>,
        #[prost(message, optional, tag = 3)] action: Option<SweepActionForm>,
        #[prost(bool, tag = 4)] dry_run: bool,
    }
}

choice! {
    MatchingForm in matching of Matching, Matching {
        1 Key {
            #[prost(string, tag = 1)] key: String,
            #[prost(string, optional, tag = 2)] topic: Option<String>,
        },
        2 Dead {
            #[prost(string, optional, tag = 1)] topic: Option<String>,
            #[prost(string, optional, tag = 2)] queue: Option<String>,
            #[prost(message, optional, tag = 3)] died: Option<TimeRangeForm>,
        },
        3 History {
            #[prost(string, tag = 1)] topic: String,
            #[prost(message, optional, tag = 2)] finished: Option<TimeRangeForm>,
            #[prost(uint32, optional, tag = 3)] ending: Option<u32>,
        },
        4 Tasks(#[prost(message, optional, tag = 1)] select: Option<SelectForm>),
        5 Changed { #[prost(uint64, tag = 1)] by: u64, },
    }
}

form! {
    NumberedSweepForm of NumberedSweep {
        #[prost(uint64, tag = 1)] number: u64,
        #[prost(message, optional, tag = 2)] sweep: Option<SweepForm>,
    }
}

form! {
    SelectForm of Select {
        #[prost(message, optional, tag = 1)] among: Option<AmongForm>,
        #[prost(string, optional, tag = 2)] topic: Option<String>,
        #[prost(string, optional, tag = 3)] key: Option<String>,
        #[prost(string, optional, tag = 4)] queue: Option<String>,
        #[prost(message, optional, tag = 5)] time: Option<TimeRangeForm>,
        #[prost(message, optional, tag = 6)] ids: Option<IdsForm>,
    }
}

choice! {
    AmongForm in among of Among, Among {
        1 Live,
        2 Scheduled,
        3 Ready,
        4 Dead {
            #[prost(uint32, optional, tag = 1)] reason: Option<u32>,
            #[prost(string, optional, tag = 2)] note: Option<String>,
            #[prost(string, optional, tag = 3)] note_prefix: Option<String>,
        },
        5 History { #[prost(uint32, optional, tag = 1)] ending: Option<u32>, },
    }
}

/// A list that may also not be there, which is not the same as an empty one.
#[derive(prost::Message)]
pub(super) struct IdsForm {
    #[prost(string, repeated, tag = 1)]
    ids: Vec<String>,
}

impl Field<Vec<Name>> for IdsForm {
    fn put(value: &Vec<Name>) -> IdsForm {
        IdsForm { ids: Field::put(value) }
    }
    fn take(self) -> Result<Vec<Name>, Unclear> {
        Field::take(self.ids)
    }
}

form! {
    TimeRangeForm of TimeRange {
        #[prost(uint64, tag = 1)] from: u64,
        #[prost(uint64, tag = 2)] until: u64,
    }
}

choice! {
    SweepActionForm in sweep_action of SweepAction, SweepAction {
        1 Cancel,
        2 Shift(#[prost(message, optional, tag = 1)] shift: Option<ShiftForm>),
        3 Replay,
        4 Purge,
        5 Spread(#[prost(message, optional, tag = 1)] over: Option<TimeRangeForm>),
        6 Hasten,
        7 Undo,
    }
}

choice! {
    ChosenForm in chosen of Chosen, Chosen {
        1 Named(#[prost(string, repeated, tag = 1)] names: Vec<String>),
        2 After {
            #[prost(string, optional, tag = 1)] name: Option<String>,
            #[prost(uint64, tag = 2)] limit: u64,
        },
    }
}

numbered! { Unit { 1 Minute, 2 Hour, 3 Day, 4 Week, 5 Month, } }

/// Patterns of names. One that says nothing allows nothing.
#[derive(prost::Message)]
pub(super) struct ScopeForm {
    #[prost(bool, tag = 1)]
    is_all: bool,
    #[prost(string, repeated, tag = 2)]
    patterns: Vec<String>,
}

impl Field<Scope> for ScopeForm {
    fn put(value: &Scope) -> ScopeForm {
        ScopeForm { is_all: value.is_all(), patterns: value.patterns().to_vec() }
    }
    fn take(self) -> Result<Scope, Unclear> {
        Ok(if self.is_all { Scope::ALL } else { Scope::of(self.patterns) })
    }
}
needed!(ScopeForm, Scope);
