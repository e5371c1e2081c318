//! A tube is a topic and its queue: jobs and tasks are one thing, whichever door they came through.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::client::Client;
use crate::peer;
use crate::stage::{self, Server, beside, eventually, punctual, run};

/// The only task of a topic that waits or is held.
fn task(server: &Server, topic: &str) -> serde_json::Value {
    let tasks = server.get(&format!("/v1/tasks?topic={topic}&bodies=true")).expect(200).json()["tasks"].clone();
    assert_eq!(tasks.as_array().unwrap().len(), 1, "{tasks}");
    tasks[0].clone()
}

#[test]
fn a_task_that_was_scheduled_over_http_is_a_job() {
    let server = peer::punctual();
    server.post("/v1/tasks", &json!({ "topic": "mails", "id": "m-1", "text": "hi", "priority": 7 })).expect(201);
    let mut client = Client::of(&server);
    client.say("watch mails");
    let reserved = client.say("reserve-with-timeout 5");
    let id: u64 = reserved.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(reserved, format!("RESERVED {id} 2\r\nhi"));
    assert_eq!(client.line(&format!("stats-job {id}"), "pri"), "7");
    assert_eq!(client.line(&format!("stats-job {id}"), "ttr"), "30", "its queue's lease");
    let standing = task(&server, "mails")["standing"].clone();
    assert_eq!(standing["state"], "leased");
    assert!(standing["holder"].as_str().unwrap().starts_with("beanstalk/"), "{standing}");
    assert_eq!(client.say(&format!("delete {id}")), "DELETED");
    let done = server.get("/v1/tasks/mails/m-1").expect(200).json();
    assert_eq!(done["standing"]["ending"], "done");
    assert_eq!(client.say(&format!("peek {id}")), "NOT_FOUND");
}

#[test]
fn a_job_is_seen_moved_and_cancelled_over_http_and_by_the_command_line() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    client.say("use mails");
    let id = client.put(1_000, 60, "hello");
    let seen = task(&server, "mails");
    assert_eq!((seen["base64"].as_str(), seen["priority"].as_u64()), (Some("aGVsbG8="), Some(5)));
    let path = format!("/v1/tasks/mails/{}", seen["id"].as_str().unwrap());
    server.send("PATCH", &path, &json!({ "delay": "5000s" })).expect(200);
    let left: u64 = client.line(&format!("stats-job {id}"), "time-left").parse().unwrap();
    assert!((4_000..=5_000).contains(&left), "{left}");

    let url = format!("http://{}", server.address());
    let task = seen["id"].as_str().unwrap();
    let cancelled = run(punctual().args(["--url", &url, "cancel", "mails", task]));
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_eq!(client.say(&format!("delete {id}")), "NOT_FOUND");
    assert_eq!(client.line("stats-tube mails", "current-jobs-delayed"), "0");
}

#[test]
fn buried_is_a_dead_letter_and_a_replay_is_a_kick() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    client.say("watch mails");
    client.say("use mails");
    let id = client.put(0, 60, "x");
    client.say("reserve");
    assert_eq!(client.say(&format!("bury {id} 3")), "BURIED");
    let letters = server.get("/v1/dead?queue=mails").expect(200).json()["tasks"].clone();
    assert_eq!(letters[0]["standing"]["reason"], "rejected");
    let path = format!("/v1/tasks/mails/{}/replay", letters[0]["id"].as_str().unwrap());
    server.connect().request("POST", &path, None).expect(200);
    assert_eq!(client.say("reserve-with-timeout 5"), format!("RESERVED {id} 1\r\nx"));
    assert_eq!(client.line(&format!("stats-job {id}"), "kicks"), "1");
    assert_eq!(client.line(&format!("stats-job {id}"), "reserves"), "2");
}

#[test]
fn a_kick_into_a_queue_that_is_full_says_how_many_are_ready() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    for _ in 0..20 {
        let id = client.put(0, 60, "x");
        client.say("reserve");
        assert_eq!(client.say(&format!("bury {id} 3")), "BURIED");
    }
    let small = json!({ "max_length": 5, "overflow": "drop_oldest" });
    server.send("PUT", "/v1/queues/default", &small).expect(200);
    assert_eq!(client.say("kick 1000"), "KICKED 5");
    let count = |client: &mut Client, kind: &str| client.line("stats-tube default", &format!("current-jobs-{kind}"));
    assert_eq!((count(&mut client, "ready"), count(&mut client, "buried")), ("5".into(), "15".into()));
    assert_eq!(client.say("kick 1000"), "KICKED 0");
}

#[test]
fn a_queue_that_is_paused_elsewhere_hands_nothing_out_here_and_the_other_way_round() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    client.put(0, 60, "x");
    server.post("/v1/queues/default/pause", &json!({})).expect(200);
    assert_eq!(client.say("reserve-with-timeout 0"), "TIMED_OUT");
    assert_eq!(client.line("stats-tube default", "pause-time-left"), "4294967295");
    assert_eq!(client.say("pause-tube default 0"), "PAUSED");
    assert!(client.say("reserve-with-timeout 0").starts_with("RESERVED"));
    assert_eq!(client.say("pause-tube default 600"), "PAUSED");
    let queue = server.get("/v1/queues/default").expect(200).json();
    assert!(queue["settings"]["paused_until"].is_string(), "{queue}");
}

#[test]
fn one_put_into_a_topic_that_feeds_two_queues_is_two_jobs() {
    let server = peer::punctual();
    for queue in ["post", "push"] {
        server.send("PUT", &format!("/v1/queues/{queue}"), &json!({})).expect(200);
    }
    let feeds = json!({ "feeds": [{ "queue": "post" }, { "queue": "push" }] });
    server.send("PUT", "/v1/topics/news", &feeds).expect(200);
    let mut client = Client::of(&server);
    client.say("use news");
    let task = client.put(0, 60, "extra");
    let mut jobs = Vec::new();
    for tube in ["post", "push"] {
        let mut client = Client::of(&server);
        client.say(&format!("watch {tube}"));
        let reserved = client.say("reserve-with-timeout 5");
        assert!(reserved.ends_with(" 5\r\nextra"), "{reserved}");
        let id: u64 = reserved.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(client.line(&format!("stats-job {id}"), "tube"), tube);
        assert_eq!(client.say(&format!("delete {id}")), "DELETED");
        jobs.push(id);
    }
    assert!(jobs[0] != jobs[1] && !jobs.contains(&task), "{jobs:?} of {task}");
}

#[test]
fn a_paused_topic_a_rate_limit_and_a_full_queue_have_words_in_the_protocol() {
    let server = peer::punctual();
    server.send("PUT", "/v1/topics/shut", &json!({ "paused": true })).expect(200);
    server.send("PUT", "/v1/topics/slow", &json!({ "rate": { "per_second": 1, "burst": 1 } })).expect(200);
    server.send("PUT", "/v1/queues/full", &json!({ "max_length": 1 })).expect(200);
    let mut client = Client::of(&server);
    let mut put = |tube: &str| {
        client.say(&format!("use {tube}"));
        client.say("put 0 0 1 1\r\nx")
    };
    assert_eq!(put("shut"), "DRAINING");
    assert!(put("slow").starts_with("INSERTED"));
    assert_eq!(put("slow"), "OUT_OF_MEMORY");
    assert!(put("full").starts_with("INSERTED"));
    eventually("the queue is full", || put("full") == "OUT_OF_MEMORY");
}

#[test]
fn where_tubes_do_not_come_to_be_by_being_used_an_unknown_one_is_not_found() {
    let server = Server::start_with(&["--beanstalk-listen", "127.0.0.1:0", "--tasks-create-on-use=false"]);
    let mut client = Client::of(&server);
    assert_eq!(client.say("put 0 0 1 1\r\nx"), "NOT_FOUND");
    server.send("PUT", "/v1/queues/default", &json!({})).expect(200);
    server.send("PUT", "/v1/topics/default", &json!({})).expect(200);
    assert!(client.say("put 0 0 1 1\r\nx").starts_with("INSERTED"));
    assert!(client.say("reserve-with-timeout 5").starts_with("RESERVED"));
}

#[test]
fn with_several_shards_ids_lead_to_their_jobs() {
    let arguments = ["--beanstalk-listen", "127.0.0.1:0", "--node-shards", "3"];
    let mut server = Server::start_with(&arguments);
    let mut client = Client::of(&server);
    let ids: Vec<u64> = (0..20).map(|number| client.put(1_000, 60, &number.to_string())).collect();
    server.crash();
    let mut client = Client::of(&server);
    for (number, id) in ids.iter().enumerate() {
        let body = number.to_string();
        assert_eq!(client.say(&format!("peek {id}")), format!("FOUND {id} {}\r\n{body}", body.len()));
        assert_eq!(client.say(&format!("delete {id}")), "DELETED");
    }
    assert_eq!(client.line("stats-tube default", "current-jobs-delayed"), "0");
}

#[test]
fn an_address_that_others_reach_or_tokens_need_a_second_word() {
    let server = Server::prepare(&["--beanstalk-listen", "0.0.0.0:0"], &[]);
    let refused = run(&mut server.command());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--beanstalk-open"), "{refused:?}");
    let opened = Server::start_with(&["--beanstalk-listen", "0.0.0.0:0", "--beanstalk-open"]);
    assert!(opened.beanstalk_address().starts_with("0.0.0.0:"));
}

#[test]
fn the_door_closes_when_tokens_are_made_unless_it_is_open_to_all() {
    for is_open_to_all in [false, true] {
        let mut arguments = vec!["--beanstalk-listen", "127.0.0.1:0"];
        arguments.extend(is_open_to_all.then_some("--beanstalk-open"));
        let mut server = Server::start_with(&arguments);
        let (mut holding, mut waiting) = (Client::of(&server), Client::of(&server));
        holding.put(0, 600, "held");
        assert!(holding.say("reserve-with-timeout 5").starts_with("RESERVED"));
        waiting.say("watch empty");
        waiting.send("reserve");
        let make = ["token", "create", "--name", "admin", "--role", "admin"];
        let made = run(beside(&server).args(make));
        assert_eq!(made.code, Some(0), "{made:?}");
        server.token = Some(made.stdout.trim().to_owned());
        server.signal("HUP");
        server.wait_for("tokens reloaded");
        if is_open_to_all {
            assert_eq!(holding.say("use other"), "USING other");
            continue;
        }
        server.wait_for("tokens are in force now, and the beanstalk protocol has none: its door is closed");
        assert_eq!(waiting.try_hear(), Err("<closed>".into()), "it is hung up on");
        holding.send("use other");
        assert_eq!(holding.try_hear(), Err("<closed>".into()));
        eventually("nobody is let in", || TcpStream::connect(server.beanstalk_address()).is_err());
        eventually("what was held is ready again", || task(&server, "default")["standing"]["state"] == "ready");
        assert!(server.stop().success());
    }
}

#[test]
fn a_connection_that_leaves_answers_unread_does_nothing_after_the_door_closed() {
    let mut server = Server::start_with(&["--beanstalk-listen", "127.0.0.1:0"]);
    let id = Client::of(&server).put(0, 600, &"x".repeat(1_000_000));
    // More answers than fit between the two, and puts that come behind them.
    let asked = [format!("peek {id}\r\n").repeat(100), "put 0 0 600 4\r\nlate\r\n".repeat(500)].concat();
    let unread = |reserve: &str| {
        let mut stream = TcpStream::connect(server.beanstalk_address()).unwrap();
        stream.set_read_timeout(Some(stage::PATIENCE)).unwrap();
        stream.write_all(format!("{reserve}use unheard\r\n{asked}").as_bytes()).unwrap();
        stream
    };
    let unread = ["reserve\r\n", "", ""].map(unread);
    eventually("it is held", || task(&server, "default")["standing"]["state"] == "leased");
    let make = ["token", "create", "--name", "admin", "--role", "admin"];
    let made = run(beside(&server).args(make));
    server.token = Some(made.stdout.trim().to_owned());
    server.signal("HUP");
    server.wait_for("its door is closed");
    // Two read on at once, and one never does.
    for mut stream in unread.iter().skip(1) {
        // It is hung up on, maybe with a reset since it said more than was heard.
        _ = stream.read_to_end(&mut Vec::new());
    }
    eventually("what was held is ready again", || task(&server, "default")["standing"]["state"] == "ready");
    let topics = server.get("/v1/topics").expect(200).text();
    assert!(!topics.contains("unheard"), "{topics}");
    assert!(server.stop().success());
}
