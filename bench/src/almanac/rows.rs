//! The rows that every contestant gets: 200 random bytes as body, 40 as state, and a key whose id rises, as
//! the ids do that a node makes up. A peer that sorts by key is at its best with such.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use punctual_core::store::{Key, Row, Table};
use punctual_core::{Millis, Timestamp};

pub const TOPIC: &str = "orders";
const STATE_BYTES: usize = 40;
const BODY_BYTES: usize = 200;
const ID_BYTES: usize = 16;
/// What a row says, whatever a store adds to it: key, time, number, state and body.
pub const ROW_BYTES: u64 = (TOPIC.len() + ID_BYTES + 8 + 8 + STATE_BYTES + BODY_BYTES) as u64;

const DAYS_30: u64 = 30 * 24 * 3_600_000;

pub struct Rows {
    random: fastrand::Rng,
    /// Bodies and states are cut out of this, which is cheaper than to draw each byte.
    noise: Vec<u8>,
    /// The number of the next row.
    pub next: u64,
    /// When the benchmark began: what is due now is due at this time.
    pub now: Timestamp,
}

impl Rows {
    /// Rows whose numbers begin here.
    pub fn starting_at(next: u64) -> Rows {
        let mut random = fastrand::Rng::with_seed(next ^ 7);
        let mut noise = vec![0; 1 << 20];
        random.fill(&mut noise);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64;
        Rows { random, noise, next, now: Timestamp::from_millis(now) }
    }

    /// Rows due at random times over 30 days, from a day on: none of them comes due while this runs.
    pub fn pending(&mut self, count: usize) -> Vec<Row> {
        let from = self.now.plus(Millis::from_hours(24));
        (0..count)
            .map(|_| {
                let at = from.plus(Millis(self.random.u64(..DAYS_30)));
                self.row(at)
            })
            .collect()
    }

    /// Rows due at one time.
    pub fn due_at(&mut self, at: Timestamp, count: usize) -> Vec<Row> {
        (0..count).map(|_| self.row(at)).collect()
    }

    /// A new state of the usual size.
    pub fn state(&mut self) -> Bytes {
        self.cut(STATE_BYTES)
    }

    /// A number below this.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.u64(..end)
    }

    fn row(&mut self, at: Timestamp) -> Row {
        let seq = self.next;
        self.next += 1;
        let (state, body) = (self.cut(STATE_BYTES), self.cut(BODY_BYTES));
        Row { table: Table::Live, key: key_of(seq), seq, at, group: None, state, body }
    }

    /// Each in memory of its own, as what comes from a socket is.
    fn cut(&mut self, length: usize) -> Bytes {
        let from = self.random.usize(..self.noise.len() - length);
        Bytes::copy_from_slice(&self.noise[from..from + length])
    }
}

/// The key of the row with this number.
pub fn key_of(number: u64) -> Key {
    key(number * 2)
}

/// A key that no row has, between those that rows have: no store can know by its order that it is absent.
pub fn absent_key(number: u64) -> Key {
    key(number * 2 + 1)
}

fn key(number: u64) -> Key {
    let mut id = [0; ID_BYTES];
    for (place, digit) in id.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (4 * place)) as usize & 15];
    }
    Key::new(TOPIC, std::str::from_utf8(&id).expect("digits are a text"), "")
}
