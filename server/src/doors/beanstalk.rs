//! The beanstalk door as it is configured, what it counts, and what it tells of the machine.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use punctual_beanstalk::answer::Word;
use punctual_beanstalk::counters::Counters;
use punctual_beanstalk::kind::Kind;
use punctual_beanstalk::{Door, Limits, Machine};
use punctual_socket::Listener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Doorway, Ends, Guard, Inside, Protocol};
use crate::config::Config;
use crate::failure::Failure;
use crate::metrics::{Meter, MetricsPage};

/// The version of beanstalkd whose protocol is spoken. Clients take it apart, so it says nothing else.
const PROTOCOL: &str = "1.12";

/// How many parts of a second the system counts processor time in.
const TICKS: u64 = 100;

pub fn doorway(config: &Config) -> Doorway {
    Doorway {
        name: "beanstalk",
        scheme: "beanstalk",
        setting: "beanstalk.listen",
        addresses: config.beanstalk.listen.iter().cloned().collect(),
        connections: config.beanstalk.connections.get(),
        guard: Guard::Nothing { is_open_to_all: config.beanstalk.open },
        ends: Ends::BeforeTheNode,
        open,
    }
}

fn open(inside: &Inside<'_>) -> Result<Box<dyn Protocol>, Failure> {
    let config = inside.config;
    let mut session = [0; 8];
    getrandom::fill(&mut session)
        .map_err(|error| Failure::Failed(format!("cannot get random numbers from the system: {error}")))?;
    let limits = Limits {
        connections: config.beanstalk.connections.get(),
        batch: config.beanstalk.batch.get(),
        max_job_size: u32::try_from(config.tasks.max_body.as_usize()).unwrap_or(u32::MAX),
        unread_time: config.beanstalk.unread_time.as_duration(),
        creates_tubes: config.tasks.create_on_use,
    };
    let session = u64::from_le_bytes(session);
    let door = Door::new(inside.handle.clone(), limits, machine(), &config.node.name, session)
        .map_err(|error| Failure::Failed(format!("the beanstalk door cannot monitor its connections: {error}")))?;
    Ok(Box::new(Arc::new(door)))
}

impl Protocol for Arc<Door> {
    fn serve(&self, listener: Listener, stop: watch::Receiver<bool>) -> JoinHandle<()> {
        punctual_beanstalk::serve(listener, Arc::clone(self), stop)
    }

    fn drain(&self) -> bool {
        Door::drain(self);
        true
    }

    fn meter(&self) -> Option<Meter> {
        let counters = Arc::clone(self.counters());
        Some(Box::new(move |page| write(&counters, page)))
    }
}

/// Writes what the door has counted.
fn write(counters: &Counters, page: &mut MetricsPage) {
    let connections = counters.connections();
    let states = [("open", connections.current), ("waiting", connections.waiting)];
    let connections = states.map(|(state, count)| ([state.to_owned()], count));
    let about = "Connections to the beanstalk door: all open ones, and those waiting for a job.";
    page.gauges("beanstalk_connections", about, None, ["state"], &connections.into());
    let counts = counters.commands();
    let kinds = Kind::SHOWN.into_iter().chain(Kind::HIDDEN);
    let commands = kinds.map(|kind| ([kind.name().to_owned()], counts[kind as usize])).collect();
    page.counters("beanstalk_commands", "Commands received by the beanstalk door.", ["command"], &commands);
    let errors = Word::ERRORS.map(|word| ([word.line().trim_end().to_owned()], counters.answers(word)));
    let about = "Error answers of the beanstalk door.";
    page.counters("beanstalk_errors", about, ["answer"], &errors.into());
}

fn machine() -> Machine {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    Machine {
        version: PROTOCOL,
        hostname: text(system.nodename()),
        os: text(system.version()),
        platform: text(system.machine()),
        times,
    }
}

/// How long the processor has worked for this process, in it and in the system.
fn times() -> (Duration, Duration) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program comes before these, and may have blanks in it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let time = |field: usize| {
        let ticks: u64 = fields.get(field).and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
        Duration::from_millis(ticks * 1_000 / TICKS)
    };
    (time(11), time(12))
}
