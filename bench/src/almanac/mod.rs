//! The almanac beside fjall, redb and the raw limit of the disk: the same rows, the same work, each in a process
//! of its own. This process only starts those, kills some, and prints what they tell.

mod backlog;
mod child;
mod contestants;
mod meter;
mod node;
mod plan;
mod report;
mod rows;
mod system;
mod work;

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use contestants::{ENTRANTS, Entrant, Kind};
use plan::Plan;
use report::{Report, decimals, grouped};

pub use child::run as run_child;
pub use plan::USAGE;

/// The word that starts a process for one contestant.
pub const CHILD: &str = "almanac-child";

/// For how long a process inserts before it is killed, so that the kills find different lengths of journal.
const KILLED_AFTER: [Duration; 3] = [Duration::from_millis(700), Duration::from_millis(1_900), Duration::from_secs(4)];

pub fn run(options: &[String]) -> Result<(), String> {
    let plan = Plan::new(options)?;
    println!("{} rows pending, {} bytes each\n", grouped(plan.rows() as u64), rows::ROW_BYTES);
    let mut report = Report::default();
    for entrant in ENTRANTS.iter().filter(|entrant| plan.takes_part(entrant.name)) {
        let directory = temporary(&plan);
        let (label, rows) = (plan.label(entrant), plan.rows_of(entrant).to_string());
        let done = listen(&["work", entrant.name, &label, text(directory.path()), &rows], &mut report);
        if done && !matches!(entrant.kind, Kind::Raw(_)) {
            reopen(entrant, &label, directory.path(), &mut report);
        }
    }
    if plan.takes_part("node") {
        let directory = temporary(&plan);
        listen(&["node", text(directory.path()), &plan.rows().to_string()], &mut report);
        let directory = temporary(&plan);
        listen(&["backlog", text(directory.path()), &plan.rows().to_string()], &mut report);
    }
    report.print();
    Ok(())
}

/// Takes what a process tells until it ends; says whether it ended well.
fn listen(words: &[&str], report: &mut Report) -> bool {
    let (mut child, out) = start(words);
    for line in out.lines().map_while(Result::ok) {
        eprintln!("{}", line.replace('\t', "  "));
        report.take(&line);
    }
    let ended = child.wait().expect("it is ours");
    if !ended.success() {
        eprintln!("{words:?} failed: {ended}");
    }
    ended.success()
}

/// Kills a process that inserts, and has another one open what it left; several times.
fn reopen(entrant: &Entrant, label: &str, directory: &Path, report: &mut Report) {
    let mut times: Vec<(f64, f64)> = Vec::new();
    for (number, after) in (1..).zip(KILLED_AFTER) {
        // Numbers that no other process has given to rows.
        let from: u64 = number << 40;
        let (mut child, mut out) = start(&["insert-on", entrant.name, text(directory), &from.to_string()]);
        let mut confirmed = next_line(&mut out).expect("it inserts");
        let started = Instant::now();
        while started.elapsed() < after {
            confirmed = next_line(&mut out).expect("it inserts");
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        // What it told before it died counts; a line that is cut short does not.
        while let Some(line) = next_line(&mut out) {
            confirmed = line;
        }
        let (mut child, mut out) = start(&["open", entrant.name, text(directory), &confirmed]);
        let answer = next_line(&mut out);
        let ended = child.wait().expect("it is ours");
        let (Some(answer), true) = (answer, ended.success()) else {
            eprintln!("{label} could not be opened after a kill: {ended}");
            return;
        };
        eprintln!("{label} opened after a kill: {answer} s");
        let seconds: Vec<f64> = answer.split(' ').map(|seconds| seconds.parse().expect("a number")).collect();
        times.push((seconds[0] * 1e3, seconds[1] * 1e3));
    }
    let best = times.iter().map(|(open, _)| *open).fold(f64::INFINITY, f64::min);
    let worst = times.iter().map(|(open, _)| *open).fold(0.0, f64::max);
    let answered = times.iter().map(|(_, read)| *read).fold(0.0, f64::max);
    report.add("open", label, [best, worst, answered].map(|millis| decimals(millis, 0)));
}

fn next_line(out: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    out.read_line(&mut line).expect("it can be read");
    line.strip_suffix('\n').map(str::to_owned)
}

fn start(words: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let program = env::current_exe().expect("it runs");
    let mut command = Command::new(program);
    // The resident memory shall be what it is in a server, which gives freed memory back.
    command.arg(CHILD).args(words).stdout(Stdio::piped()).env_remove("MIMALLOC_PURGE_DELAY");
    let mut child = command.spawn().expect("it starts itself");
    let out = child.stdout.take().expect("it is piped");
    (child, BufReader::new(out))
}

fn temporary(plan: &Plan) -> TempDir {
    let made = tempfile::Builder::new().prefix("punctual-bench-").tempdir_in(&plan.directory);
    made.expect("a directory for the stores can be made; PUNCTUAL_BENCH_DIR says where")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the directory's name is a text")
}
