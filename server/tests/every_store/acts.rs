//! Who paused something and why, who did what, and what became of a task: told, and still known after a restart.

use serde_json::{Value, json};

use crate::stage::{Server, ends, eventually};

/// What was done, the latest first.
fn acts(server: &Server, query: &str) -> Vec<String> {
    let answer = server.get(&format!("/v1/audit{query}")).expect(200).json();
    answer["acts"].as_array().unwrap().iter().map(|act| act["what"].as_str().unwrap().to_owned()).collect()
}

/// A request that says which person sends it.
fn by_hand(server: &Server, person: &str, method: &str, path: &str) -> u16 {
    let mut connection = server.connect();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\npunctual-by: {person}\r\n\r\n", server.address());
    connection.send_raw(head.as_bytes());
    connection.receive().status
}

fn words<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[test]
fn a_pause_says_who_and_why_also_after_a_restart() {
    let mut server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "sms", "id": "1", "delay": "1h" })).expect(201);
    server.send("PUT", "/v1/queues/sms", &json!({})).expect(200);
    let version = server.get("/v1/queues/sms").expect(200).json()["version"].clone();
    let asked = json!({ "reason": "the gateway is down" });
    let queue = server.post("/v1/queues/sms/pause", &asked).expect(200).json();
    assert_eq!((&queue["pause"]["by"], &queue["pause"]["reason"]), (&json!("loopback"), &asked["reason"]));
    let topic = server.post("/v1/topics/sms/pause", &asked).expect(200).json();
    assert_eq!(topic["pause"]["reason"], asked["reason"]);
    // Whoever extends it is the one to ask, and it is as old as it was.
    let longer = server.post("/v1/queues/sms/pause", &json!({ "for": "1h", "reason": "still" })).expect(200).json();
    assert_eq!((&longer["pause"]["reason"], &longer["pause"]["since"]), (&json!("still"), &queue["pause"]["since"]));
    // A change of something else is not a pause.
    server.send("PATCH", "/v1/queues/sms", &json!({ "lease": "1m" })).expect(200);
    server.crash();
    assert_eq!(server.get("/v1/queues/sms").expect(200).json()["pause"], longer["pause"]);
    assert_eq!(server.get("/v1/topics").expect(200).json()["topics"][0]["pause"], topic["pause"]);
    let shown = ends(&server, 0, &["queues", "show", "sms"]).stdout;
    assert!(shown.contains("paused by     loopback, since ") && shown.contains("because       still"), "{shown}");
    server.post("/v1/queues/sms/resume", &json!({})).expect(200);
    server.send("PATCH", "/v1/queues/sms", &json!({ "lease": null })).expect(200);
    let resumed = server.get("/v1/queues/sms").expect(200).json();
    assert_eq!((&resumed["pause"], &resumed["version"]), (&Value::Null, &version));
    ends(&server, 0, &["topics", "pause", "sms", "--reason", "again"]);
    assert_eq!(server.get("/v1/topics/sms").expect(200).json()["pause"]["reason"], "again");
}

#[test]
fn a_pause_by_settings_is_noted_too() {
    let server = Server::start();
    let queue = server.send("PUT", "/v1/queues/sms", &json!({ "paused": true })).expect(200).json();
    assert_eq!(queue["pause"]["by"], "loopback");
    let again = server.send("PUT", "/v1/queues/sms", &json!({ "paused": true, "lease": "1m" })).expect(200).json();
    assert_eq!(again["pause"], queue["pause"]);
    let over = server.send("PATCH", "/v1/queues/sms", &json!({ "paused": false })).expect(200).json();
    assert_eq!(over["pause"], Value::Null);
}

#[test]
fn a_bad_reason_is_refused_and_nothing_is_paused() {
    let server = Server::start();
    server.send("PUT", "/v1/topics/sms", &json!({})).expect(200);
    server.send("PUT", "/v1/queues/sms", &json!({})).expect(200);
    for path in ["/v1/topics/sms", "/v1/queues/sms"] {
        for bad in [json!({ "reason": "x".repeat(1_025) }), json!({ "reason": 7 }), json!({ "why": "no" })] {
            let problem = server.post(&format!("{path}/pause"), &bad).expect(422).json();
            assert_eq!(problem["code"], "invalid", "{problem}");
        }
        assert_eq!(server.get(path).expect(200).json()["settings"]["paused"], false);
    }
}

#[test]
fn what_was_done_is_told_and_still_known_after_a_restart() {
    let mut server = Server::start();
    server.send("PUT", "/v1/queues/sms", &json!({})).expect(200);
    server.post("/v1/queues/sms/pause", &json!({ "reason": "down" })).expect(200);
    for id in ["a", "b", "c"] {
        server.post("/v1/tasks", &json!({ "topic": "sms", "id": id, "key": "k", "delay": "1h" })).expect(201);
    }
    // Producers cancel all the time; people do so now and then.
    server.delete("/v1/tasks/sms/a").expect(200);
    server.delete("/v1/keys/k").expect(200);
    assert_eq!(acts(&server, ""), ["pause-queue", "put-queue"]);
    server.post("/v1/tasks", &json!({ "topic": "sms", "id": "d", "key": "k", "delay": "1h" })).expect(201);
    assert_eq!(by_hand(&server, "Zo%C3%AB", "POST", "/v1/tasks/sms/d/hasten"), 200);
    assert_eq!(by_hand(&server, "amy", "DELETE", "/v1/keys/k"), 200);
    assert_eq!(by_hand(&server, "%00", "DELETE", "/v1/keys/k"), 400);
    assert_eq!(acts(&server, ""), ["cancel-key", "hasten", "pause-queue", "put-queue"]);
    assert_eq!(acts(&server, "?by=Zo%C3%AB"), ["hasten"]);
    assert_eq!(acts(&server, "?what=pause-queue&queue=sms&by=loopback"), ["pause-queue"]);
    assert_eq!(acts(&server, "?topic=sms"), ["hasten"]);
    let first = server.get("/v1/audit?limit=1").expect(200).json();
    assert_eq!((&first["acts"][0]["subject"], &first["more"]), (&json!("k"), &json!(true)));
    let pause = server.get("/v1/audit?what=pause-queue").expect(200).json();
    assert_eq!((&pause["acts"][0]["detail"], &pause["more"]), (&json!("down"), &json!(false)));
    let at = pause["acts"][0]["at"].as_str().unwrap();
    assert_eq!(acts(&server, &format!("?until={at}")), ["put-queue"]);
    assert_eq!(acts(&server, &format!("?from={at}")).last().unwrap(), "pause-queue");
    for bad in ["?limit=0", "?limit=1001", "?topic=", "?queue=%20", "?from=soon", "?who=amy"] {
        let problem = server.get(&format!("/v1/audit{bad}"));
        assert!((400..500).contains(&problem.status), "{bad}: {}", problem.status);
    }
    server.stop();
    server.start_again();
    assert_eq!(acts(&server, ""), ["cancel-key", "hasten", "pause-queue", "put-queue"]);
    let listed = ends(&server, 0, &["audit", "--queue", "sms"]).stdout;
    assert!(listed.contains("pause-queue") && listed.contains("down"), "{listed}");
}

#[test]
fn what_was_done_survives_a_crash_once_it_is_written() {
    let mut server = Server::start();
    // It is written with the next beat, which comes within a second on a machine that is not busy.
    eventually("it is known after a crash", || {
        server.send("PUT", "/v1/queues/sms", &json!({})).expect(200);
        std::thread::sleep(std::time::Duration::from_secs(1));
        server.crash();
        acts(&server, "").contains(&"put-queue".to_owned())
    });
}

#[test]
fn the_timeline_of_a_task_tells_its_whole_life() {
    let server = Server::start();
    let timeline = || server.get("/v1/tasks/sms/1/timeline").expect(200).json();
    server.get("/v1/tasks/sms/1/timeline").expect(404);
    server.post("/v1/tasks", &json!({ "topic": "sms", "id": "1", "delay": "1h" })).expect(201);
    let waits = timeline();
    assert_eq!(words(&waits["why"], "cause"), ["not_due"]);
    assert_eq!(words(&waits["to_come"], "what"), ["due", "retry_if_failed", "dead_if_failed"]);
    server.post("/v1/tasks/sms/1/hasten", &json!({})).expect(200);
    server.post("/v1/queues/sms/pause", &json!({ "reason": "down" })).expect(200);
    let paused = timeline();
    assert_eq!(words(&paused["why"], "cause"), ["paused", "nobody_waits"]);
    assert_eq!((&paused["why"][0]["by"], &paused["why"][0]["reason"]), (&json!("loopback"), &json!("down")));
    server.post("/v1/queues/sms/resume", &json!({})).expect(200);
    let reserve = json!({ "queues": ["sms"], "consumer": "worker-1", "wait": "10s" });
    let taken = server.post("/v1/reserve", &reserve).expect(200).json();
    let held = timeline();
    assert_eq!((&held["why"][0]["cause"], &held["why"][0]["holder"]), (&json!("held"), &json!("worker-1")));
    let action = json!({ "lease": taken["deliveries"][0]["lease"], "do": "reject", "note": "no such number" });
    server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
    let dead = timeline();
    assert_eq!(words(&dead["why"], "cause"), ["dead"]);
    let entries = words(&dead["entries"], "what");
    assert_eq!(entries.first(), Some(&"scheduled"));
    assert!(entries.ends_with(&["rejected", "dead"]), "{entries:?}");
    let act = dead["entries"].as_array().unwrap().iter().find(|entry| entry["what"] == "act").unwrap();
    assert_eq!((&act["act"], &act["who"]), (&json!("hasten"), &json!("loopback")));
    let last = dead["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["reason"], &last["note"]), (&json!("rejected"), &json!("no such number")));
    let shown = ends(&server, 0, &["timeline", "sms", "1"]).stdout;
    assert!(shown.contains("rejected, attempt 1, by worker-1, queue sms: no such number"), "{shown}");
    ends(&server, 3, &["timeline", "sms", "nowhere"]);
}

#[test]
fn the_timeline_begins_with_the_scheduling_also_of_what_was_due_before() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "sms", "id": "1", "at": "2026-01-01T00:00:00Z" })).expect(201);
    let timeline = server.get("/v1/tasks/sms/1/timeline").expect(200).json();
    assert_eq!(words(&timeline["entries"], "what"), ["scheduled", "due"]);
}

#[test]
fn the_timeline_of_a_broadcast_tells_of_each_delivery() {
    let server = Server::start();
    let feeds = json!([{ "queue": "mail" }, { "queue": "push" }]);
    server.send("PUT", "/v1/topics/news", &json!({ "feeds": feeds })).expect(200);
    server.post("/v1/queues/mail/pause", &json!({})).expect(200);
    server.post("/v1/tasks", &json!({ "topic": "news", "id": "1" })).expect(201);
    eventually("it was broadcast", || {
        let causes = server.get("/v1/tasks/news/1/timeline").expect(200).json()["why"].clone();
        words(&causes, "cause") == ["spread", "paused", "nobody_waits", "nobody_waits"]
            && (&causes[1]["queue"], &causes[3]["queue"]) == (&json!("mail"), &json!("push"))
    });
}

#[test]
fn who_names_a_queue_in_which_a_task_is_not_hears_of_the_queue() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "sms", "id": "1", "delay": "1h" })).expect(201);
    for act in ["hasten", "revoke"] {
        let problem = server.post(&format!("/v1/tasks/sms/1/{act}?queue=mail"), &json!({})).expect(404).json();
        assert_eq!(problem["code"], "no-such-task");
        assert!(problem["detail"].as_str().unwrap().contains("queue mail"), "{problem}");
    }
}
