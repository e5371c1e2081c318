//! The `punctual` binary: the server, and all commands around it.

mod archive;
mod backup;
mod cli;
mod commands;
mod config;
mod data;
mod doors;
mod failure;
mod links;
mod logs;
mod metrics;
mod moving;
mod private_file;
mod serve;
mod shards;
mod store;
mod stores;
mod tls;
mod token;
mod tokens;
mod trace;

use std::process::ExitCode;

// Rows are allocated in one thread and let go in another; this one gives that memory back to the system, too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::run()
}
