//! What a shard notes for itself: of how many shards it is one, which numbers it has given out, and
//! how far minutes are counted.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::store::{Key, Position};
use crate::time::Timestamp;

/// How many numbers are set aside at once, so that not every step has to note how many it used.
const BLOCK: u64 = 1 << 16;

/// Gives out numbers, each once in the life of the shard.
#[derive(Debug)]
pub(super) struct Numbers {
    next: u64,
    /// Numbers below this are set aside in the store; after a restart counting goes on from here.
    set_aside: u64,
}

impl Numbers {
    pub fn from(next: u64) -> Numbers {
        Numbers { next, set_aside: next }
    }

    pub fn take(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// The next number that will be given out.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Sets more numbers aside if some were used that are not.
    pub fn set_aside(&mut self) -> bool {
        let short = self.next > self.set_aside;
        if short {
            self.set_aside = self.next + BLOCK;
        }
        short
    }
}

/// The note, as it is stored among the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    shards: u16,
    numbers: u64,
    minutes_at: Timestamp,
    minutes_seq: u64,
}

impl Meta {
    pub fn new(shards: u16, numbers: &Numbers, minutes: Position) -> Meta {
        Meta { shards, numbers: numbers.set_aside, minutes_at: minutes.at, minutes_seq: minutes.seq }
    }

    /// The row it is stored under.
    pub fn key() -> Key {
        Key::new("", "", "")
    }

    /// Into how many shards the tasks are divided.
    pub fn shards(self) -> u16 {
        self.shards
    }

    /// The number to go on counting from.
    pub fn numbers(self) -> u64 {
        self.numbers
    }

    /// How far minutes are counted.
    pub fn minutes(self) -> Position {
        Position { at: self.minutes_at, seq: self.minutes_seq }
    }

    pub fn encode(self) -> Bytes {
        super::open::encode_setting(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_set_aside_in_blocks_and_never_given_out_twice() {
        let mut numbers = Numbers::from(1);
        assert_eq!((numbers.take(), numbers.take()), (1, 2));
        assert!(numbers.set_aside());
        assert!(!numbers.set_aside());
        let after_restart = Meta::new(1, &numbers, Position::START).numbers();
        for _ in 0..BLOCK {
            assert!(numbers.take() < after_restart);
        }
        assert!(!numbers.set_aside());
        numbers.take();
        assert!(numbers.set_aside());
    }
}
