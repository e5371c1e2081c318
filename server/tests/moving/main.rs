//! Moving a store with the real binary: stopped and under a running server, killed on the way, with leases that outlive it.
//! `chain.rs` does so between each pair of stores, and `cargo xtask moving` does that with a million rows.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod chain;
#[path = "../stage/mod.rs"]
mod stage;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use punctual_engines::{Postgres, Proxy};
use serde_json::{Value, json};
use stage::{Ended, Server, eventually, punctual, run};

fn almanac(data: &Path) -> String {
    format!("almanac:{}", data.display())
}

fn moved(from: &str, to: &str, more: &[&str]) -> Ended {
    run(punctual().args(["store", "move", from, to, "--json"]).args(more).current_dir(std::env::temp_dir()))
}

fn report(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A server on the almanac in this directory.
fn on_almanac(data: &Path, more: &[&str]) -> Server {
    let arguments = [&["--store", "almanac", "--data", data.to_str().unwrap()], more].concat();
    Server::prepare(&arguments, &[])
}

fn on_postgres(postgres: &Postgres) -> Server {
    Server::start_with(&["--store", &postgres.url()])
}

/// Schedules tasks for much later.
fn fill(server: &Server, from: usize, count: usize) {
    for chunk in (from..from + count).collect::<Vec<_>>().chunks(1_000) {
        let task = |number: &usize| json!({ "topic": "later", "id": format!("{number}"), "delay": "10h", "text": "x".repeat(300) });
        let tasks: Vec<Value> = chunk.iter().map(task).collect();
        server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    }
}

fn waiting(server: &Server) -> u64 {
    server.get("/v1/stats").json()["total"]["waiting"].as_u64().unwrap()
}

fn reserve(server: &Server, wait: &str) -> Vec<Value> {
    let reserve = json!({ "queues": ["now"], "max": 500, "wait": wait, "lease": "10m" });
    server.post("/v1/reserve", &reserve).expect(200).json()["deliveries"].as_array().unwrap().clone()
}

fn acknowledge(server: &Server, deliveries: &[Value]) {
    let act = |delivery: &Value| json!({ "do": "acknowledge", "lease": delivery["lease"] });
    let actions: Vec<Value> = deliveries.iter().map(act).collect();
    let results = server.post("/v1/leases", &json!({ "actions": actions })).expect(200).json();
    for result in results["results"].as_array().unwrap() {
        assert_eq!(result["outcome"], "acknowledged", "{results}");
    }
}

#[test]
fn a_stopped_store_goes_to_a_database_and_back_and_leases_stay_good() {
    let (postgres, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let (first, last) = (directory.path().join("first"), directory.path().join("last"));
    let mut server = on_almanac(&first, &[]);
    server.start_again();
    fill(&server, 0, 100);
    server.post("/v1/tasks", &json!({ "topic": "now", "id": "held" })).expect(201);
    let held = reserve(&server, "5s");
    assert_eq!(held.len(), 1);
    let busy = moved(&almanac(&first), &postgres.url(), &[]);
    assert!(busy.code != Some(0), "it is in use: {busy:?}");
    assert!(server.stop().success());

    let there = report(&moved(&almanac(&first), &postgres.url(), &[]));
    assert!(there["total"]["rows"].as_u64().unwrap() > 100, "{there}");
    let refused = run(&mut server.command());
    assert!(refused.code == Some(2) && refused.stderr.contains("was moved to postgres://"), "{refused:?}");
    let again = moved(&almanac(&first), &postgres.url(), &[]);
    assert!(again.code == Some(1) && again.stderr.contains("already"), "{again:?}");

    let mut server = on_postgres(&postgres);
    assert_eq!(waiting(&server), 100);
    let busy = moved(&postgres.url(), &almanac(&last), &[]);
    assert!(busy.code == Some(1) && busy.stderr.contains("in use by node-1"), "{busy:?}");
    acknowledge(&server, &held);
    assert!(server.stop().success());
    let full = moved(&almanac(&first), &postgres.url(), &["--afresh"]);
    assert!(full.code != Some(0), "what is moved away is no source: {full:?}");
    report(&moved(&postgres.url(), &almanac(&last), &[]));

    let mut server = on_almanac(&last, &[]);
    server.start_again();
    assert_eq!(waiting(&server), 100);
    assert_eq!(server.get("/v1/tasks/now/held").expect(200).json()["standing"]["ending"], "done");
}

/// How many rows the database has so far; none before it has tables.
fn rows_in(postgres: &Postgres) -> u64 {
    let count = "query_to_xml('SELECT count(*) AS rows FROM punctual.rows', false, true, '')";
    let there = format!("(xpath('/row/rows/text()', {count}))[1]::text::int8");
    let rows = format!("SELECT CASE WHEN to_regclass('punctual.rows') IS NULL THEN 0 ELSE {there} END");
    postgres.sql(&rows).parse().unwrap()
}

#[test]
fn a_mover_that_is_killed_again_and_again_goes_on_where_it_was() {
    const TASKS: usize = 30_000;
    let (postgres, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let mut server = on_almanac(directory.path(), &["--node-shards", "3"]);
    server.start_again();
    fill(&server, 0, TASKS);
    assert!(server.stop().success());
    for _ in 0..3 {
        let (from, url, before) = (almanac(directory.path()), postgres.url(), rows_in(&postgres));
        // Where this looks seldom, all of them may come at once.
        if before >= TASKS as u64 {
            break;
        }
        let mut command = punctual();
        command.args(["store", "move", &from, &url]).current_dir(std::env::temp_dir());
        let mut mover = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("it has come further", || rows_in(&postgres) > before);
        assert!(mover.try_wait().unwrap().is_none(), "it was too fast to be killed");
        mover.kill().unwrap();
        mover.wait().unwrap();
    }
    let half = run(Server::prepare(&["--store", &postgres.url()], &[]).command().arg("--store-wait=0s"));
    assert!(half.code == Some(2) && half.stderr.contains("is not finished"), "{half:?}");
    let done = report(&moved(&almanac(directory.path()), &postgres.url(), &[]));
    assert_eq!(done["resumed"], true, "{done}");
    assert!(done["copied"].as_u64() < done["total"]["rows"].as_u64(), "some were there: {done}");
    assert_eq!(waiting(&on_postgres(&postgres)), TASKS as u64);
}

/// Begins to move the server's store.
fn begin(server: &Server, to: &str) -> Value {
    server.post(MOVE, &json!({ "to": to })).expect(202).json()
}

const MOVE: &str = "/v1/store/move";

fn state(server: &Server) -> String {
    server.get(MOVE).expect(200).json()["state"].as_str().unwrap().to_owned()
}

/// Waits until the server's store has been moved.
fn wait_until_moved(server: &Server) -> Value {
    eventually("it has been moved", || state(server) == "moved");
    server.get(MOVE).json()
}

/// Tasks that come and go, of which each is handed out once.
#[derive(Default)]
struct Business {
    done: BTreeSet<String>,
    next: usize,
}

impl Business {
    /// Schedules some, and does them.
    fn go_on(&mut self, server: &Server, count: usize) {
        for _ in 0..count {
            self.next += 1;
            server.post("/v1/tasks", &json!({ "topic": "now", "id": format!("{}", self.next) })).expect(201);
        }
        while self.done.len() < self.next {
            let deliveries = reserve(server, "20s");
            assert!(!deliveries.is_empty(), "{} of {} have come:\n{}", self.done.len(), self.next, server.output());
            for delivery in &deliveries {
                assert!(self.done.insert(delivery["id"].as_str().unwrap().to_owned()), "{delivery} came twice");
            }
            acknowledge(server, &deliveries);
        }
    }
}

#[test]
fn a_server_that_is_killed_while_its_store_is_moved_loses_and_repeats_nothing() {
    const TASKS: usize = 30_000;
    let (postgres, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let mut server = on_almanac(directory.path(), &["--node-shards", "4"]);
    server.start_again();
    fill(&server, 0, TASKS);
    let begun = begin(&server, &postgres.url());
    assert_eq!((begun["to"].as_str().unwrap(), begun["shards"].as_array().unwrap().len()), (&*postgres.url(), 4));
    let mut business = Business::default();
    for _ in 0..2 {
        business.go_on(&server, 20);
        assert!(state(&server) == "moving", "it was too fast to be killed");
        server.crash();
        assert_eq!(server.get(MOVE).expect(200).json()["to"], postgres.url(), "it goes on by itself");
    }
    while state(&server) != "moved" {
        business.go_on(&server, 20);
    }
    business.go_on(&server, 50);
    assert_eq!(waiting(&server), TASKS as u64);
    let again = server.post(MOVE, &json!({ "to": almanac(&directory.path().join("x")) })).expect(409).json();
    assert_eq!(again["code"], "move-under-way", "{again}");
    assert!(server.stop().success());
    let refused = run(&mut server.command());
    assert!(refused.code == Some(2) && refused.stderr.contains("was moved to postgres://"), "{refused:?}");

    let server = on_postgres(&postgres);
    assert_eq!(waiting(&server), TASKS as u64);
    business.go_on(&server, 50);
}

#[test]
fn a_live_move_is_watched_and_cancelled_on_the_command_line() {
    const TASKS: usize = 20_000;
    let (postgres, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let mut server = on_almanac(directory.path(), &["--node-shards", "2"]);
    server.start_again();
    let url = format!("http://{}", server.address());
    let ask = |words: &[&str]| run(punctual().args(["--url", &url, "store", "move"]).args(words));
    let nothing = ask(&["--status"]);
    assert!(nothing.code == Some(3) && nothing.stderr.contains("not being moved"), "{nothing:?}");
    assert_eq!(ask(&["--cancel"]).code, Some(3));
    fill(&server, 0, TASKS);

    begin(&server, &postgres.url());
    let other = server.post(MOVE, &json!({ "to": "postgres://elsewhere/x" })).expect(409).json();
    assert_eq!(other["code"], "move-under-way", "{other}");
    assert_eq!(begin(&server, &postgres.url())["state"], "moving", "the same is the same");
    let shown = ask(&["--status"]);
    assert!(shown.stdout.starts_with("moving almanac:/") && shown.stdout.contains("COPIED"), "{shown:?}");
    let cancelled = ask(&["--cancel"]);
    assert!(cancelled.code == Some(0) && cancelled.stdout.starts_with("cancelled: "), "{cancelled:?}");
    assert_eq!(state(&server), "cancelled");
    server.says("action=\"cancel-move\"");
    // The server starts where its tasks are, and nobody starts on what was copied.
    server.crash();
    assert_eq!((waiting(&server), server.get(MOVE).status), (TASKS as u64, 404));
    let half = run(Server::prepare(&["--store", &postgres.url()], &[]).command().arg("--store-wait=0s"));
    assert!(half.code == Some(2) && half.stderr.contains("is in charge again"), "{half:?}");

    let url = format!("http://{}", server.address());
    let moved = run(punctual().args(["--url", &url, "store", "move", "--live", &postgres.url()]));
    assert_eq!(moved.code, Some(0), "{moved:?}");
    assert!(moved.stdout.contains("shard 1: ") && moved.stdout.contains("; paused for "), "{moved:?}");
    assert!(moved.stdout.contains(&format!("set `store` to {}", postgres.url())), "{moved:?}");
    let late = run(punctual().args(["--url", &url, "store", "move", "--cancel"]));
    assert!(late.code == Some(4) && late.stderr.contains("2 of 2 shards"), "{late:?}");
    assert_eq!(waiting(&server), TASKS as u64);
}

/// A server on the almanac that moves it into a database behind a proxy, which can be taken away.
fn moving_away(data: &Path, postgres: &Postgres) -> (Server, Proxy) {
    let proxy = Proxy::to(postgres.port());
    let mut server = on_almanac(data, &["--node-shards", "2"]);
    server.start_again();
    fill(&server, 0, 30_000);
    begin(&server, &Postgres::url_at(proxy.port()));
    (server, proxy)
}

#[test]
fn a_server_that_was_about_to_move_its_store_starts_without_the_other_one() {
    let (postgres, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let (mut server, proxy) = moving_away(directory.path(), &postgres);
    proxy.refuse();
    assert_ne!(server.get(MOVE).json()["shards"][0]["state"], "moved", "it was too fast");
    server.crash();
    server.says("which is given up");
    assert_eq!((waiting(&server), server.get(MOVE).status), (30_000, 404));
    // What it left there is known to be of no use.
    proxy.pass();
    begin(&server, &Postgres::url_at(proxy.port()));
    wait_until_moved(&server);
}

#[test]
fn a_server_some_of_whose_shards_were_moved_waits_for_the_other_store_and_says_why() {
    let (postgres, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let (mut server, proxy) = moving_away(directory.path(), &postgres);
    eventually("the first shard has been moved", || server.get(MOVE).json()["shards"][0]["state"] == "moved");
    proxy.refuse();
    assert_eq!(server.get(MOVE).json()["state"], "moving", "it was too fast");
    server.kill();
    let refused = run(&mut server.command());
    assert!(refused.code == Some(1) && refused.stderr.contains("shards of it are there already"), "{refused:?}");
    proxy.pass();
    server.start_again();
    wait_until_moved(&server);
    assert_eq!(waiting(&server), 30_000);
}

#[test]
fn a_store_is_moved_into_another_directory_under_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let (first, last) = (directory.path().join("first"), directory.path().join("last"));
    let mut server = on_almanac(&first, &[]);
    server.start_again();
    fill(&server, 0, 100);
    server.post("/v1/tasks", &json!({ "topic": "now", "id": "held" })).expect(201);
    let held = reserve(&server, "5s");
    begin(&server, &almanac(&last));
    let told = wait_until_moved(&server);
    let advice = told["advice"].as_str().unwrap();
    assert!(advice.contains(&format!("`data` to {}", last.display())), "{advice}");
    assert!(told["shards"][0]["pause_micros"].as_u64().unwrap() > 0, "{told}");
    assert!(server.stop().success());
    let refused = run(&mut server.command());
    assert!(refused.code == Some(2) && refused.stderr.contains("was moved to almanac:/"), "{refused:?}");

    let mut server = on_almanac(&last, &[]);
    server.start_again();
    assert_eq!(waiting(&server), 100);
    acknowledge(&server, &held);
}

#[test]
fn what_is_in_memory_can_be_moved_to_disk() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_with(&["--store", "memory"]);
    fill(&server, 0, 100);
    begin(&server, &almanac(directory.path()));
    wait_until_moved(&server);
    drop(server);
    let mut server = on_almanac(directory.path(), &[]);
    server.start_again();
    assert_eq!(waiting(&server), 100);
}

#[test]
fn a_store_that_cannot_be_moved_into_is_told_and_its_password_is_not() {
    let postgres = Postgres::start();
    postgres.sql("CREATE USER u PASSWORD 'hunter2'");
    postgres.sql("CREATE DATABASE d OWNER u");
    let with = |user: &str| postgres.url_of(user, "d");
    let server = Server::start();
    let refused = |to: &str, status: u16| {
        let answer = server.post(MOVE, &json!({ "to": to })).expect(status).json();
        format!("{} {}", answer["code"].as_str().unwrap(), answer["detail"].as_str().unwrap())
    };
    for text in ["memory", "almanac", "data", "almanac:data", "mongodb://u:hunter2@db/x", "postgres://u:hunt/er2@db/x"]
    {
        let told = refused(text, 422);
        assert!(told.starts_with("invalid `to`: ") && !told.contains("er2"), "{told}");
    }
    let away = refused("postgres://u:hunter2@127.0.0.1:1/x", 409);
    assert!(away.starts_with("unusable-store postgres://u@127.0.0.1:1/x cannot be opened"), "{away}");
    let full = Server::start_with(&["--store", &postgres.url()]);
    fill(&full, 0, 1);
    drop(full);
    let full = refused(&postgres.url(), 409);
    assert!(full.contains("is not empty") || full.contains("is running"), "{full}");
    assert_eq!(server.get(MOVE).status, 404);

    begin(&server, &with("u:hunter2"));
    let told = wait_until_moved(&server);
    assert_eq!(told["to"], with("u"));
    assert!(!told.to_string().contains("hunter2"), "{told}");
    server.says("action=\"move-store\"");
    let log = server.output();
    assert!(!log.contains("hunter2"), "{log}");
}

#[test]
fn only_whoever_administers_all_topics_may_move_the_store() {
    let mut server = Server::prepare(&[], &[]);
    let token = |name: &str, more: &[&str]| {
        let made =
            run(punctual().args(["token", "create", "--name", name]).args(more).arg("--data").arg(server.data()));
        assert_eq!(made.code, Some(0), "{made:?}");
        made.stdout.trim().to_owned()
    };
    let (viewer, bound) = (token("viewer", &["--role", "view"]), token("bound", &["--role", "admin", "--topic", "a*"]));
    server.start_again();
    server.token = Some(viewer);
    assert_eq!(server.get(MOVE).status, 404);
    server.post(MOVE, &json!({ "to": "memory" })).expect(403);
    server.token = Some(bound);
    server.get(MOVE).expect(403);
    server.post(MOVE, &json!({ "to": "memory" })).expect(403);
    server.delete(MOVE).expect(403);
}
