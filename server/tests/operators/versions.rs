//! Settings that are changed only if nobody else has changed them meanwhile.

use serde_json::{Value, json};

use crate::code;
use crate::stage::{Answer, Server, command, run};

/// A request with a condition.
fn change(server: &Server, method: &str, path: &str, version: &str, body: &Value) -> Answer {
    let body = body.to_string();
    let mut connection = server.connect();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nif-match: {version}\r\n");
    let body = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    connection.send_raw((head + &body).as_bytes());
    connection.receive()
}

#[test]
fn who_has_seen_other_settings_changes_nothing() {
    let server = Server::start_with(&["--node-shards", "3"]);
    for (path, one, other) in [
        ("/v1/topics/t", json!({ "owner": "a" }), json!({ "owner": "b" })),
        ("/v1/queues/q", json!({ "lease": "5s" }), json!({ "lease": "6s" })),
    ] {
        let put = server.send("PUT", path, &one).expect(200);
        let seen = put.header("etag").unwrap().to_owned();
        assert_eq!(seen, format!("\"{}\"", put.json()["version"].as_str().unwrap()));
        assert_eq!(server.get(path).expect(200).header("etag"), Some(seen.as_str()), "looking changes nothing");
        let changed = change(&server, "PATCH", path, &seen, &other).expect(200);
        assert_ne!(changed.header("etag"), Some(seen.as_str()));
        for method in ["PUT", "PATCH"] {
            assert_eq!(code(change(&server, method, path, &seen, &one).expect(412)), "settings-changed", "{method}");
        }
        assert_eq!(server.get(path).expect(200).json()["settings"], changed.json()["settings"]);
        let now = changed.header("etag").unwrap().to_owned();
        change(&server, "PUT", path, &format!("\"gone\", W/{now}"), &one).expect(200);
        assert_eq!(server.get(path).expect(200).header("etag"), Some(seen.as_str()), "the same settings again");
        change(&server, "PUT", path, "*", &other).expect(200);
        change(&server, "PUT", path, "unquoted", &other).expect(400);
    }
    for new in ["/v1/topics/new", "/v1/queues/new"] {
        change(&server, "PUT", new, "*", &json!({})).expect(412);
        server.get(new).expect(404);
    }
}

#[test]
fn of_many_who_saw_the_same_settings_one_changes_them() {
    let server = Server::start();
    let seen = server.send("PUT", "/v1/topics/t", &json!({})).expect(200).header("etag").unwrap().to_owned();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let change = |owner: u32| {
            let (server, seen) = (&server, &seen);
            move || change(server, "PATCH", "/v1/topics/t", seen, &json!({ "owner": owner.to_string() })).status
        };
        let changes: Vec<_> = (0..8).map(|owner| scope.spawn(change(owner))).collect();
        changes.into_iter().map(|change| change.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 7, "{statuses:?}");
}

#[test]
fn the_command_line_changes_what_it_has_seen() {
    let server = Server::start();
    let seen =
        server.send("PUT", "/v1/queues/q", &json!({})).expect(200).json()["version"].as_str().unwrap().to_owned();
    let set = |lease: &str| run(command(&server).args(["queues", "set", "q", "--lease", lease, "--if-version", &seen]));
    let first = set("5s");
    assert_eq!((first.code, first.stdout.contains("5s, at most")), (Some(0), true), "{first:?}");
    let second = set("6s");
    assert_eq!((second.code, second.stderr.contains("someone has changed")), (Some(1), true), "{second:?}");
    let missing = run(command(&server).args(["topics", "set", "none", "--ttl", "5s", "--if-version", &seen]));
    assert_eq!((missing.code, missing.stderr.contains("none")), (Some(3), true), "{missing:?}");
}
