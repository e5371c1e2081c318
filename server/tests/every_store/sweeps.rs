//! Changes to many tasks at once do what their preview says, are taken back whole, and go on after kill -9.

use serde_json::json;

use crate::stage::Server;
use crate::stage::sweeps::{act, begin, counts, fill, midway, over, tasks, undo};

#[test]
fn a_preview_equals_the_outcome_and_its_undo_gives_everything_back() {
    let server = Server::start_with(&["--node-shards", "3"]);
    fill(&server, "t", 1_000);
    let before = tasks(&server, "t");
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "held" })).expect(201);
    server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })).expect(200);
    let mut asked = json!({ "select": { "topic": "t" }, "do": "cancel", "dry_run": true });
    let preview = server.post("/v1/sweeps", &asked).expect(200).json();
    assert_eq!(counts(&preview), (1_001, 1_000, 1));
    assert_eq!((preview["samples"].as_array().unwrap().len(), &preview["undo"]["possible"]), (5, &json!(true)));
    asked["dry_run"] = json!(false);
    let id = begin(&server, &asked);
    let done = over(&server, &id);
    assert_eq!(counts(&done), counts(&preview));
    assert_eq!((&done["do"], &done["select"]["topic"]), (&json!("cancel"), &json!("t")));
    assert_eq!(server.get("/v1/topics/t").expect(200).json()["waiting"], 0);
    let undone = over(&server, &undo(&server, &id));
    assert_eq!((counts(&undone), &undone["undoes"]), ((1_000, 1_000, 0), &json!(id)));
    let mut after = tasks(&server, "t");
    after.retain(|task| task["id"] != "held");
    assert_eq!(after, before, "due times, bodies and priorities");
    assert_eq!(act(&server, &id, "undo").expect(409).json()["code"], "cannot-undo");
    let listed = server.get("/v1/sweeps").expect(200).json()["sweeps"].clone();
    assert_eq!((&listed[0]["id"], &listed[1]["undone_by"]), (&undone["id"], &undone["id"]), "the newest first");
}

/// Killed in the midst of a sweep and of its undo, the server finishes both after its start.
#[test]
fn a_sweep_and_its_undo_go_on_after_kill_9() {
    const TASKS: u64 = 20_000;
    for asked in [json!({ "do": "cancel" }), json!({ "do": "move", "by": "1h" })] {
        let mut server = Server::start_with(&["--node-shards", "2"]);
        fill(&server, "t", TASKS as usize);
        let before = tasks(&server, "t");
        let mut body = asked.clone();
        body["select"] = json!({ "topic": "t" });
        let id = begin(&server, &body);
        midway(&server, &id, TASKS);
        server.crash();
        assert_eq!(counts(&over(&server, &id)), (TASKS, TASKS, 0), "{asked}");
        let back = undo(&server, &id);
        midway(&server, &back, TASKS);
        server.crash();
        assert_eq!(counts(&over(&server, &back)), (TASKS, TASKS, 0), "the undo of {asked}");
        assert_eq!(tasks(&server, "t"), before);
    }
}

/// Stopping and undoing say of which topic: whoever looks at the topic's acts finds them.
#[test]
fn stopping_and_undoing_a_sweep_are_among_the_acts_of_its_topic() {
    let server = Server::start();
    fill(&server, "t", 10);
    let id = begin(&server, &json!({ "select": { "topic": "t" }, "do": "cancel" }));
    over(&server, &id);
    let back = undo(&server, &id);
    act(&server, &back, "stop").expect(200);
    let acts = server.get("/v1/audit?topic=t").expect(200).json()["acts"].clone();
    let told: Vec<_> = acts.as_array().unwrap().iter().map(|act| (&act["what"], &act["subject"])).collect();
    let expected = [("stop-sweep", json!(back)), ("undo-sweep", json!(id)), ("sweep-cancel", json!(null))];
    assert_eq!(told.len(), expected.len(), "{acts}");
    for ((what, subject), (expected, of)) in told.into_iter().zip(expected) {
        assert_eq!((what, subject), (&json!(expected), &of), "{acts}");
    }
}
