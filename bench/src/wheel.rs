//! The timing wheel beside its peers: insert all, cancel half in random order, expire the rest in time order.
//! Every contestant gets the same times and the same order of cancelling, and starts from nothing.

mod contestants;

use std::hint::black_box;
use std::time::Instant;

use crate::memory;
use crate::table::Table;
use contestants::{Heap, PunctualWheel, Timers, TokioUtil, Tree};

/// Times are random within one hour: all contestants can hold that, tokio-util up to about two years.
pub const HORIZON_MS: u64 = 3_600_000;

const SIZES: [usize; 2] = [1_000_000, 10_000_000];
const ROUNDS: usize = 3;

pub fn run() {
    for size in SIZES {
        let task = Task::new(size);
        // Round by round, not one contestant after the other: a busy moment of the machine then meets all of them.
        let contestants = [round::<PunctualWheel>, round::<TokioUtil>, round::<Heap>, round::<Tree>];
        let mut rounds = contestants.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (round, results) in contestants.iter().zip(&mut rounds) {
                results.push(round(&task));
            }
        }
        let results = rounds.map(|rounds| median(&rounds));
        println!("{size} timers at random times within an hour, half of them cancelled in random order, the rest");
        println!(
            "expired in time order. Nanoseconds per call, median of {ROUNDS} rounds; in brackets beside tokio-util.\n"
        );
        print(&results, &results[1]);
    }
}

/// What each contestant has to do.
struct Task {
    times: Vec<u64>,
    /// Which timers are cancelled, in this order.
    doomed: Vec<usize>,
    /// The sum of the values that are left, to see that all did the same.
    remaining_sum: u64,
}

impl Task {
    fn new(size: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(size as u64);
        let times = (0..size).map(|_| random.u64(1..=HORIZON_MS)).collect();
        let mut doomed: Vec<usize> = (0..size).collect();
        random.shuffle(&mut doomed);
        let remaining_sum = doomed[size / 2..].iter().map(|value| *value as u64).sum();
        doomed.truncate(size / 2);
        Task { times, doomed, remaining_sum }
    }
}

struct Result {
    name: &'static str,
    /// Nanoseconds per call.
    insert: f64,
    cancel: f64,
    expire: f64,
    /// Bytes per timer, at the highest while inserting.
    bytes: f64,
}

fn median(rounds: &[Result]) -> Result {
    let median = |of: fn(&Result) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Result {
        name: rounds[0].name,
        insert: median(|round| round.insert),
        cancel: median(|round| round.cancel),
        expire: median(|round| round.expire),
        bytes: median(|round| round.bytes),
    }
}

fn round<T: Timers>(task: &Task) -> Result {
    let size = task.times.len();
    let mut keys = Vec::with_capacity(size);
    memory::reset_peak();
    let before = memory::allocated();

    let mut timers = T::new();
    let started = Instant::now();
    for (value, at) in task.times.iter().enumerate() {
        keys.push(timers.insert(*at, value as u64));
    }
    let insert = started.elapsed();
    let bytes = memory::peak() - before;

    // Looked up beforehand: how a caller keeps its keys is not what is measured.
    let doomed: Vec<T::Key> = task.doomed.iter().map(|index| keys[*index]).collect();
    let started = Instant::now();
    for key in &doomed {
        timers.cancel(black_box(*key));
    }
    let cancel = started.elapsed();

    timers.let_time_pass();
    let (mut left, mut sum) = (0, 0);
    let started = Instant::now();
    while let Some(value) = timers.expire() {
        left += 1;
        sum += value;
    }
    let expire = started.elapsed();
    assert_eq!((left, sum), (size - doomed.len(), task.remaining_sum), "{} lost or invented timers", T::NAME);

    let each = |elapsed: std::time::Duration, calls: usize| elapsed.as_nanos() as f64 / calls as f64;
    Result {
        name: T::NAME,
        insert: each(insert, size),
        cancel: each(cancel, doomed.len()),
        expire: each(expire, left),
        bytes: bytes as f64 / size as f64,
    }
}

fn print(results: &[Result], base: &Result) {
    let mut table = Table::new(&["", "insert", "cancel", "expire", "bytes per timer"]);
    let beside = |value: f64, base: f64| format!("{value:.0} ({:.2})", value / base);
    for result in results {
        table.row(vec![
            result.name.to_string(),
            beside(result.insert, base.insert),
            beside(result.cancel, base.cancel),
            beside(result.expire, base.expire),
            format!("{:.1}", result.bytes),
        ]);
    }
    table.print();
}
