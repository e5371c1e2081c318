//! The project's chores. A bare `cargo xtask` lists them; each does all of its own set-up.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// Each command is told with the time since then, so that a log says what took how long.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

struct Chore {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> bool,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "test",
        about: "everything CI checks: format, lints, docs, all tests, the server's on each store, the node's interleavings, 1,000 simulated seeds",
        run: test,
    },
    Chore {
        name: "stores",
        about: "run the server's tests on databases: cargo xtask stores [postgres|mysql|redis|redis-cluster]",
        run: stores,
    },
    Chore {
        name: "interleave",
        about: "run the node's threads through thousands of interleavings; SCHEDULES=N for more of them",
        run: interleave,
    },
    Chore {
        name: "moving",
        about: "move a million rows between each pair of stores, killed on the way: cargo xtask moving [ROWS [KILLS]]",
        run: moving,
    },
    Chore { name: "sim", about: "simulate: cargo xtask sim [--seeds N] [--from SEED]", run: sim },
    Chore {
        name: "fuzz",
        about: "fuzz a parser of foreign bytes: cargo xtask fuzz [TARGET [OPTIONS OF LIBFUZZER]]",
        run: fuzz,
    },
    Chore {
        name: "package",
        about: "build the Debian package: cargo xtask package [--try]; --try installs it into a copy of this machine, as root",
        run: package,
    },
    Chore {
        name: "bench",
        about: "measure beside the peers: cargo xtask bench [wheel|shard|node|almanac|server|beanstalk|stores|cluster]",
        run: bench,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let chore = args.first().and_then(|name| CHORES.iter().find(|chore| chore.name == name));
    let Some(chore) = chore else {
        eprintln!("cargo xtask <chore>\n");
        for chore in CHORES {
            eprintln!("  {:<10} {}", chore.name, chore.about);
        }
        return if args.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    let is_well = (chore.run)(&args[1..]);
    eprintln!("\n[{}] {}", so_far(), if is_well { "done" } else { "failed" });
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Minutes and seconds since the first command.
fn so_far() -> String {
    let seconds = BEGAN.elapsed().as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// The order is cheapest first, so that a slip is told in seconds.
fn test(_: &[String]) -> bool {
    cargo("cargo fmt --all --check")
        && cargo("cargo clippy --workspace --all-targets --locked -- -D warnings")
        && tests("cargo test --workspace --locked --no-fail-fast", &[])
        && stores(&[])
        && interleave(&[])
        && cargo_with("cargo doc --workspace --no-deps --locked", &[], &[("RUSTDOCFLAGS", "-D warnings")])
        && sim(&["--seeds".into(), "1000".into()])
        && cargo("cargo fmt --manifest-path bench/Cargo.toml --check")
        && cargo("cargo clippy --manifest-path bench/Cargo.toml --locked -- -D warnings")
}

/// What holds on every store was shown on the embedded one by the other tests, and is here shown on the databases, by the
/// same binaries. They wait most of the time, so several go on at once.
fn stores(args: &[String]) -> bool {
    let all = ["postgres", "mysql", "redis", "redis-cluster"].map(str::to_owned);
    let run = |store: &String| {
        let line = "cargo test --workspace --locked --no-fail-fast --test every_store --test beanstalk";
        tests(line, &[("PUNCTUAL_TEST_STORE", store), ("RUST_TEST_THREADS", "4")])
    };
    let chosen = if args.is_empty() { &all[..] } else { args };
    // All of them, also after one has failed.
    let failed: Vec<&String> = chosen.iter().filter(|store| !run(store)).collect();
    failed.is_empty()
}

/// Built apart: here the node has a model checker's locks and threads, and users get the system's.
fn interleave(_: &[String]) -> bool {
    let envs = [("RUSTFLAGS", "--cfg shuttle -D warnings"), ("CARGO_TARGET_DIR", "target/shuttle")];
    cargo_with("cargo test --locked --package punctual-node-check", &[], &envs)
}

/// The same test that is run in small with all others, on the server as its users run it.
fn moving(args: &[String]) -> bool {
    let number = |index: usize, usual: &str| args.get(index).cloned().unwrap_or_else(|| usual.to_owned());
    let (rows, kills) = (number(0, "1000000"), number(1, "3"));
    let binary = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/punctual");
    let envs = [("PUNCTUAL_TEST_ROWS", &*rows), ("PUNCTUAL_TEST_KILLS", &kills), ("PUNCTUAL_TEST_BINARY", binary)];
    cargo("cargo build --release --locked --package punctual")
        && cargo_with("cargo test --workspace --locked --test moving -- chain --nocapture --test-threads 1", &[], &envs)
}

fn sim(args: &[String]) -> bool {
    cargo_with("cargo run --release --locked --package punctual-sim --", args, &[])
}

/// Runs a target until it fails or is stopped; without one, lists them. No sanitizer, so that a stable compiler does.
fn fuzz(args: &[String]) -> bool {
    let Some((target, options)) = args.split_first() else { return cargo("ls fuzz/corpus") };
    // What a run finds goes into the first directory, so that the corpus stays as it is.
    let (found, corpus) = (format!("target/fuzz/{target}"), format!("fuzz/corpus/{target}"));
    (cargo("cargo fuzz --version") || cargo("cargo install cargo-fuzz --locked"))
        && cargo(&format!("mkdir -p {found}"))
        && cargo_with(&format!("cargo fuzz run --sanitizer none {target} {found} {corpus} --"), options, &[])
}

/// Builds the package; with `--try` installs it, runs what was installed, and removes it.
fn package(args: &[String]) -> bool {
    let tries = args.iter().any(|arg| arg == "--try");
    (cargo("cargo deb --version") || cargo("cargo install cargo-deb --locked"))
        && cargo("cargo build --profile dist --locked --package punctual")
        && cargo("cargo deb --package punctual --profile dist --no-build --locked --output target/debian/punctual.deb")
        && (!tries || cargo("bash deploy/debian/try target/debian/punctual.deb"))
}

fn bench(args: &[String]) -> bool {
    // The server is measured as its users run it: as a process of its own.
    let wants_server = args.first().is_none_or(|what| what == "server" || what == "beanstalk");
    if wants_server && !cargo("cargo build --release --locked --package punctual") {
        return false;
    }
    // Freed memory stays with the process, so that the kernel is not measured along.
    let envs = [("MIMALLOC_PURGE_DELAY", "-1")];
    cargo_with("cargo run --release --locked --manifest-path bench/Cargo.toml --", args, &envs)
}

fn cargo(line: &str) -> bool {
    cargo_with(line, &[], &[])
}

/// Runs one command line in the workspace root and says whether it succeeded.
fn cargo_with(line: &str, args: &[String], envs: &[(&str, &str)]) -> bool {
    succeeded(line, command(line, args, envs).status())
}

/// How long tests may say nothing before they count as stuck: several times what the longest of them takes on a busy machine.
const SILENCE: Duration = Duration::from_secs(600);

/// Runs tests. What those that failed have to say is told once more at the end, where it is found in a long log. What is
/// stuck is killed and has failed, and the others go on: nobody is to wait for hours for what one line can tell.
fn tests(line: &str, envs: &[(&str, &str)]) -> bool {
    let mut child = match command(line, &[], envs).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return succeeded(line, Err(error)),
    };
    let lines = heard(child.stdout.take());
    let (mut failures, mut is_failure) = (Vec::new(), false);
    loop {
        let said = match lines.recv_timeout(SILENCE) {
            Ok(said) => said,
            // What was killed may have left somebody behind who keeps the stream open.
            Err(RecvTimeoutError::Timeout) if matches!(child.try_wait(), Ok(Some(_))) => break,
            Err(RecvTimeoutError::Timeout) => {
                failures.push(format!("[{}] nothing was heard for {SILENCE:?}, so it was killed", so_far()));
                kill_children(child.id());
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        println!("{said}");
        is_failure = said.starts_with("---- ") || (is_failure && said != "failures:");
        if is_failure || said.ends_with("has been running for over 60 seconds") {
            failures.push(said);
        }
    }
    let is_well = succeeded(line, child.wait());
    if !is_well {
        println!("\nwhat failed in `{line}`, and what took long:\n{}", failures.join("\n"));
    }
    is_well
}

/// The lines of a stream as they come, on a channel, so that one can also wait for them to stay away.
fn heard(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (teller, lines) = mpsc::channel();
    let all = stream.into_iter().flat_map(|stream| BufReader::new(stream).split(b'\n')).map_while(Result::ok);
    thread::spawn(move || all.into_iter().try_for_each(|said| teller.send(String::from_utf8_lossy(&said).into_owned())));
    lines
}

/// Kills what a process has started: of cargo, the tests that are running. It then goes on with the next ones.
fn kill_children(process: u32) {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    for child in children.split_whitespace() {
        let _ = Command::new("kill").args(["-KILL", child]).status();
    }
}

/// A command line in the workspace root, which is told.
fn command(line: &str, args: &[String], envs: &[(&str, &str)]) -> Command {
    let set: String = envs.iter().map(|(name, value)| format!("{name}={value:?} ")).collect();
    eprintln!("\n[{}] $ {set}{line} {}", so_far(), args.join(" "));
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a command line starts with its program"));
    command.args(words).args(args).envs(envs.iter().copied());
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    command
}

fn succeeded(line: &str, status: io::Result<ExitStatus>) -> bool {
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run `{line}`: {error}");
            false
        }
    }
}
