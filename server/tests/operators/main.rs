//! Topics, queues, dead letters, history, numbers and events over HTTP, through the real binary.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod consumers;
mod counted;
mod find;
mod hasten;
mod lines;
mod live;
mod restore;
#[path = "../stage/mod.rs"]
mod stage;
mod sweeps;
mod versions;

use serde_json::{Value, json};
use stage::{Server, command, eventually, punctual, run};

fn code(answer: stage::Answer) -> String {
    answer.json()["code"].as_str().unwrap().to_owned()
}

/// Schedules a task that is due at once, takes it and says what is to become of it.
fn settle_one(server: &Server, topic: &str, id: &str, what: &str) {
    server.post("/v1/tasks", &json!({ "topic": topic, "id": id, "text": id })).expect(201);
    let taken = server.post("/v1/reserve", &json!({ "queues": [topic], "wait": "5s" })).expect(200).json();
    let action = json!({ "do": what, "lease": taken["deliveries"][0]["lease"] });
    server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
}

#[test]
fn a_topic_is_made_by_use_looked_at_changed_paused_and_deleted() {
    let server = Server::start();
    assert_eq!(code(server.get("/v1/topics/t").expect(404)), "no-such-topic");
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "1", "delay": "1h" })).expect(201);
    let topic = server.get("/v1/topics/t").expect(200).json();
    assert_eq!((&topic["waiting"], &topic["settings"]["history"]), (&json!(1), &json!("1d")));
    let settings = json!({ "owner": "me", "history": "2h", "ttl": "10m", "rate": { "per_second": 5 }, "priority": 9 });
    let put = server.send("PUT", "/v1/topics/t", &settings).expect(200).json();
    assert_eq!(put["settings"]["history"], "2h");
    assert_eq!(put["settings"]["rate"], json!({ "per_second": 5, "burst": 5 }));
    assert_eq!(server.get("/v1/topics").expect(200).json()["topics"][0]["settings"], put["settings"]);
    let paused = server.connect().request("POST", "/v1/topics/t/pause", None).expect(200).json();
    assert_eq!(paused["settings"]["paused"], true);
    assert_eq!(code(server.post("/v1/tasks", &json!({ "topic": "t" })).expect(409)), "topic-paused");
    server.connect().request("POST", "/v1/topics/t/resume", None).expect(200);
    server.post("/v1/tasks", &json!({ "topic": "t", "delay": "1h" })).expect(201);
    assert_eq!(code(server.delete("/v1/topics/t").expect(409)), "not-empty");
    assert_eq!(server.delete("/v1/topics/t?force=true").expect(200).json()["rows"], 2);
    assert_eq!(code(server.delete("/v1/topics/t").expect(404)), "no-such-topic");
    assert_eq!(code(server.connect().request("POST", "/v1/topics/t/pause", None).expect(404)), "no-such-topic");
}

#[test]
fn nodes_and_shards_are_shown_drained_and_pinned() {
    let server = Server::start_with(&["--node-shards", "2", "--node-advertise", "http://here.example:7400"]);
    let this = server.get("/v1/nodes").expect(200).json()["nodes"][0].clone();
    assert_eq!((&this["name"], &this["shards"], &this["is_this"]), (&json!("node-1"), &json!(2), &json!(true)));
    assert_eq!((&this["url"], &this["is_draining"]), (&json!("http://here.example:7400"), &json!(false)));
    assert_eq!(this["version"], env!("CARGO_PKG_VERSION"));
    let shards = server.get("/v1/shards").expect(200).json();
    assert_eq!((&shards["shards"][1]["shard"], &shards["shards"][1]["node"]), (&json!(1), &json!("node-1")));

    let drained = server.connect().request("POST", "/v1/nodes/node-1/drain", None).expect(200).json();
    assert_eq!(drained["nodes"][0]["is_draining"], true);
    assert_eq!(server.delete("/v1/nodes/node-1/drain").expect(200).json()["nodes"][0]["is_draining"], false);
    let pinned = server.send("PUT", "/v1/shards/1/pin", &json!({ "node": "node-1" })).expect(200).json();
    assert_eq!(pinned["shards"][1]["pinned_to"], "node-1");
    let unpinned = server.delete("/v1/shards/1/pin").expect(200).json();
    assert_eq!(unpinned["shards"][1]["pinned_to"], json!(null));

    let to = |node: &str| json!({ "node": node });
    assert_eq!(code(server.connect().request("POST", "/v1/nodes/nobody/drain", None).expect(422)), "invalid");
    for path in ["/v1/shards/2/pin", "/v1/shards/x/pin", "/v1/shards/70000/pin"] {
        assert_eq!(code(server.send("PUT", path, &to("node-1")).expect(422)), "invalid", "{path}");
    }
    assert_eq!(code(server.send("PUT", "/v1/shards/0/pin", &to("nobody")).expect(422)), "invalid");

    let told = |arguments: &[&str]| {
        let done = run(command(&server).args(arguments));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout
    };
    assert!(told(&["nodes"]).contains("http://here.example:7400"));
    assert!(told(&["nodes", "drain", "node-1"]).contains("draining"));
    assert!(told(&["nodes", "undrain", "node-1"]).contains("there"));
    assert!(told(&["shards", "pin", "0", "node-1"]).contains("PINNED TO"));
    assert_eq!(told(&["shards", "unpin", "0"]).lines().count(), 3);
}

#[test]
fn a_topic_over_its_rate_refuses_and_says_when_to_come_back() {
    let server = Server::start();
    server.send("PUT", "/v1/topics/r", &json!({ "rate": { "per_second": 1, "burst": 2 } })).expect(200);
    let answers: Vec<_> = (0..3).map(|_| server.post("/v1/tasks", &json!({ "topic": "r", "delay": "1h" }))).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.json()["code"], "rate-limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.json()["retry_after"].is_string());
}

#[test]
fn a_queue_is_looked_at_changed_paused_and_deleted() {
    let server = Server::start();
    let settings = json!({ "lease": "5s", "max_length": 1, "retry": { "attempts": 2 }, "dead_retention": "7d" });
    let put = server.send("PUT", "/v1/queues/q", &settings).expect(200).json();
    assert_eq!((&put["settings"]["lease"], &put["settings"]["max_length"]), (&json!("5s"), &json!(1)));
    assert_eq!(server.get("/v1/queues").expect(200).json()["queues"][0]["settings"], put["settings"]);
    let pause = |body: Value| server.post("/v1/queues/q/pause", &body);
    assert_eq!(pause(json!({})).expect(200).json()["settings"]["paused"], true);
    server.post("/v1/tasks", &json!({ "topic": "q" })).expect(201);
    let none = server.post("/v1/reserve", &json!({ "queues": ["q"], "wait": "100ms" })).expect(200).json();
    assert_eq!(none["deliveries"], json!([]));
    assert_eq!(code(server.post("/v1/tasks", &json!({ "topic": "q" })).expect(429)), "queue-full");
    assert!(pause(json!({ "for": "10m" })).expect(200).json()["settings"]["paused_until"].is_string());
    assert_eq!(code(pause(json!({ "for": "10m", "until": 5 })).expect(422)), "invalid");
    let resumed = server.connect().request("POST", "/v1/queues/q/resume", None).expect(200).json();
    assert_eq!((&resumed["settings"]["paused"], &resumed["ready"]), (&json!(false), &json!(1)));
    assert_eq!(code(server.delete("/v1/queues/q").expect(409)), "not-empty");
    server.delete("/v1/queues/q?force=true").expect(200);
    assert_eq!(code(server.get("/v1/queues/q").expect(404)), "no-such-queue");
    for bad in [json!({ "lease": 0 }), json!({ "rate": { "per_second": 0 } }), json!({ "dead_letter": " " })] {
        assert_eq!(server.send("PUT", "/v1/queues/q", &bad).status, 422, "{bad}");
    }
    assert_eq!(code(server.send("PUT", "/v1/queues/q", &json!({ "lesae": "5s" })).expect(422)), "invalid");
}

#[test]
fn settings_pause_a_queue_as_they_say() {
    let server = Server::start();
    let (soon, over) = ("2100-01-01T00:00:00Z", "2020-01-01T00:00:00Z");
    let put = |settings: Value| server.send("PUT", "/v1/queues/q", &settings);
    let patch = |settings: Value| server.send("PATCH", "/v1/queues/q", &settings);
    let pause = |answer: stage::Answer| {
        let settings = answer.expect(200).json()["settings"].clone();
        (settings["paused"] == true, settings["paused_until"].is_string())
    };
    assert_eq!(pause(put(json!({ "paused_until": soon }))), (true, true));
    assert_eq!(pause(patch(json!({ "lease": "5s" }))), (true, true), "it is about something else");
    assert_eq!(pause(patch(json!({ "paused": false }))), (false, false));
    assert_eq!(pause(patch(json!({ "paused_until": soon }))), (true, true));
    assert_eq!(pause(patch(json!({ "paused": true }))), (true, false));
    assert_eq!(pause(patch(json!({ "paused": null }))), (false, false));
    assert_eq!(pause(patch(json!({ "paused": true, "paused_until": soon }))), (true, true));
    for bad in [
        json!({ "paused_until": over }),
        json!({ "paused": true, "paused_until": over }),
        json!({ "paused": false, "paused_until": soon }),
    ] {
        for refused in [put(bad.clone()), patch(bad.clone())] {
            let refused = refused.expect(422).json();
            assert!(refused["detail"].as_str().unwrap().starts_with("`paused_until`: "), "{bad}: {refused}");
        }
    }
    assert_eq!(pause(server.get("/v1/queues/q")), (true, true), "what is refused ends no pause");
}

#[test]
fn a_list_goes_on_after_a_name_of_former_times() {
    let server = Server::start();
    for list in ["topics", "queues"] {
        server.send("PUT", &format!("/v1/{list}/last"), &json!({})).expect(200);
        for cursor in [".", ".."] {
            let page = server.get(&format!("/v1/{list}?cursor={cursor}")).expect(200).json();
            assert_eq!(page[list][0]["name"], "last");
        }
        server.get(&format!("/v1/{list}?cursor=a%20b")).expect(422);
    }
}

#[test]
fn events_of_what_cannot_be_are_refused() {
    let server = Server::start();
    for (field, filter) in [("topic", "topic=."), ("queue", "queue=a%20b"), ("key", "key=..")] {
        let refused = server.get(&format!("/v1/events?{filter}")).expect(422).json();
        assert!(refused["detail"].as_str().unwrap().starts_with(&format!("`{field}`")), "{refused}");
    }
}

#[test]
fn dead_letters_are_listed_replayed_and_purged() {
    let server = Server::start();
    for id in ["1", "2", "3"] {
        settle_one(&server, "d", id, "reject");
    }
    let dead = server.get("/v1/dead?queue=d&bodies=true").expect(200).json()["tasks"].clone();
    assert_eq!(dead.as_array().unwrap().len(), 3);
    assert_eq!((&dead[2]["text"], &dead[2]["standing"]["reason"]), (&json!("1"), &json!("rejected")));
    server.connect().request("POST", "/v1/tasks/d/1/replay", None).expect(200);
    server.connect().request("POST", "/v1/tasks/d/2/purge", None).expect(204);
    assert_eq!(code(server.connect().request("POST", "/v1/tasks/d/2/purge", None).expect(404)), "nothing-there");
    assert_eq!(code(server.connect().request("POST", "/v1/tasks/d/9/replay", None).expect(404)), "nothing-there");
    let counted = server.post("/v1/dead/replay", &json!({ "topic": "d", "dry_run": true })).expect(200).json();
    assert_eq!((&counted["matched"], &counted["changed"]), (&json!(1), &json!(1)));
    assert_eq!(server.post("/v1/dead/replay", &json!({ "queue": "d" })).expect(200).json()["changed"], 1);
    let back = server.post("/v1/reserve", &json!({ "queues": ["d"], "max": 5, "wait": "5s" })).expect(200).json();
    assert_eq!(back["deliveries"].as_array().unwrap().len(), 2);
    settle_one(&server, "e", "1", "reject");
    assert_eq!(server.post("/v1/dead/purge", &json!({ "all": true })).expect(200).json()["changed"], 1);
    assert_eq!(server.get("/v1/dead").expect(200).json()["tasks"], json!([]));
    assert_eq!(code(server.get("/v1/dead?state=ready").expect(422)), "invalid");
}

#[test]
fn finished_tasks_are_listed_and_replayed() {
    let server = Server::start();
    settle_one(&server, "h", "1", "acknowledge");
    let history = server.get("/v1/history?topic=h").expect(200).json()["tasks"].clone();
    assert_eq!(history[0]["standing"]["ending"], "done");
    assert_eq!(code(server.post("/v1/history/replay", &json!({})).expect(422)), "invalid");
    assert_eq!(code(server.post("/v1/history/replay", &json!({ "topic": "h", "queue": "h" })).expect(422)), "invalid");
    let all = server.post("/v1/history/replay", &json!({ "topic": "h", "all": true })).expect(422).json();
    assert!(all["detail"].as_str().unwrap().contains("`\"ending\": \"any\"`"), "{all}");
    assert_eq!(server.post("/v1/history/replay", &json!({ "topic": "h" })).expect(200).json()["changed"], 1);
    let again = server.post("/v1/reserve", &json!({ "queues": ["h"], "wait": "5s" })).expect(200).json();
    assert_eq!(again["deliveries"][0]["id"], "1");
    assert_eq!(code(server.get("/v1/history?state=ready").expect(422)), "invalid");
}

#[test]
fn the_forecast_shows_what_falls_due_when() {
    let server = Server::start();
    for _ in 0..3 {
        server.post("/v1/tasks", &json!({ "topic": "f", "delay": "2h" })).expect(201);
    }
    let hours = server.get("/v1/forecast?unit=hour&slots=4").expect(200).json();
    let due: Vec<u64> = hours["slots"].as_array().unwrap().iter().map(|slot| slot["due"].as_u64().unwrap()).collect();
    assert_eq!((due.len(), due.iter().sum::<u64>(), due[2]), (4, 3, 3));
    assert_eq!(server.get("/v1/forecast").expect(200).json()["slots"].as_array().unwrap().len(), 60);
    for bad in ["unit=year", "slots=0", "slots=1441", "x=1"] {
        assert_eq!(code(server.get(&format!("/v1/forecast?{bad}")).expect(422)), "invalid", "{bad}");
    }
}

#[test]
fn the_numbers_tell_what_happened() {
    let server = Server::start();
    settle_one(&server, "n", "1", "acknowledge");
    settle_one(&server, "n", "2", "reject");
    server.post("/v1/dead/purge", &json!({ "topic": "nobody" })).expect(200);
    let stats = server.get("/v1/stats").expect(200).json();
    let happened = &stats["topics"]["n"];
    assert_eq!((&happened["scheduled"], &happened["done"], &happened["dead"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!(stats["lateness_micros"]["count"], 2);
    assert!(stats["store"]["disk_bytes"].as_u64().unwrap() > 0);
    let metrics = server.get("/metrics").expect(200).text();
    for line in ["punctual_", "topic=\"n\"", "lateness", "_bucket{", "commit"] {
        assert!(metrics.contains(line), "{line} in:\n{metrics}");
    }
    assert_eq!(server.get("/healthz").expect(200).text(), "alive\n");
    assert_eq!(server.get("/readyz").expect(200).text(), "ready\n");
    assert!(server.get("/").expect(200).text().contains("/v1/tasks"));
}

#[test]
fn events_are_followed_as_they_happen_and_by_filter() {
    let server = Server::start();
    let mut all = server.connect();
    all.send("GET", "/v1/events?topic=e", None);
    let mut some = server.connect();
    some.send("GET", "/v1/events?topic=e&what=done,died", None);
    let mut one = server.connect();
    one.send("GET", "/v1/events?id=2", None);
    assert_eq!(one.receive_head().unwrap().0, 200);
    assert_eq!(all.receive_head().unwrap().0, 200);
    let (status, headers) = some.receive_head().unwrap();
    assert_eq!(status, 200);
    assert!(headers.contains(&("content-type".into(), "text/event-stream".into())), "{headers:?}");
    for stream in [&mut some, &mut one] {
        let begun = String::from_utf8(stream.receive_chunk().unwrap().unwrap()).unwrap();
        assert!(begun.starts_with("id: ") && begun.ends_with("\n\n"), "{begun}");
    }
    settle_one(&server, "other", "1", "acknowledge");
    settle_one(&server, "e", "1", "acknowledge");
    let mut text = String::new();
    while !text.contains("event: done") {
        text += &String::from_utf8(all.receive_chunk().unwrap().unwrap()).unwrap();
    }
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["scheduled", "fired", "leased", "done"]);
    let data: Value = serde_json::from_str(text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap()).unwrap();
    assert_eq!((&data["what"], &data["topic"], &data["id"]), (&json!("scheduled"), &json!("e"), &json!("1")));
    let filtered = String::from_utf8(some.receive_chunk().unwrap().unwrap()).unwrap();
    assert!(filtered.starts_with("event: done\n"), "{filtered}");
    let number = server.get("/v1/tasks/e/1").expect(200).json()["number"].clone();
    assert_eq!((data["number"].is_u64(), &data["number"]), (true, &number));
    server.post("/v1/tasks", &json!({ "topic": "e", "id": "2", "delay": "1h" })).expect(201);
    let of_one = String::from_utf8(one.receive_chunk().unwrap().unwrap()).unwrap();
    assert!(of_one.starts_with("event: scheduled\n") && of_one.contains("\"id\":\"2\""), "{of_one}");
}

/// Follows events until one has come that says this; gives all that was sent.
fn followed_until(server: &Server, path: &str, last: Option<&str>, text: &str) -> String {
    let mut events = server.connect();
    let id = last.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
    events.send_raw(format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{id}\r\n", server.address()).as_bytes());
    assert_eq!(events.receive_head().unwrap().0, 200);
    let mut sent = String::new();
    while !sent.contains(text) {
        sent += &String::from_utf8(events.receive_chunk().unwrap().unwrap()).unwrap();
    }
    sent
}

/// The last id that was sent.
fn last_id(sent: &str) -> &str {
    sent.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap()
}

#[test]
fn who_follows_events_again_gets_what_happened_in_between_or_hears_of_the_gap() {
    let mut server = Server::start();
    let schedule = |server: &Server, id: &str| {
        server.post("/v1/tasks", &json!({ "topic": "e", "id": id, "delay": "1h" })).expect(201);
    };
    let path = "/v1/events?topic=e";
    // Nothing has happened, and an id comes all the same.
    let first = followed_until(&server, path, None, "id: ");
    schedule(&server, "one");
    schedule(&server, "two");
    let sent = followed_until(&server, path, Some(last_id(&first)), "\"two\"");
    assert!(sent.contains("\"one\"") && !sent.contains("missed"), "{sent}");
    let again = followed_until(&server, &format!("{path}&after={}", last_id(&first)), None, "\"two\"");
    assert!(again.contains("\"one\""), "{again}");
    schedule(&server, "three");
    let rest = followed_until(&server, path, Some(last_id(&sent)), "\"three\"");
    assert!(!rest.contains("\"two\"") && !rest.contains("missed"), "{rest}");
    server.crash();
    let gap = followed_until(&server, path, Some(last_id(&rest)), "missed");
    assert!(gap.contains("event: missed\ndata: {\"rounds\":1}"), "{gap}");
    assert_eq!(code(server.get(&format!("{path}&after=yesterday")).expect(422)), "invalid");
}

#[test]
fn following_events_ends_when_the_server_stops() {
    let mut server = Server::start();
    let mut events = server.connect();
    events.send("GET", "/v1/events", None);
    events.receive_head().unwrap();
    assert!(server.stop().success());
    eventually("the stream ends", || matches!(events.receive_chunk(), Ok(None) | Err(_)));
}

/// The rows of a table in docs/settings.md: where a setting is, an example of it, and its flag.
fn documented(heading: &str) -> Vec<(String, Value, String)> {
    let page = include_str!("../../../docs/settings.md");
    let (_, part) = page.split_once(heading).unwrap();
    let rows = part.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches(['|', ' ', '`'])).collect();
        (cells[0].to_owned(), serde_json::from_str(cells[1]).unwrap(), cells[3].to_owned())
    })
    .collect()
}

/// A value as it is typed behind its flag.
fn typed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(feeds) => [&feeds[0]["queue"], &feeds[0]["pattern"]].map(|name| name.as_str().unwrap()).join("="),
        Value::Object(rate) => format!("{}:{}", rate["per_second"], rate["burst"]),
        other => other.to_string(),
    }
}

fn at<'a>(whole: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(whole, |within, name| &within[name])
}

/// Where the settings are that a schema of the OpenAPI document has.
fn described(schemas: &Value, name: &str, within: &str, paths: &mut Vec<String>) {
    for (property, form) in schemas[name]["properties"].as_object().unwrap() {
        let path = format!("{within}{property}");
        match form["$ref"].as_str().and_then(|form| form.rsplit('/').next()) {
            Some(group @ ("Retry" | "Backoff")) => described(schemas, group, &format!("{path}."), paths),
            _ => paths.push(path),
        }
    }
}

#[test]
fn every_documented_setting_is_described_typed_kept_and_set_back() {
    let mut server = Server::start();
    let document = server.get("/v1/openapi.json").expect(200).json();
    for (noun, heading, schema) in
        [("topics", "## Of a topic", "TopicSettings"), ("queues", "## Of a queue", "QueueSettings")]
    {
        let rows = documented(heading);
        let mut paths = Vec::new();
        described(&document["components"]["schemas"], schema, "", &mut paths);
        paths.sort();
        let mut in_docs: Vec<&String> = rows.iter().map(|(path, ..)| path).collect();
        in_docs.sort();
        assert_eq!(paths.iter().collect::<Vec<_>>(), in_docs, "{noun}: OpenAPI, docs");

        let settings = |server: &Server| server.get(&format!("/v1/{noun}/all")).expect(200).json()["settings"].take();
        let set = |server: &Server, more: Vec<String>| {
            let url = format!("http://{}", server.address());
            let ended = run(punctual().args(["--url", &url, noun, "set", "all"]).args(&more));
            assert_eq!(ended.code, Some(0), "{more:?}: {}", ended.stderr);
        };
        set(&server, Vec::new());
        let usual = settings(&server);
        set(&server, rows.iter().flat_map(|(_, value, flag)| [flag.clone(), typed(value)]).collect());
        server.crash();
        let kept = settings(&server);
        for (path, example, flag) in &rows {
            assert_ne!(at(&usual, path), example, "{noun}: {path}");
            assert_eq!(at(&kept, path), example, "{noun}: {path} by {flag} after a crash");
        }
        let unset = rows.iter().flat_map(|(_, _, flag)| ["--unset".into(), flag.trim_matches('-').to_owned()]);
        set(&server, unset.collect());
        assert_eq!(settings(&server), usual, "{noun}: set back");
    }
}
