//! What runs in a process of its own, so that memory and processor time are one contestant's.

use std::path::Path;
use std::time::{Duration, Instant};

use punctual_core::Timestamp;
use punctual_core::store::Position;

use super::contestants::{Contestant, ENTRANTS, Inserts, Kind};
use super::meter::Meter;
use super::plan::Limit;
use super::report::{decimals, mebibytes, say, tell};
use super::rows::{ROW_BYTES, Rows, key_of};
use super::{backlog, node, system, work};

const BATCHES: [usize; 4] = [1, 10, 100, 1_000];

/// What a process is started for; the words are its arguments.
pub fn run(words: &[&str]) {
    crate::memory::stop_counting();
    match words {
        ["work", name, label, directory, rows] => everything(name, label, Path::new(directory), parsed(rows) as usize),
        ["insert-on", name, directory, from] => insert_on(name, Path::new(directory), parsed(from)),
        ["open", name, directory, confirmed] => open(name, Path::new(directory), parsed(confirmed)),
        ["node", directory, rows] => node::run(Path::new(directory), parsed(rows) as usize),
        ["backlog", directory, rows] => backlog::run(Path::new(directory), parsed(rows) as usize),
        _ => panic!("not how one process starts another: {words:?}"),
    }
}

fn everything(name: &str, label: &str, directory: &Path, rows: usize) {
    let group = |batch| BATCHES.iter().position(|one| *one == batch).expect("one of them");
    let inserts = |table: &str, store: &mut dyn Inserts, rows: &mut Rows, batch, limit| {
        let mut meter = work::inserts(store, rows, batch, limit);
        let cells = [meter.rate(), meter.cores()].into_iter().chain(meter.latencies([0.5, 0.99, 0.999, 1.0]));
        tell(table, group(batch), &format!("{label}, {batch} a commit"), cells);
    };
    for batch in BATCHES {
        let directory = directory.join(format!("empty-{batch}"));
        let mut store = inserting(name, &directory);
        inserts("empty", &mut *store, &mut Rows::starting_at(0), batch, Limit::share(rows, 10, 1_000_000, 5));
        drop(store);
        std::fs::remove_dir_all(directory).ok();
    }
    let directory = directory.join("filled");
    let mut made = Rows::starting_at(0);
    let limit = Limit::share(rows, 5, 2_000_000, 5);
    if let Kind::Raw(open) = entrant(name) {
        let mut store = open(&directory);
        for batch in BATCHES {
            inserts("pending", &mut *store, &mut made, batch, limit);
        }
        return;
    }
    // What is written while it opens, to preallocate say, counts with the filling.
    let before = (system::cpu(), system::written(&directory));
    let mut store = storing(name, &directory);
    let store = &mut *store;
    fill(store, label, &mut made, rows, &directory, before);
    for batch in BATCHES {
        inserts("pending", store, &mut made, batch, limit);
    }
    eprintln!("{label}: settled after {:?}", system::settle());
    let removed = reads(store, label, &mut made, rows);
    eprintln!("{label}: settled after {:?}", system::settle());
    // The lives leave no row behind.
    let standing = made.next - removed;
    lives(store, label, &mut made, rows, &directory, standing);
}

fn fill(
    store: &mut dyn Contestant,
    label: &str,
    made: &mut Rows,
    rows: usize,
    directory: &Path,
    (cpu, written): (Duration, u64),
) {
    let mut whole = Meter::default();
    let mut last_quarter = String::new();
    for quarter in 0..4 {
        let part =
            work::inserts(store, made, 1_000, Limit::without_time(rows * (quarter + 1) / 4 - rows * quarter / 4));
        last_quarter = part.rate();
        eprintln!("{label}: quarter {} filled, {last_quarter} rows/s", quarter + 1);
        whole.join(part);
    }
    let settled = system::settle();
    let bytes = (rows as u64 * ROW_BYTES) as f64;
    let [p999, max] = whole.latencies([0.999, 1.0]);
    tell(
        "fill",
        0,
        label,
        [
            whole.rate(),
            last_quarter,
            whole.cores(),
            p999,
            max,
            decimals(settled.as_secs_f64(), 1),
            decimals((system::cpu() - cpu).as_secs_f64() * 1e6 / rows as f64, 2),
            decimals((system::written(directory) - written) as f64 / bytes, 2),
            decimals(system::allocated_on_disk(directory) as f64 / bytes, 2),
            mebibytes(system::resident()),
            mebibytes(system::resident_at_most()),
        ],
    );
}

/// Says how many rows it has removed.
fn reads(store: &mut dyn Contestant, label: &str, made: &mut Rows, rows: usize) -> u64 {
    let due = work::due(store, Limit::share(rows, 5, 2_000_000, 10));
    let limit = Limit::share(rows, 20, 500_000, 10);
    let present = work::gets(store, made, rows as u64, true, limit);
    let absent = work::gets(store, made, rows as u64, false, limit);
    let removed = work::removals(store, rows as u64, limit);
    tell("reads", 0, label, [&due, &present, &absent, &removed].map(Meter::rate));
    removed.count as u64
}

fn lives(store: &mut dyn Contestant, label: &str, made: &mut Rows, rows: usize, directory: &Path, standing: u64) {
    let mut meter = work::lives(store, made, Limit::share(rows, 10, 1_000_000, 30));
    system::settle();
    let [p999, max] = meter.latencies([0.999, 1.0]);
    let disk = system::allocated_on_disk(directory) as f64 / (standing * ROW_BYTES) as f64;
    tell("lives", 0, label, [meter.rate(), meter.cores(), p999, max, decimals(disk, 2)]);
}

fn insert_on(name: &str, directory: &Path, from: u64) {
    let mut store = inserting(name, &directory.join("filled"));
    work::insert_on(&mut *store, &mut Rows::starting_at(from), |last| say(&last.to_string()));
}

/// Opens what a killed process has left, and looks whether the last row that it confirmed is there.
fn open(name: &str, directory: &Path, confirmed: u64) {
    let started = Instant::now();
    let mut store = storing(name, &directory.join("filled"));
    let opened = started.elapsed();
    let found = store.get(&[key_of(confirmed)]);
    assert!(found[0].is_some(), "row {confirmed} was confirmed before the kill, and is lost");
    assert_eq!(store.due(Position::START, Timestamp::NEVER, 1_000).len(), 1_000, "rows are pending");
    say(&format!("{} {}", opened.as_secs_f64(), started.elapsed().as_secs_f64()));
}

fn entrant(name: &str) -> &'static Kind {
    &ENTRANTS.iter().find(|entrant| entrant.name == name).expect("it takes part").kind
}

fn inserting(name: &str, directory: &Path) -> Box<dyn Inserts> {
    match entrant(name) {
        Kind::Raw(open) => open(directory),
        Kind::Peer(open) | Kind::Own(open) => open(directory),
    }
}

fn storing(name: &str, directory: &Path) -> Box<dyn Contestant> {
    match entrant(name) {
        Kind::Raw(_) => panic!("{name} cannot be read from"),
        Kind::Peer(open) | Kind::Own(open) => open(directory),
    }
}

fn parsed(number: &str) -> u64 {
    number.parse().expect("a number")
}
