//! One connection that speaks the beanstalk protocol. Commands are gathered and sent together when an answer is waited
//! for; answers come in the order of the commands.

use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::ops::Range;

use super::answer::{Answer, parse, unexpected};
use crate::arena::task::{BODY_BYTES, Bodies, FAR_MS, due_of, now_us};
use crate::arena::wire::Wire;

pub const MICROS: u64 = 1_000_000;

/// Seconds until a job that was reserved and not deleted is ready again: longer than any line lasts.
const TTR: u64 = 600;

pub struct Connection {
    wire: Wire,
    bodies: Bodies,
    /// How much of what has come is read.
    read: usize,
    /// Commands without an answer, and how many of them were perhaps not sent yet.
    pub in_flight: usize,
    unsent: usize,
    /// While more than this are with the server, further ones wait for company: so a pipeline writes seldom even where
    /// the answers drip.
    pub enough: usize,
}

impl Connection {
    pub async fn open(port: u16) -> io::Result<Connection> {
        let wire = Wire::connect(port).await?;
        Ok(Connection { wire, bodies: Bodies::new(), read: 0, in_flight: 0, unsent: 0, enough: 0 })
    }

    /// Its body opens with the due time in microseconds, counted from now; gives that time.
    pub fn put(&mut self, delay_seconds: u64) -> u64 {
        let due_us = now_us() + delay_seconds * MICROS;
        let body = self.bodies.next(due_us);
        self.command(format_args!("put 0 {delay_seconds} {TTR} {BODY_BYTES}"));
        self.wire.out.extend_from_slice(&body);
        self.wire.out.extend_from_slice(b"\r\n");
        due_us
    }

    /// A delay of 1 to 30 days, so that nothing of it falls due while it is measured.
    pub fn put_far(&mut self) {
        self.put(fastrand::u64(FAR_MS) / 1_000);
    }

    pub fn reserve(&mut self) {
        self.command(format_args!("reserve"));
    }

    pub fn delete(&mut self, job: u64) {
        self.command(format_args!("delete {job}"));
    }

    fn command(&mut self, line: fmt::Arguments) {
        write!(self.wire.out, "{line}\r\n").expect("memory takes it");
        self.in_flight += 1;
        self.unsent += 1;
    }

    /// The next answer. What it points to stays until the next one is asked for.
    pub async fn next(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.arrived()? {
                return Ok(answer);
            }
            self.wire.forget(mem::take(&mut self.read));
            if self.in_flight.saturating_sub(self.unsent) > self.enough {
                self.wire.read_more().await?;
            } else {
                self.wire.exchange().await?;
                self.note_sent();
            }
        }
    }

    /// The next answer, if all of it has come.
    pub fn arrived(&mut self) -> io::Result<Option<Answer>> {
        let Some((answer, size)) = parse(&self.wire.answer[self.read..])? else { return Ok(None) };
        let start = self.read;
        self.read += size;
        self.in_flight -= 1;
        Ok(Some(match answer {
            Answer::Reserved(job, place) => Answer::Reserved(job, start + place.start..start + place.end),
            Answer::Ok(place) => Answer::Ok(start + place.start..start + place.end),
            answer => answer,
        }))
    }

    /// The due time that a reserved job's body opens with.
    pub fn due_us(&self, body: Range<usize>) -> io::Result<u64> {
        due_of(&self.wire.answer[body])
    }

    /// Sends what was written and receives what has come, without waiting for anything.
    pub fn exchange_now(&mut self) -> io::Result<()> {
        self.wire.forget(mem::take(&mut self.read));
        self.wire.exchange_now()?;
        self.note_sent();
        Ok(())
    }

    fn note_sent(&mut self) {
        if self.wire.out.is_empty() {
            self.unsent = 0;
        }
    }

    /// What the server says of the tube that all jobs are in.
    pub async fn census(&mut self) -> io::Result<Census> {
        self.command(format_args!("stats-tube default"));
        let Answer::Ok(place) = self.next().await? else { return Err(unexpected(b"not of stats-tube")) };
        let text = String::from_utf8_lossy(&self.wire.answer[place]);
        let jobs = |state: &str| -> io::Result<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix("current-jobs-")?.strip_prefix(state));
            let number = line.and_then(|line| line.strip_prefix(": ")?.parse().ok());
            number.ok_or_else(|| unexpected(text.as_bytes()))
        };
        Ok(Census {
            ready: jobs("ready")?,
            reserved: jobs("reserved")?,
            delayed: jobs("delayed")?,
            buried: jobs("buried")?,
        })
    }

    /// Fails if the server does not hold what it should: then what was measured was an error.
    pub async fn holds(&mut self, expected: &Census) -> io::Result<()> {
        let census = self.census().await?;
        if census == *expected {
            return Ok(());
        }
        Err(io::Error::other(format!("the server should hold {expected:?} and says {census:?}")))
    }
}

/// How many jobs there are in each state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub ready: u64,
    pub reserved: u64,
    pub delayed: u64,
    pub buried: u64,
}
