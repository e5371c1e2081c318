//! What a shard notes for itself: of how many shards it is one, which numbers it has given out, how far minutes are
//! counted, and which change of settings it adopted last.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::store::{Fence, Key, Position};
use crate::stored;
use crate::time::Timestamp;

/// How many numbers are set aside at once, so that not every step has to note how many it used.
const BLOCK: u64 = 1 << 16;

/// Where the numbers of settings begin: far from those of tasks, which people see and count.
const FIRST_SETTING: u64 = 1 << 62;

/// Gives out numbers, each once in the life of the shard. Rows have theirs without gaps, so that consecutive
/// tasks have consecutive ones; what else needs a number takes none of them.
#[derive(Debug)]
pub(super) struct Numbers {
    rows: Counter,
    tokens: Counter,
    settings: Counter,
}

#[derive(Debug)]
struct Counter {
    next: u64,
    /// Numbers below this are set aside in the store; after a restart counting goes on from here.
    set_aside: u64,
}

impl Numbers {
    /// Those of a new shard.
    pub fn new() -> Numbers {
        Numbers { rows: Counter::from(1), tokens: Counter::from(1), settings: Counter::from(FIRST_SETTING) }
    }

    /// For a task or a delivery.
    pub fn row(&mut self) -> u64 {
        self.rows.take()
    }

    /// For a lease, or the journey of a dead letter.
    pub fn token(&mut self) -> u64 {
        self.tokens.take()
    }

    /// Tokens go on from the fence under which they are given. All that were given under earlier ones are below it, also
    /// those of which a store that went back to an older state knows nothing any more: who has one of them must not be
    /// taken for who gets one now.
    pub fn give_tokens_under(&mut self, fence: Fence) {
        self.tokens = Counter::from(self.tokens.next.max(fence.0));
    }

    /// For the settings of a topic or a queue, which are rows, too.
    pub fn setting(&mut self) -> u64 {
        self.settings.take()
    }

    /// What the next task will get.
    pub fn next_row(&self) -> u64 {
        self.rows.next
    }

    /// Sets more numbers aside if some were used that are not.
    pub fn set_aside(&mut self) -> bool {
        let Numbers { rows, tokens, settings } = self;
        let short = [rows.set_aside(), tokens.set_aside(), settings.set_aside()];
        short.contains(&true)
    }
}

impl Counter {
    fn from(next: u64) -> Counter {
        Counter { next, set_aside: next }
    }

    fn take(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn set_aside(&mut self) -> bool {
        let short = self.next > self.set_aside;
        if short {
            self.set_aside = self.next + BLOCK;
        }
        short
    }
}

/// The note, as it is stored among the settings. As long as nothing was adopted it is written without that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    before: Meta2,
    adopted: u64,
}

/// Before there were three kinds of numbers it had one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Meta2 {
    before: Meta1,
    tokens: u64,
    settings: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Meta1 {
    shards: u16,
    rows: u64,
    minutes_at: Timestamp,
    minutes_seq: u64,
}

impl Meta {
    pub fn new(shards: u16, numbers: &Numbers, minutes: Position, adopted: u64) -> Meta {
        let rows = numbers.rows.set_aside;
        let first = Meta1 { shards, rows, minutes_at: minutes.at, minutes_seq: minutes.seq };
        let second = Meta2 { before: first, tokens: numbers.tokens.set_aside, settings: numbers.settings.set_aside };
        Meta { before: second, adopted }
    }

    /// The row it is stored under.
    pub fn key() -> Key {
        Key::new("", "", "")
    }

    /// Into how many shards the tasks are divided.
    pub fn shards(self) -> u16 {
        self.before.before.shards
    }

    /// Numbers to go on with.
    pub fn numbers(self) -> Numbers {
        Numbers {
            rows: Counter::from(self.before.before.rows),
            tokens: Counter::from(self.before.tokens),
            settings: Counter::from(self.before.settings),
        }
    }

    /// All numbers of rows and all tokens that were given are below these.
    pub fn bounds(self) -> (u64, u64) {
        (self.before.before.rows, self.before.tokens)
    }

    /// The same for one of so many shards, which goes on with other numbers.
    pub fn divided(self, shards: u16, rows: u64, tokens: u64) -> Meta {
        let first = Meta1 { shards, rows, ..self.before.before };
        Meta { before: Meta2 { before: first, tokens, ..self.before }, ..self }
    }

    /// How far minutes are counted.
    pub fn minutes(self) -> Position {
        let Meta1 { minutes_at: at, minutes_seq: seq, .. } = self.before.before;
        Position { at, seq }
    }

    /// The number of the latest change of settings that was adopted.
    pub fn adopted(self) -> u64 {
        self.adopted
    }

    pub fn encode(self) -> Bytes {
        if self.adopted == 0 { stored::lay(2, &self.before) } else { stored::lay(3, &self) }
    }

    pub fn decode(bytes: &[u8]) -> Meta {
        match stored::version(bytes) {
            // Leases and settings drew from the numbers of rows: nothing above those was given to anybody.
            (1, fields) => {
                let before: Meta1 = stored::read(fields);
                Meta { before: Meta2 { before, tokens: before.rows, settings: FIRST_SETTING }, adopted: 0 }
            }
            (2, fields) => Meta { before: stored::read(fields), adopted: 0 },
            (3, fields) => stored::read(fields),
            _ => stored::newer("this note"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_set_aside_in_blocks_and_never_given_out_twice() {
        for take in [Numbers::row, Numbers::token, Numbers::setting] {
            let mut numbers = Numbers::new();
            let first = take(&mut numbers);
            assert_eq!(take(&mut numbers), first + 1);
            assert!(numbers.set_aside());
            assert!(!numbers.set_aside());
            let mut after_restart = Meta::decode(&Meta::new(1, &numbers, Position::START, 0).encode()).numbers();
            let after_restart = take(&mut after_restart);
            for _ in 0..BLOCK {
                assert!(take(&mut numbers) < after_restart);
            }
            assert!(!numbers.set_aside());
            take(&mut numbers);
            assert!(numbers.set_aside());
        }
    }

    #[test]
    fn a_token_is_given_once_also_if_the_store_forgot_that_it_was() {
        let note = Meta::new(1, &Numbers::new(), Position::START, 0);
        let mut lost = note.numbers();
        lost.give_tokens_under(Fence(7_000));
        let mut after = note.numbers();
        after.give_tokens_under(Fence(9_000));
        assert_eq!((lost.token(), lost.token(), after.token()), (7_000, 7_001, 9_000));
        after.set_aside();
        let mut next = Meta::new(1, &after, Position::START, 0).numbers();
        next.give_tokens_under(Fence(9_001));
        assert!(next.token() > after.token(), "those that the store knows of count, too");
    }

    /// The bytes of a note, as they stand in stores that exist.
    #[test]
    fn notes_stay_readable() {
        let version_1 = [&[1, 4], &[130, 128, 4][..], &[233, 7], &[5]].concat();
        let meta = Meta::decode(&version_1);
        let minutes = Position { at: Timestamp::from_millis(1_001), seq: 5 };
        assert_eq!((meta.shards(), meta.minutes()), (4, minutes));
        let mut numbers = meta.numbers();
        let behind = (1 << 16) + 2;
        assert_eq!((numbers.row(), numbers.token(), numbers.setting()), (behind, behind, FIRST_SETTING));

        let settings = [128, 128, 128, 128, 128, 128, 128, 128, 64];
        let version_2 = [&[2, 4], &[130, 128, 4][..], &[233, 7], &[5], &[9], &settings].concat();
        let meta = Meta::decode(&version_2);
        assert_eq!(meta.encode(), version_2);
        let mut numbers = meta.numbers();
        assert_eq!((numbers.row(), numbers.token(), numbers.setting()), (behind, 9, FIRST_SETTING));
        assert_eq!(meta.adopted(), 0);

        let version_3 = [&[3], &version_2[1..], &[172, 2]].concat();
        let adopted = Meta::decode(&version_3);
        assert_eq!((adopted.adopted(), adopted.minutes()), (300, minutes));
        assert_eq!(adopted.encode(), version_3);
    }
}
