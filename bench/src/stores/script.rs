//! Peers from npm, each in a process of its own that is told what to do by lines and answers with what came out. They
//! are installed once, at fixed versions, into a directory for temporary files.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::contestants::Script;
use super::engine::{Engine, Kind};
use super::measured::Measured;
use super::stage::Line;

const FILES: [(&str, &str); 5] = [
    ("package.json", include_str!("scripts/package.json")),
    ("runner.mjs", include_str!("scripts/runner.mjs")),
    ("graphile-worker.mjs", include_str!("scripts/graphile-worker.mjs")),
    ("pg-boss.mjs", include_str!("scripts/pg-boss.mjs")),
    ("bullmq.mjs", include_str!("scripts/bullmq.mjs")),
];

/// Measures a peer on a database of its own.
pub fn measure(kind: Kind, script: Script, tasks: u64) -> io::Result<Vec<(Line, Measured)>> {
    let directory = installed()?;
    let engine = kind.start();
    let mut process = Process::start(&directory, script, &engine)?;
    let mut measured = Vec::new();
    for (line, word) in [(Line::Lives, "lives"), (Line::Batches, "schedules")] {
        process.ask::<4>(&format!("{word} {}", tasks / 10))?;
        let before = engine.used();
        let [count, seconds, p50_ms, p99_ms] = process.ask(&format!("{word} {tasks}"))?;
        let took = Duration::from_secs_f64(seconds);
        measured.push((line, Measured::new(count as u64, took, p50_ms, p99_ms, before, engine.used())));
    }
    Ok(measured)
}

struct Process {
    child: Child,
    says: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Back when it is connected and has made its tables.
    fn start(directory: &Path, script: Script, engine: &Engine) -> io::Result<Process> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "node", "runner.mjs", script.name(), &engine.url()]);
        let mut child = command.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let says = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut process = Process { child, says, answers };
        match process.line()?.as_str() {
            "ready" => Ok(process),
            other => Err(io::Error::other(format!("{} said {other:?}", script.name()))),
        }
    }

    /// Tells it a line, and reads the numbers of its answer.
    fn ask<const N: usize>(&mut self, line: &str) -> io::Result<[f64; N]> {
        writeln!(self.says, "{line}")?;
        let answer = self.line()?;
        let numbers: Option<Vec<f64>> = answer.split(' ').map(|word| word.parse().ok()).collect();
        let strange = || io::Error::other(format!("to {line:?} it said {answer:?}"));
        numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(strange)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err(io::Error::other("it ended")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The directory with the peers in it.
fn installed() -> io::Result<PathBuf> {
    let directory = env::temp_dir().join("punctual-bench-npm");
    fs::create_dir_all(&directory)?;
    let had = fs::read_to_string(directory.join("package.json")).unwrap_or_default();
    for (name, content) in FILES {
        fs::write(directory.join(name), content)?;
    }
    if had != FILES[0].1 || !directory.join("node_modules").exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]).current_dir(&directory);
        if !npm.stdout(Stdio::null()).status()?.success() {
            // So that the next run tries again.
            fs::remove_file(directory.join("package.json"))?;
            return Err(io::Error::other("npm could not install the peers"));
        }
    }
    Ok(directory)
}
