//! Runs seeds, shows how far it is, and says what went wrong and how to see it again.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use punctual_sim::census::Census;
use punctual_sim::{Outcome, keep_panics_quiet, run, trace};

const YEAR: f64 = 365.25 * 24.0 * 3_600_000.0;
/// How many lines of the trace are shown of a seed that breaks a promise, and how much of each.
const LINES: usize = 50;
const LINE_LENGTH: usize = 600;
/// How many seeds may break a promise before the rest is left alone.
const ENOUGH: usize = 10;

/// Simulates whole nodes on faulty stores and clocks, one run for each seed, and checks the promises.
#[derive(Debug, Parser)]
#[command(name = "punctual-sim")]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Go on for so many minutes instead, however many seeds that takes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Run only this seed and print all that happens.
    #[arg(long, alias = "verbose-seed", value_name = "SEED")]
    trace: Option<u64>,
}

/// What many seeds gave.
#[derive(Default)]
struct Sum {
    seeds: u64,
    years: f64,
    broken: Vec<u64>,
    census: Census,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.years += outcome.length as f64 / YEAR;
        self.census.join(&outcome.census);
        if outcome.violation.is_some() {
            self.broken.push(outcome.seed);
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    keep_panics_quiet();
    if let Some(seed) = args.trace {
        let outcome = run(seed, true, None);
        print!("{}", outcome.trace);
        println!("seed {seed}, {:?}: {}", outcome.kind, outcome.census);
        report(&outcome);
        return exit_code(outcome.violation.is_none());
    }
    let sum = run_all(&args);
    println!("{}", sum.census);
    exit_code(sum.broken.is_empty())
}

fn exit_code(all_is_well: bool) -> ExitCode {
    if all_is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

// The only place that looks at a real clock: to say how fast it goes, and when to stop.
#[allow(clippy::disallowed_methods)]
fn run_all(args: &Args) -> Sum {
    let began = Instant::now();
    let time_is_up = |limit: u64| began.elapsed() >= Duration::from_secs(60 * limit);
    let bar = progress_bar(args);
    let (next, is_enough) = (AtomicU64::new(args.from), AtomicBool::new(false));
    // A run is a world of its own: each core takes the next seed when it is through with one.
    let one_after_the_other = |outcomes: mpsc::Sender<Outcome>| {
        while !is_enough.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let is_over = args.minutes.map_or(seed - args.from >= args.seeds, time_is_up);
            if is_over || outcomes.send(run(seed, false, None)).is_err() {
                return;
            }
        }
    };
    let mut sum = Sum::default();
    thread::scope(|scope| {
        let (outcomes, arrived) = mpsc::channel();
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let outcomes = outcomes.clone();
            scope.spawn(|| one_after_the_other(outcomes));
        }
        drop(outcomes);
        for outcome in arrived {
            sum.add(&outcome);
            if outcome.violation.is_some() {
                bar.suspend(|| report(&outcome));
            }
            is_enough.fetch_or(sum.broken.len() >= ENOUGH, Ordering::Relaxed);
            bar.inc(1);
            bar.set_message(format!("{:.0} years", sum.years));
        }
    });
    sum.broken.sort_unstable();
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} seeds in {seconds:.1} s ({:.0} a second), {:.0} years simulated ({:.0} a second), broken: {:?}",
        sum.seeds,
        sum.seeds as f64 / seconds,
        sum.years,
        sum.years / seconds,
        sum.broken
    );
    sum
}

fn progress_bar(args: &Args) -> ProgressBar {
    let bar = if args.minutes.is_some() { ProgressBar::no_length() } else { ProgressBar::new(args.seeds) };
    let template = "{bar:40} {pos}/{len} seeds, {per_sec}, {msg}, {eta} to go";
    bar.with_style(ProgressStyle::with_template(template).expect("the template is well formed"))
}

/// Says what went wrong, with the end of the trace.
fn report(outcome: &Outcome) {
    let Some(violation) = &outcome.violation else { return };
    let seed = outcome.seed;
    println!("\nseed {seed} ({:?}) breaks {}", outcome.kind, violation.promise);
    println!("  {} {}", violation.subject, violation.what);
    let text = run(seed, true, None).trace;
    println!("the last lines about it:");
    for line in trace::relevant(&text, &violation.subject, LINES) {
        let end = line.char_indices().nth(LINE_LENGTH).map_or(line.len(), |(end, _)| end);
        println!("{}{}", &line[..end], if end < line.len() { " ..." } else { "" });
    }
    println!("to see all of it: cargo run --release -p punctual-sim -- --trace {seed}\n");
}
