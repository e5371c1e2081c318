//! The project's chores. A bare `cargo xtask` lists them; each does all of its own set-up.

mod executables;

mod lanes;
mod stint;

use std::env;
use std::io;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::LazyLock;
use std::time::Instant;

use executables::Executable;
use stint::Stint;

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

/// Format first, since a slip there is told in a second. Then all is built that runs, and while tests run and wait, all else is
/// built and looked at.
fn test(_: &[String]) -> bool {
    if !cargo("cargo fmt --all --check") || !cargo("cargo fmt --manifest-path bench/Cargo.toml --check") {
        return false;
    }
    let Some(executables) = executables::build() else { return false };
    let mut tests: Vec<Stint> = executables.iter().map(Executable::stint).collect();
    tests.extend(on_stores(&executables, &STORES));
    let chores = [
        Stint::line("cargo clippy --workspace --all-targets --locked -- -D warnings"),
        Stint::line("cargo test --workspace --locked --doc"),
        Stint::line("cargo doc --workspace --no-deps --locked").env("RUSTDOCFLAGS", "-D warnings"),
        interleavings(),
        simulation(&["--seeds", "1000"]),
        Stint::line("cargo clippy --manifest-path bench/Cargo.toml --locked -- -D warnings"),
    ];
    lanes::run(tests, chores.map(Stint::in_leisure).to_vec())
}

const STORES: [&str; 4] = ["postgres", "mysql", "redis", "redis-cluster"];

fn stores(args: &[String]) -> bool {
    let chosen: Vec<&str> = if args.is_empty() { STORES.to_vec() } else { args.iter().map(String::as_str).collect() };
    executables::build().is_some_and(|executables| lanes::run(on_stores(&executables, &chosen), Vec::new()))
}

/// What holds on every store is shown on the embedded one with all other tests, and here on the databases, by the same
/// executables. They wait most of the time, so several go on at once.
fn on_stores(executables: &[Executable], stores: &[&str]) -> Vec<Stint> {
    let all = ["every_store", "beanstalk"];
    let on = |store: &&str| {
        let executables = executables.iter().filter(|executable| all.iter().any(|name| executable.is("server", name)));
        executables
            .map(|executable| executable.stint().env("PUNCTUAL_TEST_STORE", store).env("RUST_TEST_THREADS", "4"))
            .collect::<Vec<_>>()
    };
    stores.iter().flat_map(on).collect()
}

/// Built apart: here the node has a model checker's locks and threads, and users get the system's.
fn interleavings() -> Stint {
    Stint::line("cargo test --locked --package punctual-node-check")
        .env("RUSTFLAGS", "--cfg shuttle -D warnings")
        .env("CARGO_TARGET_DIR", "target/shuttle")
}

fn interleave(_: &[String]) -> bool {
    is_done(&interleavings())
}

fn simulation(args: &[&str]) -> Stint {
    Stint::line(&format!("cargo run --release --locked --package punctual-sim -- {}", args.join(" ")))
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
    is_done(&simulation(&args.iter().map(String::as_str).collect::<Vec<_>>()))
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

/// Runs one stint alone, which says what it has to say at once.
fn is_done(stint: &Stint) -> bool {
    let envs: Vec<(&str, &str)> = stint.envs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    cargo_with(&stint.program.display().to_string(), &stint.args, &envs)
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
