//! Real steps of a shard, for the auditor to look at in its tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::store::{Claim, Fence, Incarnation, ShardId, Store};
use punctual_core::{Board, Clock, Command, Millis, Name, Request, Schedule, Shard, ShardConfig, Task, Timestamp};
use punctual_memory::MemoryStore;

use super::{Auditor, Promise};
use crate::record::{StepRecord, Tag};

const SHARD: ShardId = ShardId(0);
/// When the shard is opened.
pub const NOW: Timestamp = Timestamp::from_millis(1_000_000);
/// When requests were read: the steps have had to wait.
const READ_AT: Timestamp = Timestamp::from_millis(999_000);

struct Standstill;

impl Clock for Standstill {
    fn now(&self) -> Timestamp {
        NOW
    }
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("it is a name")
}

pub fn schedule(id: &str, task: Task) -> Command {
    Command::Schedule(Box::new(Schedule { task, id: name(id), id_is_new: false }))
}

/// Steps at these times and of these commands, whose tags count from zero.
pub fn steps(commands: Vec<(Timestamp, Vec<Command>)>) -> Vec<StepRecord> {
    let store = MemoryStore::new(Arc::new(Standstill));
    let who = Incarnation { node: name("node"), number: 1 };
    let claims = store.claim(&who, &[(SHARD, Fence::default())]).expect("it is there");
    let [Claim::Granted(tenure)] = claims[..] else { panic!("nobody has it: {claims:?}") };
    let mut shard = Shard::open(SHARD, tenure, ShardConfig::default(), NOW, &store).expect("it opens");
    let mut tags = 0..;
    let mut step = |(now, commands): (Timestamp, Vec<Command>)| {
        // Not the other way round: that would use up a tag for each step.
        let requests: Vec<(Tag, Command)> =
            commands.into_iter().zip(tags.by_ref()).map(|(it, tag)| (tag, it)).collect();
        let asked = requests.iter().map(|(tag, command)| Request {
            by: None,
            command: command.clone(),
            reply: *tag,
            read_at: READ_AT,
        });
        let output = shard.step(now, asked.collect(), &store, &mut Board::default()).expect("the store answers");
        let committed = store.commit(output.batch.iter().cloned().collect()).expect("the store answers");
        assert!(committed.iter().all(Result::is_ok), "{committed:?}");
        shard.committed(output.step);
        StepRecord {
            node: 0,
            shard: SHARD,
            fence: tenure.fence,
            step: output.step,
            now,
            clock: now,
            clock_width: Millis(1),
            truth: Some(now),
            read_at: requests.iter().map(|(tag, _)| (*tag, READ_AT)).collect(),
            requests,
            answers: output.answers.into_iter().collect(),
            holders: BTreeMap::new(),
            waited_since: now,
            late: Vec::new(),
            batch: output.batch,
        }
    };
    commands.into_iter().map(&mut step).collect()
}

/// What the auditor says to these steps.
pub fn audit(records: &[StepRecord]) -> Option<Promise> {
    let mut auditor = Auditor::default();
    records.iter().for_each(|record| auditor.took_effect(record));
    auditor.violation().map(|violation| violation.promise)
}
