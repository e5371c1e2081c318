//! A client of several servers: whom it asks, when it goes on with another, and when it must not.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stub;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use punctual_client::{Client, Error, Job, Reserve, Task, Worker};
use serde_json::{Value, json};
use stub::{Asked, Reply, Stub, problem};

/// A server that is left because it is silent is left within this, on a busy machine too.
const LEFT: Duration = Duration::from_secs(9);

fn scheduled(asked: &Asked) -> Reply {
    Reply::Json(201, json!({"topic": asked.body["topic"], "id": asked.body["id"], "outcome": "created", "due": 5}))
}

/// A server that takes every task.
async fn taking() -> Stub {
    Stub::start(|_, asked| scheduled(asked)).await
}

/// An address at which nobody listens.
async fn nobody() -> String {
    format!("http://{}", taking().await.end().await)
}

fn client(urls: &[&str]) -> Client {
    Client::new(&urls.join(",")).unwrap()
}

async fn schedule(client: &Client) -> Result<(), Error> {
    client.schedule(Task::new("orders").text("x")).await.map(|_| ())
}

fn reserve() -> Reserve {
    Reserve { queues: vec!["q".into()], ..Reserve::default() }
}

#[tokio::test]
async fn the_first_is_asked_as_long_as_it_answers() {
    let (first, second) = (taking().await, taking().await);
    let client = Client::builder(&first.url).or(&second.url).build().unwrap();
    for _ in 0..5 {
        schedule(&client).await.unwrap();
    }
    assert_eq!((first.asked().len(), second.asked().len()), (5, 0));
}

#[tokio::test]
async fn whoever_cannot_be_reached_is_passed_over_whatever_is_asked() {
    let (gone, second) = (nobody().await, Stub::start(|_, _| Reply::Json(200, json!({"deliveries": []}))).await);
    let client = client(&[&gone, "unix:/nowhere/at/all", &second.url]);
    let begun = Instant::now();
    assert!(client.reserve(reserve()).await.unwrap().is_empty());
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(second.asked().len(), 1);
}

#[tokio::test]
async fn whoever_has_done_nothing_is_passed_over_without_a_wait() {
    for code in ["stopping", "unavailable", "overloaded"] {
        let first = Stub::start(move |_, _| {
            let mut body = problem(503, code);
            body["retry_after"] = json!(60_000);
            Reply::Json(503, body)
        });
        let first = first.await;
        let second = Stub::start(|_, _| Reply::Json(200, json!({"deliveries": []}))).await;
        assert!(client(&[&first.url, &second.url]).reserve(reserve()).await.unwrap().is_empty(), "{code}");
        assert_eq!((first.asked().len(), second.asked().len()), (1, 1), "{code}");
    }
}

#[tokio::test]
async fn a_rate_that_is_used_up_is_so_at_every_node() {
    let first = Stub::start(|before, asked| match before {
        0 => Reply::Json(429, problem(429, "rate-limited")),
        _ => scheduled(asked),
    });
    let (first, second) = (first.await, taking().await);
    schedule(&client(&[&first.url, &second.url])).await.unwrap();
    assert_eq!((first.asked().len(), second.asked().len()), (2, 0));
}

#[tokio::test]
async fn what_may_have_been_carried_out_goes_elsewhere_only_if_twice_is_once() {
    let first = Stub::start(|_, _| Reply::Break).await;
    let second = taking().await;
    let error = client(&[&first.url, &second.url]).reserve(reserve()).await.unwrap_err();
    assert!(error.may_have_happened(), "{error}");
    assert_eq!((first.asked().len(), second.asked().len()), (1, 0));
    schedule(&client(&[&first.url, &second.url])).await.unwrap();
    let (one, other) = (first.asked().pop().unwrap(), second.asked().pop().unwrap());
    assert_eq!(one.body, other.body, "it is the same task under the same id");
}

#[tokio::test]
async fn whoever_hangs_is_left_and_not_asked_again() {
    let (first, second) = (taking().await, taking().await);
    let client = client(&[&first.url, &second.url]);
    schedule(&client).await.unwrap();
    first.hang(true);
    let begun = Instant::now();
    schedule(&client).await.unwrap();
    assert!(begun.elapsed() < LEFT, "{:?}", begun.elapsed());
    let begun = Instant::now();
    schedule(&client).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(second.asked().len(), 2);
}

#[tokio::test]
async fn whoever_only_takes_long_is_waited_for() {
    let late = json!({"topic": "orders", "id": "7", "outcome": "created", "due": 5});
    let first = Stub::start(move |_, _| Reply::Late(Duration::from_secs(6), 201, late.clone())).await;
    let second = taking().await;
    schedule(&client(&[&first.url, &second.url])).await.unwrap();
    assert_eq!((first.asked().len(), second.asked().len()), (1, 0));
}

#[tokio::test]
async fn what_cannot_be_repeated_waits_until_it_is_certain() {
    let first = Stub::start(|_, _| Reply::Json(200, json!({"standing": {"state": "ready", "since": 1}}))).await;
    let second = taking().await;
    first.hang(true);
    let client = client(&[&first.url, &second.url]);
    let replay = tokio::spawn(async move { client.replay("t", "i", None).await });
    tokio::time::sleep(LEFT).await;
    first.hang(false);
    replay.await.unwrap().unwrap();
    assert_eq!((first.asked().len(), second.asked().len()), (1, 0));
}

#[tokio::test]
async fn the_first_is_asked_again_when_it_is_back() {
    let (first, second) = (taking().await, taking().await);
    let client = client(&[&first.url, &second.url]);
    schedule(&client).await.unwrap();
    let address = first.end().await;
    schedule(&client).await.unwrap();
    assert_eq!(second.asked().len(), 1);
    let first = Stub::start_at(&address, |_, asked| scheduled(asked)).await;
    let begun = Instant::now();
    while first.asked().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is asked again");
        schedule(&client).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let before = second.asked().len();
    schedule(&client).await.unwrap();
    assert_eq!(second.asked().len(), before);
}

#[tokio::test]
async fn an_error_names_everybody_who_was_tried_and_why_each_failed() {
    let first = nobody().await;
    let second = Stub::start(|_, _| Reply::Json(503, problem(503, "stopping"))).await;
    let client = Client::builder(&first).or(&second.url).retries(1).build().unwrap();
    let error = client.reserve(reserve()).await.unwrap_err();
    let told = error.to_string();
    for part in [&first, "cannot be reached", &second.url, "(stopping)", "nothing was done"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(matches!(&error, Error::NoServer { tried } if tried.len() == 2), "{error:?}");
    assert!(error.is_retryable() && !error.may_have_happened());
    assert_eq!(second.asked().len(), 2, "both rounds came by");
}

#[tokio::test]
async fn an_answer_that_would_be_the_same_everywhere_is_taken() {
    let first = Stub::start(|_, _| Reply::Json(403, problem(403, "forbidden"))).await;
    let second = taking().await;
    let error = schedule(&client(&[&first.url, &second.url])).await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "forbidden");
    assert!(second.asked().is_empty());
}

#[tokio::test]
async fn nodes_that_were_not_given_are_learned_of() {
    let (first, second) = (taking().await, taking().await);
    first.tell_nodes(&[&first.url, &second.url]);
    let (learning, alone) =
        (client(&[&first.url]), Client::builder(&first.url).learn(false).retries(0).build().unwrap());
    for client in [&learning, &alone] {
        schedule(client).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    for client in [&learning, &alone] {
        schedule(client).await.unwrap();
    }
    // The question goes beside the request, and is answered within a moment.
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.end().await;
    schedule(&learning).await.unwrap();
    assert_eq!(second.asked().len(), 1);
    assert!(matches!(schedule(&alone).await, Err(Error::Unreachable { .. })));
}

fn delivery(id: &str) -> Value {
    json!({
        "topic": "q", "id": id, "queue": "q", "priority": 0, "attempt": 1, "scheduled_at": 0, "due": 1,
        "fired_at": 1, "lease": format!("lease-{id}"), "lease_time": "6s", "until": 99, "text": "x",
    })
}

/// A server of deliveries: one at first, and then none for long.
async fn handing_out(id: &'static str) -> Stub {
    let out = AtomicUsize::new(0);
    let reply = move |_: usize, asked: &Asked| match asked.path.as_str() {
        "/v1/reserve" if out.fetch_add(1, Ordering::SeqCst) == 0 => {
            Reply::Json(200, json!({"deliveries": [delivery(id)]}))
        }
        "/v1/reserve" => Reply::Late(Duration::from_secs(20), 200, json!({"deliveries": []})),
        _ => {
            let settled = json!({"outcome": "acknowledged"});
            let actions = asked.body["actions"].as_array().unwrap();
            Reply::Json(200, json!({"results": actions.iter().map(|_| settled.clone()).collect::<Value>()}))
        }
    };
    Stub::start(reply).await
}

/// Whether this server has heard that the delivery is done.
fn is_done(stub: &Stub, id: &str) -> bool {
    let lease = format!("lease-{id}");
    let settlings = stub.asked().into_iter().filter(|asked| asked.path == "/v1/leases");
    let mut actions = settlings.flat_map(|asked| asked.body["actions"].as_array().unwrap().clone());
    actions.any(|action| action["do"] == "acknowledge" && action["lease"] == lease)
}

/// A worker on both takes a delivery from the first, and meanwhile that goes away; then it works on the second.
async fn works_on(go_away: impl AsyncFnOnce(Stub) -> Option<Stub>, within: Duration) {
    let (first, second) = (handing_out("a").await, handing_out("b").await);
    let (begun, end) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let go_on = Arc::new(tokio::sync::Notify::new());
    let (tell, hold, ended) = (Arc::clone(&begun), Arc::clone(&go_on), Arc::clone(&end));
    let worker = Worker::builder(client(&[&first.url, &second.url])).handle("q", move |job: Job| {
        let (tell, hold) = (Arc::clone(&tell), Arc::clone(&hold));
        async move {
            if job.id == "a" {
                tell.notify_one();
                hold.notified().await;
            }
            Ok(())
        }
    });
    let worker = worker.build().unwrap();
    let running = tokio::spawn(worker.run(async move { ended.notified().await }));
    begun.notified().await;
    // The next request for deliveries is waiting by then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _kept = go_away(first).await;
    let gone_at = Instant::now();
    while second.count("/v1/reserve") == 0 {
        assert!(gone_at.elapsed() < within, "it waits at the other");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    go_on.notify_one();
    while !is_done(&second, "a") || !is_done(&second, "b") {
        assert!(gone_at.elapsed() < within + Duration::from_secs(1), "the other hears of what the first had given");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    end.notify_one();
    let summary = running.await.unwrap().unwrap();
    assert_eq!((summary.done, summary.lost, summary.left), (2, 0, 0), "{summary:?}");
}

#[tokio::test]
async fn a_worker_goes_on_with_another_within_a_second() {
    let end = async |first: Stub| {
        first.end().await;
        None
    };
    works_on(end, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_worker_leaves_a_server_that_hangs() {
    let hang = async |first: Stub| {
        first.hang(true);
        Some(first)
    };
    works_on(hang, LEFT).await;
}
