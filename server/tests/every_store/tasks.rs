//! Scheduling, looking, cancelling and moving over HTTP, through the real binary.

use punctual_wire::Time;
use serde_json::{Value, json};

use crate::stage::{Answer, ONE_SHARD, Server};

fn code(answer: &Answer) -> String {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{}", answer.text());
    let problem = answer.json();
    assert_eq!(problem["status"], answer.status);
    let code = problem["code"].as_str().unwrap().to_owned();
    assert_eq!(problem["type"], format!("urn:punctual:problem:{code}"));
    assert!(problem["detail"].as_str().unwrap().len() > 10, "{problem}");
    code
}

fn reserve(server: &Server, queue: &str) -> Value {
    let answer = server.post("/v1/reserve", &json!({ "queues": [queue], "max": 100, "wait": "5s", "consumer": "c" }));
    answer.expect(200).json()["deliveries"].take()
}

#[test]
fn the_same_id_twice_is_one_task() {
    let server = Server::start();
    let task = json!({ "topic": "orders", "id": "7", "delay": "15m", "body": { "order": 7 } });
    let first = server.post("/v1/tasks", &task).expect(201).json();
    assert_eq!((&first["topic"], &first["id"], &first["outcome"]), (&json!("orders"), &json!("7"), &json!("created")));
    let again = server.post("/v1/tasks", &task).expect(200).json();
    assert_eq!((&again["outcome"], &again["standing"]["state"]), (&json!("existed"), &json!("scheduled")));
    assert_eq!(again["standing"]["at"], first["due"]);
    let replacing = json!({ "topic": "orders", "id": "7", "delay": "1h", "text": "new", "replace": true });
    assert_eq!(server.post("/v1/tasks", &replacing).expect(200).json()["outcome"], "replaced");
    assert_eq!(server.get("/v1/tasks/orders/7").expect(200).json()["text"], "new");
}

#[test]
fn an_idempotency_key_serves_as_the_id() {
    let server = Server::start();
    let mut connection = server.connect();
    let body = r#"{"topic":"t","delay":"1h"}"#;
    let request = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nidempotency-key: abc\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.send_raw(request.as_bytes());
    let first = connection.receive().expect(201).json();
    assert_eq!(first["id"], "abc");
    connection.send_raw(request.as_bytes());
    assert_eq!(connection.receive().expect(200).json()["outcome"], "existed");
}

#[test]
fn bodies_come_back_as_they_went_in() {
    let server = Server::start_with(ONE_SHARD);
    let raw = "{\"topic\":\"b\",\"id\":\"raw\",\"body\":{\"b\" : 1.50,\"a\":[1e3, null, \"\\u00e9\"]}}";
    let mut connection = server.connect();
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        raw.len()
    );
    connection.send_raw(format!("{head}{raw}").as_bytes());
    connection.receive().expect(201);
    for (id, field, value) in [
        ("text", "text", json!("say \"hi\"\n\u{1f600}")),
        ("bytes", "base64", json!("/wAH")),
        ("string", "body", json!("just a string")),
        ("null", "body", json!(false)),
        ("none", "base64", json!("")),
    ] {
        let mut task = json!({ "topic": "b", "id": id });
        if id != "none" {
            task[field] = value.clone();
        }
        server.post("/v1/tasks", &task).expect(201);
        assert_eq!(server.get(&format!("/v1/tasks/b/{id}")).expect(200).json()[field], value, "{id}");
    }
    let answer = server.post("/v1/reserve", &json!({ "queues": ["b"], "max": 100, "wait": "5s" })).expect(200);
    assert!(answer.text().contains("{\"b\" : 1.50,\"a\":[1e3, null, \"\\u00e9\"]}"), "{}", answer.text());
    let deliveries = answer.json()["deliveries"].as_array().unwrap().clone();
    let of = |id: &str| deliveries.iter().find(|delivery| delivery["id"] == id).unwrap().clone();
    assert_eq!(of("text")["text"], "say \"hi\"\n\u{1f600}");
    assert_eq!(of("bytes")["base64"], "/wAH");
    assert_eq!(of("string")["body"], "just a string");
}

#[test]
fn delays_and_times_are_taken_as_people_write_them() {
    let server = Server::start();
    let due = |when: Value| {
        let mut task = json!({ "topic": "when" });
        task.as_object_mut().unwrap().extend(when.as_object().unwrap().clone());
        server.post("/v1/tasks", &task).expect(201).json()["due"].clone()
    };
    assert_eq!(due(json!({ "at": "2040-01-01T00:00:00Z" })), "2040-01-01T00:00:00.000Z");
    assert_eq!(due(json!({ "at": "2040-01-01T02:00:00.5+02:00" })), "2040-01-01T00:00:00.500Z");
    assert_eq!(due(json!({ "at": 2_208_988_800_000_u64 })), "2040-01-01T00:00:00.000Z");
    assert_eq!(due(json!({ "at": 9_007_199_254_740_990_u64 })), 9_007_199_254_740_990_u64, "in the year 287396");
    for delay in [json!("15m"), json!("1h30m"), json!("250ms"), json!(900_000), json!("300000w")] {
        due(json!({ "delay": delay }));
    }
}

#[test]
fn each_task_of_a_batch_is_answered_by_itself() {
    let server = Server::start();
    let batch = json!({ "tasks": [
        { "topic": "b", "id": "1", "delay": "1h" },
        { "topic": "b", "delay": "soon" },
        { "topic": "", "delay": "1h" },
        { "topic": "b", "unknown": 1 },
        { "topic": "b", "id": "1", "delay": "2h" },
        { "topic": "b", "text": "a", "body": 1 },
    ] });
    let results = server.post("/v1/tasks/batch", &batch).expect(200).json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 6);
    assert_eq!(results[0]["outcome"], "created");
    assert_eq!(results[4]["outcome"], "existed");
    for index in [1, 2, 3, 5] {
        let problem = &results[index]["problem"];
        assert_eq!((&problem["code"], &problem["status"]), (&json!("invalid"), &json!(422)), "{problem}");
    }
    let good: Vec<Value> =
        (0..1_000).map(|id| json!({ "topic": "b", "id": format!("n{id}"), "delay": "1h" })).collect();
    let results = server.post("/v1/tasks/batch", &json!({ "tasks": good })).expect(200).json()["results"].take();
    assert!(results.as_array().unwrap().iter().all(|result| result["outcome"] == "created"));
    assert_eq!(server.post("/v1/tasks/batch", &json!({ "tasks": [] })).expect(200).json()["results"], json!([]));
}

#[test]
fn cancelling_says_exactly_what_happened() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "c", "id": "later", "delay": "1h" })).expect(201);
    assert_eq!(server.delete("/v1/tasks/c/later").expect(200).json()["outcome"], "cancelled");
    assert_eq!(server.delete("/v1/tasks/c/later").expect(200).json()["outcome"], "was_cancelled");
    let missing = server.delete("/v1/tasks/c/never").expect(404);
    assert_eq!(code(&missing), "no-such-task");
    server.post("/v1/tasks", &json!({ "topic": "c", "id": "now" })).expect(201);
    let lease = reserve(&server, "c")[0]["lease"].clone();
    let late = server.delete("/v1/tasks/c/now").expect(409);
    assert_eq!(code(&late), "too-late");
    assert_eq!(late.json()["standing"]["holder"], "c");
    server.post("/v1/leases", &json!({ "actions": [{ "do": "acknowledge", "lease": lease }] })).expect(200);
    let late = server.delete("/v1/tasks/c/now").expect(409).json();
    assert_eq!((&late["standing"]["state"], &late["standing"]["ending"]), (&json!("finished"), &json!("done")));
}

#[test]
fn moving_changes_the_due_time_the_priority_and_the_body() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "m", "id": "1", "at": "2040-01-01T00:00:00Z" })).expect(201);
    let send = |change: Value| server.send("PATCH", "/v1/tasks/m/1", &change);
    assert_eq!(send(json!({ "by": "-2h" })).expect(200).json()["due"], "2039-12-31T22:00:00.000Z");
    assert_eq!(send(json!({ "at": "2041-01-01T00:00:00Z" })).expect(200).json()["due"], "2041-01-01T00:00:00.000Z");
    send(json!({ "priority": 5, "body": [1] })).expect(200);
    let task = server.get("/v1/tasks/m/1").expect(200).json();
    assert_eq!((&task["priority"], &task["body"]), (&json!(5), &json!([1])));
    assert_eq!(code(&send(json!({})).expect(422)), "invalid");
    assert_eq!(code(&send(json!({ "at": 5, "delay": 5 })).expect(422)), "invalid");
    assert_eq!(code(&server.send("PATCH", "/v1/tasks/m/2", &json!({ "delay": 5 })).expect(404)), "no-such-task");
    send(json!({ "delay": 0 })).expect(200);
    assert_eq!(reserve(&server, "m")[0]["body"], json!([1]));
    assert_eq!(code(&send(json!({ "delay": 5 })).expect(409)), "too-late");
}

#[test]
fn a_task_may_have_its_own_lease_time() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "long", "id": "1", "lease": "5m" })).expect(201);
    assert_eq!(server.get("/v1/tasks/long/1").expect(200).json()["lease"], "5m");
    let end = |lease: Value| -> u64 {
        let until: Time = serde_json::from_value(lease).unwrap();
        until.0 - Time::now().0
    };
    let delivery = reserve(&server, "long")[0].take();
    let left = end(delivery["until"].clone());
    assert!((240_000..=301_000).contains(&left), "{left} ms");
    let release = json!({ "do": "release", "lease": delivery["lease"], "after": 0 });
    server.post("/v1/leases", &json!({ "actions": [release] })).expect(200);
    let named = json!({ "queues": ["long"], "wait": "5s", "lease": "20s" });
    let left = end(server.post("/v1/reserve", &named).expect(200).json()["deliveries"][0]["until"].take());
    // A lease counts from when its delivery is thought to arrive, at most a second from the step.
    assert!(left <= 21_000, "a consumer who names a time gets that: {left} ms");
    assert_eq!(server.get("/v1/tasks/long/1").expect(200).json()["past"]["releases"], 1);
    let refused = server.post("/v1/tasks", &json!({ "topic": "long", "lease": 0 })).expect(422);
    assert_eq!(code(&refused), "invalid");
    server.post("/v1/tasks", &json!({ "topic": "long", "lease": -1 })).expect(422);
    server.post("/v1/tasks", &json!({ "topic": "long", "lease": u64::MAX })).expect(422);
}

#[test]
fn a_task_is_found_by_its_number_as_long_as_it_is_there() {
    let server = Server::start_with(&["--node-shards", "3"]);
    let found = |number: &Value| server.get(&format!("/v1/numbers/{number}")).expect(200).json();
    let mut numbers = Vec::new();
    for (id, delay) in [("a", "1h"), ("b", "2h"), ("c", "3h"), ("d", "4h")] {
        server.post("/v1/tasks", &json!({ "topic": "n", "id": id, "delay": delay, "text": id })).expect(201);
        let task = server.get(&format!("/v1/tasks/n/{id}")).expect(200).json();
        assert_eq!(found(&task["number"]), task);
        numbers.push(task["number"].clone());
    }
    let listed = server.get("/v1/tasks?topic=n").expect(200).json();
    let listed: Vec<Value> = listed["tasks"].as_array().unwrap().iter().map(|task| task["number"].clone()).collect();
    assert_eq!(listed, numbers);
    server.delete("/v1/tasks/n/a").expect(200);
    assert_eq!(found(&numbers[0])["standing"]["ending"], "cancelled", "the history has it");
    for missing in ["0", "999999999", "18446744073709551615"] {
        assert_eq!(code(&server.get(&format!("/v1/numbers/{missing}")).expect(404)), "no-such-task");
    }
    for bad in ["seven", "-1", "1.5", "18446744073709551616", "%20"] {
        assert_eq!(code(&server.get(&format!("/v1/numbers/{bad}")).expect(422)), "invalid", "{bad}");
    }
}

#[test]
fn each_delivery_of_a_broadcast_has_a_number_of_its_own() {
    let server = Server::start_with(&["--node-shards", "3"]);
    let feeds = json!([{ "queue": "mail" }, { "queue": "audit" }]);
    server.send("PUT", "/v1/topics/news", &json!({ "feeds": feeds })).expect(200);
    server.post("/v1/tasks", &json!({ "topic": "news", "id": "1", "body": { "x": 1 } })).expect(201);
    assert_eq!(reserve(&server, "mail")[0]["id"], "1");
    // A lease that was handed over late has its new end on disk before the shard answers anything else.
    server.delete("/v1/tasks/news/1").expect(409);
    let task = server.get("/v1/tasks/news/1").expect(200).json();
    assert_eq!(server.get(&format!("/v1/numbers/{}", task["number"])).expect(200).json(), task);
    assert_eq!(task["deliveries"].as_array().unwrap().len(), 2);
    for delivery in task["deliveries"].as_array().unwrap() {
        assert_ne!(delivery["number"], task["number"]);
        let found = server.get(&format!("/v1/numbers/{}", delivery["number"])).expect(200).json();
        assert_eq!((&found["id"], &found["body"]), (&json!("1"), &json!({ "x": 1 })));
        assert_eq!((&found["number"], &found["standing"]), (&delivery["number"], &delivery["standing"]));
    }
}

#[test]
fn tasks_are_listed_page_by_page_and_by_filter() {
    let server = Server::start();
    for index in 0..25 {
        let at = format!("2040-01-01T00:00:{index:02}Z");
        server
            .post("/v1/tasks", &json!({ "topic": "l", "id": format!("{index:02}"), "at": at, "text": "x" }))
            .expect(201);
    }
    server.post("/v1/tasks", &json!({ "topic": "other", "delay": "1h" })).expect(201);
    let mut ids = Vec::new();
    let mut path = "/v1/tasks?topic=l&limit=10".to_owned();
    loop {
        let page = server.get(&path).expect(200).json();
        ids.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        assert!(page["tasks"].as_array().unwrap().iter().all(|task| task["text"].is_null()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/tasks?topic=l&limit=10&cursor={next}");
    }
    assert_eq!(ids, (0..25).map(|index| format!("{index:02}")).collect::<Vec<_>>());
    let some =
        server.get("/v1/tasks?from=2040-01-01T00:00:05Z&until=2040-01-01T00:00:07Z&bodies=true").expect(200).json();
    assert_eq!(some["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(some["tasks"][0]["text"], "x");
    assert_eq!(server.get("/v1/tasks?state=ready").expect(200).json()["tasks"], json!([]));
    for bad in
        ["state=dead", "limit=0", "limit=1001", "limit=x", "cursor=nonsense", "queue=q", "colour=red", "from=soon"]
    {
        assert_eq!(code(&server.get(&format!("/v1/tasks?{bad}")).expect(422)), "invalid", "{bad}");
    }
}

#[test]
fn tasks_of_a_key_are_listed_moved_and_cancelled_together() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        let task = json!({ "topic": "k", "id": id, "key": "user/1", "at": "2040-01-01T00:00:00Z" });
        server.post("/v1/tasks", &task).expect(201);
    }
    let listed = server.get("/v1/keys/user%2F1").expect(200).json();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 3);
    let moved = server.send("PATCH", "/v1/keys/user%2F1", &json!({ "by": "1h", "topic": "k" })).expect(200).json();
    assert_eq!((&moved["matched"], &moved["changed"]), (&json!(3), &json!(3)));
    assert_eq!(server.get("/v1/tasks/k/b").json()["due"], "2040-01-01T01:00:00.000Z");
    let counted = server.delete("/v1/keys/user%2F1?dry_run=true").expect(200).json();
    assert_eq!(counted["changed"], 3);
    assert_eq!(server.delete("/v1/keys/user%2F1").expect(200).json()["changed"], 3);
    assert_eq!(server.get("/v1/keys/user%2F1").json()["tasks"], json!([]));
    assert_eq!(server.get("/v1/keys/user%2F1?state=finished").json()["tasks"].as_array().unwrap().len(), 3);
    assert_eq!(code(&server.send("PATCH", "/v1/keys/x", &json!({})).expect(422)), "invalid");
    assert_eq!(code(&server.get("/v1/keys/x?topic=t").expect(422)), "invalid");
    assert_eq!(code(&server.get("/v1/keys/x?state=ready").expect(422)), "invalid");
}

#[test]
fn names_in_a_path_may_hold_any_visible_character() {
    let server = Server::start();
    for id in ["a/b", "ü", "50%", "a+b", "?#"] {
        server.post("/v1/tasks", &json!({ "topic": "n/n", "id": id, "delay": "1h" })).expect(201);
        let encoded: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert_eq!(server.get(&format!("/v1/tasks/n%2Fn/{encoded}")).expect(200).json()["id"], id);
    }
    assert_eq!(code(&server.get("/v1/tasks/n%20n/x").expect(422)), "invalid");
    assert_eq!(code(&server.get("/v1/tasks/n/%FF").expect(422)), "invalid");
    assert_eq!(code(&server.get(&format!("/v1/tasks/n/{}", "x".repeat(256))).expect(422)), "invalid");
}

#[test]
fn the_trace_context_travels_to_the_consumer() {
    let server = Server::start();
    let mut connection = server.connect();
    let body = r#"{"topic":"t","text":"x","headers":{"mine":"1"}}"#;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntraceparent: {parent}\r\ntracestate: a=b\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.send_raw(request.as_bytes());
    connection.receive().expect(201);
    let headers = reserve(&server, "t")[0]["headers"].clone();
    assert_eq!(headers["mine"], "1");
    assert_eq!(headers["tracestate"], "a=b");
    assert!(headers["traceparent"].as_str().unwrap().starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
}

#[test]
fn what_comes_due_last_is_listed_first_if_that_is_asked_for() {
    let server = Server::start_with(&["--node-shards", "3"]);
    for number in 0..20 {
        let at = 4_000_000_000_000_u64 + number * 7 % 20;
        let task = json!({ "topic": if number % 2 == 0 { "even" } else { "odd" }, "id": number.to_string(), "at": at });
        server.post("/v1/tasks", &task).expect(201);
    }
    let listed = |query: &str| {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/tasks?limit=3{query}{cursor}")).expect(200).json();
            ids.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { return ids };
            cursor = format!("&cursor={next}");
        }
    };
    for filter in ["", "&topic=even", "&state=scheduled", "&from=4000000000005", "&until=4000000000012", "&contains=1"]
    {
        let mut forward = listed(&format!("{filter}&first=earliest"));
        assert!(forward.len() >= 8 && forward == listed(filter), "{filter}: {forward:?}");
        forward.reverse();
        assert_eq!(listed(&format!("{filter}&first=latest")), forward, "{filter}");
    }
    let counted = server.get("/v1/tasks?first=latest&count=true").expect(200).json();
    assert_eq!((&counted["count"], &counted["more"]), (&json!(20), &json!(false)));
}
