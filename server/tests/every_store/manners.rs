//! The manners of the command line and of HTTP answers: pipes that close, lines of JSON, words for people, commands
//! that are not there, certificates that nobody vouches for.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::stage::{ALMANAC, Server, command, ends, eventually, punctual, run};

/// Every line of an answer as an object.
#[track_caller]
fn objects(server: &Server, arguments: &[&str]) -> Vec<Value> {
    let ended = ends(server, 0, &[&["--json"], arguments].concat());
    let object = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {line}"));
        assert!(value.is_object(), "{arguments:?}: {line}");
        value
    };
    ended.stdout.lines().map(object).collect()
}

/// Runs a command whose reader goes after the first line, and gives its exit code and what it said about it.
fn read_one_line(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let server = Server::start();
    let tasks: Vec<Value> = (0..2_000).map(|id| json!({ "topic": "t", "id": id.to_string(), "delay": "1h" })).collect();
    server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    let all: &[&[&str]] = &[
        &["completions", "bash"],
        &["completions", "zsh"],
        &["config"],
        &["--help"],
        &["list", "--all"],
        &["list", "--all", "--json"],
        &["export", "-"],
    ];
    for arguments in all {
        let (code, said) = read_one_line(command(&server).args(*arguments));
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("panic") && !said.contains("error"), "{arguments:?}: {said}");
    }
}

#[test]
fn json_is_one_object_on_a_line_whatever_is_asked() {
    let server = Server::start_with(ALMANAC);
    let data = server.data();
    let data = data.to_str().unwrap();
    for id in ["1", "2"] {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": id, "delay": "1h", "body": { "n": 1 } })).expect(201);
    }
    for (lines, arguments) in [
        (1, vec!["config"]),
        (1, vec!["config", "--check"]),
        (1, vec!["health"]),
        (1, vec!["schedule", "t", "{\n  \"a\": 1\n}", "--id", "3", "--in", "1h"]),
        (1, vec!["get", "t", "3"]),
        (3, vec!["list", "--bodies"]),
        (1, vec!["topics"]),
        (1, vec!["topics", "show", "t"]),
        (1, vec!["queues", "set", "q", "--order", "arrival"]),
        (2, vec!["queues"]),
        (1, vec!["forecast"]),
        (1, vec!["top", "--once"]),
        (1, vec!["reschedule", "t", "1", "--in", "2h"]),
        (1, vec!["cancel", "t", "1"]),
        (1, vec!["history"]),
        (1, vec!["history", "replay", "t", "1"]),
        (1, vec!["dead", "purge", "--topic", "t", "--yes"]),
        (1, vec!["token", "create", "--name", "a", "--role", "admin", "--tokens", "tokens.toml"]),
        (1, vec!["token", "create", "--name", "b", "--role", "admin", "--tokens", "tokens.toml"]),
        (2, vec!["token", "list", "--tokens", "tokens.toml"]),
        (1, vec!["token", "revoke", "a", "--tokens", "tokens.toml"]),
        (1, vec!["store", "check", data]),
        (1, vec!["bench", "--tasks", "20", "--connections", "2"]),
    ] {
        assert_eq!(objects(&server, &arguments).len(), lines, "{arguments:?}");
    }
}

#[test]
fn answers_over_http_end_with_a_line_break() {
    let server = Server::start();
    let task = json!({ "topic": "t", "id": "1" });
    let answers = [
        server.post("/v1/tasks", &task),
        server.post("/v1/tasks/batch", &json!({ "tasks": [task] })),
        server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })),
        server.get("/v1/tasks/t/1"),
        server.get("/v1/tasks/t/2"),
        server.get("/v1/topics"),
        server.get("/v1/openapi.json"),
        server.get("/nowhere"),
        server.get("/metrics"),
        server.get("/"),
    ];
    for answer in answers {
        let text = answer.text();
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
    }
}

#[test]
fn what_is_wrong_with_a_request_names_the_field_in_the_words_of_json() {
    let server = Server::start();
    let detail = |method: &str, path: &str, body: Value| {
        server.send(method, path, &body).expect(422).json()["detail"].as_str().unwrap().to_owned()
    };
    let told = detail("POST", "/v1/tasks", json!({ "topic": "t", "retry": { "attempts": "many" } }));
    assert_eq!(told, "`retry.attempts`: this must be a number from 0 to 4294967295, not \"many\"");
    assert_eq!(detail("POST", "/v1/tasks/batch", json!([])), "this must be an object, not a list");
    assert_eq!(detail("POST", "/v1/tasks/batch", json!({ "tasks": 3 })), "`tasks`: this must be a list, not 3");
    let told = detail("PUT", "/v1/queues/q", json!({ "retry": { "backoff": { "first": [] } } }));
    assert!(told.starts_with("`retry.backoff.first`: this must be a duration"), "{told}");
    let results = server.post("/v1/tasks/batch", &json!({ "tasks": [{ "topic": "t", "priority": -1 }] })).json();
    let told = results["results"][0]["problem"]["detail"].as_str().unwrap().to_owned();
    assert_eq!(told, "`priority`: this must be a number from 0 to 4294967295, not -1");
    let told = server.get("/v1/tasks?limit=many").expect(422).json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(told, "the query is not valid: `limit`: this must be a number");
}

#[test]
fn a_patch_changes_what_it_names_and_nothing_else() {
    let server = Server::start();
    assert_eq!(
        server.send("PATCH", "/v1/topics/t", &json!({ "owner": "me" })).expect(404).json()["code"],
        "no-such-topic"
    );
    server.send("PUT", "/v1/topics/t", &json!({ "owner": "me", "history": "2h", "ttl": "5m" })).expect(200);
    let settings =
        server.send("PATCH", "/v1/topics/t", &json!({ "history": "3h", "ttl": null })).expect(200).json()["settings"]
            .clone();
    assert_eq!(
        (&settings["owner"], &settings["history"], &settings["ttl"]),
        (&json!("me"), &json!("3h"), &Value::Null)
    );
    server
        .send(
            "PUT",
            "/v1/queues/q",
            &json!({ "retry": { "attempts": 9, "backoff": { "first": "7s" } }, "order": "arrival" }),
        )
        .expect(200);
    let patch = json!({ "retry": { "backoff": { "longest": "1d" } } });
    let settings = server.send("PATCH", "/v1/queues/q", &patch).expect(200).json()["settings"].clone();
    assert_eq!(settings["retry"]["backoff"], json!({ "first": "7s", "longest": "1d" }));
    assert_eq!((&settings["retry"]["attempts"], &settings["order"]), (&json!(9), &json!("arrival")));
    for (bad, told) in [
        (json!({ "lease": "soon" }), "`lease`"),
        (json!({ "lease": null, "lend": 1 }), "unknown field `lend`"),
        (json!([]), "this must be an object"),
    ] {
        let problem = server.send("PATCH", "/v1/queues/q", &bad).expect(422).json();
        assert!(problem["detail"].as_str().unwrap().contains(told), "{problem}");
    }
    assert_eq!(server.get("/v1/queues/q").expect(200).json()["settings"], settings, "what is refused changes nothing");
}

#[test]
fn two_who_patch_at_the_same_time_both_have_their_way() {
    let server = Server::start();
    server.send("PUT", "/v1/topics/t", &json!({})).expect(200);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..60).for_each(|n| _ = server.send("PATCH", "/v1/topics/t", &json!({ "priority": n })).expect(200))
        });
        scope.spawn(|| {
            (1..60)
                .for_each(|n| _ = server.send("PATCH", "/v1/topics/t", &json!({ "ttl": format!("{n}s") })).expect(200))
        });
    });
    let settings = server.get("/v1/topics/t").expect(200).json()["settings"].clone();
    assert_eq!((&settings["priority"], &settings["ttl"]), (&json!(59), &json!("59s")));
}

#[test]
fn the_order_of_a_queue_is_set_and_shown() {
    let server = Server::start();
    let set = ends(&server, 0, &["queues", "set", "q", "--order", "arrival", "--attempts", "1"]);
    assert!(set.stdout.contains("by arrival") && set.stdout.contains("1 attempt,"), "{}", set.stdout);
    ends(&server, 0, &["queues", "set", "q", "--lease", "5s"]);
    assert_eq!(objects(&server, &["queues", "show", "q"])[0]["settings"]["order"], "arrival");
    assert!(ends(&server, 0, &["queues", "set", "q", "--order", "due"]).stdout.contains("by due time"));
}

#[test]
fn a_worker_says_that_its_queue_is_missing() {
    let server = Server::start();
    let ended = ends(&server, 0, &["work", "ordrs", "--drain", "--", "true"]);
    assert!(ended.stderr.contains("there is no queue ordrs yet"), "{}", ended.stderr);
}

#[test]
fn refusals_speak_of_options_and_commands_on_the_command_line() {
    let server = Server::start();
    let schedule = ["schedule", "t", "--id", "1", "--in", "1h"];
    ends(&server, 0, &schedule);
    let existed = ends(&server, 0, &schedule).stdout;
    assert!(existed.contains("--replace") && existed.contains("`punctual reschedule t 1`"), "{existed}");
    assert!(!existed.contains("\"replace\""), "{existed}");
    let full = ends(&server, 1, &["topics", "delete", "t", "--yes"]).stderr;
    assert!(full.contains("--force"), "{full}");
    let missing = ends(&server, 3, &["queues", "pause", "nowhere"]).stderr;
    assert!(missing.contains("`punctual queues`"), "{missing}");
    let secure = run(punctual().args(["--url", &format!("https://{}", server.address()), "health"])).stderr;
    assert!(secure.contains("write http://"), "{secure}");
}

#[test]
fn a_line_of_settings_that_cannot_be_read_names_its_field() {
    let server = Server::start();
    let file = server.directory().join("bad.jsonl");
    let line = r#"{"kind": "queue", "name": "q", "settings": {"retry": {"attempts": "many"}}}"#;
    std::fs::write(&file, format!("{line}\n")).unwrap();
    let told = ends(&server, 1, &["import", file.to_str().unwrap()]).stderr;
    assert!(told.contains("`settings.retry.attempts`: this must be a number"), "{told}");
}

#[test]
fn a_command_that_is_not_there_takes_nothing_and_burns_no_attempt() {
    let server = Server::start();
    server.send("PUT", "/v1/queues/q", &json!({ "retry": { "attempts": 1 } })).expect(200);
    server.post("/v1/tasks", &json!({ "topic": "q", "id": "1" })).expect(201);
    fs::write(server.directory().join("plain"), "no program").unwrap();
    for missing in ["no-such-command", "./nowhere", "./plain"] {
        let ended = ends(&server, 1, &["work", "q", "--", missing]);
        assert!(ended.stderr.contains("nothing was taken"), "{missing}: {}", ended.stderr);
    }
    assert_eq!(server.get("/v1/tasks/q/1").json()["attempts"], 0);
    // A shell says it by its exit code, after it was given the delivery: that goes back and has not failed.
    let ended = ends(&server, 1, &["work", "q", "--", "sh", "-c", "no-such-command"]);
    assert!(ended.stderr.contains("127") && ended.stderr.contains("given back"), "{}", ended.stderr);
    let task = server.get("/v1/tasks/q/1").json();
    assert_eq!((&task["failures"], &task["standing"]["state"]), (&json!(0), &json!("ready")), "{task}");
    ends(&server, 0, &["work", "q", "--limit", "1", "--", "true"]);
}

/// A certificate that was signed by itself, and its key. As `openssl req -x509` makes one, it says that it is an authority.
fn sign_by_itself(directory: &Path, names: &[&str], is_authority: bool) {
    let mut made = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    made.is_ca = if is_authority { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
    let key = KeyPair::generate().unwrap();
    fs::write(directory.join("cert.pem"), made.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
}

#[test]
fn a_server_whose_certificate_was_signed_by_itself_is_trusted_with_it_and_not_without() {
    for is_authority in [true, false] {
        let mut server = Server::prepare(&["--tls-certificate", "cert.pem", "--tls-key", "key.pem"], &[]);
        sign_by_itself(server.directory(), &["localhost"], is_authority);
        server.start_again();
        let port = server.address().rsplit(':').next().unwrap().to_owned();
        let health = |host: &str, more: &[&str]| {
            let url = format!("https://{host}:{port}");
            run(punctual().current_dir(server.directory()).args(["health", "--url", &url]).args(more))
        };
        let trusted = health("localhost", &["--ca", "cert.pem"]);
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
        let unknown = health("localhost", &[]);
        assert_eq!(unknown.code, Some(5), "{}", unknown.stderr);
        assert!(unknown.stderr.contains("--ca FILE"), "it says how: {}", unknown.stderr);
        let other_name = health("127.0.0.1", &["--ca", "cert.pem"]);
        assert_eq!(other_name.code, Some(5), "{}", other_name.stderr);
        assert!(other_name.stderr.contains("subject alternative name"), "{}", other_name.stderr);
        // Another one of the same name is not the one that was given.
        fs::rename(server.directory().join("cert.pem"), server.directory().join("own.pem")).unwrap();
        sign_by_itself(server.directory(), &["localhost"], is_authority);
        let another = health("localhost", &["--ca", "cert.pem"]);
        assert_eq!(another.code, Some(5), "{}", another.stderr);
        assert_eq!(health("localhost", &["--ca", "own.pem"]).code, Some(0));
        let plain = run(punctual().args(["--url", &format!("http://{}", server.address()), "health"]));
        assert!(plain.stderr.contains("then write https://"), "{}", plain.stderr);
    }
}

#[test]
fn history_and_dead_letters_are_listed_latest_first_and_by_filter() {
    let server = Server::start();
    for (id, key, ends) in
        [("1", "ann", "acknowledge"), ("2", "bob", "reject"), ("3", "ann", "acknowledge"), ("4", "ann", "reject")]
    {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": id, "key": key })).expect(201);
        let taken = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })).expect(200).json();
        let action = json!({ "do": ends, "lease": taken["deliveries"][0]["lease"] });
        server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
    }
    for (id, key) in [("5", "bob"), ("6", "ann")] {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": id, "key": key, "delay": "1h" })).expect(201);
        server.delete(&format!("/v1/tasks/t/{id}")).expect(200);
    }
    server.post("/v1/tasks", &json!({ "topic": "late", "id": "7", "ttl": "1ms", "at": 1 })).expect(201);
    server.send("PUT", "/v1/queues/late", &json!({})).expect(200);
    let ids = |list: &str, query: &str| {
        let (mut ids, mut cursor) = (String::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/{list}?limit=2{query}{cursor}")).expect(200).json();
            page["tasks"].as_array().unwrap().iter().for_each(|task| ids += task["id"].as_str().unwrap());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return ids,
            }
        }
    };
    eventually("it expires", || ids("dead", "&reason=expired") == "7");
    assert_eq!(ids("history", ""), "6531");
    assert_eq!(ids("history", "&first=earliest"), "1356");
    assert_eq!(ids("history", "&ending=done"), "31");
    assert_eq!(ids("history", "&ending=cancelled&key=bob"), "5");
    assert_eq!(ids("history", "&key=ann"), "631");
    assert_eq!(ids("history", "&key=ann&first=earliest"), "136");
    assert_eq!(ids("history", "&queue=t"), "31", "what was cancelled in time was in no queue");
    assert_eq!(ids("dead", "&topic=t"), "42");
    assert_eq!(ids("dead", "&reason=rejected&first=earliest"), "24");
    assert_eq!(ids("dead", "&queue=t&key=bob"), "2");
    for bad in ["dead?ending=done", "dead?reason=bad-luck", "history?reason=rejected", "history?ending=soon"] {
        server.get(&format!("/v1/{bad}")).expect(422);
    }
    for bad in ["tasks?key=ann", "keys/ann?first=latest", "keys/ann?ending=done"] {
        server.get(&format!("/v1/{bad}")).expect(422);
    }
    let told = |arguments: &[&str]| -> String {
        objects(&server, arguments).iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(told(&["history"]), "6531");
    assert_eq!(told(&["history", "--ending", "cancelled", "--key", "ann"]), "6");
    assert_eq!(told(&["history", "--earliest", "--limit", "1"]), "1");
    assert_eq!(told(&["dead", "--reason", "rejected", "--queue", "t"]), "42");
    ends(&server, 0, &["export", "all.jsonl", "--state", "finished", "--no-settings"]);
    assert_eq!(fs::read_to_string(server.directory().join("all.jsonl")).unwrap().lines().count(), 4);
}

#[test]
fn an_import_leaves_out_pauses_that_are_over() {
    let server = Server::start();
    let line = |name: &str, until: &str| {
        json!({ "kind": "queue", "name": name, "settings": { "paused": true, "paused_until": until } }).to_string()
    };
    let lines = [line("over", "2020-01-01T00:00:00Z"), line("on", "2100-01-01T00:00:00Z")];
    fs::write(server.directory().join("queues.jsonl"), lines.join("\n")).unwrap();
    ends(&server, 0, &["import", "queues.jsonl"]);
    for (queue, is_paused) in [("over", false), ("on", true)] {
        assert_eq!(server.get(&format!("/v1/queues/{queue}")).json()["settings"]["paused"], is_paused, "{queue}");
    }
}
