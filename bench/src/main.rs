//! Punctual measured beside its peers. `punctual-bench wheel` runs one measurement, a bare call runs all.
//! Each prints a markdown table, so that what a document shows is what was measured.

mod memory;
mod node;
mod shard;
mod table;
mod wheel;

use std::env;
use std::process::ExitCode;

struct Measurement {
    name: &'static str,
    about: &'static str,
    run: fn(),
}

const MEASUREMENTS: &[Measurement] = &[
    Measurement {
        name: "wheel",
        about: "the timing wheel beside tokio-util's DelayQueue, a binary heap and a B-tree",
        run: wheel::run,
    },
    Measurement { name: "shard", about: "the shard alone on the memory store, one thread", run: shard::run },
    Measurement { name: "node", about: "the node in this process on the memory store", run: node::run },
];

fn main() -> ExitCode {
    let chosen: Vec<String> = env::args().skip(1).collect();
    if let Some(unknown) = chosen.iter().find(|name| MEASUREMENTS.iter().all(|measurement| measurement.name != *name)) {
        eprintln!("unknown measurement {unknown}; there are:\n");
        for Measurement { name, about, .. } in MEASUREMENTS {
            eprintln!("  {name:<8} {about}");
        }
        return ExitCode::from(2);
    }
    for measurement in MEASUREMENTS {
        if chosen.is_empty() || chosen.iter().any(|name| measurement.name == name) {
            println!("# {}: {}\n", measurement.name, measurement.about);
            (measurement.run)();
        }
    }
    ExitCode::SUCCESS
}
