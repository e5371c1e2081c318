//! The real binary: how it starts, what it refuses, how it stops, and that it keeps what it confirmed.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use stage::{ALMANAC, PATIENCE, Server, eventually, punctual, run};

fn schedule(server: &Server, id: &str, delay: &str) {
    let task = json!({ "topic": "orders", "id": id, "delay": delay, "text": format!("close {id}") });
    server.post("/v1/tasks", &task).expect(201);
}

/// The ids of what can be had now, or within the wait.
fn reserve(server: &Server, wait: &str) -> Vec<String> {
    let answer =
        server.post("/v1/reserve", &json!({ "queues": ["orders"], "max": 100, "wait": wait })).expect(200).json();
    let deliveries = answer["deliveries"].as_array().unwrap().iter();
    deliveries.map(|delivery| delivery["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn it_starts_without_configuration_and_says_how_to_try_it() {
    let mut server = Server::start_with(ALMANAC);
    server.get("/healthz").expect(200);
    server.get("/readyz").expect(200);
    for said in [
        "listening on http://127.0.0.1:",
        "data in /",
        "every commit is on disk before it is confirmed",
        "no configuration file",
        "curl ",
    ] {
        server.says(said);
    }
    assert!(server.stop().success());
}

#[test]
fn a_task_is_scheduled_and_received() {
    let server = Server::start();
    schedule(&server, "1", "200ms");
    assert_eq!(reserve(&server, "0s"), Vec::<String>::new());
    assert_eq!(reserve(&server, "5s"), ["1"]);
}

#[test]
fn what_was_confirmed_survives_a_kill() {
    let mut server = Server::start();
    schedule(&server, "1", "0s");
    server.crash();
    assert_eq!(reserve(&server, "5s"), ["1"]);
}

#[test]
fn a_lease_from_before_a_restart_can_be_acknowledged_after_it() {
    let mut server = Server::start();
    schedule(&server, "1", "0s");
    let delivery = server.post("/v1/reserve", &json!({ "queues": ["orders"], "wait": "5s" })).expect(200).json();
    let lease = delivery["deliveries"][0]["lease"].clone();
    server.crash();
    let settled =
        server.post("/v1/leases", &json!({ "actions": [{ "lease": lease, "do": "acknowledge" }] })).expect(200);
    assert!(settled.text().contains("acknowledged") || settled.text().contains("done"), "{}", settled.text());
}

#[test]
fn it_stops_in_order_and_answers_who_waits() {
    let mut server = Server::start();
    let mut waiting = server.connect();
    waiting.send("POST", "/v1/reserve", Some(&json!({ "queues": ["orders"], "wait": "60s" })));
    eventually("the consumer waits", || server.get("/v1/stats").json()["waiting_consumers"] == 1);
    let begun = Instant::now();
    assert!(server.stop().success());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let answer = waiting.receive().expect(200).json();
    assert_eq!(answer["deliveries"], json!([]));
    let output = server.output();
    assert!(output.contains("stopping") && output.contains("stopped: everything confirmed is "), "{output}");
}

#[test]
fn an_interrupt_stops_it_too() {
    let mut server = Server::start();
    server.signal("INT");
    assert!(server.wait().success());
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let server = Server::start_with(ALMANAC);
    let second = run(&mut server.command());
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("is in use by another process: stop it first"), "{second:?}");
    server.get("/readyz").expect(200);
}

#[test]
fn a_port_that_is_taken_is_told_before_anything_is_opened() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let server = Server::prepare(&["--listen", &address], &[]);
    let ended = run(&mut server.command());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains(&format!("cannot listen on {address}: another process is listening there")),
        "{ended:?}"
    );
    assert!(!server.data().exists());
}

#[test]
fn it_listens_on_several_addresses() {
    let server = Server::prepare(&["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"], &[]);
    let mut server = server;
    server.start_again();
    eventually("both are told", || server.output().matches("listening on http://").count() == 2);
    let output = server.output();
    for line in output.lines().filter_map(|line| line.strip_prefix("listening on http://")) {
        stage::Connection::open(line, None).request("GET", "/readyz", None).expect(200);
    }
}

#[test]
fn an_address_that_others_reach_needs_tokens_or_a_plain_word() {
    let server = Server::prepare(&["--listen", "0.0.0.0:0"], &[]);
    let refused = run(&mut server.command());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for said in ["other machines can reach", "punctual token create", "--access-open"] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    let mut open = Server::prepare(&["--listen", "0.0.0.0:0", "--access-open"], &[]);
    open.start_again();
    open.wait_for("answers only requests for its IP addresses and localhost; add host names with --http-hosts");
    assert!(open.stop().success());
}

#[test]
fn with_tokens_every_request_needs_one() {
    let mut server = Server::prepare(&["--listen", "0.0.0.0:0"], &[]);
    let data = server.data().display().to_string();
    let create = |name: &str, role: &str| {
        let made = run(punctual().args(["token", "create", "--name", name, "--role", role, "--data", &data]));
        assert_eq!(made.code, Some(0), "{made:?}");
        made.stdout.trim().to_owned()
    };
    let admin = create("admin", "admin");
    server.start_again();
    server.get("/v1/stats").expect(401);
    server.token = Some(admin);
    server.get("/v1/stats").expect(200);

    // A token that is made while the server runs counts within seconds, and so does its end.
    server.token = Some(create("operator", "operate"));
    eventually("the new token counts", || server.get("/v1/stats").status == 200);
    let listed = run(punctual().args(["token", "list", "--data", &data]));
    assert!(listed.stdout.contains("operator") && listed.stdout.contains("operate"), "{listed:?}");
    let revoked = run(punctual().args(["token", "revoke", "operator", "--data", &data]));
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    server.signal("HUP");
    eventually("the token is refused", || server.get("/v1/stats").status == 401);
}

#[test]
fn a_token_file_that_vanishes_does_not_open_the_door() {
    let mut server = Server::prepare(&[], &[]);
    let data = server.data().display().to_string();
    run(punctual().args(["token", "create", "--name", "admin", "--role", "admin", "--data", &data]));
    server.start_again();
    fs::remove_file(server.data().join("tokens.toml")).unwrap();
    server.signal("HUP");
    server.wait_for("the tokens are gone");
    server.get("/v1/stats").expect(401);
}

#[test]
fn a_configuration_that_cannot_be_used_starts_nothing() {
    let server = Server::prepare(&["--store-sync", "often"], &[("PUNCTUAL_STORE_MEMRY", "1GiB")]);
    fs::write(server.directory().join("punctual.toml"), "[tasks]\nmax_bdoy = \"1MiB\"\n").unwrap();
    let ended = run(&mut server.command());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for said in [
        "punctual.toml:2: `tasks.max_bdoy` is not a setting: did you mean `tasks.max_body`?",
        "PUNCTUAL_STORE_MEMRY: no setting has this name: did you mean PUNCTUAL_STORE_MEMORY?",
        "--store-sync: `store.sync`: \"often\" is neither `always` nor a duration",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {ended:?}");
    }
    assert!(!server.data().exists());
}

#[test]
fn the_effective_configuration_is_printed_with_its_origins() {
    let server = Server::prepare(&[], &[]);
    fs::write(server.directory().join("punctual.toml"), "[store]\nmemory = \"1GiB\"\n").unwrap();
    let config = |arguments: &[&str]| {
        let mut command = punctual();
        run(command.arg("config").args(arguments).current_dir(server.directory()).env("PUNCTUAL_NODE_NAME", "here"))
    };
    let printed = config(&["--data", "/elsewhere"]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    for (entry, origin) in [
        ("memory = \"1GiB\"", "# punctual.toml:2"),
        ("name = \"here\"", "# PUNCTUAL_NODE_NAME"),
        ("data = \"/elsewhere\"", "# --data"),
        ("inbox = 16384", "# default"),
    ] {
        let is_there = printed.stdout.lines().any(|line| line.starts_with(entry) && line.ends_with(origin));
        assert!(is_there, "{entry} {origin}: {}", printed.stdout);
    }
    let json: serde_json::Value = serde_json::from_str(&config(&["--json"]).stdout).unwrap();
    assert_eq!(json["store.memory"]["value"], "1GiB");
    assert_eq!(config(&["--check"]).code, Some(0));
    assert_eq!(config(&["--check", "--log-level", "loud"]).code, Some(2));
}

#[test]
fn the_log_is_json_on_request() {
    let mut server = Server::start_with(&["--log-format", "json"]);
    server.stop();
    let output = server.output();
    let line = output.lines().find(|line| line.contains("stopping")).unwrap_or_else(|| panic!("{output}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["signal"], "SIGTERM");
}

#[test]
fn metrics_tell_what_happened() {
    let server = Server::start();
    schedule(&server, "1", "0s");
    assert_eq!(reserve(&server, "5s"), ["1"]);
    let metrics = server.get("/metrics").expect(200).text();
    for line in [
        "punctual_ready 1",
        "punctual_tasks{topic=\"orders\",state=\"leased\"} 1",
        "punctual_deliveries{queue=\"orders\",state=\"leased\"} 1",
        "punctual_happenings_total{topic=\"orders\",what=\"scheduled\"} 1",
        "punctual_lateness_seconds_count 1",
        "punctual_lateness_seconds_bucket{le=\"+Inf\"} 1",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line}: {metrics}");
    }
    let listed = include_str!("../../docs/operating.md");
    for family in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = family.split(' ').next().unwrap();
        assert!(listed.contains(&format!("`{name}")), "docs/operating.md does not list {name}");
    }
}

#[test]
fn another_number_of_shards_is_refused() {
    let mut server = Server::start();
    server.stop();
    let mut command = server.command();
    let ended = run(command.args(["--node-shards", "2"]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("shard"), "{ended:?}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = Server::start();
    // A request whose body never ends keeps its connection, and the stop waits for it.
    let mut slow = server.connect();
    slow.send_raw(
        b"POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    );
    thread::sleep(Duration::from_millis(200));
    server.signal("TERM");
    server.wait_for("closing connections");
    let begun = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(1));
    assert!(begun.elapsed() < PATIENCE / 3, "{:?}", begun.elapsed());
}

#[test]
fn completions_are_printed() {
    let printed = run(punctual().args(["completions", "bash"]));
    assert_eq!(printed.code, Some(0));
    assert!(printed.stdout.contains("schedule") && printed.stdout.contains("--listen"));
}
