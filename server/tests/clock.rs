//! A clock that is set back, under the real binary: nothing is early, and nothing is lost.
//!
//! The server runs under libfaketime, which moves the wall clock of one process while the test goes on. The
//! monotonic clock is left alone, as it is when an operator or NTP sets a real one.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use stage::{Server, eventually};

/// Debian's library, installed if it is missing.
fn libfaketime() -> PathBuf {
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
}

/// Sets the server's clock to so many seconds from the real one.
fn set(clock: &Path, seconds: i64) {
    let next = clock.with_extension("next");
    fs::write(&next, format!("{seconds:+}")).unwrap();
    fs::rename(next, clock).unwrap();
}

fn now(server: &Server) -> String {
    server.get("/v1/stats").expect(200).json()["now"].as_str().unwrap().to_owned()
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_early_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let clock = directory.path().join("clock");
    set(&clock, 0);
    let environment = [
        ("LD_PRELOAD", libfaketime()),
        ("FAKETIME_TIMESTAMP_FILE", clock.clone()),
        ("FAKETIME_CACHE_DURATION", "1".into()),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ];
    let environment: Vec<(&str, String)> =
        environment.iter().map(|(name, value)| (*name, value.display().to_string())).collect();
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut server = Server::prepare(&[], &environment);
    server.start_again();
    let due =
        server.post("/v1/tasks", &json!({ "topic": "t", "id": "1", "delay": "2s" })).expect(201).json()["due"].clone();
    set(&clock, -3_600);
    eventually("the clock is back", || now(&server).as_str() < due.as_str().unwrap() && now(&server) < iso(-1_800));
    let early = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "3s" })).expect(200).json();
    assert_eq!(early["deliveries"], json!([]), "its time has not come by the server's clock");
    server.crash();
    assert_eq!(server.get("/v1/tasks/t/1").expect(200).json()["due"], due);
    set(&clock, 60);
    let taken = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "20s" })).expect(200).json();
    let delivery: &Value = &taken["deliveries"][0];
    assert_eq!(delivery["due"], due);
    assert!(delivery["fired_at"].as_str() >= due.as_str());
    let done = json!({ "actions": [{ "do": "acknowledge", "lease": delivery["lease"] }] });
    assert_eq!(server.post("/v1/leases", &done).expect(200).json()["results"][0]["outcome"], "acknowledged");
}

/// So many seconds from now by the real clock, as the server writes times.
fn iso(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let shifted = Duration::from_secs(now.as_secs().checked_add_signed(seconds).unwrap());
    punctual_wire::Time(shifted.as_millis() as u64).to_string()
}
