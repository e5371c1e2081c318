//! From bytes to commands: what a connection sent, taken apart in order.
//!
//! ```text
//!            ┌───────────── a window without an end ──► skipping ── an end: BAD_FORMAT ──┐
//!            │                                                                           │
//!          line ◄────────────────────────────────────────────────────────────────────────┤
//!            │  put ──► body ── all of it: a put, or EXPECTED_CRLF ──────────────────────┤
//!            │  put of too much ──► swallowing ── all of it: JOB_TOO_BIG ────────────────┘
//!            └─ quit ──► over
//! ```
//! **Invariant**: the buffer grows with what came, by at most as much again, and never with what was announced.

use std::ops::Range;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::answer::Word;
use crate::command::{self, Command, PutLine};
use crate::counters::Tally;
use crate::kind::Kind;
use crate::line::{self, Found};

/// How much room there is for the first read, and for all if they do not fill it.
const FIRST_ROOM: usize = 16 * 1024;

/// How much room there is for a read at most, unless a body that is under way has already grown beyond.
const MOST_ROOM: usize = 64 * 1024;

/// With less room than this a read is not worth its call.
const LEAST_ROOM: usize = 2 * 1024;

/// What comes next in the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A command without a body. A [`Command::Quit`] is the last thing that ever comes.
    Command(Command<'a>),
    /// A put with its body.
    Put(Put),
    /// Something that is wrong: this is its answer.
    Answer(Word),
    /// Nothing before more bytes were read.
    More,
}

/// A job to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its priority: smaller is sooner.
    pub pri: u32,
    /// For how long it is delayed.
    pub delay: Duration,
    /// For how long it may be reserved: at least a second.
    pub ttr: Duration,
    /// The body, a slice of the buffer that was read into.
    pub body: Bytes,
}

/// The input of one connection.
///
/// In turn: read into [`Input::buffer`], then take what came by [`Input::next`] until it says [`Next::More`]. Commands
/// may also be left in it while further reads are made; how many bytes those are says [`Input::unread`].
#[derive(Debug)]
pub struct Input {
    buffer: BytesMut,
    /// How much of the buffer was taken already. It is cut off only before the next read, so that commands can
    /// borrow from it.
    taken: usize,
    expected: Expected,
    max_job_size: u32,
    /// How much room is made for a read; 0 before the first.
    room: usize,
    has_produced: bool,
    tally: Tally,
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    Line,
    /// The line is too long: its end is looked for.
    Skipping,
    /// The body of this put is not whole yet.
    Body(PutLine),
    /// So many bytes of a body are still to be thrown away.
    Swallowing(u64),
    Over,
}

/// [`Next`] before a line is parsed: without a borrow, so that steps can follow one another.
enum Step {
    Line(Range<usize>),
    Put(Put),
    Answer(Word),
    More,
    Over,
}

impl Input {
    /// Nothing came yet. Bodies may have this many bytes.
    pub fn new(max_job_size: u32) -> Input {
        Input {
            buffer: BytesMut::new(),
            taken: 0,
            expected: Expected::Line,
            max_job_size,
            room: 0,
            has_produced: false,
            tally: Tally::default(),
        }
    }

    /// Where to read into, behind what is there: with room for a read worth its call.
    ///
    /// A put's body is a slice of this memory, which is not used again as long as the body lives.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let is_full = self.buffer.len() == self.buffer.capacity();
        self.room = match self.room {
            0 => FIRST_ROOM,
            room if is_full => MOST_ROOM.min(2 * room),
            room => room,
        };
        self.cut();
        let missing = self.missing();
        // The end of a body needs no more room than it takes, however little that is: the body is not moved for it.
        let enough = if missing == 0 { LEAST_ROOM } else { LEAST_ROOM.min(missing) };
        if self.buffer.capacity() - self.buffer.len() < enough {
            self.make_room(missing);
        }
        &mut self.buffer
    }

    /// Takes what comes next.
    #[expect(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    pub fn next(&mut self) -> Next<'_> {
        let line = match self.step() {
            Step::Line(line) => line,
            Step::Put(put) => return Next::Put(put),
            Step::Answer(word) => return Next::Answer(word),
            Step::More => return Next::More,
            Step::Over => return Next::Command(Command::Quit),
        };
        match command::parse(&self.buffer[line]) {
            Ok(command) => {
                self.tally.command(command.kind());
                if command == Command::Quit {
                    self.expected = Expected::Over;
                }
                Next::Command(command)
            }
            Err(wrong) => {
                wrong.counted.into_iter().for_each(|kind| self.tally.command(kind));
                Next::Answer(wrong.word)
            }
        }
    }

    /// Takes the next command if it is there as a whole and reserves a job: with its timeout.
    pub fn next_reserve(&mut self) -> Option<Option<Duration>> {
        let (Expected::Line, Found::Line(length)) = (self.expected, line::find(&self.buffer[self.taken..])) else {
            return None;
        };
        let line = &self.buffer[self.taken..self.taken + length];
        let command = line.starts_with(b"reserve").then(|| command::parse(line))?.ok()?;
        let timeout = match command {
            Command::Reserve => None,
            Command::ReserveWithTimeout(timeout) => timeout,
            _ => return None,
        };
        self.tally.command(command.kind());
        self.taken += length + line::END;
        Some(timeout)
    }

    /// How many bytes were read and not taken yet.
    pub fn unread(&self) -> usize {
        self.buffer.len() - self.taken
    }

    /// Whether the line of a put was ever accepted, be its body there or not: from then on the connection counts
    /// as a producer.
    pub fn has_produced(&self) -> bool {
        self.has_produced
    }

    /// The commands that came since the tally was last drained. A put counts with its line.
    pub fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Gives the memory back, if nothing is unread: for connections that fell silent.
    pub fn let_go(&mut self) {
        if self.unread() == 0 {
            self.buffer = BytesMut::new();
            self.taken = 0;
            self.room = 0;
        }
    }

    fn step(&mut self) -> Step {
        match self.expected {
            Expected::Line | Expected::Skipping => self.line(),
            Expected::Body(put) => self.body(put),
            Expected::Swallowing(left) => self.swallow(left),
            Expected::Over => Step::Over,
        }
    }

    fn line(&mut self) -> Step {
        loop {
            match line::find(&self.buffer[self.taken..]) {
                Found::Line(length) => {
                    let line = self.taken..self.taken + length;
                    self.taken = line.end + line::END;
                    return self.read(line);
                }
                Found::TooLong => {
                    self.taken += line::WINDOW;
                    self.expected = Expected::Skipping;
                }
                Found::More => return Step::More,
            }
        }
    }

    fn read(&mut self, line: Range<usize>) -> Step {
        if let Expected::Skipping = self.expected {
            self.expected = Expected::Line;
            return Step::Answer(Word::BadFormat);
        }
        match command::put(&self.buffer[line.clone()]) {
            None => Step::Line(line),
            Some(Ok(put)) => self.announced(put),
            Some(Err(wrong)) => Step::Answer(wrong.word),
        }
    }

    /// After the line of a put. If the line is bad its body is not known to be one: it is read as commands.
    fn announced(&mut self, put: PutLine) -> Step {
        self.tally.command(Kind::Put);
        if put.bytes > self.max_job_size {
            return self.swallow(u64::from(put.bytes) + line::END as u64);
        }
        if put.goes_on {
            return Step::Answer(Word::BadFormat);
        }
        self.has_produced = true;
        self.body(put)
    }

    fn body(&mut self, put: PutLine) -> Step {
        let length = put.bytes as usize;
        let needed = length + line::END;
        if self.unread() < needed {
            self.expected = Expected::Body(put);
            return Step::More;
        }
        self.expected = Expected::Line;
        self.cut();
        let mut body = self.buffer.split_to(needed).freeze();
        if needed > MOST_ROOM {
            // Such a buffer goes with its body, or the connection would stay as large as its largest job.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        if !body.ends_with(b"\r\n") {
            return Step::Answer(Word::ExpectedCrlf);
        }
        body.truncate(length);
        let ttr = put.ttr.max(Duration::from_secs(1));
        Step::Put(Put { pri: put.pri, delay: put.delay, ttr, body })
    }

    fn swallow(&mut self, left: u64) -> Step {
        // At most what is there, so it is of its size.
        let swallowed = left.min(self.unread() as u64);
        self.taken += swallowed as usize;
        if swallowed < left {
            self.expected = Expected::Swallowing(left - swallowed);
            return Step::More;
        }
        self.expected = Expected::Line;
        Step::Answer(Word::JobTooBig)
    }

    fn cut(&mut self) {
        self.buffer.advance(self.taken);
        self.taken = 0;
    }

    /// How much of the body that is under way is not there yet.
    fn missing(&self) -> usize {
        match self.expected {
            Expected::Body(put) => (put.bytes as usize + line::END).saturating_sub(self.unread()),
            _ => 0,
        }
    }

    /// Makes room for a read. While a body is under way there is as much again as came, until the rest of it fits:
    /// so a large body is copied about once, and a body that never comes costs nothing.
    fn make_room(&mut self, missing: usize) {
        let unread = self.buffer.len();
        let room = missing.clamp(self.room, unread.max(self.room));
        if !self.buffer.try_reclaim(room) {
            let mut roomier = BytesMut::with_capacity(unread + room);
            roomier.extend_from_slice(&self.buffer);
            self.buffer = roomier;
        }
    }
}
