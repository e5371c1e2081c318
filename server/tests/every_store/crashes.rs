//! kill -9 in the middle, and many clients at once: the promises through the real binary.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::stage::{Connection, Server, eventually};

fn deliveries(answer: &Value) -> Vec<Value> {
    answer["deliveries"].as_array().unwrap().clone()
}

#[test]
fn every_step_of_a_life_survives_kill_9() {
    let mut server = Server::start();
    server.send("PUT", "/v1/topics/life", &json!({ "owner": "me" })).expect(200);
    server.crash();
    assert_eq!(server.get("/v1/topics/life").json()["settings"]["owner"], "me");
    server
        .post("/v1/tasks", &json!({ "topic": "life", "id": "1", "delay": "1h", "key": "k", "body": [1] }))
        .expect(201);
    server.crash();
    assert_eq!(server.get("/v1/tasks/life/1").expect(200).json()["body"], json!([1]));
    server.send("PATCH", "/v1/tasks/life/1", &json!({ "delay": 0 })).expect(200);
    server.crash();
    let taken =
        deliveries(&server.post("/v1/reserve", &json!({ "queues": ["life"], "wait": "5s", "lease": "60s" })).json());
    assert_eq!(taken[0]["id"], "1");
    server.crash();
    let none = server.post("/v1/reserve", &json!({ "queues": ["life"], "wait": "200ms" })).expect(200).json();
    assert_eq!(none["deliveries"], json!([]), "it has its one holder");
    let reject = json!({ "actions": [{ "do": "reject", "lease": taken[0]["lease"], "note": "no" }] });
    assert_eq!(server.post("/v1/leases", &reject).json()["results"][0]["outcome"], "rejected");
    server.crash();
    assert_eq!(server.get("/v1/dead").json()["tasks"][0]["standing"]["note"], "no");
    server.connect().request("POST", "/v1/tasks/life/1/replay", None).expect(200);
    server.crash();
    let taken = deliveries(&server.post("/v1/reserve", &json!({ "queues": ["life"], "wait": "5s" })).json());
    let done = json!({ "actions": [{ "do": "acknowledge", "lease": taken[0]["lease"] }] });
    assert_eq!(server.post("/v1/leases", &done).json()["results"][0]["outcome"], "acknowledged");
    server.crash();
    assert_eq!(server.get("/v1/tasks/life/1").json()["standing"]["ending"], "done");
    assert_eq!(server.get("/v1/history?topic=life").json()["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn what_was_confirmed_while_the_server_was_killed_is_delivered_once_it_is_back() {
    let mut server = Server::start();
    let mut confirmed = BTreeSet::new();
    for round in 0..5 {
        let noted: Arc<Mutex<Vec<String>>> = Arc::default();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (mut connection, noted) = (server.connect(), Arc::clone(&noted));
                thread::spawn(move || {
                    for number in 0.. {
                        let id = format!("{round}-{writer}-{number}");
                        let task = json!({ "topic": "c", "id": id, "text": "x" });
                        let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                            connection.send("POST", "/v1/tasks", Some(&task))
                        }));
                        match sent.ok().and_then(|()| connection.try_receive().ok()) {
                            Some(answer) if answer.status == 201 => noted.lock().unwrap().push(id),
                            _ => return,
                        }
                    }
                })
            })
            .collect();
        eventually("something is confirmed", || noted.lock().unwrap().len() >= 100);
        server.crash();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        confirmed.extend(std::mem::take(&mut *noted.lock().unwrap()));
    }
    let mut connection = server.connect();
    let mut delivered = BTreeSet::new();
    loop {
        let reserve = json!({ "queues": ["c"], "max": 1_000, "wait": "1s", "lease": "5m" });
        let taken = deliveries(&connection.request("POST", "/v1/reserve", Some(&reserve)).expect(200).json());
        if taken.is_empty() {
            break;
        }
        let actions: Vec<Value> =
            taken.iter().map(|one| json!({ "do": "acknowledge", "lease": one["lease"] })).collect();
        connection.request("POST", "/v1/leases", Some(&json!({ "actions": actions }))).expect(200);
        for one in taken {
            assert!(delivered.insert(one["id"].as_str().unwrap().to_owned()), "{one} came twice");
        }
    }
    assert!(confirmed.is_subset(&delivered), "lost: {:?}", confirmed.difference(&delivered).collect::<Vec<_>>());
}

#[test]
fn two_hundred_clients_at_once_each_get_their_own() {
    let server = Server::start();
    let address = server.address().to_owned();
    let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let consumers: Vec<_> = (0..100)
        .map(|number| {
            let (address, done, stop, seen) =
                (address.clone(), Arc::clone(&done), Arc::clone(&stop), Arc::clone(&seen));
            thread::spawn(move || {
                let mut connection = Connection::open(&address, None);
                while !stop.load(Ordering::Relaxed) {
                    let reserve =
                        json!({ "queues": ["many"], "max": 10, "wait": "300ms", "consumer": format!("c{number}") });
                    let taken =
                        deliveries(&connection.request("POST", "/v1/reserve", Some(&reserve)).expect(200).json());
                    for one in &taken {
                        assert!(
                            seen.lock().unwrap().insert(one["id"].as_str().unwrap().to_owned()),
                            "{one} has two holders"
                        );
                    }
                    let actions: Vec<Value> =
                        taken.iter().map(|one| json!({ "do": "acknowledge", "lease": one["lease"] })).collect();
                    let answer = connection
                        .request("POST", "/v1/leases", Some(&json!({ "actions": actions })))
                        .expect(200)
                        .json();
                    assert!(
                        answer["results"].as_array().unwrap().iter().all(|result| result["outcome"] == "acknowledged")
                    );
                    done.fetch_add(taken.len() as u64, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..100)
        .map(|number| {
            let address = address.clone();
            thread::spawn(move || {
                let mut connection = Connection::open(&address, None);
                for task in 0..20 {
                    let task = json!({ "topic": "many", "id": format!("{number}-{task}"), "delay": task * 10 });
                    connection.request("POST", "/v1/tasks", Some(&task)).expect(201);
                }
            })
        })
        .collect();
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    eventually("all are done", || done.load(Ordering::Relaxed) == 2_000);
    stop.store(true, Ordering::Relaxed);
    consumers.into_iter().for_each(|consumer| consumer.join().unwrap());
}
