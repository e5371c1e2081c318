//! What stands in a queue, and what lists leave out.

use serde_json::{Value, json};

use crate::code;
use crate::stage::{Server, command, run};

fn ids(page: &Value) -> Vec<&str> {
    page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

/// All pages of a list, by their ids, and how many there were.
fn all(server: &Server, path: &str) -> (Vec<String>, usize) {
    let (mut found, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = server.get(&format!("{path}{cursor}")).expect(200).json();
        found.extend(ids(&page).into_iter().map(str::to_owned));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (found, pages),
        }
    }
}

#[test]
fn deliveries_of_a_queue_are_listed_in_its_order() {
    let server = Server::start_with(&["--node-shards", "2"]);
    assert_eq!(code(server.get("/v1/queues/q/deliveries").expect(404)), "no-such-queue");
    server.send("PUT", "/v1/queues/q", &json!({})).expect(200);
    for (id, priority) in [("c", 3), ("a", 1), ("d", 4), ("b", 2), ("e", 5)] {
        server.post("/v1/tasks", &json!({ "topic": "q", "id": id, "priority": priority })).expect(201);
    }
    server.post("/v1/tasks", &json!({ "topic": "q", "id": "later", "delay": "1h" })).expect(201);
    let in_order = ["a", "b", "c", "d", "e"];
    assert_eq!(all(&server, "/v1/queues/q/deliveries?limit=2").0, in_order);
    assert_eq!(all(&server, "/v1/queues/q/deliveries?state=ready"), (in_order.map(str::to_owned).to_vec(), 1));
    let told = run(command(&server).args(["queues", "line", "q", "--limit", "3"]));
    assert_eq!((told.code, told.stdout.contains("later")), (Some(0), false), "{told:?}");

    for (lease, consumer) in [("50s", "second"), ("20s", "first")] {
        let asked = json!({ "queues": ["q"], "max": 1, "wait": "10s", "lease": lease, "consumer": consumer });
        server.post("/v1/reserve", &asked).expect(200);
    }
    let leased = server.get("/v1/queues/q/deliveries?state=leased").expect(200).json();
    let holders: Vec<&Value> =
        leased["tasks"].as_array().unwrap().iter().map(|task| &task["standing"]["holder"]).collect();
    assert_eq!(holders, ["first", "second"], "by the end of their leases");
    assert_eq!(all(&server, "/v1/queues/q/deliveries?limit=1").0.len(), 3);
    for bad in ["state=dead", "limit=0", "cursor=x", "x=1"] {
        assert!(matches!(server.get(&format!("/v1/queues/q/deliveries?{bad}")).status, 400 | 422), "{bad}");
    }
}

#[test]
fn lists_are_filtered_and_counted() {
    let server = Server::start();
    for number in 0..30 {
        let task = json!({ "topic": "t", "id": format!("order-{number}"), "key": format!("user-{}", number % 3), "delay": "1h" });
        server.post("/v1/tasks", &task).expect(201);
    }
    server.post("/v1/tasks", &json!({ "topic": "now", "id": "held" })).expect(201);
    let asked = json!({ "queues": ["now"], "wait": "10s", "consumer": "worker-1" });
    let lease = server.post("/v1/reserve", &asked).expect(200).json()["deliveries"][0]["lease"].clone();
    let get = |query: &str| server.get(&format!("/v1/tasks?{query}")).expect(200).json();
    let page = get("contains=order-2");
    assert_eq!((ids(&page).len(), &page["looked_at"]), (11, &json!(31)), "{page}");
    assert_eq!(ids(&get("contains=user-1&limit=99")).len(), 10);
    assert_eq!((ids(&get("holder=worker-1")), ids(&get("attempts_min=1"))), (vec!["held"], vec!["held"]));
    assert_eq!(ids(&get("holder=nobody")), [""; 0]);
    let counted = get("topic=t&count=true");
    assert_eq!((&counted["count"], &counted["more"], &counted["tasks"]), (&json!(30), &json!(false), &json!([])));
    assert_eq!(get("contains=order-2&count=true")["count"], 11);
    let action = json!({ "do": "reject", "lease": lease, "note": "no such user" });
    server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
    let dead = server.get("/v1/dead?contains=such").expect(200).json();
    assert_eq!((ids(&dead), &dead["looked_at"]), (vec!["held"], &json!(1)));
    assert_eq!(server.get("/v1/dead?count=true&reason=expired").expect(200).json()["count"], 0);
    for (path, bad) in
        [("dead", "holder=a"), ("history", "holder=a"), ("tasks", "contains="), ("tasks", "attempts_min=-1")]
    {
        assert_eq!(code(server.get(&format!("/v1/{path}?{bad}")).expect(422)), "invalid", "{bad}");
    }
    let told = run(command(&server).args(["list", "--contains", "order-2", "--count"]));
    assert_eq!((told.code, told.stdout.trim()), (Some(0), "11"), "{told:?}");
    let told = run(command(&server).args(["dead", "--contains", "such"]));
    assert_eq!((told.code, told.stdout.contains("held")), (Some(0), true), "{told:?}");
}

#[test]
fn one_among_many_is_found_without_a_page_for_each_stretch() {
    let server = Server::start();
    for batch in 0..3 {
        let tasks: Vec<Value> = (0..5_000)
            .map(|number| json!({ "topic": "t", "id": format!("{batch}-{number}"), "delay": "5s" }))
            .collect();
        server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    }
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "needle", "delay": "2h" })).expect(201);
    let (found, pages) = all(&server, "/v1/tasks?contains=needle");
    assert_eq!((found, pages), (vec!["needle".to_owned()], 1));
    let counted = server.get("/v1/tasks?count=true").expect(200).json();
    assert_eq!((&counted["count"], &counted["more"]), (&json!(10_000), &json!(true)));
}
