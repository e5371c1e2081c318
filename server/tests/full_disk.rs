//! A disk that runs full under the real binary, with the default settings: new tasks are refused, all else goes on,
//! no number of restarts locks it out, and when everything is consumed it takes tasks again.
//!
//! The disk is a small file system in memory, mounted for the test: it has to be run by root.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use stage::{ALMANAC, Server, eventually};

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

    /// Writes whatever room is left full, as something else on the disk would.
    fn write_full(&self) {
        let mut other = fs::File::options().create(true).append(true).open(self.0.join("something else")).unwrap();
        while other.write_all(&[1; 4_096]).is_ok() {}
    }

    /// Something else goes, and leaves its room.
    fn make_room(&self) {
        fs::remove_file(self.0.join("something else")).unwrap();
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
    let mut server = Server::prepare(ALMANAC, &[]);
    let _mount = Mount::new(server.data(), "256m");
    server.start_again();
    let confirmed = fill(&server, "first");
    assert!(confirmed.len() > 1_000, "{}", confirmed.len());
    let refused = server.post("/v1/tasks", &json!({ "topic": "t", "text": "more" })).expect(507).json();
    assert!(refused["detail"].as_str().unwrap().contains("free some disk space"), "{refused}");
    let ready = server.get("/readyz").expect(200).text();
    assert!(ready.starts_with("degraded: new tasks are refused"), "{ready}");
    let metrics = server.get("/metrics").expect(200).text();
    assert!(metrics.contains(r#"punctual_degraded{reason="no-room"} 1"#), "{metrics}");
    server.wait_for("new tasks are refused");

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
    // What it told before it was killed, it does not take back: the disk may be well again before the first look after a start.
    if server.output().rsplit("started version").next().unwrap().contains("new tasks are refused") {
        server.wait_for("new tasks are accepted again");
    }
    assert_eq!(consume(&server, 1, "acknowledge"), ["after"]);
    // What was consumed when there was room again is in the history, which gives way.
    let mut again = 0;
    eventually("the room is back", || {
        again += fill(&server, &again.to_string()).len();
        again * 2 > confirmed.len()
    });
}

/// A server on a disk that is full of small tasks, all of them due, and one that is not; with how many there are.
fn full_of_small_ones() -> (Server, Mount, usize) {
    // Less than by default, so that most tasks are in runs on so small a disk.
    let small = [("PUNCTUAL_STORE_MEMORY", "16MiB"), ("PUNCTUAL_STORE_RESERVE", "12MiB")];
    let mut server = Server::prepare(ALMANAC, &small);
    let mount = Mount::new(server.data(), "144m");
    server.start_again();
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "later", "delay": "5h" })).expect(201);
    let (mut connection, mut confirmed, text) = (server.connect(), 0, "x".repeat(100));
    loop {
        let tasks: Vec<Value> = (0..1_000).map(|_| json!({ "topic": "t", "text": text })).collect();
        let answer = connection.request("POST", "/v1/tasks/batch", Some(&json!({ "tasks": tasks }))).expect(200).json();
        let refused = answer["results"].as_array().unwrap().iter().filter(|result| result.get("problem").is_some());
        let taken = 1_000 - refused.count();
        confirmed += taken;
        if taken == 0 {
            return (server, mount, confirmed);
        }
    }
}

/// Leases up to a thousand deliveries; none if it is refused for want of room.
fn reserve(server: &Server) -> Vec<Value> {
    let answer = server.post("/v1/reserve", &json!({ "queues": ["t"], "max": 1_000, "lease": "1h" }));
    if answer.status == 507 {
        let refused = answer.json();
        assert_eq!(refused["code"], "store-full", "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains("few deliveries are handed out"), "{refused}");
        return Vec::new();
    }
    let answer = answer.expect(200).json();
    answer["deliveries"].as_array().unwrap().iter().map(|delivery| delivery["lease"].clone()).collect()
}

/// Says the same of all these leases, which is never refused.
fn settle(server: &Server, leases: &[Value], action: &Value) {
    for leases in leases.chunks(1_000) {
        let said = |lease: &Value| {
            let mut said = action.clone();
            said["lease"] = lease.clone();
            said
        };
        let actions: Vec<Value> = leases.iter().map(said).collect();
        let answer = server.post("/v1/leases", &json!({ "actions": actions })).expect(200).json();
        for result in answer["results"].as_array().unwrap() {
            assert!(result.get("problem").is_none(), "{result}");
        }
    }
}

/// Whatever was done to a full disk: it can be started again and again, tasks can be cancelled and acknowledged, and when
/// all are it takes tasks again.
fn survives(server: &mut Server, held: Vec<Value>, tasks: usize) {
    works_off(server, held, tasks);
    takes_tasks_again(server);
}

/// It can be started again and again, and all tasks can be cancelled and acknowledged.
fn works_off(server: &mut Server, mut held: Vec<Value>, tasks: usize) {
    let acknowledge = json!({ "do": "acknowledge" });
    server.delete("/v1/tasks/t/later").expect(200);
    let mut done = 0;
    for _ in 0..6 {
        server.crash();
        let few = held.split_off(held.len().saturating_sub(10));
        settle(server, &few, &acknowledge);
        done += few.len();
    }
    settle(server, &held, &acknowledge);
    done += held.len();
    while done < tasks {
        let leases = reserve(server);
        settle(server, &leases, &acknowledge);
        done += leases.len();
    }
}

fn takes_tasks_again(server: &Server) {
    eventually("tasks are taken again", || server.post("/v1/tasks", &json!({ "topic": "t" })).status == 201);
    eventually("it is well", || server.get("/readyz").expect(200).text() == "ready\n");
}

#[test]
fn leases_on_a_full_disk_stop_before_they_lock_it_out() {
    let (mut server, mount, tasks) = full_of_small_ones();
    let mut held = Vec::new();
    loop {
        // Otherwise merging may make room for as many leases as there are tasks.
        mount.write_full();
        let leases = reserve(&server);
        if leases.is_empty() {
            break;
        }
        held.extend(leases);
    }
    assert!(held.len() < tasks, "there is no room to lease all {tasks}");
    works_off(&mut server, held, tasks);
    // It may have taken what merging had made free before all was consumed.
    mount.make_room();
    takes_tasks_again(&server);
}

#[test]
fn consumers_that_fail_on_a_full_disk_and_say_why_do_not_lock_it_out() {
    let (mut server, _mount, tasks) = full_of_small_ones();
    let release = json!({ "do": "release", "after": "0s", "note": "the service is down".repeat(50) });
    for round in 0..80 {
        let leases = reserve(&server);
        settle(&server, &leases, &release);
        if round % 20 == 10 {
            server.crash();
        }
    }
    survives(&mut server, Vec::new(), tasks);
}

#[test]
fn tasks_on_a_full_disk_get_no_longer_bodies() {
    let (mut server, _mount, tasks) = full_of_small_ones();
    for _ in 0..50 {
        let refused =
            server.connect().request("PATCH", "/v1/tasks/t/later", Some(&json!({ "text": "y".repeat(1_000_000) })));
        assert_eq!(refused.expect(507).json()["code"], "store-full");
    }
    server.connect().request("PATCH", "/v1/tasks/t/later", Some(&json!({ "delay": "6h" }))).expect(200);
    survives(&mut server, Vec::new(), tasks);
}
