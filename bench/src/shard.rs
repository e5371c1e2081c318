//! The shard alone on the memory store, on one thread: what each step of a task's life costs
//! before disks, threads and sockets come into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual_core::store::{Claim, Fence, Incarnation, ShardId, Store};
use punctual_core::{
    Answer, Board, Choice, Clock, Command, Millis, Name, Reply, Request, Reserve, Schedule, Shard, ShardConfig, Task,
    Timestamp, TopicSettings,
};
use punctual_memory::MemoryStore;

use crate::table::Table;

/// What waits in the inbox at once under load.
const STEP: usize = 256;
const BODY: [u8; 200] = [b'x'; 200];

/// Each row is the second of two runs: the first pays the kernel for fresh memory, which a server
/// that has run for a while does not do.
pub fn run() {
    let mut table = Table::new(&["200-byte bodies, steps of 256 requests", "a second", "ns each"]);
    let million = 1_000_000;
    row(&mut table, "schedules, ids made up, to 1 M pending over 30 days", million, || schedules(million, true));
    row(&mut table, "schedules, ids given, to 1 M pending over 30 days", million, || schedules(million, false));
    let day = Millis::from_hours(24);
    row(&mut table, "whole lives: schedule, fire, reserve, acknowledge", million, || lives(million, day));
    row(&mut table, "whole lives without history", million, || lives(million, Millis::ZERO));
    table.print();
}

fn row(table: &mut Table, what: &str, count: usize, mut run: impl FnMut() -> Duration) {
    run();
    let each = run().as_nanos() as f64 / count as f64;
    table.row(vec![what.to_owned(), format!("{:.0}", 1e9 / each), format!("{each:.0}")]);
}

/// Tasks with random delays of up to 30 days.
fn schedules(tasks: usize, id_is_new: bool) -> Duration {
    let mut center = Center::new();
    let mut random = fastrand::Rng::with_seed(7);
    for first in (0..tasks).step_by(STEP) {
        let schedules = (first..tasks.min(first + STEP)).map(|number| {
            let delay = Millis(random.u64(120_000..30 * 24 * 3_600_000));
            request(Command::Schedule(Box::new(center.schedule(number, delay, id_is_new))))
        });
        let schedules = schedules.collect();
        center.step(schedules);
    }
    center.busy
}

/// Tasks with delays of up to 100 ms, each taken by a waiting consumer and acknowledged.
fn lives(tasks: usize, history: Millis) -> Duration {
    let mut center = Center::new();
    let settings = Box::new(TopicSettings { history, ..TopicSettings::default() });
    center.step(vec![request(Command::PutTopic { name: center.topic.clone(), settings })]);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut scheduled, mut done) = (0, 0);
    let mut requests: Vec<Request<()>> = Vec::new();
    while done < tasks {
        for _ in 0..STEP.min(tasks - scheduled) {
            let delay = Millis(random.u64(1..100));
            requests.push(request(Command::Schedule(Box::new(center.schedule(scheduled, delay, true)))));
            scheduled += 1;
        }
        if center.board.is_empty() {
            center.reserve();
        }
        for (_, reply) in center.step(std::mem::take(&mut requests)) {
            match reply.expect("nothing is refused") {
                Answer::Reserved(deliveries) => {
                    requests
                        .extend(deliveries.into_iter().map(|delivery| request(Command::Acknowledge(delivery.lease))));
                }
                Answer::Acknowledged => done += 1,
                _ => {}
            }
        }
    }
    center.busy
}

fn request(command: Command) -> Request<()> {
    Request { by: None, command, reply: (), read_at: Timestamp::ZERO }
}

struct Center {
    store: MemoryStore,
    shard: Shard<()>,
    board: Board<()>,
    clock: Arc<ManualClock>,
    topic: Name,
    /// The time spent in steps and commits; making up requests is left out.
    busy: Duration,
}

#[derive(Debug)]
struct ManualClock(AtomicU64);

impl ManualClock {
    fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Center {
    fn new() -> Center {
        let clock = Arc::new(ManualClock(AtomicU64::new(1_800_000_000_000)));
        let store = MemoryStore::new(clock.clone());
        let who = Incarnation { node: Name::new("bench").expect("a name"), number: 1 };
        let claims = store.claim(&who, &[(ShardId(0), Fence::default())]).expect("the memory store answers");
        let [Claim::Granted(tenure)] = claims[..] else { unreachable!("nobody else claims") };
        let shard = Shard::open(ShardId(0), tenure, ShardConfig::default(), clock.now(), &store).expect("it opens");
        Center {
            store,
            shard,
            board: Board::default(),
            clock,
            topic: Name::new("orders").expect("a name"),
            busy: Duration::ZERO,
        }
    }

    fn schedule(&self, number: usize, delay: Millis, id_is_new: bool) -> Schedule {
        let id = Name::new(format!("{number:020}")).expect("a name");
        Schedule { task: Task::new(self.topic.clone(), &BODY[..]).after(delay), id, id_is_new }
    }

    fn reserve(&mut self) {
        let reserve = Reserve {
            queues: vec![self.topic.clone()],
            max: STEP * 2,
            lease: None,
            until: Timestamp::LAST,
            consumer: Name::new("worker").expect("a name"),
            choice: Choice::default(),
        };
        self.board.post(reserve, ());
    }

    /// One millisecond's step, committed at once.
    fn step(&mut self, requests: Vec<Request<()>>) -> Vec<((), Reply)> {
        self.clock.advance(1);
        let started = Instant::now();
        let output = self.shard.step(self.clock.now(), requests, &self.store, &mut self.board).expect("it reads");
        if let Some(batch) = output.batch {
            let refused = self.store.commit(vec![batch]).expect("it commits").into_iter().find(Result::is_err);
            assert!(refused.is_none(), "nobody else owns the shard");
        }
        self.shard.committed(output.step);
        self.busy += started.elapsed();
        output.answers
    }
}
