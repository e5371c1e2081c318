//! A server whose tasks are in a database: what it says, what outlives it, and what happens while the database is away.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod alone;
#[path = "../crowd/mod.rs"]
mod crowd;
mod engine;
mod faults;
#[path = "../stage/mod.rs"]
mod stage;
mod tokens;

use std::thread;
use std::time::{Duration, Instant};

use engine::Engine;
use punctual_engines::{Maria, Postgres, Redis};
use serde_json::{Value, json};
use stage::{Server, eventually, punctual, run};

/// A server on a database of its own, which is not started yet.
fn prepared(engine: &impl Engine, more: &[&str]) -> Server {
    let url = engine.url();
    let arguments = [&["--store", &url, "--store-patience", "2s"], more].concat();
    Server::prepare(&arguments, &[])
}

fn started(engine: &impl Engine) -> Server {
    let mut server = prepared(engine, &[]);
    server.start_again();
    server
}

fn schedule(server: &Server, id: &str) -> u16 {
    server.post("/v1/tasks", &json!({ "topic": "orders", "id": id, "text": id })).status
}

fn reserve(server: &Server, wait: &str) -> Value {
    server.post("/v1/reserve", &json!({ "queues": ["orders"], "max": 100, "wait": wait })).expect(200).json()
}

fn ids(reserved: &Value) -> Vec<&str> {
    reserved["deliveries"].as_array().unwrap().iter().map(|delivery| delivery["id"].as_str().unwrap()).collect()
}

/// A task, its lease and the secret that signed it outlive kill -9, and nothing is on the server's own disk.
fn outlives_a_kill<E: Engine>() {
    let engine = E::start();
    let mut server = started(&engine);
    server.says(E::PRODUCT);
    assert_eq!(schedule(&server, "1"), 201);
    let taken = reserve(&server, "5s");
    assert_eq!(ids(&taken), ["1"]);
    assert_eq!(schedule(&server, "2"), 201);
    server.crash();
    server.says("waiting for the end of this server's former life");
    let done = json!({ "actions": [{ "do": "acknowledge", "lease": taken["deliveries"][0]["lease"] }] });
    assert_eq!(server.post("/v1/leases", &done).expect(200).json()["results"][0]["outcome"], "acknowledged");
    assert_eq!(ids(&reserve(&server, "5s")), ["2"]);
    assert!(!server.data().exists(), "no data directory is made");
    assert!(server.stop().success());
    // Who has said goodbye is not waited for.
    let begun = Instant::now();
    server.start_again();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(server.get("/v1/tasks/orders/1").json()["standing"]["ending"], "done");
}

/// While the database is gone callers hear so, and when it is back everything goes on, for those who waited as well.
fn goes_on_when_the_database_is_back<E: Engine>() {
    let mut engine = E::start();
    let server = started(&engine);
    assert_eq!(schedule(&server, "before"), 201);
    assert_eq!(ids(&reserve(&server, "5s")), ["before"]);
    engine.kill();
    let answer = server.post("/v1/tasks", &json!({ "topic": "orders", "id": "meanwhile" }));
    let code = answer.json()["code"].as_str().unwrap().to_owned();
    assert!(answer.status == 503 && ["unavailable", "outcome-unknown"].contains(&code.as_str()), "{}", answer.text());
    eventually("it says that it is not ready", || server.get("/readyz").status == 503);
    server.get("/healthz").expect(200);
    engine.start_again();
    eventually("it is ready", || server.get("/readyz").status == 200);
    eventually("tasks are taken in", || [200, 201].contains(&schedule(&server, "after")));
    let mut seen = Vec::new();
    eventually("what was scheduled is delivered", || {
        let reserved = reserve(&server, "1s");
        seen.extend(ids(&reserved).into_iter().map(str::to_owned));
        seen.contains(&"after".to_owned())
    });
    seen.retain(|id| id != "meanwhile");
    assert_eq!(seen, ["after"], "each once");
    assert!(server.get("/metrics").text().contains("punctual_store_failures_total"), "it is counted");
}

/// A database that hangs holds nobody for longer than the patience, and a consumer keeps waiting.
fn does_not_hang_with_the_database<E: Engine>() {
    let engine = E::start();
    let server = started(&engine);
    assert_eq!(schedule(&server, "1"), 201);
    assert_eq!(ids(&reserve(&server, "5s")), ["1"]);
    let mut consumer = server.connect();
    consumer.send("POST", "/v1/reserve", Some(&json!({ "queues": ["orders"], "wait": "60s" })));
    thread::sleep(Duration::from_millis(300));
    engine.pause();
    let begun = Instant::now();
    let refused = server.post("/v1/tasks", &json!({ "topic": "orders", "id": "2" }));
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    engine.go_on();
    eventually("tasks are taken in", || [200, 201].contains(&schedule(&server, "3")));
    let taken = consumer.receive().expect(200).json();
    assert_eq!(ids(&taken).len(), 1, "{taken}");
}

/// A second server of the same name is refused; one of another name gets its part, and gives it back when it stops.
fn welcomes_servers_of_other_names<E: Engine>() {
    let engine = E::start();
    let server = started(&engine);
    let second = run(&mut prepared(&engine, &["--node-name", "node-1"]).command());
    let told = "another server works on this store under the name node-1";
    assert!(second.code == Some(1) && second.stderr.contains(told), "{second:?}");
    let mut other = prepared(&engine, &["--node-name", "other"]);
    other.start_again();
    let parts = || {
        let nodes = server.get("/v1/nodes").expect(200).json()["nodes"].clone();
        let parts = nodes.as_array().unwrap().iter().map(|node| node["shards"].as_u64().unwrap());
        parts.collect::<Vec<_>>()
    };
    eventually("both have half", || parts() == [8, 8]);
    assert_eq!((schedule(&server, "1"), schedule(&other, "2")), (201, 201));
    assert!(other.stop().success());
    eventually("one has all again", || parts() == [16]);
    assert_eq!(schedule(&server, "3"), 201);
}

/// A server that is started before its database waits for it, and not for ever.
fn waits_for_the_database<E: Engine>() {
    let mut engine = E::start();
    engine.kill();
    let mut server = prepared(&engine, &["--store-wait", "60s"]);
    server.spawn();
    server.wait_for("the store cannot be reached yet");
    let mut told_to_stop = prepared(&engine, &["--store-wait", "60s"]);
    told_to_stop.spawn();
    told_to_stop.wait_for("the store cannot be reached yet");
    assert!(told_to_stop.stop().success(), "a signal ends the waiting");
    engine.start_again();
    server.wait_for("listening on http://");
    drop(server);
    engine.kill();
    let given_up = run(&mut prepared(&engine, &["--store-wait", "1s"]).command());
    assert!(given_up.code == Some(1) && given_up.stderr.contains("gave up after `store.wait` (1s)"), "{given_up:?}");
}

/// The tools for a store work on a database, with a server on it and without.
fn can_be_looked_into<E: Engine>() {
    let engine = E::start();
    let store = |arguments: &[&str]| run(punctual().arg("store").args(arguments).env("PUNCTUAL_STORE", engine.url()));
    let nothing = store(&["check"]);
    let is_told = ["no store", "no tables"].iter().any(|told| nothing.stderr.contains(told));
    assert!(nothing.code == Some(1) && is_told, "{nothing:?}");
    let made = store(&["migrate"]);
    assert!(made.code == Some(0) && made.stdout.contains("created the layout"), "{made:?}");
    assert!(store(&["migrate"]).stdout.contains("is up to date"));
    let mut server = started(&engine);
    for id in ["1", "2", "3"] {
        assert_eq!(schedule(&server, id), 201);
    }
    let in_use = store(&["check"]);
    assert!(in_use.code == Some(0) && in_use.stdout.contains("in use by node-1"), "{in_use:?}");
    assert!(server.stop().success());
    let clean = store(&["check"]);
    assert!(clean.code == Some(0) && clean.stdout.contains("clean: "), "{clean:?}");
    let shown = store(&["show", "--rows", "--topic", "orders", "--limit", "2"]);
    assert_eq!(shown.stdout.matches("orders/").count(), 2, "{shown:?}");
    let shown: Value = serde_json::from_str(&store(&["show", "--json"]).stdout).unwrap();
    let waiting: i64 = shown["shards"].as_array().unwrap().iter().map(|shard| shard["waiting"].as_i64().unwrap()).sum();
    assert_eq!((shown["shards"].as_array().unwrap().len(), waiting), (16, 3), "{shown}");
    let live: i64 =
        shown["shards"].as_array().unwrap().iter().map(|shard| shard["rows"]["live"].as_i64().unwrap()).sum();
    let is_told = |shard: &Value| shard["serial"].is_u64() && shard["fence"].is_u64();
    assert!(live == 3 && shown["shards"].as_array().unwrap().iter().all(is_told), "{shown}");
    assert!(shown["parts"][0]["bytes"].as_u64().unwrap() > 0, "{shown}");
    let backup = run(punctual().arg("backup").arg("/tmp/nowhere").env("PUNCTUAL_STORE", engine.url()));
    assert!(backup.code == Some(2) && backup.stderr.contains("back them up"), "{backup:?}");
}

/// A check sees what is missing and what cannot be read, also while a server is at work.
fn is_checked_in_use<E: Engine>() {
    let engine = E::start();
    let store = |arguments: &[&str]| run(punctual().arg("store").args(arguments).env("PUNCTUAL_STORE", engine.url()));
    let server = started(&engine);
    for id in ["1", "2", "3", "4", "5"] {
        assert_eq!(schedule(&server, id), 201);
    }
    let clean = store(&["check"]);
    assert!(clean.code == Some(0) && clean.stdout.contains("in use by node-1"), "{clean:?}");
    engine.steal();
    let counted = store(&["check"]);
    assert!(counted.code == Some(1) && counted.stdout.contains("Waiting of orders is "), "{counted:?}");
    engine.spoil();
    let unreadable = store(&["check"]);
    assert!(unreadable.code == Some(1) && unreadable.stdout.contains("orders/"), "{unreadable:?}");
    let told = ["cannot be read back", "newer version"].iter().any(|why| unreadable.stdout.contains(why));
    assert!(told, "{unreadable:?}");
}

/// A database that stops answering while the server is on its way onto the roll is waited for.
fn is_waited_for_until_the_server_has_started<E: Engine>() {
    let engine = E::start();
    let mut server = started(&engine);
    assert_eq!(schedule(&server, "1"), 201);
    server.kill();
    server.spawn();
    server.wait_for("waiting for the end of this server's former life");
    engine.pause();
    // Longer than a beat may take.
    thread::sleep(Duration::from_millis(1_500));
    engine.go_on();
    server.wait_for("the store cannot be reached yet");
    eventually("it has started", || server.output().matches("listening on http://").count() == 2);
    assert!(server.is_running());
}

macro_rules! facts {
    ($($name:ident: $engine:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn outlives_a_kill() {
                super::outlives_a_kill::<$engine>();
            }
            #[test]
            fn goes_on_when_the_database_is_back() {
                super::goes_on_when_the_database_is_back::<$engine>();
            }
            #[test]
            fn does_not_hang_with_the_database() {
                super::does_not_hang_with_the_database::<$engine>();
            }
            #[test]
            fn welcomes_servers_of_other_names() {
                super::welcomes_servers_of_other_names::<$engine>();
            }
            #[test]
            fn waits_for_the_database() {
                super::waits_for_the_database::<$engine>();
            }
            #[test]
            fn is_waited_for_until_the_server_has_started() {
                super::is_waited_for_until_the_server_has_started::<$engine>();
            }
            #[test]
            fn can_be_looked_into() {
                super::can_be_looked_into::<$engine>();
            }
            #[test]
            fn is_checked_in_use() {
                super::is_checked_in_use::<$engine>();
            }
        }
    )*};
}

facts! {
    on_postgres: Postgres;
    on_mysql: Maria;
    on_redis: Redis;
}

#[test]
fn a_password_is_nowhere_to_be_seen() {
    let engine = Postgres::start();
    engine.sql("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'hunter2'");
    let url = engine.url().replacen("postgres@", "guarded:hunter2@", 1);
    let mut server = Server::prepare(&["--store", &url, "--log-level", "trace"], &[]);
    server.start_again();
    server.wait_for("the password of the store is on the command line");
    let (stats, metrics) = (server.get("/v1/stats").text(), server.get("/metrics").text());
    let config = run(punctual().args(["config", "--store", &url]));
    for text in [server.output(), stats, metrics, config.stdout] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    engine.sql("ALTER ROLE guarded NOLOGIN");
    let refused = run(&mut Server::prepare(&["--store", &url, "--store-wait", "10s"], &[]).command());
    assert!(refused.code == Some(1) && !refused.stderr.contains("hunter2"), "{refused:?}");
    assert!(refused.stderr.contains("not permitted to log in"), "waiting does not help: {refused:?}");
}

#[test]
fn a_url_that_cannot_be_right_is_refused_at_once() {
    for (url, told) in [
        ("mongodb://u:hunter2@db/x", "there is no store `mongodb`: write one of almanac, memory, postgres://"),
        ("postgres://u:hunter2@db/x?sslmode=maybe", "sslmode"),
        ("redis", "write redis://HOST"),
    ] {
        let refused = run(&mut Server::prepare(&["--store", url], &[]).command());
        assert!(refused.code == Some(2) && refused.stderr.contains(told), "{refused:?}");
        assert!(!refused.stderr.contains("hunter2"), "{refused:?}");
    }
}

#[test]
fn a_store_in_memory_leaves_nothing_behind_and_says_so() {
    let mut server = Server::start_with(&["--store", "memory"]);
    server.says("all of them are forgotten");
    assert_eq!(schedule(&server, "1"), 201);
    assert_eq!(ids(&reserve(&server, "5s")), ["1"]);
    assert!(!server.data().exists());
    assert!(server.stop().success());
    server.says("stopped: everything confirmed is forgotten");
    server.start_again();
    server.get("/v1/tasks/orders/1").expect(404);
}
