//! Who waits for deliveries.

use std::thread;

use serde_json::{Value, json};

use crate::code;
use crate::stage::{Server, command, eventually, run};

#[test]
fn who_waits_is_listed_until_there_is_something() {
    let server = Server::start();
    let consumers = |query: &str| server.get(&format!("/v1/consumers{query}")).expect(200).json();
    let nobody = json!({ "consumers": [], "count": 0, "holders": [], "holders_left_out": 0, "leases_unknown": 0 });
    assert_eq!(consumers(""), nobody);
    thread::scope(|scope| {
        let wait = |name: &'static str, queues: Value| {
            let server = &server;
            let asked = json!({ "queues": queues, "max": 7, "wait": "30s", "consumer": name });
            scope.spawn(move || server.post("/v1/reserve", &asked).expect(200));
        };
        wait("worker-2", json!(["orders"]));
        wait("worker-1", json!(["mails", "orders"]));
        eventually("both wait", || consumers("")["count"] == 2);
        let both = consumers("?queue=orders")["consumers"].clone();
        let first = json!({ "name": "worker-1", "node": "node-1", "queues": ["mails", "orders"], "max": 7 });
        assert_eq!((&both[0], &both[1]["name"]), (&first, &json!("worker-2")));
        let (one, none) = (consumers("?queue=mails"), consumers("?queue=sms"));
        assert_eq!((&one["count"], &one["consumers"][0]["name"]), (&json!(1), &json!("worker-1")));
        assert_eq!(none["count"], 0);
        let some = consumers("?limit=1");
        assert_eq!((some["consumers"].as_array().unwrap().len(), &some["count"]), (1, &json!(2)));
        let told = run(command(&server).args(["consumers", "--queue", "mails"]));
        assert_eq!((told.code, told.stdout.contains("worker-1")), (Some(0), true), "{told:?}");
        for _ in 0..2 {
            server.post("/v1/tasks", &json!({ "topic": "orders" })).expect(201);
        }
    });
    assert_eq!(consumers("")["count"], 0, "who was served waits no more");
    assert_eq!(code(server.get("/v1/consumers?limit=0").expect(422)), "invalid");
}

#[test]
fn who_holds_deliveries_is_listed_by_queue() {
    let server = Server::start();
    for (topic, id) in [("orders", "1"), ("orders", "2"), ("mails", "1")] {
        server.post("/v1/tasks", &json!({ "topic": topic, "id": id })).expect(201);
    }
    let take = |queue: &str, max: u64, consumer: &str| {
        let asked = json!({ "queues": [queue], "max": max, "wait": "10s", "consumer": consumer });
        server.post("/v1/reserve", &asked).expect(200).json()["deliveries"].as_array().unwrap().len() as u64
    };
    assert_eq!(take("orders", 2, "worker-1") + take("mails", 1, "worker-1"), 3);
    let consumers = |query: &str| server.get(&format!("/v1/consumers{query}")).expect(200).json();
    let all = consumers("");
    let held: Vec<(&Value, &Value, &Value)> = all["holders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|holder| (&holder["name"], &holder["queue"], &holder["leases"]))
        .collect();
    let name = json!("worker-1");
    assert_eq!(held, [(&name, &json!("mails"), &json!(1)), (&name, &json!("orders"), &json!(2))]);
    let one = consumers("?queue=orders");
    assert_eq!((one["holders"].as_array().unwrap().len(), &one["leases_unknown"]), (1, &json!(0)));
    let holder = &one["holders"][0];
    assert!(holder["oldest"].as_str() < holder["next_end"].as_str(), "{holder}");
    assert_eq!(consumers("?limit=1")["holders_left_out"], 1);
    let told = run(command(&server).args(["consumers", "--queue", "orders"]));
    assert_eq!((told.code, told.stdout.contains("HOLDER")), (Some(0), true), "{told:?}");
}
