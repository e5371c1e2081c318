//! What a token does not learn of topics and queues that it is not for: not by counts, nor by cursors, nor by what is told of its
//! own tasks.

use serde_json::{Value, json};

use crate::stage::{Server, eventually};
use crate::token;

/// When the tasks of these tests come due.
const DUE: u64 = 4_000_000_000_000;

/// A server with `own` and much more of `other`, asked by who sees `own` only.
fn start(roles: &[&str]) -> (Server, String) {
    let mut server = Server::prepare(&["--node-shards", "2"], &[]);
    let admin = token(&server, "admin", &["admin"], &["*"]);
    let bound = token(&server, "bound", roles, &["own*"]);
    server.start_again();
    server.token = Some(admin.clone());
    let task = |topic: &str, id: u64| json!({ "topic": topic, "id": id.to_string(), "at": DUE + id, "key": "shared" });
    let others: Vec<Value> = (1..=2_500).map(|id| task("other", id)).collect();
    for tasks in others.chunks(500) {
        server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    }
    for id in [0, 1_200, 9_000] {
        server.post("/v1/tasks", &task("own", id)).expect(201);
    }
    server.token = Some(bound);
    (server, admin)
}

/// Schedules a task for now, takes it and settles it.
fn settle(server: &Server, topic: &str, id: &str, what: &str) {
    server.post("/v1/tasks", &json!({ "topic": topic, "id": id })).expect(201);
    let taken = server.post("/v1/reserve", &json!({ "queues": [topic], "wait": "10s" })).expect(200).json();
    let action = json!({ "do": what, "lease": taken["deliveries"][0]["lease"] });
    server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
}

/// All ids of a list, page by page, and where each page ended.
fn pages(server: &Server, path: &str) -> (Vec<String>, Vec<String>) {
    let (mut ids, mut cursors) = (Vec::new(), Vec::<String>::new());
    loop {
        let cursor = cursors.last().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let page = server.get(&format!("{path}{cursor}")).expect(200).json();
        ids.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { return (ids, cursors) };
        cursors.push(next.to_owned());
        assert!(cursors.len() < 1_000, "a list comes to its end");
    }
}

#[test]
fn what_was_looked_at_counts_what_the_token_is_for() {
    let (mut server, admin) = start(&["view"]);
    for id in ["one", "two"] {
        let bound = server.token.replace(admin.clone());
        settle(&server, "other", id, "reject");
        settle(&server, "other", &format!("{id}-done"), "acknowledge");
        server.token = bound;
    }
    let looked_at = |path: &str| server.get(path).expect(200).json()["looked_at"].clone();
    for (path, rows) in [
        ("/v1/tasks?count=true", 3),
        ("/v1/tasks?contains=nothing", 3),
        ("/v1/tasks?state=leased&count=true", 0),
        ("/v1/keys/shared?count=true", 3),
        ("/v1/keys/shared?contains=nothing", 3),
        ("/v1/dead?contains=nothing", 0),
        ("/v1/dead/groups", 0),
        ("/v1/history?contains=nothing", 0),
        ("/v1/history?count=true", 0),
    ] {
        assert_eq!(looked_at(path), rows, "{path}");
    }
    server.token = Some(admin);
    assert_eq!(server.get("/v1/dead/groups").expect(200).json()["looked_at"], 2);
    assert_eq!(server.get("/v1/tasks?count=true").expect(200).json()["looked_at"], 2_503);
}

#[test]
fn a_cursor_does_not_name_a_task_of_somebody_else() {
    let (mut server, admin) = start(&["view"]);
    for path in
        ["/v1/tasks?limit=2", "/v1/tasks?limit=100", "/v1/tasks?first=latest&limit=2", "/v1/keys/shared?limit=2"]
    {
        let (mut ids, cursors) = pages(&server, path);
        ids.sort();
        assert_eq!(ids, ["0", "1200", "9000"], "{path}");
        assert!(!cursors.is_empty() && !cursors.iter().any(|cursor| cursor.contains('.')), "{path}: {cursors:?}");
        for cursor in &cursors {
            let changed = format!("{path}&cursor=A{}", &cursor[1..]);
            assert_eq!(server.get(&changed).status == 422, !cursor.starts_with('A'), "{changed}");
        }
        // Who may see all goes on where somebody else was.
        let bound = server.token.replace(admin.clone());
        server.get(&format!("{path}&cursor={}", cursors[0])).expect(200);
        server.token = bound;
    }
    server.token = Some(admin);
    let (ids, cursors) = pages(&server, "/v1/tasks?limit=1000");
    assert_eq!(ids.len(), 2_503);
    assert!(cursors.iter().all(|cursor| cursor.contains('.')), "{cursors:?}");
}

#[test]
fn a_line_ends_at_nobody_elses_delivery() {
    let (mut server, admin) = start(&["view"]);
    let bound = server.token.replace(admin);
    server.send("PUT", "/v1/topics/other-fed", &json!({ "feeds": [{ "queue": "own-line" }] })).expect(200);
    server.send("PUT", "/v1/topics/own-fed", &json!({ "feeds": [{ "queue": "own-line" }] })).expect(200);
    for (topic, id) in [("own-fed", "1"), ("other-fed", "2"), ("other-fed", "3"), ("own-fed", "4")] {
        server.post("/v1/tasks", &json!({ "topic": topic, "id": id })).expect(201);
    }
    let ready = || server.get("/v1/queues/own-line").expect(200).json()["ready"].clone();
    eventually("all are ready", || ready() == 4);
    server.token = bound;
    let (mut ids, cursors) = pages(&server, "/v1/queues/own-line/deliveries?limit=1");
    ids.sort();
    assert_eq!((ids, cursors.len()), (vec!["1".to_owned(), "4".to_owned()], 3));
    assert!(!cursors.iter().any(|cursor| cursor.contains('.')), "{cursors:?}");
}

#[test]
fn a_timeline_tells_of_queues_that_the_token_is_for() {
    let (mut server, admin) = start(&["produce"]);
    let bound = server.token.replace(admin);
    let feeds = json!({ "feeds": [{ "queue": "other-line" }, { "queue": "own-line" }] });
    server.send("PUT", "/v1/topics/own-fed", &feeds).expect(200);
    for queue in ["own-line", "other-line"] {
        server.send("PUT", &format!("/v1/queues/{queue}"), &json!({ "rate": { "per_second": 7 } })).expect(200);
        server.post(&format!("/v1/queues/{queue}/pause"), &json!({ "reason": format!("why {queue}") })).expect(200);
    }
    server.post("/v1/tasks", &json!({ "topic": "own-fed", "id": "1" })).expect(201);
    let timeline = |server: &Server| server.get("/v1/tasks/own-fed/1/timeline").expect(200).json();
    let about = |told: &Value, queue: &str, list: &str| {
        told[list].as_array().unwrap().iter().filter(|one| one["queue"] == queue).count()
    };
    eventually("both are ready", || about(&timeline(&server), "other-line", "why") >= 3);
    let whole = timeline(&server);
    assert!(whole.to_string().contains("why other-line") && about(&whole, "other-line", "to_come") > 0, "{whole}");
    server.token = bound;
    server.get("/v1/queues/other-line").expect(403);
    let told = timeline(&server);
    assert!(told.to_string().contains("why own-line") && !told.to_string().contains("why other-line"), "{told}");
    assert_eq!((about(&told, "other-line", "why"), about(&told, "other-line", "to_come")), (0, 0), "{told}");
    assert_eq!(about(&told, "own-line", "why"), about(&whole, "own-line", "why"));
}
