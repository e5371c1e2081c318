//! What several servers do together while nothing goes wrong.

use std::collections::BTreeSet;

use punctual_engines::{Maria, Postgres};
use serde_json::{Value, json};

use crate::center::Center;
use crate::engine::Engine;
use crate::stage::eventually;

fn ids(answer: &Value) -> Vec<String> {
    answer["deliveries"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// A center of three, and the database that it needs.
fn three<E: Engine>() -> (E, Center) {
    let engine = E::start();
    let center = Center::start(3, &engine.url(), &[]);
    (engine, center)
}

fn any_server_takes_any_request<E: Engine>() {
    let (_engine, center) = three::<E>();
    for id in 0..48 {
        let task = json!({ "topic": "orders", "id": id.to_string(), "delay": "1h", "text": "x" });
        center.server(id % 3).post("/v1/tasks", &task).expect(201);
        center.server((id + 1) % 3).post("/v1/tasks", &task).expect(200);
        let path = format!("/v1/tasks/orders/{id}");
        assert_eq!(center.server((id + 2) % 3).get(&path).expect(200).json()["id"], id.to_string());
        let moved = center.server((id + 1) % 3).send("PATCH", &path, &json!({ "delay": "2h" }));
        moved.expect(200);
    }
    for server in 0..3 {
        assert_eq!(center.server(server).get("/v1/stats").expect(200).json()["total"]["waiting"], 48);
    }
    for id in 0..48 {
        let cancelled = center.server(id % 3).delete(&format!("/v1/tasks/orders/{id}")).expect(200).json();
        assert_eq!(cancelled["outcome"], "cancelled", "{cancelled}");
    }
}

fn a_consumer_at_one_server_gets_what_fires_at_all_of_them<E: Engine>() {
    let (_engine, center) = three::<E>();
    for id in 0..48 {
        let task = json!({ "topic": "orders", "id": id.to_string(), "delay": 200 });
        center.server(id % 3).post("/v1/tasks", &task).expect(201);
    }
    let mut seen = BTreeSet::new();
    while seen.len() < 48 {
        let reserve = json!({ "queues": ["orders"], "max": 10, "wait": "10s" });
        let reserved = center.server(0).post("/v1/reserve", &reserve).expect(200).json();
        assert!(!ids(&reserved).is_empty(), "{} have come", seen.len());
        for delivery in reserved["deliveries"].as_array().unwrap() {
            assert!(seen.insert(delivery["id"].to_string()), "{delivery} came twice");
            let action = json!({ "actions": [{ "do": "acknowledge", "lease": delivery["lease"] }] });
            let done = center.server(seen.len() % 3).post("/v1/leases", &action).expect(200).json();
            assert_eq!(done["results"][0]["outcome"], "acknowledged", "{done}");
        }
    }
}

#[test]
fn the_store_is_not_moved_under_several_servers() {
    let postgres = Postgres::start();
    let center = Center::start(2, &postgres.url(), &[]);
    let elsewhere = json!({ "to": Postgres::start().url() });
    let refused = center.server(0).post("/v1/store/move", &elsewhere).expect(409).json();
    assert!(refused["detail"].as_str().unwrap().contains("server n2 works on this store too"), "{refused}");
}

fn who_does_not_want_to_wait_gets_what_is_at_another_server<E: Engine>() {
    let (_engine, center) = three::<E>();
    for id in 0..48 {
        center.server(0).post("/v1/tasks", &json!({ "topic": "orders", "id": id.to_string() })).expect(201);
    }
    eventually("all of them are ready", || center.server(0).get("/v1/queues/orders").json()["ready"] == 48);
    for server in 0..3 {
        for _ in 0..16 {
            let reserve = json!({ "queues": ["orders"], "wait": 0 });
            let reserved = center.server(server).post("/v1/reserve", &reserve).expect(200).json();
            assert_eq!(ids(&reserved).len(), 1, "{reserved}");
        }
    }
}

#[test]
fn stats_are_those_of_all_servers_or_of_one() {
    let (_postgres, center) = three::<Postgres>();
    for id in 0..48 {
        center
            .server(id % 3)
            .post("/v1/tasks", &json!({ "topic": "orders", "id": id.to_string(), "delay": "1h" }))
            .expect(201);
    }
    let scheduled =
        |path: &str| center.server(1).get(path).expect(200).json()["happened"]["scheduled"].as_u64().unwrap();
    eventually("all are counted", || scheduled("/v1/stats") == 48);
    let parts = ["n1", "n2", "n3"].map(|node| scheduled(&format!("/v1/stats?node={node}")));
    assert!(parts.iter().sum::<u64>() == 48 && parts.iter().all(|part| *part < 48), "{parts:?}");
    let topic = center.server(2).get("/v1/topics/orders").expect(200).json();
    assert_eq!(topic["happened"]["scheduled"], 48);
    let refused = center.server(0).get("/v1/stats?node=nobody").expect(422).json();
    assert!(refused["detail"].as_str().unwrap().contains("there is no node nobody"), "{refused}");
}

#[test]
fn what_is_looked_for_and_hastened_and_who_waits_is_the_same_at_all_servers() {
    let (_postgres, center) = three::<Postgres>();
    for id in 0..12 {
        let task = json!({ "topic": "orders", "id": format!("order-{id}"), "delay": "1h" });
        center.server(id % 3).post("/v1/tasks", &task).expect(201);
    }
    for id in 0..12 {
        let found = center.server(id % 3).get(&format!("/v1/find?q=order-{id}")).expect(200).json();
        assert_eq!(found["hits"][0]["id"], format!("order-{id}"), "{found}");
        let path = format!("/v1/tasks/orders/order-{id}/hasten");
        let hastened = center.server((id + 1) % 3).connect().request("POST", &path, None).expect(200).json();
        assert_eq!(hastened["standing"]["state"], "ready", "{hastened}");
    }
    let mut waiting: Vec<_> = (0..3).map(|server| center.server(server).connect()).collect();
    for (server, connection) in waiting.iter_mut().enumerate() {
        let asked = json!({ "queues": ["mails"], "wait": "60s", "consumer": format!("worker-{server}") });
        connection.send("POST", "/v1/reserve", Some(&asked));
    }
    for server in 0..3 {
        let seen = || center.server(server).get("/v1/consumers?queue=mails").expect(200).json();
        eventually("all are seen everywhere", || seen()["count"] == 3);
        let nodes: BTreeSet<String> =
            seen()["consumers"].as_array().unwrap().iter().map(|consumer| consumer["node"].to_string()).collect();
        assert_eq!(nodes.len(), 3, "{nodes:?}");
    }
}

macro_rules! together {
    ($($name:ident: $engine:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn any_server_takes_any_request() {
                super::any_server_takes_any_request::<$engine>();
            }
            #[test]
            fn a_consumer_at_one_server_gets_what_fires_at_all_of_them() {
                super::a_consumer_at_one_server_gets_what_fires_at_all_of_them::<$engine>();
            }
            #[test]
            fn who_does_not_want_to_wait_gets_what_is_at_another_server() {
                super::who_does_not_want_to_wait_gets_what_is_at_another_server::<$engine>();
            }
        }
    )*};
}

together! {
    postgres: Postgres;
    mysql: Maria;
}
