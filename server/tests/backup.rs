//! Backup of a running server, and restore; settings that travel with an export.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use serde_json::{Value, json};
use stage::{ALMANAC, Server, command, punctual, run};

fn schedule(server: &Server, numbers: std::ops::Range<u32>) {
    for number in numbers {
        server
            .post("/v1/tasks", &json!({ "topic": "t", "id": number.to_string(), "delay": "1h", "body": [number] }))
            .expect(201);
    }
}

#[test]
fn a_backup_of_a_running_server_brings_back_tasks_settings_and_leases() {
    let mut server = Server::start_with(ALMANAC);
    server.send("PUT", "/v1/topics/t", &json!({ "owner": "me", "history": "7d" })).expect(200);
    server.send("PUT", "/v1/queues/t", &json!({ "lease": "10m" })).expect(200);
    schedule(&server, 0..50);
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "held" })).expect(201);
    let held = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })).expect(200).json();

    let (data, backup) = (server.data(), server.directory().join("backup"));
    let (data, backup) = (data.to_str().unwrap(), backup.to_str().unwrap());
    let done = run(punctual().args(["backup", backup, "--data", data]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.starts_with("backed up"), "{}", done.stdout);
    schedule(&server, 50..60);
    let again = run(punctual().args(["backup", backup, "--data", data]));
    assert!(again.code == Some(1) && again.stderr.contains("choose another"), "{}", again.stderr);

    let refused = run(punctual().args(["restore", backup, "--data", data]));
    assert!(refused.code == Some(1) && refused.stderr.contains("move it away"), "{}", refused.stderr);
    server.kill();
    fs::rename(server.data(), server.directory().join("broken")).unwrap();
    let restored = run(punctual().args(["--json", "restore", backup, "--data", data]));
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!(serde_json::from_str::<Value>(&restored.stdout).unwrap()["directory"], data);
    server.start_again();
    for number in 0..50 {
        assert_eq!(server.get(&format!("/v1/tasks/t/{number}")).expect(200).json()["body"], json!([number]));
    }
    server.get("/v1/tasks/t/55").expect(404);
    assert_eq!(server.get("/v1/topics/t").expect(200).json()["settings"]["owner"], "me");
    assert_eq!(server.get("/v1/queues/t").expect(200).json()["settings"]["lease"], "10m");
    let done = json!({ "actions": [{ "do": "acknowledge", "lease": held["deliveries"][0]["lease"] }] });
    assert_eq!(server.post("/v1/leases", &done).expect(200).json()["results"][0]["outcome"], "acknowledged");
}

#[test]
fn what_root_restores_belongs_to_the_owner_of_the_data() {
    let mut server = Server::start_with(ALMANAC);
    schedule(&server, 0..3);
    let backup = server.directory().join("backup");
    let backup = backup.to_str().unwrap();
    assert_eq!(run(punctual().args(["backup", backup, "--data", server.data().to_str().unwrap()])).code, Some(0));
    server.stop();
    let data = server.directory().join("of-another");
    fs::create_dir(&data).unwrap();
    chown(&data, Some(12_345), Some(54_321)).expect("this test is run by root");
    let restored = run(punctual().args(["restore", backup, "--data", data.to_str().unwrap()]));
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    let mut files = 0;
    for place in [data.clone(), data.join("almanac")] {
        for entry in fs::read_dir(place).unwrap() {
            let of = entry.unwrap().metadata().unwrap();
            assert_eq!((of.uid(), of.mode() & 0o077), (12_345, 0));
            files += 1;
        }
    }
    assert!(files > 4, "the secret, the store and its files");
    for entry in fs::read_dir(format!("{backup}/almanac")).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().uid(), 0, "the backup stays whose it was");
    }
}

#[test]
fn an_export_brings_settings_along_and_an_import_puts_them_where_there_are_none() {
    let (one, other) = (Server::start_with(ALMANAC), Server::start_with(ALMANAC));
    one.send("PUT", "/v1/queues/slow", &json!({ "lease": "10m" })).expect(200);
    one.send("PUT", "/v1/topics/t", &json!({ "owner": "me", "feeds": [{ "queue": "slow" }] })).expect(200);
    one.send("PUT", "/v1/topics/kept", &json!({ "owner": "me" })).expect(200);
    schedule(&one, 0..3);
    one.connect().request("POST", "/v1/topics/t/pause", None).expect(200);
    other.send("PUT", "/v1/topics/kept", &json!({ "owner": "you" })).expect(200);

    let file = one.directory().join("all.jsonl");
    let file = file.to_str().unwrap();
    let exported = run(command(&one).args(["export", file]));
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let imported = run(command(&other).args(["import", file]));
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert!(
        imported.stdout.contains("imported 3 tasks") && imported.stdout.contains("settings of"),
        "{}",
        imported.stdout
    );
    let topic = other.get("/v1/topics/t").expect(200).json();
    assert_eq!((&topic["settings"]["owner"], &topic["settings"]["paused"]), (&json!("me"), &json!(true)));
    assert_eq!(topic["settings"]["feeds"][0]["queue"], "slow");
    assert_eq!(other.get("/v1/queues/slow").expect(200).json()["settings"]["lease"], "10m");
    assert_eq!(other.get("/v1/topics/kept").expect(200).json()["settings"]["owner"], "you");
    other.get("/v1/tasks/t/2").expect(200);

    let again = run(command(&other).args(["import", file]));
    assert!(again.code == Some(0) && again.stdout.contains("imported 0 tasks, 3 already existed"), "{}", again.stdout);
    let bare = run(command(&one).args(["export", "--no-settings", "-"]));
    assert_eq!(bare.stdout.lines().count(), 3, "{}", bare.stdout);
}
