//! The documents that `stats`, `stats-job`, `stats-tube` and the lists answer with, byte for byte as beanstalkd
//! 1.12 writes them. Where the values come from is not known here.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use crate::counters::Connections;
use crate::kind::Kind;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It can be reserved.
    Ready,
    /// Somebody works on it.
    Reserved,
    /// It is ready later.
    Delayed,
    /// It was set aside.
    Buried,
}

impl JobState {
    /// The state's word.
    pub fn name(self) -> &'static str {
        match self {
            JobState::Ready => "ready",
            JobState::Reserved => "reserved",
            JobState::Delayed => "delayed",
            JobState::Buried => "buried",
        }
    }
}

/// What `stats-job` says. Durations are shown as whole seconds, cut off.
#[derive(Clone, Copy, Debug)]
pub struct JobStats<'a> {
    /// The job.
    pub id: u64,
    /// Its tube.
    pub tube: &'a str,
    /// Its state.
    pub state: JobState,
    /// Its priority.
    pub pri: u32,
    /// How long ago it was put.
    pub age: Duration,
    /// The delay that it was last given, by put or release.
    pub delay: Duration,
    /// For how long it may be reserved.
    pub ttr: Duration,
    /// How long it is reserved or delayed yet; nothing in other states.
    pub time_left: Duration,
    /// How often it was reserved.
    pub reserves: u32,
    /// How often its time to run was over.
    pub timeouts: u32,
    /// How often it was released.
    pub releases: u32,
    /// How often it was buried.
    pub buries: u32,
    /// How often it was kicked.
    pub kicks: u32,
}

impl JobStats<'_> {
    /// The document.
    pub fn document(&self) -> Bytes {
        let mut document = Document::new(256 + self.tube.len());
        document.number("id", self.id);
        document.text("tube", self.tube);
        document.text("state", self.state.name());
        document.number("pri", self.pri);
        document.number("age", self.age.as_secs());
        document.number("delay", self.delay.as_secs());
        document.number("ttr", self.ttr.as_secs());
        document.number("time-left", self.time_left.as_secs());
        // The number of the journal's file that it is in, which there is none of.
        document.number("file", 0u32);
        document.number("reserves", self.reserves);
        document.number("timeouts", self.timeouts);
        document.number("releases", self.releases);
        document.number("buries", self.buries);
        document.number("kicks", self.kicks);
        document.end()
    }
}

/// How many jobs there are in each state.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobCounts {
    /// Ready ones with a priority below 1024.
    pub urgent: u64,
    /// Ready ones.
    pub ready: u64,
    /// Reserved ones.
    pub reserved: u64,
    /// Delayed ones.
    pub delayed: u64,
    /// Buried ones.
    pub buried: u64,
}

/// What `stats-tube` says.
#[derive(Clone, Copy, Debug)]
pub struct TubeStats<'a> {
    /// The tube.
    pub name: &'a str,
    /// What is in it.
    pub jobs: JobCounts,
    /// How many jobs were ever put into it.
    pub total_jobs: u64,
    /// How many connections use it.
    pub using: u64,
    /// How many connections watch it.
    pub watching: u64,
    /// How many of those wait for a job.
    pub waiting: u64,
    /// How many of its jobs were deleted.
    pub deletes: u64,
    /// How often it was paused.
    pub pauses: u64,
    /// For how long it was paused; nothing when that is over.
    pub pause: Duration,
    /// How much of that is left.
    pub pause_left: Duration,
}

impl TubeStats<'_> {
    /// The document.
    pub fn document(&self) -> Bytes {
        let mut document = Document::new(448 + self.name.len());
        document.text("name", self.name);
        document.jobs(&self.jobs);
        document.number("total-jobs", self.total_jobs);
        document.number("current-using", self.using);
        document.number("current-watching", self.watching);
        document.number("current-waiting", self.waiting);
        document.number("cmd-delete", self.deletes);
        document.number("cmd-pause-tube", self.pauses);
        document.number("pause", self.pause.as_secs());
        document.number("pause-time-left", self.pause_left.as_secs());
        document.end()
    }
}

/// What `stats` says.
#[derive(Clone, Copy, Debug)]
pub struct ServerStats<'a> {
    /// What is there.
    pub jobs: JobCounts,
    /// How many commands of each kind there were, by `kind as usize`.
    pub commands: &'a [u64; Kind::COUNT],
    /// How often the time to run of a job was over.
    pub timeouts: u64,
    /// How many jobs were ever put.
    pub total_jobs: u64,
    /// How large the body of a job may be.
    pub max_job_size: u32,
    /// How many tubes there are.
    pub tubes: u64,
    /// The connections.
    pub connections: Connections,
    /// The process.
    pub pid: u32,
    /// The version; the only text in quotes.
    pub version: &'a str,
    /// The processor's time in the program.
    pub user_time: Duration,
    /// The processor's time in the system.
    pub system_time: Duration,
    /// How long the server runs.
    pub uptime: Duration,
    /// Whether it takes no jobs any more.
    pub is_draining: bool,
    /// A number that is new at each start.
    pub id: u64,
    /// The name of the machine.
    pub hostname: &'a str,
    /// The version of the system.
    pub os: &'a str,
    /// The kind of the machine.
    pub platform: &'a str,
}

impl ServerStats<'_> {
    /// The document.
    pub fn document(&self) -> Bytes {
        let mut document = Document::new(1536);
        document.jobs(&self.jobs);
        for kind in Kind::SHOWN {
            document.command(kind, self.commands[kind as usize]);
        }
        document.number("job-timeouts", self.timeouts);
        document.number("total-jobs", self.total_jobs);
        document.number("max-job-size", self.max_job_size);
        document.number("current-tubes", self.tubes);
        document.number("current-connections", self.connections.current);
        document.number("current-producers", self.connections.producers);
        document.number("current-workers", self.connections.workers);
        document.number("current-waiting", self.connections.waiting);
        document.number("total-connections", self.connections.total);
        document.number("pid", self.pid);
        document.text("version", &format!("\"{}\"", self.version));
        document.time("rusage-utime", self.user_time);
        document.time("rusage-stime", self.system_time);
        document.number("uptime", self.uptime.as_secs());
        self.binlog(&mut document);
        document.text("draining", if self.is_draining { "true" } else { "false" });
        document.text("id", &format!("{:016x}", self.id));
        document.text("hostname", self.hostname);
        document.text("os", self.os);
        document.text("platform", self.platform);
        document.end()
    }

    /// What beanstalkd says of its journal when it keeps none: clients look for the lines, not for the values.
    fn binlog(&self, document: &mut Document) {
        document.number("binlog-oldest-index", 0u32);
        document.number("binlog-current-index", 0u32);
        document.number("binlog-records-migrated", 0u32);
        document.number("binlog-records-written", 0u32);
        document.number("binlog-max-size", 10_485_760u32);
    }
}

/// A list of tubes.
pub fn list<'a>(tubes: impl IntoIterator<Item = &'a str>) -> Bytes {
    let mut document = Document::new(256);
    for tube in tubes {
        document.0.put_slice(b"- ");
        document.0.put_slice(tube.as_bytes());
        document.0.put_u8(b'\n');
    }
    document.end()
}

struct Document(BytesMut);

impl Document {
    fn new(capacity: usize) -> Document {
        let mut text = BytesMut::with_capacity(capacity);
        text.put_slice(b"---\n");
        Document(text)
    }

    fn text(&mut self, key: &str, value: &str) {
        self.0.put_slice(key.as_bytes());
        self.0.put_slice(b": ");
        self.0.put_slice(value.as_bytes());
        self.0.put_u8(b'\n');
    }

    fn number(&mut self, key: &str, value: impl itoa::Integer) {
        self.text(key, itoa::Buffer::new().format(value));
    }

    fn command(&mut self, kind: Kind, count: u64) {
        self.0.put_slice(b"cmd-");
        self.number(kind.name(), count);
    }

    fn time(&mut self, key: &str, time: Duration) {
        self.text(key, &format!("{}.{:06}", time.as_secs(), time.subsec_micros()));
    }

    fn jobs(&mut self, jobs: &JobCounts) {
        self.number("current-jobs-urgent", jobs.urgent);
        self.number("current-jobs-ready", jobs.ready);
        self.number("current-jobs-reserved", jobs.reserved);
        self.number("current-jobs-delayed", jobs.delayed);
        self.number("current-jobs-buried", jobs.buried);
    }

    fn end(self) -> Bytes {
        self.0.freeze()
    }
}

#[cfg(test)]
mod tests;
