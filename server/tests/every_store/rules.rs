//! What the server refuses with a reason, what it says of attempts that failed, and how leases, histories and dead
//! letters are handled with care: over HTTP and the command line, through the real binary.

use serde_json::{Value, json};

use crate::stage::{Answer, ONE_SHARD, Server, ends, eventually, punctual};

fn detail(answer: &Answer) -> String {
    answer.json()["detail"].as_str().unwrap().to_owned()
}

/// Refused because it cannot be meant, and the reason says these words.
#[track_caller]
fn refused(answer: Answer, words: &[&str]) {
    let detail = detail(&answer.expect(422));
    for word in words {
        assert!(detail.contains(word), "{word:?} is missing in: {detail}");
    }
}

fn schedule(server: &Server, task: Value) -> Value {
    server.post("/v1/tasks", &task).json()
}

fn take(server: &Server, queue: &str) -> Value {
    let asked = json!({ "queues": [queue], "wait": "5s", "consumer": "w1" });
    server.post("/v1/reserve", &asked).expect(200).json()["deliveries"][0].take()
}

fn act(server: &Server, mut action: Value, delivery: &Value) -> Value {
    action["lease"] = delivery["lease"].clone();
    server.post("/v1/leases", &json!({ "actions": [action] })).expect(200).json()["results"][0].take()
}

#[test]
fn numbers_that_can_only_be_seconds_and_lengths_without_a_unit_are_refused() {
    let server = Server::start();
    let seconds = json!({ "topic": "t", "at": 1_794_842_836 });
    refused(server.post("/v1/tasks", &seconds), &["seconds", "1794842836000", "2026-11-16T"]);
    refused(server.get("/v1/tasks?from=1794842836"), &["seconds"]);
    refused(server.post("/v1/tasks", &json!({ "topic": "t", "delay": "15" })), &["unit", "15s", "15ms"]);
    server.post("/v1/tasks", &json!({ "topic": "t", "delay": 900_000 })).expect(201);
    let wrong = ends(&server, 2, &["schedule", "t", "x", "--at", "1794842836"]);
    assert!(wrong.stderr.contains("1794842836000"), "{}", wrong.stderr);
    for arguments in [
        &["schedule", "t", "x", "--in", "15"][..],
        &["reschedule", "t", "x", "--by", "-15"],
        &["queues", "pause", "t", "--for", "15"],
        &["list", "--from", "-15"],
    ] {
        let wrong = ends(&server, 2, arguments);
        assert!(wrong.stderr.contains("15") && wrong.stderr.contains("unit"), "{}", wrong.stderr);
    }
    ends(&server, 0, &["schedule", "t", "x", "--in", "0"]);
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_reason() {
    let server = Server::start();
    let task = |more: Value| {
        let mut task = json!({ "topic": "t" });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/tasks", &task)
    };
    refused(task(json!({ "delay": null })), &["null"]);
    refused(task(json!({ "at": null })), &["null"]);
    refused(task(json!({ "lease": 0 })), &["lease", "0 ms"]);
    refused(task(json!({ "max_lease": "0s" })), &["max_lease"]);
    refused(task(json!({ "retry": { "jitter_percent": 101 } })), &["retry", "jitter", "100"]);
    refused(task(json!({ "retry": { "backoff": { "first": "2h" } } })), &["retry", "longest"]);
    let put = |settings: Value| server.send("PUT", "/v1/queues/q", &settings);
    refused(put(json!({ "retry": { "jitter_percent": 200 } })), &["jitter"]);
    refused(put(json!({ "retry": { "backoff": { "first": "2h", "longest": "1h" } } })), &["first wait"]);
    refused(put(json!({ "lease": "1m", "max_lease": "30s" })), &["max_lease"]);
    put(json!({})).expect(200);
    refused(server.post("/v1/reserve", &json!({ "queues": ["q"], "lease": 0 })), &["lease"]);
    let past = json!({ "until": "2001-01-01T00:00:00Z" });
    refused(server.post("/v1/queues/q/pause", &past), &["until", "already passed"]);
    refused(server.post("/v1/queues/q/pause", &json!({ "for": 0 })), &["already passed"]);
    refused(server.get("/v1/events?what=fired,bogus"), &["bogus", "cancelled"]);
    let wrong = ends(&server, 1, &["events", "--what", "bogus"]);
    assert!(wrong.stderr.contains("bogus") && wrong.stderr.contains("fired"), "{}", wrong.stderr);
    task(json!({})).expect(201);
    let delivery = take(&server, "t");
    let extended = act(&server, json!({ "do": "extend", "after": 0 }), &delivery);
    assert_eq!(extended["problem"]["status"], 422, "{extended}");
    assert_eq!(act(&server, json!({ "do": "acknowledge" }), &delivery)["outcome"], "acknowledged");
}

#[test]
fn a_feed_to_a_queue_that_is_missing_is_refused_where_nothing_comes_to_be_by_use() {
    let server = Server::start_with(&["--tasks-create-on-use=false"]);
    let feeds = json!({ "feeds": [{ "queue": "missing" }] });
    let refused = server.send("PUT", "/v1/topics/t", &feeds).expect(404);
    assert_eq!(refused.json()["code"], "no-such-queue");
    server.send("PUT", "/v1/queues/missing", &json!({})).expect(200);
    server.send("PUT", "/v1/topics/t", &feeds).expect(200);
    // A topic that names no feeds has one: the queue of its own name.
    let refused = server.send("PUT", "/v1/topics/own", &json!({})).expect(404).json();
    assert_eq!(refused["detail"], "there is no queue own: create it first");
    server.send("PUT", "/v1/queues/own", &json!({})).expect(200);
    server.send("PUT", "/v1/topics/own", &json!({})).expect(200);
}

#[test]
fn a_time_to_live_of_nothing_is_refused_for_tasks_and_topics() {
    let server = Server::start();
    refused(server.post("/v1/tasks", &json!({ "topic": "t", "ttl": 0 })), &["ttl", "leave it out"]);
    let topic = server.send("PUT", "/v1/topics/t", &json!({ "ttl": "0s" })).expect(422).json();
    assert!(topic["detail"].as_str().unwrap().contains("ttl"), "{topic}");
}

/// Sends a body as it is written here: what is tested is what a program would not write.
fn raw_task(server: &Server, body: &str) -> Answer {
    let json = format!("{{\"topic\":\"raw\",\"body\":{body}}}");
    let mut connection = server.connect();
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    connection.send_raw(format!("{head}\r\ncontent-length: {}\r\n\r\n{json}", json.len()).as_bytes());
    connection.receive()
}

#[test]
fn json_that_parsers_would_not_take_back_is_refused() {
    let server = Server::start_with(ONE_SHARD);
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    for bad in [nested(121), nested(20_000), "\"\\ud800\"".into(), "[1e999]".into(), "1".repeat(5_000)] {
        refused(raw_task(&server, &bad), &["body", "text"]);
    }
    for bad in ["NaN", "[1,]", "'x'"] {
        raw_task(&server, bad).expect(400);
    }
    for good in [nested(120), "null".into(), "\"\\ud83d\\ude00\"".into(), "{\"a\":1,\"a\":2}".into()] {
        raw_task(&server, &good).expect(201);
    }
    let deliveries = server.post("/v1/reserve", &json!({ "queues": ["raw"], "max": 9, "wait": "5s" })).expect(200);
    assert!(deliveries.text().contains("\"body\":null,"), "it comes back as null");
    // Whoever reads the answer as a whole gets all of them.
    assert_eq!(deliveries.json()["deliveries"].as_array().unwrap().len(), 4);
    assert_eq!(deliveries.text().matches("\"body\":").count(), 4);
    let task = json!({ "topic": "t", "id": "null", "body": null });
    server.post("/v1/tasks", &task).expect(201);
    assert_eq!(server.get("/v1/tasks/t/null").expect(200).json().get("body"), Some(&Value::Null));
    let listed = ends(&server, 0, &["--json", "get", "t", "null"]);
    assert!(listed.stdout.contains("\"body\":null"), "{}", listed.stdout);
}

#[test]
fn a_finished_task_is_armed_again_and_the_answer_says_how() {
    let server = Server::start();
    let timer = json!({ "topic": "t", "id": "timer", "text": "first" });
    schedule(&server, timer.clone());
    act(&server, json!({ "do": "acknowledge" }), &take(&server, "t"));
    let existed = server.post("/v1/tasks", &timer).expect(200).json();
    assert_eq!((&existed["outcome"], &existed["standing"]["ending"]), (&json!("existed"), &json!("done")));
    assert!(existed["hint"].as_str().unwrap().contains("\"replace\": true"), "{existed}");
    let again = json!({ "topic": "t", "id": "timer", "text": "second", "replace": true });
    assert_eq!(server.post("/v1/tasks", &again).expect(200).json()["outcome"], "replaced");
    let delivery = take(&server, "t");
    assert_eq!((&delivery["text"], &delivery["attempt"]), (&json!("second"), &json!(1)));
    let busy = server.post("/v1/tasks", &again).expect(200).json();
    assert_eq!((&busy["outcome"], &busy["standing"]["holder"]), (&json!("existed"), &json!("w1")));
    act(&server, json!({ "do": "acknowledge" }), &delivery);
    let told = ends(&server, 0, &["schedule", "t", "third", "--id", "timer"]);
    assert!(told.stdout.contains("already exists") && told.stdout.contains("replace"), "{}", told.stdout);
    let told = ends(&server, 0, &["schedule", "t", "third", "--id", "timer", "--replace"]);
    assert!(told.stdout.contains("replaced"), "{}", told.stdout);
}

#[test]
fn replaying_the_history_leaves_what_was_cancelled_alone() {
    let server = Server::start();
    schedule(&server, json!({ "topic": "t", "id": "cancelled", "delay": "1h" }));
    server.delete("/v1/tasks/t/cancelled").expect(200);
    schedule(&server, json!({ "topic": "t", "id": "done" }));
    act(&server, json!({ "do": "acknowledge" }), &take(&server, "t"));
    let ids = |query: &str| -> Vec<String> {
        let page = server.get(&format!("/v1/history{query}")).expect(200).json();
        page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (ids("").len(), ids("?ending=cancelled"), ids("?ending=done")),
        (2, vec!["cancelled".into()], vec!["done".into()])
    );
    let listed = ends(&server, 0, &["--json", "history", "--ending", "cancelled"]).stdout;
    assert!(listed.lines().count() == 1 && listed.contains("\"ending\":\"cancelled\""), "{listed}");
    server.get("/v1/history?ending=bogus").expect(422);
    let replay = |selection: Value| server.post("/v1/history/replay", &selection).expect(200).json()["changed"].clone();
    assert_eq!(replay(json!({ "topic": "t", "ending": "forwarded" })), 0);
    assert_eq!(replay(json!({ "topic": "t" })), 1);
    assert_eq!(take(&server, "t")["id"], "done");
    ends(&server, 0, &["history", "replay", "--topic", "t", "--yes", "--ending", "any"]);
    assert_eq!(take(&server, "t")["id"], "cancelled");
}

#[test]
fn dead_letters_are_swept_only_if_it_is_said_which() {
    let server = Server::start();
    schedule(&server, json!({ "topic": "t", "id": "dead" }));
    act(&server, json!({ "do": "reject", "note": "no" }), &take(&server, "t"));
    for sweep in ["replay", "purge"] {
        let path = format!("/v1/dead/{sweep}");
        refused(server.post(&path, &json!({})), &["\"all\": true", "topic"]);
        refused(server.post(&path, &json!({ "dry_run": true })), &["\"all\": true"]);
        refused(server.post(&path, &json!({ "topic": null })), &["null"]);
        refused(server.post(&path, &json!({ "all": true, "ending": "done" })), &["ending"]);
        let all = server.post(&path, &json!({ "all": true, "dry_run": true })).expect(200).json();
        assert_eq!(all["changed"], 1);
    }
    assert_eq!(server.post("/v1/dead/purge", &json!({ "queue": "t" })).expect(200).json()["changed"], 1);
    ends(&server, 0, &["dead", "purge", "--all", "--yes"]);
}

#[test]
fn a_dead_letter_says_why_after_a_crash_too() {
    let mut server = Server::start();
    let backoff = json!({ "first": 0, "longest": 0 });
    server.send("PUT", "/v1/queues/t", &json!({ "retry": { "attempts": 2, "backoff": backoff } })).expect(200);
    schedule(&server, json!({ "topic": "t", "id": "x" }));
    act(&server, json!({ "do": "release", "note": "the bank is closed" }), &take(&server, "t"));
    act(&server, json!({ "do": "release", "note": "the bank has burnt down" }), &take(&server, "t"));
    server.crash();
    let dead = server.get("/v1/dead").expect(200).json()["tasks"][0].take();
    assert_eq!(dead["standing"]["note"], "the bank has burnt down");
    let log = dead["log"].as_array().unwrap();
    let told =
        |index: usize| (&log[index]["attempt"], &log[index]["consumer"], &log[index]["undone"], &log[index]["note"]);
    assert_eq!(told(0), (&json!(1), &json!("w1"), &json!("failed"), &json!("the bank is closed")));
    assert_eq!(told(1), (&json!(2), &json!("w1"), &json!("failed"), &json!("the bank has burnt down")));
    let card = ends(&server, 0, &["get", "t", "x"]).stdout;
    assert!(card.contains("1 failed") && card.contains("with w1: the bank is closed"), "{card}");
    schedule(&server, json!({ "topic": "t", "id": "y" }));
    let delivery = take(&server, "t");
    let too_long = act(&server, json!({ "do": "release", "note": "x".repeat(2_000) }), &delivery);
    assert_eq!(too_long["problem"]["status"], 422);
    assert_eq!(act(&server, json!({ "do": "acknowledge" }), &delivery)["outcome"], "acknowledged");
}

#[test]
fn a_worker_leaves_the_last_line_of_stderr_and_keeps_to_the_tasks_own_lease() {
    let server = Server::start();
    schedule(&server, json!({ "topic": "t", "id": "x", "lease": "7m", "retry": { "attempts": 1 } }));
    let line = "sleep 1; echo first >&2; echo no such order >&2; exit 1";
    let mut command = punctual();
    command.args([
        "--url",
        &format!("http://{}", server.address()),
        "work",
        "t",
        "--limit",
        "1",
        "--",
        "sh",
        "-c",
        line,
    ]);
    let mut worker = command.spawn().unwrap();
    eventually("the worker has it", || {
        let standing = server.get("/v1/tasks/t/x").json()["standing"].take();
        if standing["state"] != "leased" {
            return false;
        }
        let until: punctual_wire::Time = standing["until"].as_str().unwrap().parse().unwrap();
        let left = until.0.saturating_sub(punctual_wire::Time::now().0);
        assert!(left > 60_000, "its own seven minutes, not thirty seconds: {left} ms");
        true
    });
    assert!(worker.wait().unwrap().success());
    let task = server.get("/v1/tasks/t/x").expect(200).json();
    assert_eq!(
        (&task["standing"]["note"], &task["log"][0]["note"]),
        (&json!("no such order"), &json!("no such order"))
    );
}

#[test]
fn a_lease_is_cut_and_an_operator_can_end_it() {
    let server = Server::start();
    let put = server.send("PUT", "/v1/queues/t", &json!({ "max_lease": "10m" })).expect(200).json();
    assert_eq!(put["settings"]["max_lease"], "10m");
    schedule(&server, json!({ "topic": "t", "id": "x" }));
    let asked = json!({ "queues": ["t"], "lease": "300000w", "wait": "5s", "consumer": "w1" });
    let delivery = server.post("/v1/reserve", &asked).expect(200).json()["deliveries"][0].take();
    assert_eq!(delivery["lease_time"], "10m");
    let extended = act(&server, json!({ "do": "extend", "after": "300000w" }), &delivery);
    let until: punctual_wire::Time = extended["until"].as_str().unwrap().parse().unwrap();
    // It counts from when the answer is thought to arrive, at most a second from the step.
    assert!(until.0 <= punctual_wire::Time::now().0 + 601_000, "{extended}");

    let wrong = server.post("/v1/tasks/t/x/revoke", &json!({ "holder": "w2" })).expect(409).json();
    assert_eq!((&wrong["code"], &wrong["standing"]["holder"]), (&json!("lease-lost"), &json!("w1")));
    let revoked = server.post("/v1/tasks/t/x/revoke", &json!({ "after": 0, "note": "w1 hangs" })).expect(200).json();
    assert_eq!(revoked["standing"]["state"], "ready");
    let late = act(&server, json!({ "do": "acknowledge" }), &delivery);
    assert_eq!(late["problem"]["code"], "lease-lost");
    assert_eq!(take(&server, "t")["attempt"], 2);
    let told = ends(&server, 0, &["revoke", "t", "x", "--holder", "w1", "--note", "again"]).stdout;
    assert!(told.contains("revoked the lease on t x"), "{told}");
    ends(&server, 4, &["revoke", "t", "x"]);
    ends(&server, 3, &["revoke", "t", "nothing"]);
    let log = server.get("/v1/tasks/t/x").expect(200).json()["log"].take();
    assert_eq!((&log[0]["undone"], &log[0]["note"]), (&json!("revoked"), &json!("w1 hangs")));
    let told = ends(&server, 0, &["queues", "set", "t", "--max-lease", "1h"]).stdout;
    assert!(told.contains("at most 1h"), "{told}");
    eventually("the audit has it", || server.output().contains("action=\"revoke\" subject=\"t/x\""));
}

#[test]
fn zero_attempts_are_any_number_and_one_is_one() {
    let server = Server::start();
    let backoff = json!({ "first": 0, "longest": 0 });
    let retry = |attempts: u32| json!({ "attempts": attempts, "backoff": backoff });
    schedule(&server, json!({ "topic": "many", "retry": retry(0) }));
    for attempt in 1..=12 {
        let delivery = take(&server, "many");
        assert_eq!(delivery["attempt"], attempt);
        act(&server, json!({ "do": "release" }), &delivery);
    }
    server.send("PUT", "/v1/queues/queue", &json!({ "retry": retry(0) })).expect(200);
    schedule(&server, json!({ "topic": "queue" }));
    for attempt in 1..=12 {
        let delivery = take(&server, "queue");
        assert_eq!(delivery["attempt"], attempt);
        act(&server, json!({ "do": "release" }), &delivery);
    }
    ends(&server, 0, &["schedule", "line", "x", "--id", "x", "--attempts", "0"]);
    let told = ends(&server, 0, &["get", "line", "x"]).stdout;
    assert!(told.contains("any number of attempts"), "{told}");
    schedule(&server, json!({ "topic": "once", "id": "x", "retry": retry(1) }));
    act(&server, json!({ "do": "release" }), &take(&server, "once"));
    assert_eq!(server.get("/v1/tasks/once/x").expect(200).json()["standing"]["reason"], "out-of-attempts");
}
