//! From a line to a command: which it is, and its arguments. Nothing is copied.
//!
//! `put` is read apart ([`put`]), since its body follows the line; all others are whole with their line ([`parse`]).

use std::time::Duration;

use memchr::memchr;

use crate::answer::Word;
use crate::kind::Kind;
use crate::number::{self, Reader};

/// A command that is whole with its line. Names are borrowed from the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Shows the job with this id.
    Peek(u64),
    /// Shows the foremost ready job of the used tube.
    PeekReady,
    /// Shows the delayed job of the used tube that is ready first.
    PeekDelayed,
    /// Shows the job of the used tube that is buried longest.
    PeekBuried,
    /// Waits for a job of the watched tubes.
    Reserve,
    /// The same, for as long as this; for ever if none.
    ReserveWithTimeout(Option<Duration>),
    /// Takes the job with this id.
    ReserveJob(u64),
    /// Removes the job with this id.
    Delete(u64),
    /// Gives a reserved job back.
    Release {
        /// The job.
        id: u64,
        /// Its priority from now on.
        pri: u32,
        /// For how long it is delayed.
        delay: Duration,
    },
    /// Sets a reserved job aside.
    Bury {
        /// The job.
        id: u64,
        /// Its priority from now on.
        pri: u32,
    },
    /// Brings back so many buried jobs of the used tube, or delayed ones if none is buried.
    Kick(u32),
    /// Brings back the job with this id.
    KickJob(u64),
    /// Begins the time to run of a reserved job anew.
    Touch(u64),
    /// Says how the server is.
    Stats,
    /// Says how a job is.
    StatsJob(u64),
    /// Says how a tube is.
    StatsTube(&'a str),
    /// Puts go into this tube from now on.
    Use(&'a str),
    /// Reserves look at this tube, too, from now on.
    Watch(&'a str),
    /// Reserves do not look at this tube any more.
    Ignore(&'a str),
    /// Names all tubes.
    ListTubes,
    /// Names the used tube.
    ListTubeUsed,
    /// Names the watched tubes.
    ListTubesWatched,
    /// Hands out nothing of a tube for a while.
    PauseTube {
        /// The tube.
        tube: &'a str,
        /// For how long.
        pause: Duration,
    },
    /// Ends the connection.
    Quit,
}

/// The line of a put: what its body will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutLine {
    /// The job's priority: smaller is sooner.
    pub pri: u32,
    /// For how long the job is delayed.
    pub delay: Duration,
    /// For how long it may be reserved, as the client said it: maybe 0.
    pub ttr: Duration,
    /// How long the body will be, without its end of a line.
    pub bytes: u32,
    /// Whether something follows the last number. It is wrong, but a job that is too big is noticed before it.
    pub goes_on: bool,
}

/// Why a line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The answer.
    pub word: Word,
    /// The kind that it is counted as nevertheless.
    pub counted: Option<Kind>,
}

const BAD_FORMAT: Wrong = Wrong { word: Word::BadFormat, counted: None };
const UNKNOWN: Wrong = Wrong { word: Word::UnknownCommand, counted: None };

impl Command<'_> {
    /// The kind of the command.
    pub fn kind(&self) -> Kind {
        match self {
            Command::Peek(_) => Kind::Peek,
            Command::PeekReady => Kind::PeekReady,
            Command::PeekDelayed => Kind::PeekDelayed,
            Command::PeekBuried => Kind::PeekBuried,
            Command::Reserve => Kind::Reserve,
            Command::ReserveWithTimeout(_) => Kind::ReserveWithTimeout,
            Command::ReserveJob(_) => Kind::ReserveJob,
            Command::Delete(_) => Kind::Delete,
            Command::Release { .. } => Kind::Release,
            Command::Bury { .. } => Kind::Bury,
            Command::Kick(_) => Kind::Kick,
            Command::KickJob(_) => Kind::KickJob,
            Command::Touch(_) => Kind::Touch,
            Command::Stats => Kind::Stats,
            Command::StatsJob(_) => Kind::StatsJob,
            Command::StatsTube(_) => Kind::StatsTube,
            Command::Use(_) => Kind::Use,
            Command::Watch(_) => Kind::Watch,
            Command::Ignore(_) => Kind::Ignore,
            Command::ListTubes => Kind::ListTubes,
            Command::ListTubeUsed => Kind::ListTubeUsed,
            Command::ListTubesWatched => Kind::ListTubesWatched,
            Command::PauseTube { .. } => Kind::PauseTube,
            Command::Quit => Kind::Quit,
        }
    }
}

/// The line of a put, or `None` if it is another command's.
pub fn put(line: &[u8]) -> Option<Result<PutLine, Wrong>> {
    let arguments = line.strip_prefix(b"put ")?;
    if has_nul(arguments) {
        return Some(Err(BAD_FORMAT));
    }
    let mut reader = Reader::new(arguments);
    let mut read = || {
        let (pri, delay, ttr) = (reader.u32()?, reader.seconds()?, reader.seconds()?);
        Some(PutLine { pri, delay, ttr, bytes: reader.u32()?, goes_on: !reader.is_at_end() })
    };
    Some(read().ok_or(BAD_FORMAT))
}

/// The command of a line that is not a put's.
pub fn parse(line: &[u8]) -> Result<Command<'_>, Wrong> {
    // Before anything else, so that what cannot be a command is a bad one.
    if has_nul(line) {
        return Err(BAD_FORMAT);
    }
    match Kind::of(line) {
        Some((Kind::PauseTube, rest)) => pause_tube(rest),
        Some((kind, rest)) => arguments(kind, rest).ok_or(BAD_FORMAT),
        None if is_http(line) => Ok(Command::Quit),
        None => Err(UNKNOWN),
    }
}

/// Whether a line is of a request of HTTP. A web page can let a browser send one here whose body has commands: whoever
/// sends such a line is hung up on before they come. Its first line and its host may be too long to be looked at, but
/// these are not.
fn is_http(line: &[u8]) -> bool {
    const HEADERS: [&str; 4] = ["host:", "connection:", "content-length:", "content-type:"];
    let begins =
        |header: &&str| line.get(..header.len()).is_some_and(|start| start.eq_ignore_ascii_case(header.as_bytes()));
    line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0") || HEADERS.iter().any(begins)
}

fn arguments(kind: Kind, rest: &[u8]) -> Option<Command<'_>> {
    Some(match kind {
        Kind::Peek => Command::Peek(id(rest)?),
        Kind::PeekReady => alone(Command::PeekReady, rest)?,
        Kind::PeekDelayed => alone(Command::PeekDelayed, rest)?,
        Kind::PeekBuried => alone(Command::PeekBuried, rest)?,
        Kind::Reserve => alone(Command::Reserve, rest)?,
        Kind::ReserveWithTimeout => Command::ReserveWithTimeout(patience(rest)?),
        Kind::ReserveJob => Command::ReserveJob(id(rest)?),
        Kind::Delete => Command::Delete(id(rest)?),
        Kind::Release => release(rest)?,
        Kind::Bury => bury(rest)?,
        Kind::Kick => Command::Kick(number::count(rest)?),
        Kind::KickJob => Command::KickJob(id(rest)?),
        Kind::Touch => Command::Touch(id(rest)?),
        Kind::Stats => alone(Command::Stats, rest)?,
        Kind::StatsJob => Command::StatsJob(id(rest)?),
        Kind::StatsTube => Command::StatsTube(number::tube(rest)?),
        Kind::Use => Command::Use(number::tube(rest)?),
        Kind::Watch => Command::Watch(number::tube(rest)?),
        Kind::Ignore => Command::Ignore(number::tube(rest)?),
        Kind::ListTubes => alone(Command::ListTubes, rest)?,
        Kind::ListTubeUsed => alone(Command::ListTubeUsed, rest)?,
        Kind::ListTubesWatched => alone(Command::ListTubesWatched, rest)?,
        // Whatever follows the word.
        Kind::Quit => Command::Quit,
        // Both are read elsewhere.
        Kind::Put | Kind::PauseTube => return None,
    })
}

/// A command without arguments: nothing may follow its word, not even a blank.
fn alone<'a>(command: Command<'a>, rest: &[u8]) -> Option<Command<'a>> {
    Some(command).filter(|_| rest.is_empty())
}

fn id(rest: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(rest);
    reader.u64().filter(|_| reader.is_at_end())
}

fn release(rest: &[u8]) -> Option<Command<'static>> {
    let mut reader = Reader::new(rest);
    let command = Command::Release { id: reader.u64()?, pri: reader.u32()?, delay: reader.seconds()? };
    Some(command).filter(|_| reader.is_at_end())
}

fn bury(rest: &[u8]) -> Option<Command<'static>> {
    let mut reader = Reader::new(rest);
    let command = Command::Bury { id: reader.u64()?, pri: reader.u32()? };
    Some(command).filter(|_| reader.is_at_end())
}

/// How long a reserve waits. Less than nothing is for ever, which is what the inner `None` says.
fn patience(rest: &[u8]) -> Option<Option<Duration>> {
    let seconds = number::timeout(rest)?;
    Some(u64::try_from(seconds).ok().map(Duration::from_secs))
}

/// The one command whose name is cut out first and judged last: by then it was counted.
fn pause_tube(rest: &[u8]) -> Result<Command<'_>, Wrong> {
    let mut reader = Reader::new(rest);
    let run = reader.run().ok_or(BAD_FORMAT)?;
    let pause = reader.seconds().filter(|_| reader.is_at_end()).ok_or(BAD_FORMAT)?;
    let tube = number::tube(run).ok_or(Wrong { counted: Some(Kind::PauseTube), ..BAD_FORMAT })?;
    Ok(Command::PauseTube { tube, pause })
}

fn has_nul(line: &[u8]) -> bool {
    memchr(0, line).is_some()
}
