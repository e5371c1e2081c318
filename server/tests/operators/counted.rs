//! What is counted when somebody asks: groups of dead letters, and the forecast by topic.

use serde_json::json;

use crate::stage::{Server, command, run};
use crate::{code, settle_one};

#[test]
fn dead_letters_are_grouped_by_what_went_wrong() {
    let server = Server::start_with(&["--node-shards", "3"]);
    for number in 0..6 {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": format!("order-{number}") })).expect(201);
        let taken = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })).expect(200).json();
        let note = if number < 4 { json!(format!("no such order 100{number}")) } else { json!(null) };
        let action = json!({ "do": "reject", "lease": taken["deliveries"][0]["lease"], "note": note });
        server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
    }
    let groups = server.get("/v1/dead/groups").expect(200).json();
    assert_eq!((&groups["looked_at"], &groups["others"], groups.get("counted_since")), (&json!(6), &json!(0), None));
    let first = &groups["groups"][0];
    let told = (&first["reason"], &first["note"], &first["queue"], &first["count"], &first["last_hour"]);
    assert_eq!(told, (&json!("rejected"), &json!("no such order *"), &json!("t"), &json!(4), &json!(4)));
    assert_eq!(first["samples"].as_array().unwrap().len(), 3);
    assert!(first["samples"][0]["note"].as_str().unwrap().starts_with("no such order 100"));
    assert_eq!((groups["groups"][1].get("note"), &groups["groups"][1]["count"]), (None, &json!(2)));
    let listed = |note: &str| {
        let page = server.get(&format!("/v1/dead?note={note}")).expect(200).json();
        page["tasks"].as_array().unwrap().len()
    };
    assert_eq!((listed("no+such+order+*"), listed("")), (4, 2));
    let by_topic = server.get("/v1/dead/groups?by=topic&reason=rejected&queue=t").expect(200).json();
    assert_eq!((&by_topic["groups"][0]["topic"], &by_topic["groups"][0]["count"]), (&json!("t"), &json!(6)));
    assert_eq!(server.get("/v1/dead/groups?topic=u").expect(200).json()["groups"], json!([]));
    for bad in ["by=id", "by=", "reason=bored"] {
        assert_eq!(code(server.get(&format!("/v1/dead/groups?{bad}")).expect(422)), "invalid", "{bad}");
    }
    for path in ["/v1/tasks?note=x", "/v1/history?note=x", "/v1/keys/k?note=x"] {
        assert_eq!(code(server.get(path).expect(422)), "invalid", "{path}");
    }
    let told = run(command(&server).args(["dead", "groups", "--by", "reason,note"]));
    assert_eq!((told.code, told.stdout.contains("no such order *")), (Some(0), true), "{told:?}");
}

#[test]
fn a_forecast_is_of_one_topic_or_tells_them_apart() {
    let server = Server::start_with(&["--node-shards", "3"]);
    for (topic, number) in [("most", 5), ("some", 3), ("few", 1)] {
        let task = |id: usize| json!({ "topic": topic, "id": id.to_string(), "delay": "30m" });
        let tasks: Vec<_> = (0..number).map(task).collect();
        server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    }
    let get = |query: &str| server.get(&format!("/v1/forecast?slots=60&{query}")).expect(200).json();
    let due = |forecast: &serde_json::Value| {
        forecast["slots"].as_array().unwrap().iter().map(|slot| slot["due"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((due(&get("topic=most")), due(&get("topic=none")), due(&get("unit=hour"))), (5, 0, 9));
    for unit in ["week", "month"] {
        let told = get(&format!("unit={unit}"));
        assert_eq!((due(&told), told["slots"].as_array().unwrap().len()), (9, 60), "{unit}");
        assert_eq!(due(&get(&format!("unit={unit}&topic=some"))), 3, "{unit}");
        let slots = told["slots"].as_array().unwrap();
        let begins = |slot: usize| slots[slot]["from"].as_str().unwrap().to_owned();
        assert!(begins(1).ends_with("T00:00:00.000Z") && (unit == "week" || &begins(1)[8..10] == "01"), "{unit}");
    }
    let apart = get("top=1");
    assert_eq!(due(&apart), 9);
    let sum = |topic: usize| {
        let due = apart["topics"][topic]["due"].as_array().unwrap();
        assert_eq!(due.len(), 60);
        due.iter().map(|due| due.as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((&apart["topics"][0]["topic"], sum(0)), (&json!("most"), 5));
    assert_eq!((apart["topics"][1].get("topic"), sum(1)), (None, 4), "all others together");
    assert_eq!(code(server.get("/v1/forecast?top=0").expect(422)), "invalid");
    let told = run(command(&server).args(["forecast", "--top", "2", "--slots", "60"]));
    assert_eq!((told.code, told.stdout.starts_with("most")), (Some(0), true), "{told:?}");
}

#[test]
fn a_herd_that_cannot_be_told_apart_is_told_as_a_whole() {
    let server = Server::start();
    let (herd, due_at) = (100_500_u64, punctual_wire::Time::now().0 + 2 * 3_600_000);
    let mut connection = server.connect();
    for first in (0..herd).step_by(1_500) {
        let task = |id: u64| json!({ "topic": "herd", "id": id.to_string(), "at": due_at });
        let tasks: Vec<_> = (first..first + 1_500).map(task).collect();
        connection.request("POST", "/v1/tasks/batch", Some(&json!({ "tasks": tasks }))).expect(200);
    }
    server.post("/v1/tasks", &json!({ "topic": "later", "id": "1", "at": due_at + 180_000 })).expect(201);
    let get = |query: &str| server.get(&format!("/v1/forecast?slots=5&from={due_at}{query}")).expect(200).json();
    let due = |told: &serde_json::Value| {
        told["slots"].as_array().unwrap().iter().map(|slot| slot["due"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (whole, apart) = (get(""), get("&top=5"));
    assert_eq!((due(&whole), due(&apart)), (vec![herd, 0, 0, 1, 0], due(&whole)), "{apart}");
    assert_eq!(apart["topics_until"], apart["slots"][0]["from"]);
    let told = (&apart["topics"][0]["topic"], apart["topics"][0]["due"].as_array().unwrap().len());
    assert_eq!(told, (&json!("herd"), 1), "whose it is");
    let counted = apart["topics"][0]["due"][0].as_u64().unwrap();
    assert!((90_000..=100_000).contains(&counted), "as much as is looked at: {counted}");
}

#[test]
fn the_command_line_lists_the_latest_first_and_searches_and_counts_the_history() {
    let server = Server::start();
    for (id, delay) in [("soon", "1h"), ("late", "2h")] {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": id, "delay": delay })).expect(201);
    }
    let told = |arguments: &[&str]| run(command(&server).args(arguments));
    let latest = told(&["list", "--latest", "--limit", "1"]).stdout;
    assert!(latest.contains("late") && !latest.contains("soon"), "{latest}");
    assert_eq!(told(&["list", "--latest", "--key", "k"]).code, Some(2), "a key has an order of its own");
    for id in ["order-1", "order-2", "mail-1"] {
        settle_one(&server, "h", id, "acknowledge");
    }
    let found = told(&["history", "--contains", "order-"]).stdout;
    assert!(found.contains("order-1") && found.contains("order-2") && !found.contains("mail-1"), "{found}");
    assert_eq!(told(&["history", "--contains", "order-", "--count"]).stdout.trim(), "2");
    assert_eq!(told(&["history", "--attempts-min", "2", "--count"]).stdout.trim(), "0");
    assert_eq!(told(&["history", "--archive", ".", "--count"]).code, Some(2), "files are not counted");
}
