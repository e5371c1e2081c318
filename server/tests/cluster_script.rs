//! `./run cluster` starts a database and nodes on it, says how to try them, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use stage::Connection;

#[test]
fn a_task_that_one_node_takes_is_received_at_another_and_nothing_is_left() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/cluster.sh");
    let scratch = tempfile::tempdir().unwrap();
    // PostgreSQL may have a user of its own, who has to get in.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(scratch.path(), open).unwrap();
    // Two that follow each other, outside of those that the system gives to connections.
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let port = std::iter::repeat_with(punctual_engines::free_port).find(|port| is_free(port + 1)).unwrap();
    let mut cluster = Command::new(script);
    cluster.args([env!("CARGO_BIN_EXE_punctual"), "2"]).env("PORT", port.to_string()).env("TMPDIR", scratch.path());
    let mut cluster = cluster.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(cluster.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told: Vec<String> = lines.take_while(|line| !line.starts_with("Ctrl-C ends")).collect();
    assert!(told.iter().any(|line| line.contains(" nodes")), "{told:?}");

    let node = |number: u16| Connection::open(&format!("127.0.0.1:{}", port + number), None);
    let task = json!({ "topic": "hello", "delay": "100ms", "text": "world" });
    assert_eq!(node(0).request("POST", "/v1/tasks", Some(&task)).status, 201);
    let reserve = json!({ "queues": ["hello"], "wait": "10s" });
    let taken = node(1).request("POST", "/v1/reserve", Some(&reserve)).expect(200).json();
    assert_eq!(taken["deliveries"][0]["text"], "world", "{taken}");

    // Not as Ctrl-C does: a shell in the background hands SIGINT down as ignored.
    let sent = Command::new("kill").args(["-TERM", &cluster.id().to_string()]).status().unwrap();
    assert!(sent.success() && cluster.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "everything is gone");
}
