//! A task that is made available now.

use serde_json::json;

use crate::stage::{Server, command, run};
use crate::{code, settle_one};

#[test]
fn what_waits_or_is_dead_is_hastened_and_all_else_is_told() {
    let server = Server::start_with(&["--node-shards", "3"]);
    let hasten = |id: &str| server.connect().request("POST", &format!("/v1/tasks/t/{id}/hasten"), None);
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "later", "delay": "1h", "text": "x" })).expect(201);
    assert_eq!(hasten("later").expect(200).json()["standing"]["state"], "ready");
    assert_eq!(hasten("later").expect(200).json()["standing"]["state"], "ready", "twice is as once");
    let taken = server.post("/v1/reserve", &json!({ "queues": ["t"], "consumer": "c" })).expect(200).json();
    assert_eq!(taken["deliveries"][0]["id"], "later");
    let refused = hasten("later").expect(409).json();
    assert_eq!((&refused["code"], &refused["standing"]["holder"]), (&json!("too-late"), &json!("c")));
    settle_one(&server, "t", "dead", "reject");
    assert_eq!(hasten("dead").expect(200).json()["standing"]["state"], "ready");
    settle_one(&server, "u", "done", "acknowledge");
    assert_eq!(code(server.connect().request("POST", "/v1/tasks/u/done/hasten", None).expect(409)), "too-late");
    assert_eq!(code(hasten("nobody").expect(404)), "no-such-task");
}

#[test]
fn one_delivery_of_a_broadcast_is_hastened_alone() {
    let server = Server::start();
    let feeds = json!({ "feeds": [{ "queue": "a" }, { "queue": "b" }] });
    server.send("PUT", "/v1/topics/t", &feeds).expect(200);
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "1" })).expect(201);
    for queue in ["a", "b"] {
        let taken = server.post("/v1/reserve", &json!({ "queues": [queue], "wait": "5s" })).expect(200).json();
        let release = json!({ "do": "release", "after": "1h", "lease": taken["deliveries"][0]["lease"] });
        server.post("/v1/leases", &json!({ "actions": [release] })).expect(200);
    }
    let hastened = server.connect().request("POST", "/v1/tasks/t/1/hasten?queue=a", None).expect(200).json();
    assert_eq!(hastened["standing"]["state"], "ready");
    let deliveries = server.get("/v1/tasks/t/1").expect(200).json()["deliveries"].clone();
    let state = |queue: &str| {
        let of = deliveries.as_array().unwrap().iter().find(|delivery| delivery["queue"] == queue).unwrap();
        of["standing"]["state"].clone()
    };
    assert_eq!((state("a"), state("b")), (json!("ready"), json!("scheduled")));
    let told = run(command(&server).args(["hasten", "t", "1", "--queue", "b"]));
    assert_eq!((told.code, told.stdout.starts_with("hastened t 1: ")), (Some(0), true), "{told:?}");
}
