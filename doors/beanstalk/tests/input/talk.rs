//! A connection's side of the input: reads come in, what is taken is written down as text.

use std::collections::BTreeMap;

use punctual_beanstalk::command::Command;
use punctual_beanstalk::input::{Input, Next};
use punctual_beanstalk::kind::Kind;

/// How large a job may be where nothing else is said.
pub const MAX_JOB: u32 = 100;

pub struct Talk {
    pub input: Input,
    pub said: Vec<String>,
}

impl Talk {
    pub fn new(max_job: u32) -> Talk {
        Talk { input: Input::new(max_job), said: Vec::new() }
    }

    /// One read of at most these bytes: as a socket, it fills no more than the room there is. Says how many.
    pub fn read(&mut self, bytes: &[u8]) -> usize {
        let buffer = self.input.buffer();
        let room = buffer.capacity() - buffer.len();
        assert!(room > 0, "a read needs room, or it looks like the end");
        let read = room.min(bytes.len());
        buffer.extend_from_slice(&bytes[..read]);
        read
    }

    /// Takes what is there, but at most so many; false when the connection is over.
    pub fn take(&mut self, at_most: usize) -> bool {
        for _ in 0..at_most {
            match self.input.next() {
                Next::More => return true,
                Next::Command(Command::Quit) => {
                    self.said.push("quit".to_owned());
                    return false;
                }
                next => self.said.push(text(&next)),
            }
        }
        true
    }

    /// Reads all of the bytes, however many reads that takes, and takes all that comes of them.
    pub fn hear(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let read = self.read(bytes);
            bytes = &bytes[read..];
            if !self.take(usize::MAX) {
                return false;
            }
        }
        true
    }

    /// The commands that were counted, by name.
    pub fn counted(&mut self) -> BTreeMap<String, u64> {
        let tally = self.input.tally();
        let kinds = Kind::SHOWN.into_iter().chain(Kind::HIDDEN).chain([Kind::Quit]);
        let counts = kinds.map(|kind| (kind.name().to_owned(), tally.commands(kind)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// What comes of these bytes.
pub fn said(bytes: impl AsRef<[u8]>) -> Vec<String> {
    let mut talk = Talk::new(MAX_JOB);
    talk.hear(bytes.as_ref());
    talk.said
}

/// What comes of this line alone.
pub fn line(text: &str) -> String {
    let said = said(format!("{text}\r\n"));
    assert_eq!(said.len(), 1, "{text:?}: {said:?}");
    said[0].clone()
}

/// What was counted for these bytes.
pub fn counted(bytes: impl AsRef<[u8]>) -> Vec<(String, u64)> {
    let mut talk = Talk::new(MAX_JOB);
    talk.hear(bytes.as_ref());
    talk.counted().into_iter().collect()
}

fn text(next: &Next) -> String {
    match next {
        Next::Command(command) => command_text(command),
        Next::Put(put) => {
            let (delay, ttr, body) = (put.delay.as_secs(), put.ttr.as_secs(), put.body.escape_ascii());
            format!("put {} {delay} {ttr} '{body}'", put.pri)
        }
        Next::Answer(word) => word.name().to_owned(),
        Next::More => "more".to_owned(),
    }
}

fn command_text(command: &Command) -> String {
    let name = command.kind().name();
    match command {
        Command::Peek(id)
        | Command::ReserveJob(id)
        | Command::Delete(id)
        | Command::KickJob(id)
        | Command::Touch(id)
        | Command::StatsJob(id) => format!("{name} {id}"),
        Command::ReserveWithTimeout(Some(timeout)) => format!("{name} {}", timeout.as_secs()),
        Command::ReserveWithTimeout(None) => format!("{name} for ever"),
        Command::Release { id, pri, delay } => format!("{name} {id} {pri} {}", delay.as_secs()),
        Command::Bury { id, pri } => format!("{name} {id} {pri}"),
        Command::Kick(count) => format!("{name} {count}"),
        Command::StatsTube(tube) | Command::Use(tube) | Command::Watch(tube) | Command::Ignore(tube) => {
            format!("{name} {tube}")
        }
        Command::PauseTube { tube, pause } => format!("{name} {tube} {}", pause.as_secs()),
        Command::PeekReady
        | Command::PeekDelayed
        | Command::PeekBuried
        | Command::Reserve
        | Command::Stats
        | Command::ListTubes
        | Command::ListTubeUsed
        | Command::ListTubesWatched
        | Command::Quit => name.to_owned(),
    }
}
