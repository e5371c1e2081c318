//! What goes on: the pulse, and what happened when.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Connection, Server, command, eventually, run};
use crate::{code, settle_one};

/// Follows the pulse.
struct Follower {
    connection: Connection,
    text: String,
}

impl Follower {
    fn new(server: &Server, query: &str) -> Follower {
        let mut connection = server.connect();
        connection.send("GET", &format!("/v1/pulse{query}"), None);
        let (status, headers) = connection.receive_head().unwrap();
        assert_eq!(status, 200);
        assert!(headers.contains(&("content-type".into(), "text/event-stream".into())), "{headers:?}");
        Follower { connection, text: String::new() }
    }

    fn next(&mut self) -> Value {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let (message, rest) = (message.to_owned(), rest.to_owned());
                self.text = rest;
                let data = message.strip_prefix("event: pulse\ndata: ").expect("it is a pulse");
                return serde_json::from_str(data).unwrap();
            }
            self.text += &String::from_utf8(self.connection.receive_chunk().unwrap().unwrap()).unwrap();
        }
    }

    /// The first pulse of which this is true.
    fn until(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let pulse = self.next();
            if is_so(&pulse) {
                return pulse;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "not in a minute: {pulse}");
        }
    }
}

#[test]
fn the_pulse_tells_every_second_how_all_is() {
    let server = Server::start();
    settle_one(&server, "own", "1", "acknowledge");
    server.post("/v1/tasks", &json!({ "topic": "own", "id": "2", "delay": "1h" })).expect(201);
    server.post("/v1/tasks", &json!({ "topic": "other", "id": "1" })).expect(201);
    server.post("/v1/queues/other/pause", &json!({})).expect(200);
    let mut follower = Follower::new(&server, "?topics=own+nobody&queues=other");
    let pulse = follower.until(|pulse| pulse["happened"]["fired"] == 2);
    assert_eq!((&pulse["happened"]["scheduled"], &pulse["happened"]["done"]), (&json!(3), &json!(1)));
    assert_eq!((&pulse["total"]["waiting"], &pulse["total"]["ready"]), (&json!(2), &json!(1)));
    assert_eq!(pulse["lateness_micros"]["count"], 1, "it was handed over within the last seconds: {pulse}");
    assert_eq!(pulse["topics"].as_object().unwrap().keys().collect::<Vec<_>>(), ["own"], "nobody is not there");
    assert_eq!((&pulse["topics"]["own"]["waiting"], &pulse["topics"]["own"]["paused"]), (&json!(1), &json!(false)));
    assert_eq!(pulse["topics"]["own"]["happened"]["done"], 1);
    let queue = &pulse["queues"]["other"];
    assert_eq!((&queue["ready"], &queue["paused"], &queue["paused_until"]), (&json!(1), &json!(true), &Value::Null));
    assert!(queue["oldest_ready"].is_string() && pulse["problem"].is_null() && pulse["silent"].is_null(), "{pulse}");

    let (first, second) = (follower.next(), follower.next());
    assert!(first["now"].as_str() < second["now"].as_str(), "{first} {second}");
    settle_one(&server, "own", "3", "acknowledge");
    follower.until(|pulse| pulse["topics"]["own"]["happened"]["done"] == 2);

    let told = run(command(&server).args(["pulse", "--topic", "own", "--limit", "2"]));
    assert_eq!((told.code, told.stdout.matches("topic own").count()), (Some(0), 2), "{told:?}");
    let told = run(command(&server).args(["pulse", "--limit", "1", "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&told.stdout).unwrap()["happened"]["done"], 2);
}

#[test]
fn several_follow_and_each_gets_what_it_asked_for() {
    let server = Server::start();
    for topic in ["a", "b"] {
        server.post("/v1/tasks", &json!({ "topic": topic, "delay": "1h" })).expect(201);
    }
    let mut both = [Follower::new(&server, "?topics=a"), Follower::new(&server, "?topics=b")];
    let names = |pulse: Value| pulse["topics"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(both.each_mut().map(|follower| names(follower.next())), [["a"], ["b"]]);
    let [first, mut second] = both;
    drop(first);
    assert_eq!(names(second.next()), ["b"]);
    drop(second);
    let mut again = Follower::new(&server, "");
    assert_eq!(names(again.next()), [""; 0], "after all have left, it begins anew");
    let many: Vec<String> = (0..101).map(|number| format!("t{number}")).collect();
    assert_eq!(code(server.get(&format!("/v1/pulse?topics={}", many.join("+"))).expect(422)), "invalid");
}

#[test]
fn following_the_pulse_ends_when_the_server_stops() {
    let mut server = Server::start();
    let mut follower = Follower::new(&server, "");
    follower.next();
    assert!(server.stop().success());
    eventually("the stream ends", || matches!(follower.connection.receive_chunk(), Ok(None) | Err(_)));
}

fn sum(series: &Value, metric: &str) -> u64 {
    let values = series["series"][metric].as_array().unwrap_or_else(|| panic!("{metric} in {series}"));
    values.iter().filter_map(Value::as_u64).sum()
}

#[test]
fn what_happened_when_is_told_by_topic_queue_and_all_together() {
    let server = Server::start();
    settle_one(&server, "own", "1", "acknowledge");
    settle_one(&server, "own", "2", "reject");
    settle_one(&server, "other", "1", "acknowledge");
    let series = |query: &str| server.get(&format!("/v1/series?{query}")).expect(200).json();
    eventually("all is counted", || sum(&series("step=10s"), "done") == 2);
    for (query, done, died) in [("step=10s", 2, 1), ("topic=own", 1, 1), ("queue=other&step=10m", 1, 0)] {
        let told = series(query);
        assert_eq!((sum(&told, "done"), sum(&told, "dead")), (done, died), "{query}: {told}");
        assert!(sum(&told, "lateness_p99") > 0, "{query}: {told}");
        let slots = told["slots"].as_u64().unwrap();
        assert!((1..=3).contains(&slots), "what was before the start is not told: {told}");
        assert_eq!(told["series"]["done"].as_array().unwrap().len() as u64, slots);
        assert!(told["known_since"].is_string(), "{told}");
    }
    let all = series("metric=done,dead_letters");
    assert_eq!(all["series"].as_object().unwrap().keys().collect::<Vec<_>>(), ["dead_letters", "done"]);
    eventually("it is looked how much there is", || {
        let told = series("topic=own&metric=dead_letters");
        told["series"]["dead_letters"].as_array().unwrap().last() == Some(&json!(1))
    });
    let unknown = series("topic=nobody");
    assert_eq!((&unknown["slots"], &unknown["known_since"]), (&json!(0), &Value::Null));
    for bad in ["metric=bogus", "topic=own&metric=ready", "queue=own&metric=waiting", "topic=a&queue=a", "step=1h"] {
        assert_eq!(code(server.get(&format!("/v1/series?{bad}")).expect(422)), "invalid", "{bad}");
    }
    assert_eq!(code(server.get("/v1/series?from=2000&until=1000").expect(422)), "invalid");
    let told = run(command(&server).args(["series", "--topic", "own", "--metric", "done", "--from", "-10m"]));
    assert_eq!((told.code, told.stdout.contains("DONE")), (Some(0), true), "{told:?}");
    let recent = server.get("/v1/stats").expect(200).json()["recent_lateness_micros"]["count"].clone();
    assert!(recent.is_u64(), "{recent}");
}
