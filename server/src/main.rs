//! The `punctual` binary: the server, and all commands around it.

mod archive;
mod cli;
mod commands;
mod config;
mod failure;
mod logs;
mod metrics;
mod serve;
mod tls;
mod token;
mod tokens;
mod trace;

use std::process::ExitCode;

// Many small allocations of many threads; the system's allocator would hold on to what they leave behind.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
