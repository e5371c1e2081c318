//! `./run demo` fills a server with all that there is to see in the console, opens it, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use stage::{Connection, PATIENCE, Server, run};
use tempfile::TempDir;

/// The script, in a group of its own as a terminal would have it.
struct Demo {
    script: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    scratch: TempDir,
}

impl Demo {
    /// Starts it, with a desktop on which the browser notes what it was asked to open.
    fn start(arguments: &[&str]) -> Demo {
        let scratch = tempfile::tempdir().unwrap();
        for directory in ["desktop", "tmp"] {
            std::fs::create_dir(scratch.path().join(directory)).unwrap();
        }
        let browser = scratch.path().join("desktop/xdg-open");
        std::fs::write(&browser, "#!/bin/sh\necho \"$1\" >\"$(dirname \"$0\")/noted\"\nmv \"$(dirname \"$0\")/noted\" \"$(dirname \"$0\")/opened\"\n").unwrap();
        std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", scratch.path().join("desktop").display(), std::env::var("PATH").unwrap());
        // A shell cannot heed a signal that is ignored where it was started, as in the background of another one.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/demo.sh"));
        command.arg(env!("CARGO_BIN_EXE_punctual")).arg(load()).args(arguments).process_group(0);
        command.env("PORT", "0").env("DISPLAY", ":0").env("PATH", path).env("TMPDIR", scratch.path().join("tmp"));
        let mut script = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(script.stdout.take().unwrap()).lines();
        Demo { script, lines, scratch }
    }

    /// Where its server listens, as it tells people.
    fn address(&mut self) -> String {
        let line = self.lines.next().unwrap().unwrap();
        line.split_once("http://").unwrap().1.trim_end_matches("/console/").to_owned()
    }

    /// The processes that it has started.
    fn children(&self) -> Vec<u32> {
        let id = self.script.id();
        let told = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        told.split_whitespace().map(|id| id.parse().unwrap()).collect()
    }

    /// The child whose command line begins with this program.
    fn child(&self, program: &str) -> u32 {
        let is_meant = |id: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.split('\0').next().is_some_and(|first| first.ends_with(program))
        };
        self.children().into_iter().find(is_meant).unwrap()
    }

    fn wait(&mut self) -> ExitStatus {
        until("the script ends", || self.script.try_wait().unwrap())
    }
}

impl Drop for Demo {
    /// A test that fails must not leave it either.
    fn drop(&mut self) {
        if self.script.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal("TERM", &self.script.id().to_string());
            let _ = self.script.wait();
        }
    }
}

/// The shop's program; `cargo test` for the whole workspace has built it.
fn load() -> std::path::PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_punctual")).with_file_name("examples").join("demo");
    if !built.exists() {
        let cargo =
            run(Command::new(env!("CARGO")).args(["build", "--package", "punctual-client", "--example", "demo"]));
        assert!(built.exists(), "{}", cargo.stderr);
    }
    built
}

fn signal(name: &str, target: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), "--", target]).status().unwrap().success());
}

fn is_there(process: u32) -> bool {
    // What nobody has waited for yet has ended all the same.
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "this has not come: {what}");
        sleep(Duration::from_millis(100));
    }
}

/// What a newcomer should see and does not.
fn missing(server: &mut Connection) -> Vec<&'static str> {
    let mut ask = |path: &str| server.request("GET", path, None).json();
    let (stats, forecast) = (ask("/v1/stats"), ask("/v1/forecast?unit=minute&slots=60"));
    let (groups, consumers) = (ask("/v1/dead/groups"), ask("/v1/consumers"));
    let (invoice, coupons, key) = (ask("/v1/queues/invoice"), ask("/v1/queues/coupon-end"), ask("/v1/keys/user-7"));
    let tickets = ask("/v1/tasks?topic=ticket-escalation");
    let is_some = |value: &Value| value.as_u64().is_some_and(|number| number > 0);
    let many = |value: &Value, many: usize| value.as_array().is_some_and(|list| list.len() >= many);
    let mut due: Vec<u64> =
        forecast["slots"].as_array().unwrap().iter().map(|slot| slot["due"].as_u64().unwrap()).collect();
    due.sort_unstable();
    let (median, most) = (due[due.len() / 2], due[due.len() - 1]);
    let priorities = tickets["tasks"].as_array().map_or(0, |tasks| {
        tasks.iter().filter_map(|task| task["priority"].as_u64()).collect::<std::collections::BTreeSet<_>>().len()
    });
    let facts = [
        ("waiting", is_some(&stats["total"]["waiting"])),
        ("ready", is_some(&stats["total"]["ready"])),
        ("leased", is_some(&stats["total"]["leased"])),
        ("dead", is_some(&stats["total"]["dead"])),
        ("history", is_some(&stats["total"]["history"])),
        ("done", is_some(&stats["happened"]["done"])),
        ("cancelled", is_some(&stats["happened"]["cancelled"])),
        ("failed", is_some(&stats["happened"]["failed"])),
        ("a herd", most >= 1_000 && most > 10 * median.max(1)),
        ("groups of dead letters", many(&groups["groups"], 3)),
        ("consumers", many(&consumers["consumers"], 3)),
        ("a paused queue with work in it", invoice["settings"]["paused"] == true && is_some(&invoice["ready"])),
        ("a limited queue", is_some(&coupons["settings"]["rate"]["per_second"])),
        ("tasks of a key", many(&key["tasks"], 3)),
        ("priorities", priorities >= 2),
    ];
    facts.into_iter().filter(|(_, is_seen)| !is_seen).map(|(name, _)| name).collect()
}

#[test]
fn the_demo_shows_every_state_and_a_herd_and_nothing_outlives_its_end() {
    let idle = Server::start();
    assert_eq!(missing(&mut idle.connect()).len(), 15, "without the demo there is nothing to see");

    let mut demo = Demo::start(&[]);
    let address = demo.address();
    let opened = demo.scratch.path().join("desktop/opened");
    let asked = until("the browser is opened", || std::fs::read_to_string(&opened).ok());
    assert_eq!(asked.trim(), format!("http://{address}/console/"));

    let mut server = Connection::open(&address, None);
    let mut left = Vec::new();
    let seen = |left: &mut Vec<&'static str>, server: &mut Connection| {
        *left = missing(server);
        left.is_empty().then_some(())
    };
    let begun = Instant::now();
    while seen(&mut left, &mut server).is_none() {
        assert!(begun.elapsed() < 2 * PATIENCE, "there is nothing to see of {left:?}");
        sleep(Duration::from_millis(200));
    }

    let children = demo.children();
    assert!(children.len() >= 2 && children.iter().all(|child| is_there(*child)), "{children:?}");
    // As Ctrl-C in a terminal does: to the whole group.
    signal("INT", &format!("-{}", demo.script.id()));
    assert!(demo.wait().success());
    assert!(!children.iter().any(|child| is_there(*child)), "{children:?}");
    assert_eq!(std::fs::read_dir(demo.scratch.path().join("tmp")).unwrap().count(), 0, "everything is gone");
}

#[test]
fn a_named_directory_is_kept_and_a_server_that_dies_ends_the_demo() {
    let kept = tempfile::tempdir().unwrap();
    let data = kept.path().join("data");
    let mut demo = Demo::start(&[data.to_str().unwrap()]);
    demo.address();
    let (server, load) = (demo.child("punctual"), demo.child("demo"));
    signal("KILL", &server.to_string());
    assert_eq!(demo.wait().code(), Some(1));
    assert!(!is_there(load) && !is_there(server));
    assert!(data.join("almanac").exists(), "what was named stays");
    assert_eq!(std::fs::read_dir(demo.scratch.path().join("tmp")).unwrap().count(), 0);
}
