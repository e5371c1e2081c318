//! Moving a store with the real binary: stopped and under a running server, killed on the way, with leases that outlive it.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use punctual_engines::Postgres;
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
    assert!(busy.code == Some(1) && busy.stderr.contains("node-1 is running"), "{busy:?}");
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
        let mut command = punctual();
        command.args(["store", "move", &from, &url]).current_dir(std::env::temp_dir());
        let mut mover = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("it has come further", || rows_in(&postgres) > before);
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

#[test]
fn a_server_that_is_killed_while_its_store_is_moved_loses_and_repeats_nothing() {
    const TASKS: usize = 30_000;
    let (postgres, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let mut server = on_almanac(directory.path(), &["--node-shards", "4"]);
    server.start_again();
    fill(&server, 0, TASKS);
    assert!(server.stop().success());

    let mut server = on_almanac(directory.path(), &["--node-shards", "4", "--store-moving-to", &postgres.url()]);
    server.start_again();
    let (mut done, mut next) = (BTreeSet::new(), 0);
    let mut live = |server: &Server, count: usize| {
        for _ in 0..count {
            next += 1;
            server.post("/v1/tasks", &json!({ "topic": "now", "id": format!("{next}") })).expect(201);
        }
        while done.len() < next {
            let deliveries = reserve(server, "20s");
            assert!(!deliveries.is_empty(), "{} of {next} have come:\n{}", done.len(), server.output());
            for delivery in &deliveries {
                assert!(done.insert(delivery["id"].as_str().unwrap().to_owned()), "{} came twice", delivery["id"]);
            }
            acknowledge(server, &deliveries);
        }
    };
    for _ in 0..2 {
        live(&server, 20);
        assert!(!server.output().contains("has been moved: set"), "it was too fast to be killed");
        server.crash();
    }
    while !server.output().contains("has been moved: set") {
        live(&server, 20);
    }
    live(&server, 50);
    assert_eq!(waiting(&server), TASKS as u64);
    assert!(server.stop().success());
    let refused = run(&mut server.command());
    assert!(refused.code == Some(2) && refused.stderr.contains("was moved to postgres://"), "{refused:?}");

    let server = on_postgres(&postgres);
    assert_eq!(waiting(&server), TASKS as u64);
    live(&server, 50);
}
