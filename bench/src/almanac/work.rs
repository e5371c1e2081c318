//! The work that is measured, the same for each contestant.

use punctual_core::store::{Key, Position, Row};
use punctual_core::{Millis, Timestamp};

use super::contestants::{Contestant, Inserts};
use super::meter::Meter;
use super::plan::Limit;
use super::rows::{Rows, absent_key, key_of};

/// How many rows are made up at once, between the windows that are measured.
const CHUNK: usize = 20_000;
const SLICE: usize = 4_096;
const LOOKUPS: usize = 100;
const LIVES: usize = 1_000;

/// Inserts pending rows, so many a commit.
pub fn inserts(store: &mut dyn Inserts, rows: &mut Rows, batch: usize, limit: Limit) -> Meter {
    let mut meter = Meter::default();
    while meter.count < limit.count && meter.wall < limit.time {
        // Small batches take long: what is not inserted in time need not be made up.
        let chunk = CHUNK.min(batch * 1_000).min(limit.count - meter.count);
        let batches: Vec<Vec<Row>> =
            (0..chunk.div_ceil(batch)).map(|number| rows.pending(batch.min(chunk - number * batch))).collect();
        meter.window(chunk, |meter| {
            for batch in batches {
                meter.call(|| store.insert(batch));
            }
        });
    }
    meter
}

/// Reads the pending rows from the first on, as if their time had come.
pub fn due(store: &mut dyn Contestant, limit: Limit) -> Meter {
    let mut meter = Meter::default();
    let mut from = Position::START;
    while meter.count < limit.count && meter.wall < limit.time {
        let mut slice = Vec::new();
        meter.window(0, |meter| slice = meter.call(|| store.due(from, Timestamp::NEVER, SLICE)));
        let Some(last) = slice.last() else { break };
        assert!(from <= slice[0].position() && slice.is_sorted_by_key(Row::position), "they come in time order");
        from = last.position().next();
        meter.count += slice.len();
    }
    meter
}

/// Gets rows by keys drawn from the first `known` numbers.
pub fn gets(store: &mut dyn Contestant, rows: &mut Rows, known: u64, present: bool, limit: Limit) -> Meter {
    let key = if present { key_of } else { absent_key };
    lookups(
        limit,
        |_| (0..LOOKUPS).map(|_| key(rows.below(known))).collect(),
        |keys| {
            let found = store.get(keys).iter().flatten().count();
            assert_eq!(found, if present { keys.len() } else { 0 }, "rows are there or not");
        },
    )
}

/// Removes rows from all over the first `known` numbers, each once.
pub fn removals(store: &mut dyn Contestant, known: u64, limit: Limit) -> Meter {
    // A step that shares no factor with `known` comes to each number once, in no order that helps.
    let step = (known * 618 / 1_000..).find(|step| gcd(*step, known) == 1).expect("there are primes");
    let number = |index: usize| (index as u64 * step) % known;
    let limit = Limit { count: limit.count.min(known as usize / 2), ..limit };
    lookups(
        limit,
        |from| (from..from + LOOKUPS).map(|index| key_of(number(index))).collect(),
        |keys| {
            assert_eq!(store.remove_keys(keys), keys.len(), "each was there");
        },
    )
}

fn lookups(limit: Limit, mut draw: impl FnMut(usize) -> Vec<Key>, mut look: impl FnMut(&[Key])) -> Meter {
    let mut meter = Meter::default();
    while meter.count < limit.count && meter.wall < limit.time {
        let keys: Vec<Vec<Key>> = (0..10).map(|number| draw(meter.count + number * LOOKUPS)).collect();
        meter.window(10 * LOOKUPS, |meter| keys.iter().for_each(|keys| meter.call(|| look(keys))));
    }
    meter
}

/// Whole lives: rows that are due at once are inserted, read, leased and removed, a commit for each but the read.
pub fn lives(store: &mut dyn Contestant, rows: &mut Rows, limit: Limit) -> Meter {
    const LEASE: Millis = Millis::from_secs(30);
    let mut meter = Meter::default();
    while meter.count < limit.count && meter.wall < limit.time {
        // Time goes on by a millisecond a batch, and with it the position from which is read.
        let batches: Vec<(Timestamp, Vec<Row>)> = (0..CHUNK / LIVES)
            .map(|_| {
                rows.now = rows.now.plus(Millis(1));
                (rows.now, rows.due_at(rows.now, LIVES))
            })
            .collect();
        let states: Vec<_> = batches.iter().map(|_| (0..LIVES).map(|_| rows.state()).collect::<Vec<_>>()).collect();
        meter.window(CHUNK / LIVES * LIVES, |meter| {
            for ((now, batch), states) in batches.into_iter().zip(states) {
                meter.call(|| store.insert(batch));
                let mut due = store.due(Position::start_of(now), now.plus(Millis(1)), SLICE);
                assert_eq!(due.len(), LIVES, "what was inserted is due");
                let leased_until = now.plus(LEASE);
                meter.call(|| store.update(&due, leased_until, states));
                due.iter_mut().for_each(|row| row.at = leased_until);
                meter.call(|| store.remove(&due));
            }
        });
    }
    meter
}

/// Inserts without end, telling the number of the last row of each commit.
pub fn insert_on(store: &mut dyn Inserts, rows: &mut Rows, tell: impl Fn(u64)) -> ! {
    loop {
        let batch = rows.pending(1_000);
        let last = rows.next - 1;
        store.insert(batch);
        tell(last);
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
