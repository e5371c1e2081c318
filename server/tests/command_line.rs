//! The command line against a real server: what it prints, what it does, and the exit codes that scripts use.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs;

use serde_json::{Value, json};
use stage::{Server, ends, eventually, punctual, run};

#[track_caller]
fn json_of(server: &Server, arguments: &[&str]) -> Value {
    let ended = ends(server, 0, &[&["--json"], arguments].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

#[test]
fn a_task_is_scheduled_looked_at_moved_and_cancelled() {
    let server = Server::start();
    let scheduled = json_of(
        &server,
        &["schedule", "orders", "{\"order\": 7}", "--id", "7", "--in", "15m", "--key", "user-1", "--lease", "5m"],
    );
    assert_eq!((&scheduled["id"], &scheduled["outcome"]), (&json!("7"), &json!("created")));
    let human = ends(&server, 0, &["schedule", "orders", "plain words", "--in", "1h"]);
    assert!(!human.stdout.trim().is_empty());
    let task = json_of(&server, &["get", "orders", "7"]);
    assert_eq!((&task["body"], &task["key"]), (&json!({ "order": 7 }), &json!("user-1")));
    assert_eq!(task["lease"], "5m");
    assert_eq!(json_of(&server, &["get", "--number", &task["number"].to_string()]), task);
    let listed = ends(&server, 0, &["--json", "list", "--topic", "orders"]);
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    json_of(&server, &["reschedule", "orders", "7", "--by", "-5m"]);
    ends(&server, 0, &["cancel", "orders", "7"]);
    ends(&server, 0, &["cancel", "--key", "user-1", "--dry-run"]);
    ends(&server, 0, &["health"]);
}

#[test]
fn exit_codes_say_what_went_wrong() {
    let mut server = Server::start();
    ends(&server, 2, &["schedule"]);
    ends(&server, 2, &["schedule", "t", "x", "--in", "soon"]);
    ends(&server, 3, &["get", "t", "nothing"]);
    ends(&server, 3, &["get", "--number", "4711"]);
    ends(&server, 2, &["get", "t", "nothing", "--number", "4711"]);
    ends(&server, 3, &["cancel", "t", "nothing"]);
    ends(&server, 3, &["topics", "show", "nothing"]);
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "taken" })).expect(201);
    server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })).expect(200);
    let late = ends(&server, 4, &["cancel", "t", "taken"]);
    assert!(late.stderr.contains("anonymous"), "it says with whom it is: {}", late.stderr);
    ends(&server, 4, &["reschedule", "t", "taken", "--in", "1h"]);
    ends(&server, 1, &["schedule", "a b", "x"]);
    let address = server.address().to_owned();
    server.stop();
    let gone = run(punctual().args(["--url", &format!("http://{address}"), "get", "t", "x"]));
    assert_eq!(gone.code, Some(5), "{}", gone.stderr);
    assert_eq!(gone.stderr.lines().count(), 1, "one line says it: {}", gone.stderr);
}

#[test]
fn without_the_right_token_the_exit_code_says_so() {
    let mut server = Server::prepare(&[], &[]);
    let made =
        run(punctual().args(["token", "create", "--name", "c", "--role", "consume"]).arg("--data").arg(server.data()));
    let secret = made.stdout.split_whitespace().find(|word| word.starts_with("pct_")).unwrap().to_owned();
    server.start_again();
    ends(&server, 6, &["topics"]);
    ends(&server, 6, &["--token", &secret, "schedule", "t", "x"]);
}

#[test]
fn work_runs_a_command_for_each_delivery_and_its_exit_code_decides() {
    let server = Server::start();
    for (id, body) in [("good", "0"), ("bad", "65"), ("again", "75")] {
        ends(&server, 0, &["schedule", "jobs", body, "--id", id, "--text"]);
    }
    let script = "read code; echo \"$PUNCTUAL_ID $PUNCTUAL_ATTEMPT $code\" >> seen; exit $code";
    ends(&server, 0, &["work", "jobs", "--limit", "3", "--", "sh", "-c", script]);
    let seen = fs::read_to_string(server.directory().join("seen")).unwrap();
    let mut lines: Vec<&str> = seen.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["again 1 75", "bad 1 65", "good 1 0"]);
    let state = |id: &str| json_of(&server, &["get", "jobs", id])["standing"].clone();
    assert_eq!(state("good")["ending"], "done");
    assert_eq!(state("bad")["reason"], "rejected");
    eventually("the third waits for its next attempt", || {
        ["scheduled", "ready"].contains(&state("again")["state"].as_str().unwrap())
    });
}

#[test]
fn topics_and_queues_change_only_what_is_given() {
    let server = Server::start();
    ends(&server, 0, &["topics", "set", "t", "--owner", "me", "--history", "2h"]);
    ends(&server, 0, &["topics", "set", "t", "--ttl", "5m"]);
    let topic = json_of(&server, &["topics", "show", "t"]);
    let settings = &topic["settings"];
    assert_eq!(
        (&settings["owner"], &settings["history"], &settings["ttl"]),
        (&json!("me"), &json!("2h"), &json!("5m"))
    );
    ends(&server, 0, &["queues", "set", "q", "--lease", "5s"]);
    assert_eq!(json_of(&server, &["queues", "show", "q"])["settings"]["lease"], "5s");
    ends(&server, 0, &["queues", "pause", "q"]);
    ends(&server, 0, &["queues", "resume", "q"]);
    ends(&server, 0, &["topics", "delete", "t", "--yes"]);
    ends(&server, 0, &["topics"]);
}

#[test]
fn an_export_can_be_imported_twice_and_changes_nothing_the_second_time() {
    let server = Server::start();
    for id in 0..700 {
        let task = json!({ "topic": "e", "id": id.to_string(), "at": "2040-01-01T00:00:00Z", "body": { "n": id }, "key": "k" });
        server.post("/v1/tasks", &task).expect(201);
    }
    ends(&server, 0, &["export", "tasks.jsonl", "--topic", "e", "--no-settings"]);
    assert_eq!(fs::read_to_string(server.directory().join("tasks.jsonl")).unwrap().lines().count(), 700);
    ends(&server, 0, &["topics", "delete", "e", "--force", "--yes"]);
    ends(&server, 0, &["import", "tasks.jsonl"]);
    let again = ends(&server, 0, &["import", "tasks.jsonl"]);
    assert!(again.stderr.contains("700") || again.stdout.contains("700"), "{}{}", again.stdout, again.stderr);
    let task = json_of(&server, &["get", "e", "699"]);
    assert_eq!(
        (&task["body"], &task["due"], &task["key"]),
        (&json!({ "n": 699 }), &json!("2040-01-01T00:00:00.000Z"), &json!("k"))
    );
}

#[test]
fn pictures_are_drawn_and_loads_are_measured() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "t", "delay": "2h" })).expect(201);
    let forecast = ends(&server, 0, &["forecast", "--unit", "hour", "--slots", "4"]);
    assert_eq!(forecast.stdout.lines().filter(|line| line.contains(":00")).count(), 4, "{}", forecast.stdout);
    let top = ends(&server, 0, &["top", "--once"]);
    assert!(top.stdout.contains('t'), "{}", top.stdout);
    let bench = ends(&server, 0, &["bench", "--tasks", "200", "--connections", "4"]);
    assert!(bench.stdout.contains("p99"), "{}", bench.stdout);
    let script = ends(&server, 0, &["completions", "bash"]);
    assert!(script.stdout.contains("punctual"));
}

/// What somebody writes who wants the terminals of others to do something: clear the screen, set the title, forge a line.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\n2026-01-01 all is well";

#[test]
fn what_others_wrote_does_not_reach_the_terminal_as_control_characters() {
    let server = Server::start();
    server.send("PUT", "/v1/queues/es", &json!({ "retry": { "attempts": 1 } })).expect(200);
    server.send("PUT", "/v1/topics/es", &json!({ "owner": HOSTILE })).expect(200);
    for id in ["dead", "waits"] {
        let headers = json!({ "h": "v" });
        let task = json!({ "topic": "es", "id": id, "text": HOSTILE, "headers": headers });
        server.post("/v1/tasks", &task).expect(201);
    }
    let taken = server.post("/v1/reserve", &json!({ "queues": ["es"], "wait": "10s" })).expect(200).json();
    let dead = taken["deliveries"][0]["id"].as_str().unwrap();
    let action = json!({ "do": "reject", "lease": taken["deliveries"][0]["lease"], "note": HOSTILE });
    server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
    for noun in ["queues", "topics"] {
        server.post(&format!("/v1/{noun}/es/pause"), &json!({ "reason": HOSTILE })).expect(200);
    }
    let waits = if dead == "dead" { "waits" } else { "dead" };
    let mut telling = 0;
    for arguments in [
        &["get", "es", dead][..],
        &["timeline", "es", dead],
        &["timeline", "es", waits],
        &["dead"],
        &["dead", "--bodies"],
        &["dead", "groups"],
        &["list", "--bodies"],
        &["audit"],
        &["topics"],
        &["topics", "show", "es"],
        &["queues"],
        &["queues", "show", "es"],
        &["queues", "line", "es"],
        &["history"],
        &["sweeps"],
        &["find", dead],
        &["consumers"],
        &["forecast", "--top", "3"],
        &["cancel", "es", dead],
        &["sweep", "--topic", "es", "--do", "cancel", "--dry-run"],
    ] {
        let ended = run(stage::command(&server).args(arguments));
        let told = ended.stdout + &ended.stderr;
        let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        assert!(!told.contains(is_obeyed), "{arguments:?}: {told:?}");
        // A body is shown with its own lines; all else stays on the line where it belongs.
        let forged = told.lines().filter(|line| line.starts_with("2026-01-01 all")).count();
        assert_eq!(forged, usize::from(arguments[0] == "get"), "{arguments:?}: {told:?}");
        telling += usize::from(told.contains("\\u{1b}[2J"));
    }
    assert!(telling >= 8, "only {telling} commands show what was written");
    let whole = json_of(&server, &["get", "es", dead]);
    assert_eq!((&whole["text"], &whole["standing"]["note"]), (&json!(HOSTILE), &json!(HOSTILE)), "programs get all");
    ends(&server, 0, &["queues", "resume", "es"]);
    ends(&server, 0, &["work", "es", "--limit", "1", "--", "sh", "-c", "cat > body"]);
    assert_eq!(fs::read_to_string(server.directory().join("body")).unwrap(), HOSTILE, "and so does who works on it");
}
