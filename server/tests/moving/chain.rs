//! From each store into each other one, killed with -9 at random points on the way: what was filled in once goes through
//! all of them, one after the other, and is the same after each move.
//!
//! `PUNCTUAL_TEST_ROWS` says how many tasks there are, `PUNCTUAL_TEST_KILLS` how often each move is killed. What was measured
//! is printed.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use punctual_chance::Chance;
use punctual_engines::{Maria, Postgres, Redis};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Business, MOVE, almanac, begin, report, state, waiting};
use crate::stage::{Ended, Server, punctual};

/// A way that goes from each kind to each other one, once.
const WAY: [usize; 13] = [0, 1, 2, 1, 3, 1, 0, 2, 3, 2, 0, 3, 0];
const KINDS: [&str; 4] = ["almanac", "postgres", "mysql", "redis"];

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// One of each, and a place for stores in files.
struct Engines {
    postgres: Postgres,
    maria: Maria,
    redis: Redis,
    directory: TempDir,
}

impl Engines {
    fn start() -> Engines {
        let directory = tempfile::tempdir().unwrap();
        Engines { postgres: Postgres::start(), maria: Maria::start(), redis: Redis::start(), directory }
    }

    /// An empty store: what to call it.
    fn fresh(&self, kind: usize, place: usize) -> String {
        match KINDS[kind] {
            "almanac" => almanac(&self.directory.path().join(format!("place{place}"))),
            "postgres" => {
                self.postgres.sql(&format!("CREATE DATABASE place{place}"));
                self.postgres.url_of("postgres", &format!("place{place}"))
            }
            "mysql" => {
                self.maria.sql(&format!("CREATE DATABASE place{place}"));
                self.maria.url().replace("/punctual", &format!("/place{place}"))
            }
            _ => format!("{}/{place}", self.redis.url()),
        }
    }

    /// What was there is not needed any more.
    fn drop(&self, store: &str) {
        let name = store.rsplit('/').next().unwrap();
        if let Some(data) = store.strip_prefix("almanac:") {
            std::fs::remove_dir_all(data).unwrap();
        } else if store.starts_with("postgres:") {
            self.postgres.sql(&format!("DROP DATABASE {name} WITH (FORCE)"));
        } else if store.starts_with("mysql:") {
            self.maria.sql(&format!("DROP DATABASE {name}"));
        } else {
            self.redis.command(&["-n", name, "FLUSHDB", "ASYNC"]);
        }
    }
}

/// A server on a store.
fn on(store: &str) -> Server {
    let more = ["--node-shards", "4"];
    match store.strip_prefix("almanac:") {
        Some(data) => Server::prepare(&[&["--store", "almanac", "--data", data][..], &more].concat(), &[]),
        None => Server::prepare(&[&["--store", store][..], &more].concat(), &[]),
    }
}

/// Schedules tasks for all minutes of a month to come.
fn fill(server: &Server, count: u64) {
    let mut connection = server.connect();
    for from in (0..count).step_by(1_000) {
        let task = |number: u64| {
            let delay = 36_000 + number.wrapping_mul(7_919_777) % 2_592_000;
            json!({ "topic": "later", "id": format!("{number}"), "key": format!("k{}", number % 1_000), "delay": format!("{delay}s"), "text": "x".repeat(200) })
        };
        let tasks: Vec<Value> = (from..count.min(from + 1_000)).map(task).collect();
        connection.request("POST", "/v1/tasks/batch", Some(&json!({ "tasks": tasks }))).expect(200);
    }
}

/// The most memory that a process has taken, in kilobytes.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

/// What came of a mover.
struct Moved {
    /// Nothing if it was killed.
    ended: Option<Ended>,
    /// The most memory that it took, in kilobytes.
    memory: u64,
}

/// Runs a mover until it ends, or is killed when it has lived for so long.
fn mover(from: &str, to: &str, life: Option<Duration>) -> Moved {
    let mut command = punctual();
    command.args(["store", "move", from, to, "--json"]).current_dir(std::env::temp_dir());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (begun, mut memory) = (Instant::now(), 0);
    while child.try_wait().unwrap().is_none() {
        memory = memory.max(peak(child.id()).unwrap_or(0));
        if life.is_some_and(|life| begun.elapsed() > life) {
            child.kill().unwrap();
            child.wait().unwrap();
            return Moved { ended: None, memory };
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let ended = Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
    Moved { ended: Some(ended), memory }
}

#[test]
fn killed_between_each_pair_of_stopped_stores_the_move_ends_with_equal_stores() {
    let (rows, kills) = (number("PUNCTUAL_TEST_ROWS", 2_000), number("PUNCTUAL_TEST_KILLS", 1));
    let (engines, mut chance) = (Engines::start(), Chance::new(number("PUNCTUAL_TEST_SEED", 1)));
    let mut from = engines.fresh(WAY[0], 0);
    let mut server = on(&from);
    server.start_again();
    fill(&server, rows);
    assert!(server.stop().success());
    let mut first: Option<Value> = None;
    for (place, way) in WAY.windows(2).enumerate() {
        let to = engines.fresh(way[1], place + 1);
        let (begun, mut memory, mut killed) = (Instant::now(), 0, 0);
        let done = loop {
            // Some are killed while both are opened, some while rows are read back, and some are done before.
            let life = Duration::from_millis(30 + chance.below(150 + rows / 50));
            let moved = mover(&from, &to, (killed < kills).then_some(life));
            memory = memory.max(moved.memory);
            match moved.ended {
                // It was killed between its last write and its last word.
                Some(ended) if killed > 0 && ended.stderr.contains("already: nothing is left to do") => break None,
                Some(ended) => break Some(report(&ended)),
                None => killed += 1,
            }
        };
        let pair = format!("{} to {}", KINDS[way[0]], KINDS[way[1]]);
        let Some(done) = done else {
            println!("{pair}: moved by one that was killed before it said so");
            engines.drop(&from);
            from = to;
            continue;
        };
        let total = first.get_or_insert_with(|| done["total"].clone());
        assert_eq!(&done["total"], total, "{pair}");
        assert!(total["rows"].as_u64().unwrap() >= rows, "{pair}: {total}");
        let (copied, took) = (&done["copied"], done["seconds"].as_f64().unwrap());
        println!(
            "{pair}: {copied} rows in the last life of {took:.1} s, {:.1} s in all, killed {killed} times, {memory} kB",
            begun.elapsed().as_secs_f64()
        );
        engines.drop(&from);
        from = to;
    }
    let mut server = on(&from);
    server.start_again();
    assert_eq!(waiting(&server), rows);
    let last = server.get(&format!("/v1/tasks/later/{}", rows - 1)).expect(200).json();
    assert_eq!((last["text"].as_str().unwrap().len(), &last["key"]), (200, &json!(format!("k{}", (rows - 1) % 1_000))));
}

#[test]
fn killed_between_each_pair_of_stores_in_use_the_move_loses_and_repeats_nothing() {
    let (rows, kills) = (number("PUNCTUAL_TEST_ROWS", 2_000), number("PUNCTUAL_TEST_KILLS", 1));
    let (engines, mut chance) = (Engines::start(), Chance::new(number("PUNCTUAL_TEST_SEED", 1)));
    let mut from = engines.fresh(WAY[0], 0);
    let mut server = on(&from);
    server.start_again();
    fill(&server, rows);
    let mut business = Business::default();
    for (place, way) in WAY.windows(2).enumerate() {
        let to = engines.fresh(way[1], place + 1);
        let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
        let mut go_on = |server: &Server| {
            let begun = Instant::now();
            business.go_on(server, 5);
            slowest = slowest.max(begun.elapsed());
        };
        begin(&server, &to);
        let mut killed = 0;
        for _ in 0..kills {
            let life = Duration::from_millis(chance.below(100 + rows / 50));
            while begun.elapsed() < life && state(&server) == "moving" {
                go_on(&server);
            }
            // Whoever is almost done may be done before it is killed.
            if shards_left(&server) >= 2 {
                server.crash();
                killed += 1;
            }
        }
        while state(&server) == "moving" {
            go_on(&server);
        }
        let took = begun.elapsed().as_secs_f64();
        assert_eq!((state(&server).as_str(), waiting(&server)), ("moved", rows));
        let (pauses, memory) = (pauses(&server), peak(server.pid()).unwrap_or(0));
        let pair = format!("{} to {}", KINDS[way[0]], KINDS[way[1]]);
        println!(
            "{pair}, live: {took:.1} s in all, killed {killed} times, shards paused for {pauses:?} ms, slowest five tasks {slowest:?}, {memory} kB"
        );
        assert!(server.stop().success());
        engines.drop(&from);
        from = to;
        server = on(&from);
        server.start_again();
        assert_eq!(waiting(&server), rows);
    }
    assert_eq!(server.get(MOVE).status, 404);
}

/// How many shards have not been moved yet.
fn shards_left(server: &Server) -> usize {
    let told = server.get(MOVE).expect(200).json();
    told["shards"].as_array().unwrap().iter().filter(|shard| shard["state"] != "moved").count()
}

/// For how long the shards were paused, over all lives of a server.
fn pauses(server: &Server) -> Vec<u64> {
    let output = server.output();
    let pauses = output.lines().filter_map(|line| line.split("pause_ms=").nth(1)?.split_whitespace().next());
    pauses.map(|pause| pause.parse().unwrap()).collect()
}
