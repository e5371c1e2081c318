//! Lengths of time, measured from outside by a clock that counts microseconds: hundreds of short ones, and none is over
//! before it should be.
//!
//! They are measured from before the request is sent, so that a slow machine can only make them longer.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stage::{Connection, Server};

/// How often each is measured, by each of two clients at the same time.
const TIMES: u32 = 100;

/// Measures something again and again, in two threads that know their names.
fn measure(server: &Server, what: &str, length: Duration, act: impl Fn(&mut Connection, &str) -> Duration + Sync) {
    let early: Vec<Duration> = thread::scope(|scope| {
        let work = |name: &'static str| {
            let (act, mut connection) = (&act, server.connect());
            scope.spawn(move || {
                let took = (0..TIMES).map(|time| {
                    // Not always at the same place of a millisecond.
                    thread::sleep(Duration::from_micros(u64::from(time * 37 % 1_000)));
                    act(&mut connection, name)
                });
                took.filter(|took| *took < length).collect::<Vec<Duration>>()
            })
        };
        let both = ["one", "two"].map(work);
        both.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(early.is_empty(), "{} of {} times {what} took less than {length:?}: {early:?}", early.len(), 2 * TIMES);
}

fn post(connection: &mut Connection, path: &str, body: &Value) -> Value {
    let answer = connection.request("POST", path, Some(body));
    assert!(answer.status < 300, "{}", answer.text());
    answer.json()
}

/// Waits for one delivery and gives its lease.
fn take(connection: &mut Connection, queue: &str, lease: &str) -> String {
    let taken = post(connection, "/v1/reserve", &json!({ "queues": [queue], "wait": "30s", "lease": lease }));
    taken["deliveries"][0]["lease"].as_str().unwrap_or_else(|| panic!("{taken}")).to_owned()
}

fn settle(connection: &mut Connection, action: Value) {
    let settled = post(connection, "/v1/leases", &json!({ "actions": [action] }));
    assert_eq!(settled["results"][0]["problem"], Value::Null, "{settled}");
}

#[test]
fn nothing_is_over_before_its_time() {
    let server = Server::start();
    for queue in ["one", "two"] {
        let retry = json!({ "attempts": 0, "backoff": { "first": "1ms", "longest": "1ms" }, "jitter_percent": 0 });
        server.send("PUT", &format!("/v1/queues/{queue}"), &json!({ "retry": retry })).expect(200);
    }
    let length = Duration::from_millis(3);
    measure(&server, "a delay", length, |connection, queue| {
        let begun = Instant::now();
        post(connection, "/v1/tasks", &json!({ "topic": queue, "delay": "3ms" }));
        let lease = take(connection, queue, "30s");
        let took = begun.elapsed();
        settle(connection, json!({ "do": "acknowledge", "lease": lease }));
        took
    });
    measure(&server, "waiting for nothing", length, |connection, queue| {
        let begun = Instant::now();
        let taken = post(connection, "/v1/reserve", &json!({ "queues": [queue], "wait": "3ms" }));
        assert_eq!(taken["deliveries"], json!([]));
        begun.elapsed()
    });
    for queue in ["one", "two"] {
        server.post("/v1/tasks", &json!({ "topic": queue })).expect(201);
    }
    measure(
        &server,
        "a lease and the wait for the next attempt",
        length + Duration::from_millis(1),
        |connection, queue| {
            let begun = Instant::now();
            take(connection, queue, "3ms");
            let lease = take(connection, queue, "30s");
            let took = begun.elapsed();
            settle(connection, json!({ "do": "release", "lease": lease, "after": "0s" }));
            took
        },
    );
    measure(&server, "being given back for a time", length, |connection, queue| {
        let lease = take(connection, queue, "30s");
        let begun = Instant::now();
        settle(connection, json!({ "do": "release", "lease": lease, "after": "3ms" }));
        let lease = take(connection, queue, "30s");
        let took = begun.elapsed();
        settle(connection, json!({ "do": "release", "lease": lease, "after": "0s" }));
        took
    });
    measure(&server, "an extended lease", length, |connection, queue| {
        let lease = take(connection, queue, "30s");
        let begun = Instant::now();
        settle(connection, json!({ "do": "extend", "lease": lease, "after": "3ms" }));
        let lease = take(connection, queue, "30s");
        let took = begun.elapsed();
        settle(connection, json!({ "do": "release", "lease": lease, "after": "0s" }));
        took
    });
    measure(&server, "a pause", length, |connection, queue| {
        // On a busy machine one this short may be over before it is carried out, and is refused then.
        let begun = loop {
            let begun = Instant::now();
            let paused =
                connection.request("POST", &format!("/v1/queues/{queue}/pause"), Some(&json!({ "for": "3ms" })));
            if paused.status == 200 {
                break begun;
            }
            assert!(begun.elapsed() > length && paused.text().contains("already passed"), "{}", paused.text());
        };
        let lease = take(connection, queue, "30s");
        let took = begun.elapsed();
        settle(connection, json!({ "do": "release", "lease": lease, "after": "0s" }));
        took
    });
}
