//! `bench`: puts load on a server and measures what a client sees of it.
//!
//! Producers schedule and consumers take and acknowledge at the same time ([`load`]). The topic is the
//! bench's own and is deleted at the end, also after Ctrl-C.

mod load;
mod report;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use punctual_client::Client;
use punctual_wire::{Span, Time};

use self::load::{Load, Plan};
use self::report::Report;
use super::Session;
use super::export::progress;
use super::failure::{Exit, Failure, help};
use super::output::note;

/// Measure how a server performs under load.
///
/// Schedules tasks, takes them when they are due, and acknowledges them, in a topic that is deleted afterwards. Lateness is the time from when a task is due until this process receives it, corrected for the difference between the two clocks.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual bench
  punctual bench --tasks 100000 --connections 32 --batch 100
  punctual bench --rate 2000 --tasks 20000 --json"))]
pub struct BenchArgs {
    /// The number of tasks.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// How many requests are in flight at once: this many for scheduling, and as many for consuming.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// How many tasks go into one request. Consumers take this many at once, but at least 100.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// How many tasks to schedule per second; by default as many as possible.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// The size of each body in bytes.
    #[arg(long, value_name = "N", default_value_t = 100)]
    body_bytes: usize,
    /// How long after scheduling each task is due.
    #[arg(long = "in", value_name = "SPAN", default_value = "1s")]
    delay: Span,
    /// Keep the topic and its history afterwards.
    #[arg(long)]
    keep: bool,
}

/// Runs the load, cleans up, reports.
pub async fn run(args: BenchArgs, mut session: Session) -> Result<(), Failure> {
    let topic = format!("punctual-bench-{:016x}", random()?);
    let skew_micros = clock_skew(&session.client).await?;
    let bar = progress(args.tasks, "done");
    let plan = Plan {
        topic: topic.clone(),
        tasks: args.tasks,
        batch: args.batch,
        rate: args.rate,
        body: "x".repeat(args.body_bytes),
        delay: args.delay,
        skew_micros,
    };
    let load = Arc::new(Load::new(session.client.clone(), plan, bar.clone()));
    let outcome = tokio::select! {
        outcome = Arc::clone(&load).run(args.connections) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Failed, "interrupted")),
    };
    bar.finish_and_clear();
    if args.keep {
        note(format_args!("kept topic {topic}: delete it with `punctual topics delete {topic} --force`"));
    } else {
        clean_up(&session.client, &topic).await;
    }
    let report = Report::new(&outcome?, skew_micros);
    if session.output.json { session.output.json(&report) } else { report.print(&mut session.output) }
}

fn random() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| Failure::local("cannot get random numbers from the system", error))
}

/// How far the server's clock is ahead of ours, in microseconds. The quickest answer tells it best.
async fn clock_skew(client: &Client) -> Result<i64, Failure> {
    let mut best = (Duration::MAX, 0);
    for _ in 0..5 {
        let sent = now_micros();
        let begun = std::time::Instant::now();
        let stats = match client.stats().await {
            Ok(stats) => stats,
            // Without the right to look, the clocks are taken for equal.
            Err(error) if error.problem().is_some_and(|problem| problem.status == 403) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let took = begun.elapsed();
        if took < best.0 {
            let middle = sent + took.as_micros() as i64 / 2;
            // The server tells whole milliseconds, rounded down.
            best = (took, server_micros(stats.now) + 500 - middle);
        }
    }
    // What the network and the rounding may account for is no skew.
    let uncertain = best.0.as_micros() as i64 / 2 + 1_000;
    Ok(if best.1.abs() <= uncertain { 0 } else { best.1 })
}

fn server_micros(time: Time) -> i64 {
    i64::try_from(time.0.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// Microseconds since 1970 by this machine's clock.
fn now_micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Deletes what the bench made. If that fails it says how to do it by hand.
async fn clean_up(client: &Client, topic: &str) {
    let mut failed = None;
    for attempt in [client.delete_topic(topic, true).await, client.delete_queue(topic, true).await] {
        match attempt {
            Ok(_) => {}
            Err(error) if error.problem().is_some_and(|problem| problem.status == 404) => {}
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = failed {
        note(format_args!(
            "topic {topic} could not be deleted: {error}; delete it with `punctual topics delete {topic} --force`"
        ));
    }
}
