//! The beanstalk door as it is configured, and what it tells of the machine.

use std::fs;
use std::time::Duration;

use punctual_beanstalk::{Door, Limits, Machine};
use punctual_node::Handle;

use crate::config::Config;
use crate::failure::Failure;

/// The version of beanstalkd whose protocol is spoken. Clients take it apart, so it says nothing else.
const PROTOCOL: &str = "1.12";

/// How many parts of a second the system counts processor time in.
const TICKS: u64 = 100;

pub fn door(config: &Config, handle: Handle) -> Result<Door, Failure> {
    let mut session = [0; 8];
    getrandom::fill(&mut session)
        .map_err(|error| Failure::Failed(format!("the system gives no random numbers: {error}")))?;
    let limits = Limits {
        connections: config.beanstalk.connections,
        batch: config.beanstalk.batch,
        max_job_size: u32::try_from(config.tasks.max_body.as_usize()).unwrap_or(u32::MAX),
        unread_time: config.beanstalk.unread_time.as_duration(),
        creates_tubes: config.tasks.create_on_use,
    };
    Door::new(handle, limits, machine(), &config.node.name, u64::from_le_bytes(session))
        .map_err(|error| Failure::Failed(format!("the beanstalk door cannot watch its connections: {error}")))
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
