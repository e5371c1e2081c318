//! The command line with the addresses of several servers: it goes on with one that answers.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::time::{Duration, Instant};

use punctual_client::{Client, Error, Reserve, Task};
use punctual_engines::{Proxy, Way};
use serde_json::json;
use stage::{PATIENCE, Server, punctual, run};

const SOCKET: &[&str] = &["--listen", "127.0.0.1:0,unix:http"];

fn url(server: &Server) -> String {
    format!("http://{}", server.address())
}

fn port(server: &Server) -> u16 {
    server.address().rsplit(':').next().unwrap().parse().unwrap()
}

#[test]
fn a_command_asks_the_first_server_that_answers() {
    let (mut gone, server) = (Server::start(), Server::start_with(SOCKET));
    let there = format!("unix:{}", server.directory().join("http").display());
    let urls = format!("{}, {there}", url(&gone));
    gone.kill();
    let scheduled = run(punctual().args(["--url", &urls, "schedule", "mails", "hi", "--in", "1h", "--id", "7"]));
    assert_eq!(scheduled.code, Some(0), "{scheduled:?}");
    let found = run(punctual().env("PUNCTUAL_URL", &urls).args(["get", "mails", "7"]));
    assert_eq!(found.code, Some(0), "{found:?}");
}

#[test]
fn health_tells_of_each_server_and_one_is_enough() {
    let (mut gone, server) = (Server::start(), Server::start());
    let gone_url = url(&gone);
    gone.kill();
    let urls = format!("{gone_url},{}", url(&server));
    let health = run(punctual().args(["--url", &urls, "health"]));
    assert_eq!(health.code, Some(0), "{health:?}");
    assert!(health.stdout.contains(&format!("{} is ready", url(&server))), "{health:?}");
    assert!(health.stderr.contains(&format!("{gone_url} cannot be reached")), "{health:?}");
}

#[test]
fn a_failure_names_every_server_that_was_tried() {
    let (mut one, mut other) = (Server::start(), Server::start());
    let (one_url, other_url) = (url(&one), url(&other));
    one.kill();
    other.kill();
    for command in [&["topics"][..], &["events"], &["health"]] {
        let failed = run(punctual().args(["--url", &format!("{one_url},{other_url}")]).args(command));
        assert_eq!(failed.code, Some(5), "{failed:?}");
        assert!(failed.stderr.contains(&one_url) && failed.stderr.contains(&other_url), "{failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_leaves_a_server_behind_a_hanging_network_and_returns_to_it() {
    let (first, second) = (Server::start(), Server::start());
    let proxy = Proxy::to(port(&first));
    let client = Client::builder(&format!("http://127.0.0.1:{}", proxy.port())).or(&url(&second)).build().unwrap();
    let schedule = async |id: &str| client.schedule(Task::new("t").id(id).after(Duration::from_secs(3_600))).await;
    let has = |server: &Server, id: &str| server.get(&format!("/v1/tasks/t/{id}")).status == 200;
    schedule("before").await.unwrap();
    assert!(has(&first, "before"));

    proxy.hang();
    let begun = Instant::now();
    schedule("meanwhile").await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(has(&second, "meanwhile"));

    proxy.pass();
    let begun = Instant::now();
    for round in 0.. {
        let id = format!("after-{round}");
        schedule(&id).await.unwrap();
        if has(&first, &id) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "it is asked again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_is_cut_off_is_not_carried_out_by_another_server_unless_that_is_safe() {
    let (first, second) = (Server::start(), Server::start());
    for server in [&first, &second] {
        assert_eq!(server.post("/v1/tasks", &json!({"topic": "t", "id": "ready", "text": "x"})).status, 201);
    }
    let proxy = Proxy::to(port(&first));
    let client = || Client::builder(&format!("http://127.0.0.1:{}", proxy.port())).or(&url(&second)).build().unwrap();
    proxy.cut_after(Way::Back, 1);
    let error = client().reserve(Reserve { queues: vec!["t".into()], ..Reserve::default() }).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { sent: true, .. }) && error.may_have_happened(), "{error}");
    let stands = second.get("/v1/tasks/t/ready");
    assert_eq!(stands.json()["standing"]["state"], "ready", "nobody asked the second: {stands:?}");

    proxy.cut_after(Way::Back, 1);
    client().schedule(Task::new("t").id("twice").after(Duration::from_secs(3_600))).await.unwrap();
    for server in [&first, &second] {
        assert_eq!(server.get("/v1/tasks/t/twice").status, 200, "the same task under the same id");
    }
}
