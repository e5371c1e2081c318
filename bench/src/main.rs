//! Punctual measured beside its peers. `punctual-bench wheel` runs one measurement, a bare call runs all.
//! Each prints a markdown table, so that what a document shows is what was measured.

mod almanac;
mod arena;
mod beanstalk;
mod cluster;
mod memory;
mod node;
mod server;
mod shard;
mod stores;
mod table;
mod wheel;

use std::env;
use std::process::ExitCode;

struct Measurement {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), String>,
    /// The options it takes, if it takes any.
    usage: &'static str,
}

const MEASUREMENTS: &[Measurement] = &[
    Measurement {
        name: "wheel",
        about: "the timing wheel beside tokio-util's DelayQueue, a binary heap and a B-tree",
        run: |_| {
            wheel::run();
            Ok(())
        },
        usage: "",
    },
    Measurement {
        name: "shard",
        about: "the shard alone on the memory store, one thread",
        run: |_| {
            shard::run();
            Ok(())
        },
        usage: "",
    },
    Measurement {
        name: "node",
        about: "the node in this process on the memory store",
        run: |_| {
            node::run();
            Ok(())
        },
        usage: "",
    },
    Measurement {
        name: "almanac",
        about: "the almanac beside fjall, redb and the raw limit of the disk",
        run: almanac::run,
        usage: almanac::USAGE,
    },
    Measurement {
        name: "server",
        about: "the server beside Redis and PostgreSQL as delayed queues",
        run: server::run,
        usage: server::USAGE,
    },
    Measurement {
        name: "beanstalk",
        about: "the beanstalk door beside beanstalkd",
        run: beanstalk::run,
        usage: beanstalk::USAGE,
    },
    Measurement {
        name: "stores",
        about: "the stores in databases beside what these take as such, and the queues that others built on them",
        run: stores::run,
        usage: stores::USAGE,
    },
    Measurement {
        name: "cluster",
        about: "several servers on one PostgreSQL, and one of them dying",
        run: cluster::run,
        usage: cluster::USAGE,
    },
];

fn main() -> ExitCode {
    let mut chosen: Vec<String> = env::args().skip(1).collect();
    if chosen.first().is_some_and(|word| word == almanac::CHILD) {
        almanac::run_child(&chosen[1..].iter().map(String::as_str).collect::<Vec<_>>());
        return ExitCode::SUCCESS;
    }
    let first_option = chosen.iter().position(|word| word.starts_with("--")).unwrap_or(chosen.len());
    let options = chosen.split_off(first_option);
    if let Some(unknown) = chosen.iter().find(|name| MEASUREMENTS.iter().all(|measurement| measurement.name != *name)) {
        eprintln!("unknown measurement {unknown}; there are:\n");
        for Measurement { name, about, .. } in MEASUREMENTS {
            eprintln!("  {name:<9} {about}");
        }
        for Measurement { name, usage, .. } in MEASUREMENTS.iter().filter(|measurement| !measurement.usage.is_empty()) {
            eprintln!("\noptions of {name}:\n{usage}");
        }
        return ExitCode::from(2);
    }
    for measurement in MEASUREMENTS {
        if chosen.is_empty() || chosen.iter().any(|name| measurement.name == name) {
            println!("# {}: {}\n", measurement.name, measurement.about);
            if let Err(wrong) = (measurement.run)(&options) {
                eprintln!("{wrong}; the options are:\n{}", measurement.usage);
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}
