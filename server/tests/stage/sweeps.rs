//! Changes to many tasks at once, as tests ask for them and look at them.

use serde_json::{Value, json};

use super::{Answer, Server, eventually};

/// Schedules so many tasks of a topic for later, each with a due time, a priority and a body of its own.
pub fn fill(server: &Server, topic: &str, tasks: usize) {
    let numbers: Vec<usize> = (0..tasks).collect();
    let mut connection = server.connect();
    for numbers in numbers.chunks(1_000) {
        let task = |number: &usize| {
            let at = 4_000_000_000_000_u64 + *number as u64;
            json!({ "topic": topic, "id": format!("order-{number}"), "at": at, "priority": number, "body": { "n": number } })
        };
        let tasks: Vec<Value> = numbers.iter().map(task).collect();
        connection.request("POST", "/v1/tasks/batch", Some(&json!({ "tasks": tasks }))).expect(200);
    }
}

/// How far a sweep is.
pub fn sweep(server: &Server, id: &str) -> Value {
    server.get(&format!("/v1/sweeps/{id}")).expect(200).json()
}

/// Waits until a sweep is over. As long as a shard has no owner, nobody can say.
pub fn over(server: &Server, id: &str) -> Value {
    let is_over = || {
        let answer = server.get(&format!("/v1/sweeps/{id}"));
        answer.status != 503 && ["done", "stopped"].contains(&answer.expect(200).json()["state"].as_str().unwrap())
    };
    eventually("it is over", is_over);
    sweep(server, id)
}

/// Begins a sweep, and gives its id.
pub fn begin(server: &Server, body: &Value) -> String {
    let begun = server.post("/v1/sweeps", body).expect(202);
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(begun.header("location"), Some(format!("/v1/sweeps/{id}").as_str()));
    id
}

/// Stops a sweep, or undoes it.
pub fn act(server: &Server, id: &str, verb: &str) -> Answer {
    server.connect().request("POST", &format!("/v1/sweeps/{id}/{verb}"), None)
}

/// Begins the sweep that undoes one, and gives its id.
pub fn undo(server: &Server, id: &str) -> String {
    act(server, id, "undo").expect(202).json()["id"].as_str().unwrap().to_owned()
}

/// Matched, changed and too late.
pub fn counts(told: &Value) -> (u64, u64, u64) {
    let count = |name: &str| told[name].as_u64().unwrap();
    (count("matched"), count("changed"), count("too_late"))
}

/// All waiting tasks of a topic, with their bodies.
pub fn tasks(server: &Server, topic: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut path = format!("/v1/tasks?topic={topic}&limit=1000&bodies=true");
    loop {
        let page = server.get(&path).expect(200).json();
        all.extend(page["tasks"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { return all };
        path = format!("/v1/tasks?topic={topic}&limit=1000&bodies=true&cursor={next}");
    }
}

/// Waits until a sweep has changed some of so many tasks, and not all: whoever is killed then is killed in its midst.
pub fn midway(server: &Server, id: &str, tasks: u64) {
    let mut changed = 0;
    eventually("it has begun to change tasks", || {
        changed = sweep(server, id)["changed"].as_u64().unwrap();
        changed > 0
    });
    assert!(changed < tasks, "it was over before anybody could disturb it");
}
