//! A disk that runs full under the real binary, with the default settings: new tasks are refused, all else goes on,
//! no number of restarts locks it out, and when everything is consumed it takes tasks again.
//!
//! The disk is a small file system in memory, mounted for the test: it has to be run by root.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use stage::{Server, eventually};

/// A file system of its own, gone with the test.
struct Mount(PathBuf);

impl Mount {
    fn new(path: PathBuf, size: &str) -> Mount {
        fs::create_dir_all(&path).unwrap();
        let options = format!("size={size},mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).status().unwrap();
        assert!(mounted.success(), "a file system could not be mounted at {}: run this test as root", path.display());
        Mount(path)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Schedules tasks of 40 KB until one after the other is refused for lack of room; gives the ids of those that were confirmed.
fn fill(server: &Server, round: &str) -> BTreeSet<String> {
    let (mut connection, mut confirmed) = (server.connect(), BTreeSet::new());
    let text = "x".repeat(40_000);
    for batch in 0.. {
        let ids: Vec<String> = (0..50).map(|number| format!("{round}-{batch}-{number}")).collect();
        let tasks: Vec<Value> = ids.iter().map(|id| json!({ "topic": "t", "id": id, "text": text })).collect();
        let answer = connection.request("POST", "/v1/tasks/batch", Some(&json!({ "tasks": tasks }))).expect(200).json();
        let results = answer["results"].as_array().unwrap();
        for (id, result) in ids.into_iter().zip(results) {
            match result.get("problem") {
                None => _ = confirmed.insert(id),
                Some(problem) => assert_eq!(problem["code"], "store-full", "{problem}"),
            }
        }
        if results.iter().all(|result| result.get("problem").is_some()) {
            return confirmed;
        }
    }
    unreachable!("the disk is small")
}

/// Takes up to so many deliveries and settles them; gives the ids of those that are done.
fn consume(server: &Server, max: usize, action: &str) -> Vec<String> {
    let reserve = json!({ "queues": ["t"], "wait": "5s", "max": max });
    let answer = server.post("/v1/reserve", &reserve).expect(200).json();
    let taken = answer["deliveries"].as_array().unwrap();
    let actions: Vec<Value> = taken.iter().map(|taken| json!({ "do": action, "lease": taken["lease"] })).collect();
    let answer = server.post("/v1/leases", &json!({ "actions": actions })).expect(200).json();
    for result in answer["results"].as_array().unwrap() {
        assert!(result.get("problem").is_none(), "{result}");
    }
    taken.iter().map(|taken| taken["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_full_disk_heals_by_itself_and_never_locks_itself_out() {
    let mut server = Server::prepare(&[], &[]);
    let _mount = Mount::new(server.data(), "256m");
    server.start_again();
    let confirmed = fill(&server, "first");
    assert!(confirmed.len() > 1_000, "{}", confirmed.len());
    let refused = server.post("/v1/tasks", &json!({ "topic": "t", "text": "more" })).expect(507).json();
    assert!(refused["detail"].as_str().unwrap().contains("make room on the disk"), "{refused}");
    let ready = server.get("/readyz").expect(200).text();
    assert!(ready.starts_with("degraded: no new tasks are taken"), "{ready}");
    let metrics = server.get("/metrics").expect(200).text();
    assert!(metrics.contains(r#"punctual_degraded{reason="no-room"} 1"#), "{metrics}");
    server.wait_for("no new tasks are taken");

    let mut done = BTreeSet::new();
    for _ in 0..5 {
        server.crash();
        assert_eq!(consume(&server, 5, "release").len(), 5, "what is ready is handed out");
        done.extend(consume(&server, 5, "acknowledge"));
    }
    while done.len() < confirmed.len() {
        let taken = consume(&server, 100, "acknowledge");
        assert!(!taken.is_empty(), "{} of {} are done", done.len(), confirmed.len());
        done.extend(taken);
    }
    assert_eq!(done, confirmed);

    eventually("tasks are taken again", || {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": "after", "text": "x".repeat(40_000) })).status == 201
    });
    eventually("it is well", || server.get("/readyz").expect(200).text() == "ready\n");
    server.wait_for("new tasks are taken again");
    assert_eq!(consume(&server, 1, "acknowledge"), ["after"]);
    // What was consumed when there was room again is in the history, which gives way.
    let mut again = 0;
    eventually("the room is back", || {
        again += fill(&server, &again.to_string()).len();
        again * 2 > confirmed.len()
    });
}
