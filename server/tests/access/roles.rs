//! What each role may do: the table in `docs/access.md`, asked for line by line.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stage::Server;
use crate::token;

const ROLES: [&str; 5] = ["produce", "consume", "view", "operate", "admin"];

/// Who may do what, by method and path: without a token, and by role.
fn table() -> BTreeMap<String, [bool; 6]> {
    let page = include_str!("../../../docs/access.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (request, cells) = row.split_once("` |").unwrap();
        let cells: Vec<bool> = cells.trim_end_matches('|').split('|').map(|cell| cell.trim() == "✓").collect();
        (request.to_owned(), cells.try_into().unwrap_or_else(|cells| panic!("{request}: {cells:?}")))
    })
    .collect()
}

/// Every request that the server describes, and the two that it does not.
fn requests(server: &Server) -> Vec<String> {
    let document = server.get("/v1/openapi.json").expect(200).json();
    let operations = document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
        methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    operations.chain(["GET /".into(), "GET /v1/openapi.json".into()]).collect()
}

/// What makes a request one that only lacks the right.
fn body(request: &str) -> Option<Value> {
    Some(match request {
        "POST /v1/tasks" => json!({ "topic": "t", "delay": "1h" }),
        "POST /v1/tasks/batch" => json!({ "tasks": [{ "topic": "t", "delay": "1h" }] }),
        "PATCH /v1/tasks/{topic}/{id}" | "PATCH /v1/keys/{key}" => json!({ "by": "1s" }),
        "POST /v1/reserve" => json!({ "queues": ["t"] }),
        "POST /v1/leases" => json!({ "actions": [] }),
        "PUT /v1/topics/{topic}" | "PUT /v1/queues/{queue}" => json!({}),
        "PATCH /v1/topics/{topic}" | "PATCH /v1/queues/{queue}" => json!({}),
        "POST /v1/dead/replay" | "POST /v1/dead/purge" | "POST /v1/history/replay" => json!({ "topic": "t" }),
        "POST /v1/sweeps" => json!({ "select": { "topic": "t" }, "do": "cancel", "dry_run": true }),
        // Nothing is moved there.
        "POST /v1/store/move" => json!({ "to": "memory" }),
        "PUT /v1/shards/{shard}/pin" => json!({ "node": "node-1" }),
        _ => return None,
    })
}

/// The status of a request; of a batch, that of its only part.
fn status(server: &Server, request: &str) -> u16 {
    let (method, path) = request.split_once(' ').unwrap();
    let path = path.replace("{number}", "1");
    let path: String = path.split('/').map(filled).collect::<Vec<_>>().join("/");
    let path = if request == "GET /v1/find" { path + "?q=t" } else { path };
    let mut connection = server.connect();
    connection.send(method, &path, body(request).as_ref());
    if matches!(request, "GET /v1/events" | "GET /v1/pulse") {
        return connection.receive_head().unwrap().0;
    }
    let answer = connection.receive();
    match request {
        "POST /v1/tasks/batch" if answer.status == 200 => {
            answer.json()["results"][0]["problem"]["status"].as_u64().map_or(200, |status| status as u16)
        }
        _ => answer.status,
    }
}

/// A part of a path, with something in it for what is left open.
fn filled(part: &str) -> &str {
    match part {
        "{shard}" => "0",
        part if part.starts_with('{') => "t",
        part => part,
    }
}

#[test]
fn each_role_may_do_what_the_table_says_and_nothing_else() {
    let mut server = Server::prepare(&[], &[]);
    let tokens = ROLES.map(|role| token(&server, role, &[role], &["*"]));
    server.start_again();
    let mut table = table();
    for request in requests(&server) {
        let line = table.remove(&request).unwrap_or_else(|| panic!("docs/access.md has no line for `{request}`"));
        server.token = None;
        assert_eq!(status(&server, &request) != 401, line[0], "{request} without a token");
        for ((role, token), may) in ROLES.iter().zip(&tokens).zip(&line[1..]) {
            server.token = Some(token.clone());
            let status = status(&server, &request);
            assert_eq!(status != 403, *may, "{request} by {role}: {status}");
            assert!(status < 500 && status != 401 && status != 400 && status != 405, "{request} by {role}: {status}");
        }
    }
    assert!(table.is_empty(), "docs/access.md has lines for what is not there: {table:?}");
}
