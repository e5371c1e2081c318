//! More shards with the real binary: refused while servers run, killed on the way, and nothing is lost or called otherwise.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use punctual_engines::Postgres;
use serde_json::{Value, json};
use stage::{Ended, Server, beside, eventually, punctual, run};

/// Schedules tasks of a topic.
fn fill(server: &Server, topic: &str, delay: &str, count: usize) {
    for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
        let task = |number: &usize| {
            let (id, text) = (number.to_string(), format!("{topic} {number}"));
            json!({ "topic": topic, "id": id, "delay": delay, "text": text, "key": "all" })
        };
        let tasks: Vec<Value> = chunk.iter().map(task).collect();
        server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    }
}

/// The numbers of some tasks of a topic.
fn numbers(server: &Server, topic: &str, count: usize) -> Vec<u64> {
    let number = |id| server.get(&format!("/v1/tasks/{topic}/{id}")).expect(200).json()["number"].as_u64().unwrap();
    (0..count).map(number).collect()
}

/// Requires that numbers from before still lead to their tasks.
fn require_numbers(server: &Server, topic: &str, numbers: &[u64]) {
    for (id, number) in numbers.iter().enumerate() {
        let task = server.get(&format!("/v1/numbers/{number}")).expect(200).json();
        assert_eq!((&task["topic"], &task["id"]), (&json!(topic), &json!(id.to_string())));
        assert_eq!(task["text"], format!("{topic} {id}"), "{task}");
    }
    assert_eq!(self::numbers(server, topic, numbers.len()), numbers);
}

fn reserve_all(server: &Server, queue: &str, count: usize) {
    let mut seen = BTreeSet::new();
    while seen.len() < count {
        let reserve = json!({ "queues": [queue], "max": 100, "wait": "5s", "lease": "10m" });
        let deliveries =
            server.post("/v1/reserve", &reserve).expect(200).json()["deliveries"].as_array().unwrap().clone();
        assert!(!deliveries.is_empty(), "{} of {count} came", seen.len());
        for delivery in deliveries {
            assert!(seen.insert(delivery["id"].as_str().unwrap().to_owned()), "it came twice: {delivery}");
        }
    }
}

fn waiting(server: &Server, topic: &str) -> Value {
    server.get(&format!("/v1/topics/{topic}")).expect(200).json()["waiting"].clone()
}

/// A conversation with the beanstalk door of a server: one line for each command.
fn say(server: &Server, commands: &[&str]) -> Vec<String> {
    let output = server.output();
    let present = output.rsplit("listening on beanstalk://").next().unwrap();
    let mut stream = TcpStream::connect(present.lines().next().unwrap()).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut said = |command: &&str| {
        write!(stream, "{command}\r\n").unwrap();
        answers.next().unwrap().unwrap()
    };
    commands.iter().map(&mut said).collect()
}

fn grow(command: &mut Command, arguments: &[&str]) -> Ended {
    run(command.args(["shards", "grow"]).args(arguments))
}

#[test]
fn a_server_finds_everything_under_more_shards_and_jobs_keep_their_numbers() {
    let mut server = Server::start_with(&["--store", "almanac", "--beanstalk-listen", "127.0.0.1:0"]);
    fill(&server, "later", "10h", 500);
    fill(&server, "now", "0s", 100);
    let before = numbers(&server, "later", 50);
    let job = say(&server, &["put 5 36000 60 3\r\njob"])[0].replace("INSERTED ", "");
    let in_use = grow(&mut beside(&server), &["4"]);
    assert!(in_use.code != Some(0) && in_use.stderr.contains("in use"), "{in_use:?}");
    assert!(server.stop().success());

    let none = grow(&mut beside(&server), &["1"]);
    assert!(none.code == Some(2) && none.stderr.contains("has 1 shards already"), "{none:?}");
    let too_many = grow(&mut beside(&server), &["5000"]);
    assert!(too_many.code == Some(2) && too_many.stderr.contains("4096 is the most"), "{too_many:?}");
    let dry = grow(&mut beside(&server), &["4", "--dry-run", "--json"]);
    let outlook: Value = serde_json::from_str(&dry.stdout).unwrap();
    assert_eq!((&outlook["from"], &outlook["to"], &outlook["rows"]), (&json!(1), &json!(4), &json!(601)), "{dry:?}");
    let grown = grow(&mut beside(&server), &["4"]);
    assert!(grown.code == Some(0) && grown.stdout.contains("4 shards instead of 1"), "{grown:?}");
    assert!(grown.stderr.contains("of 601 rows go into another shard"), "{grown:?}");
    let check = run(beside(&server).args(["store", "check"]));
    assert_eq!(check.code, Some(0), "{check:?}");

    server.start_again();
    let shards = server.get("/v1/shards").expect(200).json();
    assert_eq!(shards["shards"].as_array().unwrap().len(), 4, "{shards}");
    assert_eq!((waiting(&server, "later"), waiting(&server, "now")), (json!(500), json!(100)));
    require_numbers(&server, "later", &before);
    reserve_all(&server, "now", 100);
    let answers = say(&server, &[&format!("peek {job}")]);
    assert_eq!(answers, [format!("FOUND {job} 3")]);
    assert_eq!(say(&server, &[&format!("delete {job}")]), ["DELETED"]);
}

#[test]
fn a_directory_without_a_store_is_not_made_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nothing");
    let refused = run(punctual().args(["shards", "grow", "4"]).arg(&path).current_dir(directory.path()));
    assert!(refused.code == Some(2) && refused.stderr.contains("there is no store in"), "{refused:?}");
    assert!(!path.exists());
}

/// How many rows are in shards that are new.
fn rows_in_new_shards(postgres: &Postgres) -> u64 {
    postgres.sql("SELECT count(*) FROM punctual.rows WHERE shard >= 2").parse().unwrap()
}

#[test]
fn killed_again_and_again_it_goes_on_and_until_its_end_no_server_starts() {
    const TASKS: usize = 20_000;
    let postgres = Postgres::start();
    let url = postgres.url();
    let mut servers =
        ["east", "west"].map(|name| Server::start_with(&["--store", &url, "--node-name", name, "--node-shards", "2"]));
    fill(&servers[0], "later", "10h", TASKS);
    fill(&servers[1], "now", "0s", 100);
    let before = numbers(&servers[0], "later", 50);
    let on_it = |more: &[&str]| grow(punctual().current_dir(std::env::temp_dir()), &[&["6", &url], more].concat());
    let in_use = on_it(&[]);
    assert!(in_use.code == Some(1) && in_use.stderr.contains("in use by east, west"), "{in_use:?}");
    assert_eq!(on_it(&["--dry-run"]).code, Some(0), "one may look");
    servers.iter_mut().for_each(|server| assert!(server.stop().success()));

    for _ in 0..3 {
        let rows = rows_in_new_shards(&postgres);
        let mut command = punctual();
        command.args(["shards", "grow", "6", &url]).current_dir(std::env::temp_dir());
        let mut growing = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("it has come further", || rows_in_new_shards(&postgres) > rows);
        assert!(growing.try_wait().unwrap().is_none(), "it was too fast to be killed");
        growing.kill().unwrap();
        growing.wait().unwrap();
        for server in &servers {
            let refused = run(server.command().arg("--store-wait=0s"));
            assert!(refused.code != Some(0), "{refused:?}");
            assert!(refused.stderr.contains("run `punctual shards grow 6` again"), "{refused:?}");
        }
    }
    let check = run(punctual().args(["store", "check", &url]).current_dir(std::env::temp_dir()));
    assert!(check.stderr.contains("let `punctual shards grow 6` finish"), "{check:?}");
    let other = grow(punctual().current_dir(std::env::temp_dir()), &["4", &url]);
    assert!(other.code == Some(2) && other.stderr.contains("into 6 shards, and that comes first"), "{other:?}");
    let grown = on_it(&["--json"]);
    assert_eq!(grown.code, Some(0), "{grown:?}");
    let report: Value = serde_json::from_str(&grown.stdout).unwrap();
    assert_eq!((&report["from"], &report["to"], &report["resumed"]), (&json!(2), &json!(6), &json!(true)), "{report}");

    let old = run(&mut servers[0].command());
    assert!(old.code != Some(0) && old.stderr.contains("this store has 6 shards, not 2"), "{old:?}");
    let check = run(punctual().args(["store", "check", &url]).current_dir(std::env::temp_dir()));
    assert_eq!(check.code, Some(0), "{check:?}");
    let servers = ["east", "west"].map(|name| Server::start_with(&["--store", &url, "--node-name", name]));
    assert_eq!(waiting(&servers[1], "later"), json!(TASKS));
    require_numbers(&servers[0], "later", &before);
    reserve_all(&servers[1], "now", 100);
}
