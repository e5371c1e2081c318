//! Reserving and settling over HTTP, through the real binary.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{ONE_SHARD, Server, eventually};

fn schedule(server: &Server, topic: &str, id: &str) {
    server.post("/v1/tasks", &json!({ "topic": topic, "id": id, "text": id })).expect(201);
}

fn reserve(server: &Server, request: Value) -> Vec<Value> {
    server.post("/v1/reserve", &request).expect(200).json()["deliveries"].as_array().unwrap().clone()
}

/// All of a queue, in however many answers they come.
fn reserve_all(server: &Server, queue: &str, count: usize) -> Vec<Value> {
    let mut taken = Vec::new();
    eventually("all of them come", || {
        taken.extend(reserve(server, json!({ "queues": [queue], "max": 10, "wait": "1s", "lease": "60s" })));
        taken.len() >= count
    });
    taken
}

fn settle(server: &Server, actions: Value) -> Vec<Value> {
    server.post("/v1/leases", &json!({ "actions": actions })).expect(200).json()["results"].as_array().unwrap().clone()
}

#[test]
fn a_waiting_consumer_gets_a_task_when_it_is_due_and_not_before() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "w", "delay": "300ms", "text": "x" })).expect(201);
    let begun = Instant::now();
    let deliveries = reserve(&server, json!({ "queues": ["w"], "wait": "20s" }));
    assert_eq!(deliveries.len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let delivery = &deliveries[0];
    assert_eq!((&delivery["queue"], &delivery["attempt"]), (&json!("w"), &json!(1)));
    let time = |field: &str| delivery[field].as_str().unwrap().to_owned();
    assert!(time("scheduled_at") < time("due") && time("due") <= time("fired_at") && time("fired_at") < time("until"));
}

#[test]
fn a_consumer_that_waits_in_vain_is_answered_empty() {
    let server = Server::start();
    let begun = Instant::now();
    assert!(reserve(&server, json!({ "queues": ["empty"], "wait": "200ms" })).is_empty());
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert!(reserve(&server, json!({ "queues": ["empty"] })).is_empty());
}

#[test]
fn deliveries_come_in_batches_from_several_queues_most_urgent_first() {
    let server = Server::start_with(ONE_SHARD);
    for (id, priority) in [("c", 30), ("a", 10), ("b", 20)] {
        server.post("/v1/tasks", &json!({ "topic": "p", "id": id, "priority": priority })).expect(201);
    }
    schedule(&server, "q", "d");
    let taken = reserve(&server, json!({ "queues": ["p", "q"], "max": 10, "wait": "5s" }));
    let of_p: Vec<&str> =
        taken.iter().filter(|one| one["queue"] == "p").map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(of_p, ["a", "b", "c"]);
}

#[test]
fn each_way_to_settle_does_what_it_says() {
    let server = Server::start();
    for id in ["acknowledge", "retry", "later", "reject", "extend"] {
        schedule(&server, "s", id);
    }
    let taken = reserve_all(&server, "s", 5);
    let lease = |id: &str| taken.iter().find(|one| one["id"] == id).unwrap()["lease"].clone();
    let results = settle(
        &server,
        json!([
            { "do": "acknowledge", "lease": lease("acknowledge") },
            { "do": "release", "lease": lease("retry") },
            { "do": "release", "lease": lease("later"), "after": "1h", "priority": 3 },
            { "do": "reject", "lease": lease("reject"), "note": "broken" },
            { "do": "extend", "lease": lease("extend"), "after": "10m" },
            { "do": "acknowledge", "lease": lease("acknowledge") },
            { "do": "acknowledge", "lease": "made-up" },
            { "do": "acknowledge", "lease": lease("extend"), "note": "misplaced" },
        ]),
    );
    let outcomes: Vec<&str> = results[..5].iter().map(|result| result["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["acknowledged", "released", "released", "rejected", "extended"]);
    assert_eq!(results[1]["standing"]["state"], "scheduled");
    assert_eq!(results[5]["problem"]["code"], "lease-lost");
    assert_eq!(results[5]["problem"]["standing"]["ending"], "done");
    assert_eq!(results[6]["problem"]["code"], "invalid");
    assert_eq!(results[7]["problem"]["code"], "invalid");
    let state = |id: &str| server.get(&format!("/v1/tasks/s/{id}")).expect(200).json();
    assert_eq!(state("acknowledge")["standing"]["ending"], "done");
    assert_eq!((&state("retry")["failures"], &state("later")["failures"]), (&json!(1), &json!(0)));
    assert_eq!(state("later")["priority"], 3);
    let dead = state("reject")["standing"].clone();
    assert_eq!(
        (&dead["state"], &dead["reason"], &dead["note"]),
        (&json!("dead"), &json!("rejected"), &json!("broken"))
    );
    let extended = taken.iter().find(|one| one["id"] == "extend").unwrap();
    assert!(state("extend")["standing"]["until"].as_str() > extended["until"].as_str());
}

#[test]
fn an_expired_lease_returns_the_delivery_and_is_refused() {
    let server = Server::start();
    let retry = json!({ "attempts": 0, "backoff": { "first": 0, "longest": 0 } });
    server.send("PUT", "/v1/queues/e", &json!({ "retry": retry })).expect(200);
    schedule(&server, "e", "1");
    let first = reserve(&server, json!({ "queues": ["e"], "wait": "5s", "lease": "100ms" }));
    let second = reserve(&server, json!({ "queues": ["e"], "wait": "5s" }));
    assert_eq!((&second[0]["id"], &second[0]["attempt"]), (&json!("1"), &json!(2)));
    let late = settle(&server, json!([{ "do": "acknowledge", "lease": first[0]["lease"] }]));
    assert_eq!(late[0]["problem"]["code"], "lease-lost");
    assert_eq!(late[0]["problem"]["standing"]["state"], "leased");
    let good = settle(&server, json!([{ "do": "acknowledge", "lease": second[0]["lease"] }]));
    assert_eq!(good[0]["outcome"], "acknowledged");
}

#[test]
fn a_lease_outlives_a_crash_of_the_server() {
    let mut server = Server::start();
    schedule(&server, "o", "1");
    let taken = reserve(&server, json!({ "queues": ["o"], "wait": "5s", "lease": "60s" }));
    server.crash();
    assert_eq!(server.delete("/v1/tasks/o/1").expect(409).json()["code"], "too-late");
    let done = settle(&server, json!([{ "do": "acknowledge", "lease": taken[0]["lease"] }]));
    assert_eq!(done[0]["outcome"], "acknowledged");
}

#[test]
fn what_a_vanished_consumer_waited_for_goes_to_another() {
    let server = Server::start();
    let mut gone = server.connect();
    gone.send("POST", "/v1/reserve", Some(&json!({ "queues": ["v"], "wait": "60s", "lease": "60s" })));
    eventually("it waits", || server.get("/v1/stats").json()["waiting_consumers"] == 1);
    drop(gone);
    eventually("it is gone", || server.get("/v1/stats").json()["waiting_consumers"] == 0);
    schedule(&server, "v", "1");
    assert_eq!(reserve(&server, json!({ "queues": ["v"], "wait": "5s" })).len(), 1);
}

#[test]
fn waiting_consumers_are_answered_when_the_server_stops() {
    let mut server = Server::start();
    let mut waiting = server.connect();
    waiting.send("POST", "/v1/reserve", Some(&json!({ "queues": ["s"], "wait": "60s" })));
    eventually("it waits", || server.get("/v1/stats").json()["waiting_consumers"] == 1);
    let answer = thread::spawn(move || waiting.receive());
    assert!(server.stop().success());
    assert_eq!(answer.join().unwrap().expect(200).json()["deliveries"], json!([]));
}

#[test]
fn unfit_requests_for_deliveries_are_refused() {
    let server = Server::start();
    for bad in [
        json!({ "queues": [] }),
        json!({ "queues": ["a b"] }),
        json!({ "queues": ["a"], "max": 0 }),
        json!({ "queues": ["a"], "max": 10_001 }),
        json!({ "queues": ["a"], "wait": "6m" }),
        json!({ "queues": ["a"], "wait": -1 }),
        json!({ "queues": vec!["a"; 65] }),
        json!({ "queues": ["a"], "consumer": "" }),
        json!({}),
        json!([]),
    ] {
        let answer = server.post("/v1/reserve", &bad).expect(422);
        assert_eq!(answer.json()["code"], "invalid", "{bad}");
    }
    let note = json!([{ "do": "reject", "lease": "x", "note": "n".repeat(2_000) }]);
    assert_eq!(settle(&server, note)[0]["problem"]["code"], "invalid");
}

#[test]
fn broadcast_gives_each_queue_its_delivery() {
    let server = Server::start();
    let feeds = json!([{ "queue": "mail" }, { "queue": "eu", "pattern": "eu.#" }]);
    server.send("PUT", "/v1/topics/news", &json!({ "feeds": feeds })).expect(200);
    server.post("/v1/tasks", &json!({ "topic": "news", "id": "1", "routing_key": "eu.de", "text": "x" })).expect(201);
    server.post("/v1/tasks", &json!({ "topic": "news", "id": "2", "routing_key": "us", "text": "y" })).expect(201);
    let mut mail = Vec::new();
    // With several shards, one answer may hold what one of them has.
    while mail.len() < 2 {
        let more = reserve(&server, json!({ "queues": ["mail"], "max": 10, "wait": "5s" }));
        assert!(!more.is_empty(), "{mail:?}");
        mail.extend(more);
    }
    let eu = reserve(&server, json!({ "queues": ["eu"], "max": 10, "wait": "5s" }));
    assert_eq!((eu.len(), &eu[0]["id"]), (1, &json!("1")));
    let task = server.get("/v1/tasks/news/1").expect(200).json();
    assert_eq!((&task["standing"]["state"], task["deliveries"].as_array().unwrap().len()), (&json!("spread"), 2));
    let all: Vec<Value> =
        mail.iter().chain(&eu).map(|one| json!({ "do": "acknowledge", "lease": one["lease"] })).collect();
    assert!(settle(&server, json!(all)).iter().all(|result| result["outcome"] == "acknowledged"));
    assert_eq!(server.get("/v1/tasks/news/1").json()["standing"]["ending"], "done");
}
