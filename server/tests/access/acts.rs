//! Who is told who did what, and who is named.

use serde_json::json;

use crate::stage::{Server, beside, eventually, run};
use crate::token;

#[test]
fn what_was_done_is_told_to_those_whose_topics_it_concerns() {
    let mut server = Server::prepare(&[], &[]);
    let admin = token(&server, "root", &["admin"], &["*"]);
    let bound = token(&server, "bound", &["operate"], &["own*"]);
    let producer = token(&server, "shop", &["produce"], &["*"]);
    server.start_again();
    server.token = Some(admin);
    for queue in ["own", "other"] {
        server.send("PUT", &format!("/v1/queues/{queue}"), &json!({})).expect(200);
        server.send("PUT", &format!("/v1/topics/{queue}"), &json!({})).expect(200);
        server.post("/v1/tasks", &json!({ "topic": queue, "id": "1", "delay": "1h" })).expect(201);
    }
    server.post("/v1/nodes/here/drain", &json!({}));
    server.token = Some(bound);
    let pause = server.post("/v1/queues/own/pause", &json!({ "reason": "mine" })).expect(200).json();
    assert_eq!(pause["pause"]["by"], "bound");
    // Who operates and does not produce is noted; who produces is not.
    server.delete("/v1/tasks/own/1").expect(200);
    let seen = server.get("/v1/audit").expect(200).json();
    let whats: Vec<&str> = seen["acts"].as_array().unwrap().iter().map(|act| act["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["cancel", "pause-queue", "put-topic", "put-queue"]);
    server.get("/v1/audit?topic=other").expect(403);
    server.get("/v1/audit?queue=other").expect(403);
    server.token = Some(producer);
    server.post("/v1/tasks", &json!({ "topic": "own", "id": "2", "delay": "1h" })).expect(201);
    server.delete("/v1/tasks/own/2").expect(200);
    server.get("/v1/audit").expect(403);
    let timeline = server.get("/v1/tasks/own/1/timeline").expect(200).json();
    let is_act = |entry: &serde_json::Value| entry["what"] == "act";
    assert!(!timeline["entries"].as_array().unwrap().iter().any(is_act), "not for those who produce: {timeline}");
}

#[test]
fn tokens_that_are_made_and_revoked_are_noted() {
    let mut server = Server::prepare(&[], &[]);
    let admin = token(&server, "root", &["admin"], &["*"]);
    server.start_again();
    server.token = Some(admin);
    token(&server, "guest", &["view"], &["*"]);
    let done = |server: &Server| {
        let acts = server.get("/v1/audit").expect(200).json()["acts"].clone();
        let act = |act: &serde_json::Value| format!("{} {}", act["what"], act["subject"]).replace('"', "");
        acts.as_array().unwrap().iter().map(act).collect::<Vec<_>>()
    };
    eventually("it was noted", || done(&server) == ["put-token guest"]);
    assert_eq!(run(beside(&server).args(["token", "revoke", "guest"])).code, Some(0));
    eventually("it was noted", || done(&server) == ["revoke-token guest", "put-token guest"]);
}

#[test]
fn a_sweep_is_noted_with_the_queue_and_the_key_that_it_is_about() {
    let mut server = Server::prepare(&[], &[]);
    let admin = token(&server, "root", &["admin"], &["*"]);
    let bound = token(&server, "bound", &["operate"], &["own*"]);
    server.start_again();
    server.token = Some(admin.clone());
    for topic in ["own", "other"] {
        server.post("/v1/tasks", &json!({ "topic": topic, "id": "1", "delay": "1h", "key": "user-7" })).expect(201);
    }
    let sweep = |server: &Server, select: serde_json::Value| {
        let asked = json!({ "select": select, "do": "move", "by": "1m" });
        let id = server.post("/v1/sweeps", &asked).expect(202).json()["id"].as_str().unwrap().to_owned();
        crate::stage::sweeps::over(server, &id);
        id
    };
    let by_key = sweep(&server, json!({ "key": "user-7" }));
    crate::stage::sweeps::undo(&server, &by_key);
    let by_queue = sweep(&server, json!({ "queue": "own" }));
    crate::stage::sweeps::act(&server, &by_queue, "stop").expect(200);
    let of_topic = sweep(&server, json!({ "topic": "own", "key": "user-7" }));
    crate::stage::sweeps::undo(&server, &of_topic);
    sweep(&server, json!({ "queue": "other" }));
    let told = |server: &Server, query: &str| {
        let acts = server.get(&format!("/v1/audit{query}")).expect(200).json()["acts"].clone();
        let word = |act: &serde_json::Value, name: &str| act[name].as_str().unwrap_or("-").to_owned();
        let act = |act: &serde_json::Value| ["what", "topic", "queue", "subject"].map(|name| word(act, name)).join(" ");
        acts.as_array().unwrap().iter().map(act).collect::<Vec<_>>()
    };
    let stopped = format!("stop-sweep - own {by_queue}");
    assert_eq!(told(&server, "?queue=own"), [stopped.as_str(), "sweep-move - own -"]);
    assert!(told(&server, "").contains(&"sweep-move - - user-7".to_owned()));
    let undone = server.get("/v1/audit?what=undo-sweep").expect(200).json()["acts"][1].clone();
    assert_eq!((&undone["subject"], &undone["detail"]), (&json!(by_key), &json!("key user-7")));
    // Who is for some topics learns what was done to those, and neither of others nor of keys of all.
    server.token = Some(bound);
    let undone = format!("undo-sweep own - {of_topic}");
    assert_eq!(told(&server, ""), [undone.as_str(), "sweep-move own - user-7", &stopped, "sweep-move - own -"]);
}
