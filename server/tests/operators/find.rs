//! What a word leads to.

use serde_json::{Value, json};

use crate::stage::{Server, command, run};

fn found(server: &Server, text: &str) -> Vec<Value> {
    let found = server.get(&format!("/v1/find?q={text}")).expect(200).json();
    assert_eq!(found["is_complete"], true, "{found}");
    found["hits"].as_array().unwrap().clone()
}

#[test]
fn a_word_finds_tasks_keys_topics_and_queues() {
    let server = Server::start_with(&["--node-shards", "3"]);
    for (topic, id, key) in [("orders", "7", "user-1"), ("coupons", "7", "user-2"), ("orders", "8", "user-1")] {
        server.post("/v1/tasks", &json!({ "topic": topic, "id": id, "key": key, "delay": "1h" })).expect(201);
    }
    server.send("PUT", "/v1/queues/my-Orders", &json!({})).expect(200);
    let task =
        |hit: &Value| (hit["kind"] == "task").then(|| format!("{}/{}", hit["topic"], hit["id"]).replace('"', ""));
    let mut by_id: Vec<String> = found(&server, "7").iter().filter_map(task).collect();
    by_id.sort();
    by_id.dedup();
    assert!(by_id.contains(&"orders/7".into()) && by_id.contains(&"coupons/7".into()), "{by_id:?}");
    let one = found(&server, "orders/8");
    assert_eq!(one.len(), 1);
    assert_eq!((task(&one[0]).as_deref(), &one[0]["standing"]["state"]), (Some("orders/8"), &json!("scheduled")));
    let by_number = found(&server, &one[0]["number"].to_string());
    assert!(by_number.iter().filter_map(task).any(|task| task == "orders/8"), "{by_number:?}");
    assert_eq!(found(&server, "user-2"), [json!({ "kind": "key", "key": "user-2" })]);
    let named = |kind: &str, name: &str| json!({ "kind": kind, "name": name });
    let names = [named("topic", "orders"), named("queue", "orders"), named("queue", "my-Orders")];
    assert_eq!(found(&server, "orders"), names, "the very name comes first");
    assert_eq!(found(&server, "MY-O"), [named("queue", "my-Orders")]);
    assert_eq!(found(&server, "nobody"), [] as [Value; 0]);
    server.delete("/v1/tasks/orders/8").expect(200);
    assert_eq!(found(&server, "orders/8")[0]["standing"]["ending"], "cancelled", "what is finished is found");
    assert_eq!(server.get("/v1/find?q=").expect(422).json()["code"], "invalid");
    let told = run(command(&server).args(["find", "user-1"]));
    assert_eq!((told.code, told.stdout.contains("key   user-1")), (Some(0), true), "{told:?}");
}
