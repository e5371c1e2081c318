//! What a token sees and changes that is for some topics and queues only.

use serde_json::{Value, json};

use crate::stage::{Answer, Server, eventually, punctual, run};
use crate::token;

/// A server with the tasks of two who do not know of each other, `own…` and `other…`: one that waits, with the key
/// `shared`, one dead letter and one finished task in each of their topics.
struct Shared {
    server: Server,
    admin: String,
    bound: String,
}

impl Shared {
    /// `bound` has all of these roles for `own*`.
    fn start(roles: &[&str]) -> Shared {
        let mut server = Server::prepare(&[], &[]);
        let admin = token(&server, "admin", &["admin"], &["*"]);
        let bound = token(&server, "bound", roles, &["own*"]);
        server.start_again();
        server.token = Some(admin.clone());
        for topic in ["own-a", "own-b", "other"] {
            for (id, action) in [("dead", "reject"), ("done", "acknowledge")] {
                server.post("/v1/tasks", &json!({ "topic": topic, "id": id })).expect(201);
                let taken = server.post("/v1/reserve", &json!({ "queues": [topic], "wait": "10s" })).expect(200).json();
                let action = json!({ "do": action, "lease": taken["deliveries"][0]["lease"] });
                server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
            }
            let task = json!({ "topic": topic, "id": "waits", "key": "shared", "delay": "30m" });
            server.post("/v1/tasks", &task).expect(201);
        }
        server.token = Some(bound.clone());
        Shared { server, admin, bound }
    }

    fn as_admin<T>(&mut self, act: impl FnOnce(&Server) -> T) -> T {
        self.server.token = Some(self.admin.clone());
        let done = act(&self.server);
        self.server.token = Some(self.bound.clone());
        done
    }
}

/// The values of a field of all in a list, in their order.
fn all(answer: Answer, list: &str, field: &str) -> Vec<String> {
    let answer = answer.expect(200).json();
    let mut values: Vec<String> =
        answer[list].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect();
    values.sort();
    values
}

#[test]
fn lists_show_what_the_token_is_for() {
    let Shared { server, .. } = &Shared::start(&["view"]);
    assert_eq!(all(server.get("/v1/topics"), "topics", "name"), ["own-a", "own-b"]);
    assert_eq!(all(server.get("/v1/queues"), "queues", "name"), ["own-a", "own-b"]);
    for list in
        ["/v1/tasks", "/v1/dead", "/v1/history", "/v1/keys/shared", "/v1/tasks?limit=2", "/v1/tasks?state=scheduled"]
    {
        assert_eq!(all(server.get(list), "tasks", "topic"), ["own-a", "own-b"], "{list}");
    }
    for path in ["/v1/tasks", "/v1/dead", "/v1/history"] {
        assert_eq!(all(server.get(&format!("{path}?topic=own-a")), "tasks", "topic"), ["own-a"]);
        server.get(&format!("{path}?topic=other")).expect(403);
    }
    for path in ["/v1/topics/other", "/v1/queues/other", "/v1/tasks/other/waits", "/v1/events?topic=other"] {
        server.get(path).expect(403);
    }
}

#[test]
fn numbers_are_of_what_the_token_is_for() {
    let mut shared = Shared::start(&["view"]);
    let stats = shared.server.get("/v1/stats").expect(200).json();
    assert_eq!(stats["topics"].as_object().unwrap().keys().collect::<Vec<_>>(), ["own-a", "own-b"]);
    for whole in ["lateness_micros", "commit_micros", "answers", "refusals", "waiting_consumers", "store"] {
        assert_eq!(stats[whole], Value::Null, "{whole} is of the whole server");
        assert_ne!(shared.as_admin(|server| server.get("/v1/stats").json())[whole], Value::Null);
    }
    for accept in ["text/plain", "application/openmetrics-text"] {
        let mut connection = shared.server.connect();
        let head = format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}", shared.bound);
        connection.send_raw(format!("{head}\r\naccept: {accept}\r\n\r\n").as_bytes());
        let metrics = connection.receive().expect(200).text();
        assert!(metrics.contains("punctual_tasks{topic=\"own-a\",state=\"waiting\"} 1"), "{metrics}");
        assert!(metrics.contains("punctual_deliveries{queue=\"own-b\",state=\"dead\"} 1"), "{metrics}");
        assert!(metrics.contains("punctual_happenings_total{topic=\"own-a\",what=\"done\"} 1"), "{metrics}");
        assert!(!metrics.contains("other"), "{metrics}");
        assert!(
            !metrics.contains("store") && !metrics.contains("lateness") && !metrics.contains("answers"),
            "{metrics}"
        );
    }
    let due = |server: &Server| -> u64 {
        let forecast = server.get("/v1/forecast?unit=hour&slots=3").expect(200).json();
        assert_eq!(forecast["counted_until"], Value::Null);
        assert_eq!(forecast["slots"].as_array().unwrap().len(), 3);
        forecast["slots"].as_array().unwrap().iter().map(|slot| slot["due"].as_u64().unwrap()).sum()
    };
    assert_eq!((due(&shared.server), shared.as_admin(due)), (2, 3));
}

#[test]
fn what_is_found_and_counted_is_of_what_the_token_is_for() {
    let Shared { server, .. } = &Shared::start(&["view", "consume"]);
    assert_eq!(all(server.get("/v1/find?q=waits"), "hits", "topic"), ["own-a", "own-b"]);
    assert_eq!(server.get("/v1/find?q=other/waits").expect(200).json()["hits"], json!([]));
    assert_eq!(server.get("/v1/find?q=other").expect(200).json()["hits"], json!([]), "nor its name");
    assert_eq!(server.get("/v1/find?q=shared").expect(200).json()["hits"], json!([{ "kind": "key", "key": "shared" }]));
    assert_eq!(all(server.get("/v1/dead/groups?by=topic"), "groups", "topic"), ["own-a", "own-b"]);
    assert_eq!(all(server.get("/v1/forecast?top=5"), "topics", "topic"), ["own-a", "own-b"]);
    for path in ["/v1/dead/groups?topic=other", "/v1/forecast?topic=other", "/v1/consumers?queue=other"] {
        server.get(path).expect(403);
    }
    for path in ["/v1/series?topic=other", "/v1/series?queue=other", "/v1/series", "/v1/pulse?topics=own-a+other"] {
        server.get(path).expect(403);
    }
    assert_ne!(server.get("/v1/series?topic=own-a").expect(200).json()["slots"], 0);
}

#[test]
fn the_pulse_is_of_what_the_token_is_for() {
    let Shared { server, .. } = &Shared::start(&["view"]);
    let mut follower = server.connect();
    follower.send("GET", "/v1/pulse?topics=own-a&queues=own-b", None);
    assert_eq!(follower.receive_head().unwrap().0, 200);
    let text = String::from_utf8(follower.receive_chunk().unwrap().unwrap()).unwrap();
    let pulse: Value = serde_json::from_str(text.trim().strip_prefix("event: pulse\ndata: ").unwrap()).unwrap();
    assert_eq!((&pulse["topics"]["own-a"]["waiting"], &pulse["queues"]["own-b"]["dead"]), (&json!(1), &json!(1)));
    for whole in ["happened", "refused", "total", "lateness_micros"] {
        assert_eq!(pulse[whole], Value::Null, "{whole} is of the whole server");
    }
}

#[test]
fn a_token_sees_who_waits_for_its_queues_and_for_which_of_them() {
    let mut shared = Shared::start(&["view"]);
    let admin = shared.admin.clone();
    let wait = |queues: Value| {
        let mut connection = crate::stage::Connection::open(shared.server.address(), Some(admin.clone()));
        let asked = json!({ "queues": queues, "wait": "30s", "consumer": "worker" });
        connection.send("POST", "/v1/reserve", Some(&asked));
        connection
    };
    let _waiting = [wait(json!(["own-c", "other-c"])), wait(json!(["other-c"]))];
    let count = |server: &Server| server.get("/v1/consumers").expect(200).json()["count"].clone();
    eventually("both wait", || shared.as_admin(|server| count(server)) == 2);
    let seen = shared.server.get("/v1/consumers").expect(200).json();
    assert_eq!((&seen["count"], &seen["consumers"][0]["queues"]), (&json!(1), &json!(["own-c"])));
}

#[test]
fn a_sweep_changes_what_the_token_is_for() {
    let mut shared = Shared::start(&["operate"]);
    let server = &shared.server;
    let swept = |answer: Answer| answer.expect(200).json()["matched"].as_u64().unwrap();
    let selection = json!({ "until": "2100-01-01T00:00:00Z", "dry_run": true });
    assert_eq!(swept(server.post("/v1/dead/replay", &selection)), 2);
    assert_eq!(swept(server.send("PATCH", "/v1/keys/shared", &json!({ "by": "1m" }))), 2);
    assert_eq!(swept(server.delete("/v1/keys/shared")), 2);
    assert_eq!(swept(server.post("/v1/dead/purge", &json!({ "until": "2100-01-01T00:00:00Z" }))), 2);
    for (method, path, body) in [
        ("POST", "/v1/dead/purge", json!({ "topic": "other" })),
        ("POST", "/v1/history/replay", json!({ "topic": "other" })),
        ("PATCH", "/v1/keys/shared", json!({ "by": "1m", "topic": "other" })),
        ("DELETE", "/v1/keys/shared?topic=other", json!({})),
        ("POST", "/v1/topics/other/pause", json!({})),
        ("POST", "/v1/queues/other/pause", json!({})),
    ] {
        server.send(method, path, &body).expect(403);
    }
    shared.as_admin(|server| {
        assert_eq!(all(server.get("/v1/tasks"), "tasks", "topic"), ["other"]);
        assert_eq!(all(server.get("/v1/dead"), "tasks", "topic"), ["other"]);
    });
}

#[test]
fn a_queue_that_the_token_is_not_for_is_refused_wherever_it_is_named() {
    let Shared { server, .. } = &Shared::start(&["view", "operate"]);
    for path in ["/v1/dead?queue=", "/v1/history?queue=", "/v1/dead?topic=own-a&queue="] {
        server.get(&format!("{path}own-a")).expect(200);
        server.get(&format!("{path}other")).expect(403);
    }
    server.get("/v1/events?queue=other").expect(403);
    for path in ["/v1/dead/purge", "/v1/dead/replay"] {
        server.post(path, &json!({ "queue": "own-a", "dry_run": true })).expect(200);
        server.post(path, &json!({ "queue": "other", "dry_run": true })).expect(403);
    }
    for verb in ["replay", "purge", "revoke"] {
        let path = format!("/v1/tasks/own-a/dead/{verb}?queue=other");
        server.connect().request("POST", &path, None).expect(403);
    }
}

#[test]
fn settings_do_not_lead_out_of_what_the_token_is_for() {
    let Shared { server, .. } = &Shared::start(&["admin"]);
    let feeds = |queue: &str| json!({ "feeds": [{ "queue": "own-b" }, { "queue": queue }] });
    let refused = server.send("PUT", "/v1/topics/own-a", &feeds("other")).expect(403).json();
    assert_eq!(refused["detail"], "`feeds`: token bound does not cover other: use one that does");
    server.send("PUT", "/v1/topics/own-a", &feeds("own-c")).expect(200);
    server.send("PUT", "/v1/queues/own-a", &json!({ "dead_letter": "other" })).expect(403);
    server.send("PUT", "/v1/queues/own-a", &json!({ "dead_letter": "own-graves" })).expect(200);
    server.send("PATCH", "/v1/topics/own-a", &feeds("other")).expect(403);
    server.send("PATCH", "/v1/queues/own-a", &json!({ "dead_letter": "other" })).expect(403);
    server.send("PATCH", "/v1/queues/own-a", &json!({ "lease": "5s" })).expect(200);
    for path in ["/v1/topics/other", "/v1/queues/other"] {
        server.send("PUT", path, &json!({})).expect(403);
        server.send("PATCH", path, &json!({})).expect(403);
        server.delete(path).expect(403);
    }
    assert_eq!(server.get("/v1/topics/own-a").json()["settings"]["feeds"][1]["queue"], "own-c");
}

#[test]
fn events_are_of_what_the_token_is_for_and_end_with_it() {
    let mut shared = Shared::start(&["view", "consume"]);
    let mut events = shared.server.connect();
    events.send("GET", "/v1/events", None);
    assert_eq!(events.receive_head().unwrap().0, 200);
    let mut kept = shared.as_admin(|server| {
        let mut kept = server.connect();
        kept.send("GET", "/v1/events", None);
        assert_eq!(kept.receive_head().unwrap().0, 200);
        for topic in ["other", "own-a"] {
            server.post("/v1/tasks", &json!({ "topic": topic, "id": "seen", "delay": "1h" })).expect(201);
        }
        kept
    });
    let mut waiting = shared.server.connect();
    waiting.send("POST", "/v1/reserve", Some(&json!({ "queues": ["own-a"], "wait": "5m" })));
    let mut first = String::new();
    while !first.contains("\"topic\"") {
        first += &String::from_utf8(events.receive_chunk().unwrap().unwrap()).unwrap();
    }
    assert!(first.contains("\"topic\":\"own-a\"") && !first.contains("other"), "{first}");
    assert!(first.contains("\"by\":\"admin\""), "{first}");
    eventually("it waits", || shared.as_admin(|server| server.get("/v1/stats").json()["waiting_consumers"] == 1));

    let revoked = run(punctual().args(["token", "revoke", "bound"]).arg("--data").arg(shared.server.data()));
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    shared.server.signal("HUP");
    assert_eq!(waiting.receive().expect(401).json()["code"], "unauthorized");
    while events.receive_chunk().unwrap().is_some() {}
    shared.as_admin(|server| {
        server.post("/v1/tasks", &json!({ "topic": "own-a", "id": "after", "delay": "1h" })).expect(201)
    });
    let mut text = String::new();
    while !text.contains("after") {
        text += &String::from_utf8(kept.receive_chunk().unwrap().expect("another's stream goes on")).unwrap();
    }
}

#[test]
fn events_that_needed_no_token_end_when_one_is_made() {
    let mut server = Server::start();
    let mut events = server.connect();
    events.send("GET", "/v1/events", None);
    assert_eq!(events.receive_head().unwrap().0, 200);
    server.token = Some(token(&server, "first", &["admin"], &["*"]));
    server.signal("HUP");
    while events.receive_chunk().unwrap().is_some() {}
    server.get("/v1/topics").expect(200);
}

#[test]
fn a_sweep_keeps_to_what_the_token_is_for_and_is_seen_by_who_may_see_its_tasks() {
    let mut shared = Shared::start(&["operate"]);
    let all_of_key = json!({ "select": { "key": "shared" }, "do": "cancel" });
    let begun = shared.server.post("/v1/sweeps", &all_of_key).expect(202).json();
    let path = format!("/v1/sweeps/{}", begun["id"].as_str().unwrap());
    eventually("it is done", || shared.server.get(&path).expect(200).json()["state"] == "done");
    let done = shared.server.get(&path).expect(200).json();
    assert_eq!((&done["changed"], &done["who"]), (&json!(2), &json!("bound")));
    let theirs = shared.as_admin(|server| {
        assert_eq!(server.get("/v1/tasks/other/waits").expect(200).json()["standing"]["state"], "scheduled");
        let of_other = json!({ "select": { "topic": "other" }, "do": "move", "by": "1s" });
        server.post("/v1/sweeps", &of_other).expect(202).json()["id"].as_str().unwrap().to_owned()
    });
    let of_other = json!({ "select": { "topic": "other" }, "do": "cancel", "dry_run": true });
    shared.server.post("/v1/sweeps", &of_other).expect(403);
    shared.server.get(&format!("/v1/sweeps/{theirs}")).expect(404);
    for verb in ["stop", "undo"] {
        shared.server.connect().request("POST", &format!("/v1/sweeps/{theirs}/{verb}"), None).expect(404);
    }
    assert_eq!(all(shared.server.get("/v1/sweeps"), "sweeps", "id"), [begun["id"].as_str().unwrap()]);
    assert_eq!(shared.as_admin(|server| all(server.get("/v1/sweeps"), "sweeps", "id").len()), 2);
}
