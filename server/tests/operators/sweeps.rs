//! Changes to many tasks at once: of a herd, of dead letters, refused, and from the command line. That they are whole on every store
//! is shown there.

use serde_json::{Value, json};

use crate::stage::sweeps::{act, begin, counts, fill, over, sweep, undo};
use crate::stage::{Server, command, run};
use crate::{code, settle_one};

#[test]
fn a_herd_is_spread_moved_back_and_narrowed_by_ids() {
    let server = Server::start();
    for number in 0..400 {
        let at = 4_000_000_000_000_u64;
        server.post("/v1/tasks", &json!({ "topic": "t", "id": number.to_string(), "at": at })).expect(201);
    }
    let select = json!({ "topic": "t", "from": 4_000_000_000_000_u64, "until": 4_000_000_000_001_u64 });
    let spread = json!({ "select": select, "do": "spread", "start": 4_000_000_000_000_u64, "over": "400s" });
    let id = begin(&server, &spread);
    assert_eq!(counts(&over(&server, &id)), (400, 400, 0));
    let first_half = server.get("/v1/tasks?topic=t&until=4000000200000&limit=1000").expect(200).json();
    let first_half = first_half["tasks"].as_array().unwrap().len();
    assert!((195..=205).contains(&first_half), "{first_half}");
    let told = sweep(&server, &id);
    assert_eq!((&told["over"], &told["undo"]["possible"]), (&json!("6m40s"), &json!(true)));
    server.delete("/v1/tasks/t/7").expect(200);
    let undone = over(&server, &undo(&server, &id));
    assert_eq!(counts(&undone), (400, 399, 1), "one was cancelled since");
    let some = json!({ "select": { "topic": "t", "ids": ["1", "2", "2", "none"] }, "do": "move", "by": "-1d" });
    assert_eq!(counts(&over(&server, &begin(&server, &some))), (2, 2, 0));
}

#[test]
fn dead_letters_are_replayed_by_note_and_purged_for_good() {
    let server = Server::start();
    for id in ["a", "b"] {
        settle_one(&server, "t", id, "reject");
    }
    let replay = json!({ "select": { "queue": "t", "ids": ["a"], "topic": "t", "note": "" }, "do": "replay" });
    assert_eq!(counts(&over(&server, &begin(&server, &replay))), (1, 1, 0));
    let purge = json!({ "select": { "all": true, "reason": "rejected" }, "do": "purge" });
    let id = begin(&server, &purge);
    assert_eq!(counts(&over(&server, &id)), (1, 1, 0));
    let refused = act(&server, &id, "undo").expect(409).json();
    assert_eq!((&refused["code"], &refused["detail"]), (&json!("cannot-undo"), &json!("what was purged is gone")));
    assert_eq!(sweep(&server, &id)["undo"]["possible"], false);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let server = Server::start();
    let refused = |body: Value| code(server.post("/v1/sweeps", &body).expect(422));
    for body in [
        json!({ "select": {}, "do": "cancel" }),
        json!({ "select": { "state": "scheduled" }, "do": "cancel" }),
        json!({ "select": { "ids": ["a"] }, "do": "cancel" }),
        json!({ "select": { "topic": "t" }, "do": "move" }),
        json!({ "select": { "topic": "t" }, "do": "move", "by": "1s", "delay": "1s" }),
        json!({ "select": { "topic": "t" }, "do": "spread" }),
        json!({ "select": { "topic": "t" }, "do": "cancel", "by": "1s" }),
        json!({ "select": { "topic": "t" }, "do": "cancel", "over": "1s" }),
        json!({ "select": { "topic": "t", "state": "dead" }, "do": "cancel" }),
        json!({ "select": { "topic": "t", "state": "scheduled" }, "do": "purge" }),
        json!({ "select": { "topic": "t", "reason": "expired" }, "do": "cancel" }),
        json!({ "select": { "topic": "t", "reason": "sloth" }, "do": "purge" }),
        json!({ "select": { "topic": "t", "ids": vec!["x"; 10_001] }, "do": "cancel" }),
    ] {
        assert_eq!(refused(body.clone()), "invalid", "{body}");
    }
    for id in ["7", "x"] {
        assert_eq!(code(server.get(&format!("/v1/sweeps/{id}")).expect(404)), "no-such-sweep");
        assert_eq!(code(act(&server, id, "undo").expect(404)), "no-such-sweep");
        assert_eq!(code(act(&server, id, "stop").expect(404)), "no-such-sweep");
    }
}

#[test]
fn the_command_line_sweeps_and_undoes() {
    let server = Server::start();
    fill(&server, "t", 30);
    let told = |arguments: &[&str]| run(command(&server).args(arguments));
    let counted = told(&["sweep", "--topic", "t", "--do", "cancel", "--dry-run"]);
    assert!(counted.stdout.starts_with("30 tasks would be cancelled\nfor example: t order-"), "{counted:?}");
    let unasked = told(&["sweep", "--topic", "t", "--do", "cancel"]);
    assert_eq!((unasked.code, unasked.stderr.contains("--yes")), (Some(2), true), "{unasked:?}");
    let done = told(&["sweep", "--topic", "t", "--do", "cancel", "--yes"]);
    assert_eq!((done.code, done.stdout.trim()), (Some(0), "30 tasks cancelled"), "{done:?}");
    let id = server.get("/v1/sweeps").expect(200).json()["sweeps"][0]["id"].as_str().unwrap().to_owned();
    let shown = told(&["sweeps", "show", &id]);
    assert!(
        shown.stdout.contains("done: 30 tasks cancelled") && shown.stdout.contains("can be undone until"),
        "{shown:?}"
    );
    let undone = told(&["sweeps", "undo", &id, "--yes"]);
    assert_eq!((undone.code, undone.stdout.trim()), (Some(0), "30 tasks put back"), "{undone:?}");
    let list = told(&["sweeps"]);
    assert!(list.stdout.contains("undo cancel") && list.stdout.contains(&id), "{list:?}");
    let file = server.directory().join("ids");
    std::fs::write(&file, "order-1\n\norder-2\n").unwrap();
    let moved =
        told(&["sweep", "--topic", "t", "--ids", file.to_str().unwrap(), "--do", "move", "--by", "-1h", "--yes"]);
    assert_eq!(moved.stdout.trim(), "2 tasks moved", "{moved:?}");
}

#[test]
fn an_undo_is_promised_only_for_what_a_history_keeps() {
    let server = Server::start();
    let set = |topic: &str, history: &str| {
        server.send("PUT", &format!("/v1/topics/{topic}"), &json!({ "history": history })).expect(200);
    };
    let add = |topic: &str, id: &str, key: &str| {
        server.post("/v1/tasks", &json!({ "topic": topic, "id": id, "delay": "1h", "key": key })).expect(201);
    };
    let preview = |select: Value, act: &str| {
        let mut asked = json!({ "select": select, "do": act, "dry_run": true });
        if act == "move" {
            asked["by"] = json!("1m");
        }
        server.post("/v1/sweeps", &asked).expect(200).json()["undo"].clone()
    };
    set("none", "0s");
    set("nothing", "0s");
    add("none", "1", "k");
    for select in [json!({ "topic": "none" }), json!({ "key": "k" }), json!({ "until": "2100-01-01T00:00:00Z" })] {
        assert_eq!(preview(select.clone(), "cancel")["possible"], false, "{select}");
    }
    assert_eq!(preview(json!({ "all": true }), "move"), json!({ "possible": true }), "no history is needed for that");
    set("kept", "1d");
    (0..10).for_each(|id| add("kept", &id.to_string(), "k"));
    add("kept", "other", "l");
    // All tasks of this key are known to be kept; of all others, some are and some are not.
    let kept = preview(json!({ "key": "l" }), "cancel");
    assert_eq!((&kept["possible"], kept["until"].is_string(), kept.get("except")), (&json!(true), true, None));
    for select in [json!({ "key": "k" }), json!({ "all": true }), json!({ "until": "2100-01-01T00:00:00Z" })] {
        let undo = preview(select.clone(), "cancel");
        let told = (&undo["possible"], &undo["except"], undo["until"].is_string(), undo["why"].is_string());
        assert_eq!(told, (&json!(true), &json!(["none", "nothing"]), true, true), "{select}");
    }
    let id = begin(&server, &json!({ "select": { "key": "k" }, "do": "cancel" }));
    let done = over(&server, &id);
    assert_eq!((&done["changed"], &done["undo"]["except"]), (&json!(11), &json!(["none", "nothing"])));
    assert_eq!(server.get("/v1/sweeps").expect(200).json()["sweeps"][0]["undo"], done["undo"]);
    let shown = run(command(&server).args(["sweeps", "show", &id])).stdout;
    assert!(shown.contains("except tasks of none, nothing: no history keeps them"), "{shown}");
    assert_eq!(over(&server, &undo(&server, &id))["changed"], 10);

    // When the last history has forgotten them, nothing comes back.
    let id = begin(&server, &json!({ "select": { "key": "k" }, "do": "cancel" }));
    over(&server, &id);
    set("kept", "1ms");
    assert_eq!(sweep(&server, &id)["undo"]["possible"], false);
    assert_eq!(code(act(&server, &id, "undo").expect(409)), "cannot-undo");
}
