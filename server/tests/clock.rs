//! A clock that is set forward and back, under the real binary: nothing is early, nothing is lost, and nothing stays wrong.
//!
//! The server runs under libfaketime, which moves the wall clock of one process while the test goes on. The
//! monotonic clock is left alone, as it is when an operator or NTP sets a real one.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stage::{Server, eventually};

/// Debian's library, installed if it is missing: once for all tests, since only one can install at a time.
static LIBFAKETIME: LazyLock<PathBuf> = LazyLock::new(|| {
    let find = || {
        let places =
            fs::read_dir("/usr/lib").unwrap().flatten().map(|place| place.path().join("faketime/libfaketime.so.1"));
        places.chain([PathBuf::from("/usr/lib/faketime/libfaketime.so.1")]).find(|path| path.exists())
    };
    find().unwrap_or_else(|| {
        let installed = Command::new("sh")
            .args(["-c", "apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq faketime"])
            .output()
            .unwrap();
        find().unwrap_or_else(|| panic!("faketime cannot be installed: {}", String::from_utf8_lossy(&installed.stderr)))
    })
});

/// Sets the server's clock to so many seconds from the real one.
fn set(clock: &Path, seconds: i64) {
    let next = clock.with_extension("next");
    fs::write(&next, format!("{seconds:+}")).unwrap();
    fs::rename(next, clock).unwrap();
}

fn now(server: &Server) -> String {
    server.get("/v1/stats").expect(200).json()["now"].as_str().unwrap().to_owned()
}

/// A server whose clock can be set, with these settings, and its clock.
fn server_with_clock(settings: &[(&str, &str)]) -> (Server, tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let clock = directory.path().join("clock");
    set(&clock, 0);
    let library = LIBFAKETIME.display().to_string();
    let file = clock.display().to_string();
    let mut environment = vec![
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME_TIMESTAMP_FILE", file.as_str()),
        ("FAKETIME_CACHE_DURATION", "1"),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    environment.extend(settings);
    let mut server = Server::prepare(&[], &environment);
    server.start_again();
    (server, directory, clock)
}

/// What queue `t` hands out within so many seconds: the ids.
fn take(server: &Server, seconds: u64) -> Vec<String> {
    let asked = json!({ "queues": ["t"], "wait": format!("{seconds}s"), "max": 10, "lease": "1s" });
    let taken = server.post("/v1/reserve", &asked).expect(200).json();
    let deliveries = taken["deliveries"].as_array().unwrap();
    deliveries.iter().map(|delivery| delivery["id"].as_str().unwrap().to_owned()).collect()
}

fn schedule(server: &Server, id: &str, when: &Value) -> String {
    let mut task = when.clone();
    task["topic"] = json!("t");
    task["id"] = json!(id);
    server.post("/v1/tasks", &task).expect(201).json()["due"].as_str().unwrap().to_owned()
}

fn steps(server: &Server, direction: &str) -> u64 {
    let metrics = server.get("/metrics").expect(200).text();
    let name = format!("punctual_clock_steps_total{{direction=\"{direction}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
}

/// A task that is scheduled now keeps the right time, and so does its lease.
fn keeps_the_right_time(server: &Server, id: &str) {
    schedule(server, &format!("{id}-later"), &json!({ "at": iso(120) }));
    assert_eq!(take(server, 0), Vec::<String>::new(), "it is due in two minutes");
    let begun = Instant::now();
    let due = schedule(server, id, &json!({ "delay": "1s" }));
    assert!(due < iso(60), "{due}");
    assert_eq!(take(server, 20), [id]);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    // Its lease is over after a second, and it is tried again after another one.
    assert_eq!(take(server, 20), [id], "its lease is as short as was asked for");
    server.delete(&format!("/v1/tasks/t/{id}-later"));
    eventually("the lease is over", || server.delete(&format!("/v1/tasks/t/{id}")).status == 200);
}

#[test]
fn a_clock_that_was_wrong_for_a_moment_leaves_no_trace() {
    let (mut server, _directory, clock) = server_with_clock(&[]);
    schedule(&server, "soon", &json!({ "at": iso(600) }));
    set(&clock, 3_600);
    server.wait_for("the clock jumped forward");
    assert_eq!(take(&server, 1), Vec::<String>::new(), "nothing fires by a clock that is in doubt");
    assert!(schedule(&server, "meanwhile", &json!({ "delay": "100s" })) < iso(160));
    set(&clock, 0);
    server.wait_for("no task fired by it");
    keeps_the_right_time(&server, "1");
    assert_eq!((steps(&server, "forward"), steps(&server, "back")), (1, 1));
}

#[test]
fn a_wrong_clock_that_was_believed_leaves_what_it_promised_and_nothing_else() {
    let (mut server, _directory, clock) = server_with_clock(&[("PUNCTUAL_CLOCK_DOUBT", "500ms")]);
    schedule(&server, "soon", &json!({ "at": iso(600) }));
    let century = 100 * 365 * 86_400;
    set(&clock, century);
    server.wait_for("it is followed now");
    eventually("it is another century", || now(&server) > iso(century - 60));
    let promised = schedule(&server, "promised", &json!({ "delay": "10s" }));
    assert!(promised > iso(century - 60), "{promised}");
    let ready = || server.get("/v1/tasks/t/soon").expect(200).json()["standing"]["state"] == "ready";
    eventually("what was due in between is ready", ready);
    set(&clock, 0);
    eventually("the clock is right", || now(&server) < iso(60));
    keeps_the_right_time(&server, "1");
    assert_eq!(server.get("/v1/tasks/t/promised").expect(200).json()["due"], promised, "it is shown as it was told");
    assert_eq!(
        server.get("/v1/tasks/t/soon").expect(200).json()["standing"]["state"],
        "scheduled",
        "it was not handed out"
    );
    server.crash();
    keeps_the_right_time(&server, "2");
    assert_eq!(server.get("/v1/tasks/t/promised").expect(200).json()["due"], promised);
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_early_and_loses_nothing() {
    let (mut server, _directory, clock) = server_with_clock(&[("PUNCTUAL_CLOCK_DOUBT", "0s")]);
    let due =
        server.post("/v1/tasks", &json!({ "topic": "t", "id": "1", "delay": "2s" })).expect(201).json()["due"].clone();
    set(&clock, -3_600);
    eventually("the clock is back", || now(&server).as_str() < due.as_str().unwrap() && now(&server) < iso(-1_800));
    let early = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "3s" })).expect(200).json();
    assert_eq!(early["deliveries"], json!([]), "its time has not come by the server's clock");
    assert_eq!((steps(&server, "forward"), steps(&server, "back")), (0, 1));
    server.crash();
    assert_eq!(server.get("/v1/tasks/t/1").expect(200).json()["due"], due);
    set(&clock, 60);
    server.wait_for("it is followed at once");
    let taken = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "20s" })).expect(200).json();
    let delivery: &Value = &taken["deliveries"][0];
    assert_eq!(delivery["due"], due);
    assert!(delivery["fired_at"].as_str() >= due.as_str());
    let done = json!({ "actions": [{ "do": "acknowledge", "lease": delivery["lease"] }] });
    assert_eq!(server.post("/v1/leases", &done).expect(200).json()["results"][0]["outcome"], "acknowledged");
    assert_eq!((steps(&server, "forward"), steps(&server, "back")), (1, 0), "counted since the crash");
}

/// So many seconds from now by the real clock, as the server writes times.
fn iso(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let shifted = Duration::from_secs(now.as_secs().checked_add_signed(seconds).unwrap());
    punctual_wire::Time(shifted.as_millis() as u64).to_string()
}
