//! Tokens over HTTP, through the real binary: who may do what, and who may not.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod acts;
mod roles;
mod scope;
#[path = "../stage/mod.rs"]
mod stage;
mod unseen;

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use std::time::Duration;

use punctual_wire::Time;
use serde_json::{Value, json};
use stage::{Server, beside, eventually, punctual, run};

/// Makes a token for a server that may be running or not.
fn token(server: &Server, name: &str, roles: &[&str], topics: &[&str]) -> String {
    let mut command = beside(server);
    command.args(["token", "create", "--name", name]);
    roles.iter().for_each(|role| _ = command.args(["--role", role]));
    topics.iter().for_each(|topic| _ = command.args(["--topic", topic]));
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let secret = ended.stdout.split_whitespace().find(|word| word.starts_with("pct_"));
    secret.unwrap_or_else(|| panic!("no secret in {:?}", ended.stdout)).to_owned()
}

/// The status and code of a request under a token.
fn ask(server: &mut Server, token: &str, method: &str, path: &str, body: Option<Value>) -> (u16, String) {
    server.token = Some(token.to_owned());
    let answer = server.connect().request(method, path, body.as_ref());
    server.token = None;
    let code = if answer.status < 400 { String::new() } else { answer.json()["code"].as_str().unwrap().to_owned() };
    (answer.status, code)
}

#[test]
fn without_a_known_token_nobody_gets_in() {
    let mut server = Server::prepare(&[], &[]);
    token(&server, "admin", &["admin"], &["*"]);
    server.start_again();
    for path in ["/v1/topics", "/v1/stats", "/metrics", "/v1/events", "/v1/tasks/a/b"] {
        let answer = server.get(path).expect(401);
        assert_eq!(answer.json()["code"], "unauthorized");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"punctual\""));
    }
    for wrong in ["", "nonsense", "pct_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert_eq!(ask(&mut server, wrong, "GET", "/v1/topics", None), (401, "unauthorized".into()));
    }
    for open in ["/healthz", "/readyz", "/v1/openapi.json"] {
        server.get(open).expect(200);
    }
}

#[test]
fn a_token_may_do_what_its_roles_and_patterns_say_and_nothing_else() {
    let mut server = Server::prepare(&[], &[]);
    let admin = token(&server, "admin", &["admin"], &["*"]);
    let producer = token(&server, "shop", &["produce"], &["orders*"]);
    let consumer = token(&server, "worker", &["consume"], &["orders*"]);
    let operator = token(&server, "ops", &["operate"], &["orders*"]);
    server.start_again();
    let forbidden = (403, "forbidden".to_owned());
    let schedule = |topic: &str| Some(json!({ "topic": topic, "id": "1" }));
    assert_eq!(ask(&mut server, &producer, "POST", "/v1/tasks", schedule("orders")).0, 201);
    assert_eq!(ask(&mut server, &producer, "POST", "/v1/tasks", schedule("coupons")), forbidden);
    assert_eq!(ask(&mut server, &consumer, "POST", "/v1/tasks", schedule("orders")), forbidden);
    let reserve = |queue: &str| Some(json!({ "queues": [queue] }));
    assert_eq!(ask(&mut server, &consumer, "POST", "/v1/reserve", reserve("orders")).0, 200);
    assert_eq!(ask(&mut server, &consumer, "POST", "/v1/reserve", reserve("coupons")), forbidden);
    assert_eq!(ask(&mut server, &producer, "POST", "/v1/reserve", reserve("orders")), forbidden);
    assert_eq!(ask(&mut server, &producer, "POST", "/v1/leases", Some(json!({ "actions": [] }))), forbidden);
    assert_eq!(ask(&mut server, &producer, "GET", "/v1/dead?topic=orders", None), forbidden);
    assert_eq!(ask(&mut server, &operator, "GET", "/v1/dead?topic=orders", None).0, 200);
    assert_eq!(ask(&mut server, &operator, "POST", "/v1/topics/orders/pause", None).0, 200);
    assert_eq!(ask(&mut server, &operator, "PUT", "/v1/topics/orders", Some(json!({}))), forbidden);
    assert_eq!(ask(&mut server, &operator, "DELETE", "/v1/topics/orders?force=true", None), forbidden);
    assert_eq!(ask(&mut server, &admin, "DELETE", "/v1/topics/orders?force=true", None).0, 200);
    server.token = Some(producer);
    let batch = json!({ "tasks": [{ "topic": "orders", "delay": "1h" }, { "topic": "coupons" }] });
    let results = server.post("/v1/tasks/batch", &batch).expect(200).json()["results"].clone();
    assert_eq!((&results[0]["outcome"], &results[1]["problem"]["code"]), (&json!("created"), &json!("forbidden")));
}

#[test]
fn a_number_says_nothing_about_topics_of_others() {
    let mut server = Server::prepare(&[], &[]);
    let admin = token(&server, "admin", &["admin"], &["*"]);
    let shop = token(&server, "shop", &["produce"], &["orders*"]);
    server.start_again();
    server.token = Some(admin);
    let number = |topic: &str| {
        server.post("/v1/tasks", &json!({ "topic": topic, "id": "1", "delay": "1h" })).expect(201);
        server.get(&format!("/v1/tasks/{topic}/1")).expect(200).json()["number"].to_string()
    };
    let (own, others) = (format!("/v1/numbers/{}", number("orders")), format!("/v1/numbers/{}", number("coupons")));
    assert_eq!(ask(&mut server, &shop, "GET", &own, None).0, 200);
    let missing = (404, "no-such-task".to_owned());
    assert_eq!(ask(&mut server, &shop, "GET", &others, None), missing);
    assert_eq!(ask(&mut server, &shop, "GET", "/v1/numbers/999999999", None), missing);
}

#[test]
fn each_operator_action_leaves_an_audit_line() {
    let mut server = Server::prepare(&["--log-format", "json"], &[]);
    let operator = token(&server, "night-shift", &["operate", "produce"], &["*"]);
    server.start_again();
    server.token = Some(operator);
    server.post("/v1/tasks", &json!({ "topic": "audited", "delay": "1h" })).expect(201);
    server.connect().request("POST", "/v1/topics/audited/pause", None).expect(200);
    let line = server.wait_for("pause-topic");
    let line: Value = serde_json::from_str(&line).unwrap();
    let text = line.to_string();
    for word in ["punctual::audit", "night-shift", "audited"] {
        assert!(text.contains(word), "{text}");
    }
    assert!(!server.output().contains("pct_"), "no secret is logged");
}

#[test]
fn who_hangs_up_is_in_the_audit_all_the_same() {
    let mut server = Server::prepare(&["--log-format", "json"], &[]);
    server.token = Some(token(&server, "in-a-hurry", &["admin"], &["*"]));
    server.start_again();
    let topics: Vec<String> = (0..40).map(|number| format!("left-{number}")).collect();
    for topic in &topics {
        server.send("PUT", &format!("/v1/topics/{topic}"), &json!({})).expect(200);
    }
    for topic in &topics {
        let mut connection = server.connect();
        connection.send("DELETE", &format!("/v1/topics/{topic}?force=true"), None);
        drop(connection);
    }
    // What was heard of them is done by then.
    std::thread::sleep(Duration::from_millis(500));
    let left = server.get("/v1/topics").expect(200).json()["topics"].as_array().unwrap().len();
    assert!(left < topics.len(), "some of them were heard");
    eventually("each deletion is in the audit", || {
        let output = server.output();
        let deletions = output.lines().filter(|line| line.contains("delete-topic") && line.contains("in-a-hurry"));
        deletions.count() == topics.len() - left
    });
}

#[test]
fn a_revoked_token_is_out_and_a_new_one_is_in_without_a_restart() {
    let mut server = Server::prepare(&[], &[]);
    let first = token(&server, "first", &["admin"], &["*"]);
    server.start_again();
    assert_eq!(ask(&mut server, &first, "GET", "/v1/topics", None).0, 200);
    let second = token(&server, "second", &["admin"], &["*"]);
    let revoked = run(beside(&server).args(["token", "revoke", "first"]));
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    server.signal("HUP");
    eventually("the first is out", || {
        server.token = Some(first.clone());
        server.get("/v1/topics").status == 401
    });
    assert_eq!(ask(&mut server, &second, "GET", "/v1/topics", None).0, 200);
}

#[test]
fn a_token_that_is_made_while_the_server_starts_counts() {
    let mut server = Server::prepare(&["--archive-directory", "archive"], &[]);
    let archive = server.directory().join("archive");
    fs::create_dir(&archive).unwrap();
    // It waits for this for half a second, between reading the tokens and listening.
    let lock = File::create(archive.join("archive.lock")).unwrap();
    lock.lock().unwrap();
    server.spawn();
    eventually("it has read the tokens", || server.data().join("almanac").exists());
    server.signal("STOP");
    let secret = token(&server, "admin", &["admin"], &["*"]);
    drop(lock);
    server.signal("CONT");
    let address = server.wait_for("listening on http://").replace("listening on http://", "");
    let status =
        |token: Option<String>| stage::Connection::open(&address, token).request("GET", "/v1/topics", None).status;
    assert_eq!(status(None), 401, "from the first request on");
    assert_eq!(status(Some(secret)), 200);
}

#[test]
fn a_file_of_tokens_that_was_named_must_be_there() {
    let mut server = Server::prepare(&["--access-tokens", "etc/deep/tokens.toml"], &[]);
    server.spawn();
    assert_eq!(server.wait().code(), Some(2));
    let advice = "punctual token create --name admin --role admin --tokens etc/deep/tokens.toml";
    server.wait_for(advice);
    assert!(!server.data().exists(), "nothing was opened");
    let made = run(punctual().args(advice.split(' ').skip(1)).current_dir(server.directory()));
    assert_eq!(made.code, Some(0), "{made:?}");
    server.start_again();
    server.get("/v1/topics").expect(401);
    server.token = Some(made.stdout.trim().to_owned());
    server.get("/v1/topics").expect(200);
    fs::remove_dir_all(server.directory().join("etc")).unwrap();
    server.wait_for("the tokens are gone");
    server.get("/v1/topics").expect(200);
    server.token = None;
    server.get("/v1/topics").expect(401);
}

#[test]
fn a_file_of_tokens_that_is_a_link_to_nothing_starts_nothing() {
    let mut server = Server::prepare(&[], &[]);
    fs::create_dir(server.data()).unwrap();
    symlink("nowhere.toml", server.data().join("tokens.toml")).unwrap();
    server.spawn();
    assert_eq!(server.wait().code(), Some(2));
    server.wait_for("it is a link to a file that does not exist");
}

#[test]
fn who_asks_is_told_who_they_are() {
    let mut server = Server::start();
    let me = server.get("/v1/me").expect(200).json();
    assert_eq!((&me["roles"], &me["topics"]), (&json!(["admin"]), &json!(["*"])));
    assert_eq!(me["version"], env!("CARGO_PKG_VERSION"));
    let now: Time = serde_json::from_value(me["now"].clone()).unwrap();
    assert!(now.0.abs_diff(Time::now().0) < 60_000, "{me}");

    server.token = Some(token(&server, "shop", &["produce", "view"], &["orders*", "mails"]));
    server.signal("HUP");
    eventually("tokens are in force", || server.connect().request("GET", "/v1/me", None).json()["name"] == "shop");
    let me = server.get("/v1/me").expect(200).json();
    assert_eq!((&me["roles"], &me["topics"]), (&json!(["produce", "view"]), &json!(["orders*", "mails"])));
    let url = format!("http://{}", server.address());
    let told = run(punctual().args(["--url", &url, "--token", server.token.as_ref().unwrap(), "me"]));
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.starts_with("token   shop\nroles   produce, view\ntopics  orders*, mails\n"), "{told:?}");
    server.token = None;
    assert_eq!(server.get("/v1/me").expect(401).json()["code"], "unauthorized");
}
