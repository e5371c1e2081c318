//! The project's chores. A bare `cargo xtask` lists them; each does all of its own set-up.

use std::env;
use std::process::{Command, ExitCode};

struct Chore {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> bool,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "test",
        about: "everything CI checks: format, lints, docs, all tests, the node's interleavings, 1,000 simulated seeds",
        run: test,
    },
    Chore {
        name: "interleave",
        about: "run the node's threads through thousands of interleavings; SCHEDULES=N for more of them",
        run: interleave,
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
        about: "measure beside the peers: cargo xtask bench [wheel|shard|node|almanac|server|beanstalk|stores]",
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
    if (chore.run)(&args[1..]) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The order is cheapest first, so that a slip is told in seconds.
fn test(_: &[String]) -> bool {
    cargo("cargo fmt --all --check")
        && cargo("cargo clippy --workspace --all-targets --locked -- -D warnings")
        && cargo("cargo test --workspace --locked --no-fail-fast")
        && interleave(&[])
        && cargo_with("cargo doc --workspace --no-deps --locked", &[], &[("RUSTDOCFLAGS", "-D warnings")])
        && sim(&["--seeds".into(), "1000".into()])
        && cargo("cargo fmt --manifest-path bench/Cargo.toml --check")
        && cargo("cargo clippy --manifest-path bench/Cargo.toml --locked -- -D warnings")
}

/// Built apart: here the node has a model checker's locks and threads, and users get the system's.
fn interleave(_: &[String]) -> bool {
    let envs = [("RUSTFLAGS", "--cfg shuttle -D warnings"), ("CARGO_TARGET_DIR", "target/shuttle")];
    cargo_with("cargo test --locked --package punctual-node-check", &[], &envs)
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
    eprintln!("\n$ {line} {}", args.join(" "));
    let mut words = line.split_whitespace();
    let program = words.next().expect("a command line starts with its program");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let status = Command::new(program).args(words).args(args).envs(envs.iter().copied()).current_dir(root).status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run {program}: {error}");
            false
        }
    }
}
