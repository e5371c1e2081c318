//! What the client tries again, what it does not, and what it makes of the answers.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stub;

use std::time::{Duration, Instant};

use punctual_client::{
    CancelOutcome, Client, Error, Reschedule, Reserve, Ruling, ScheduleOutcome, Shift, Span, Standing, Task,
};
use serde_json::{Value, json};
use stub::{Asked, Reply, Stub, problem};

fn scheduled(asked: &Asked, outcome: &str) -> Value {
    json!({"topic": asked.body["topic"], "id": asked.body["id"], "outcome": outcome, "due": 5})
}

#[tokio::test]
async fn a_task_is_sent_again_under_the_id_it_got_at_first() {
    let stub = Stub::start(|before, asked| match before {
        0 => Reply::Break,
        _ => {
            let mut body = scheduled(asked, "existed");
            body["standing"] = json!({"state": "scheduled", "at": 7});
            Reply::Json(200, body)
        }
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    let done = client.schedule(Task::new("orders").after(Duration::from_secs(9)).text("x")).await.unwrap();
    let asked = stub.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].body["id"].as_str().is_some_and(|id| id.len() == 26));
    assert_eq!(asked[0].body, asked[1].body);
    // It is new, although the second attempt found it there.
    assert_eq!((done.outcome, done.standing), (ScheduleOutcome::Created, None));
}

#[tokio::test]
async fn a_repeated_cancellation_finds_it_cancelled() {
    let stub = Stub::start(|before, _| match before {
        0 => Reply::Break,
        _ => Reply::Json(200, json!({"topic": "t", "id": "a/b", "outcome": "was_cancelled"})),
    });
    let stub = stub.await;
    let ruling = Client::new(&stub.url).unwrap().cancel("t", "a/b").await.unwrap();
    assert_eq!(ruling, Ruling::Done(CancelOutcome::WasCancelled));
    assert_eq!(stub.count("/v1/tasks/t/a%2Fb"), 2);
}

#[tokio::test]
async fn moving_by_a_length_is_not_repeated_and_moving_to_a_time_is() {
    let stub = Stub::start(|before, _| match before {
        0 | 1 => Reply::Break,
        _ => Reply::Json(200, json!({"topic": "t", "id": "i", "due": 9})),
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    let by = Reschedule { by: Some(Shift(-7_200_000)), ..Reschedule::default() };
    let error = client.reschedule("t", "i", by).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { sent: true, .. }) && error.may_have_happened(), "{error}");
    assert_eq!(stub.asked().len(), 1);
    let to = Reschedule { delay: Some(Span(5)), ..Reschedule::default() };
    assert!(matches!(client.reschedule("t", "i", to).await.unwrap(), Ruling::Done(_)));
    assert_eq!(stub.asked().len(), 3);
}

#[tokio::test]
async fn a_replacement_is_not_repeated_once_it_may_have_been_carried_out() {
    let stub = Stub::start(|before, _| match before {
        0..=2 => Reply::Break,
        3 => Reply::Json(200, json!({"results": [{"problem": problem(503, "outcome-unknown")}]})),
        _ => Reply::Json(503, problem(503, "outcome-unknown")),
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    let replacing = || Task::new("orders").id("7").replace();
    let lost = |error: Error, requests| {
        assert!(error.may_have_happened(), "{error}");
        assert_eq!(stub.asked().len(), requests, "{error}");
    };
    lost(client.schedule(replacing()).await.unwrap_err(), 1);
    let tasks = vec![Task::new("orders").into(), replacing().into()];
    lost(client.schedule_many(tasks).await.unwrap_err(), 2);
    lost(client.batcher().schedule(replacing()).await.unwrap_err(), 3);
    lost(client.batcher().schedule(replacing()).await.unwrap_err(), 4);
    lost(client.schedule(replacing()).await.unwrap_err(), 5);
}

#[tokio::test]
async fn a_replacement_that_was_refused_for_now_is_repeated() {
    let stub = Stub::start(|before, asked| match before {
        0 => Reply::Json(429, problem(429, "rate-limited")),
        _ => Reply::Json(200, scheduled(asked, "replaced")),
    });
    let stub = stub.await;
    let task = Task::new("orders").id("7").replace();
    let done = Client::new(&stub.url).unwrap().schedule(task).await.unwrap();
    assert_eq!((done.outcome, stub.asked().len()), (ScheduleOutcome::Replaced, 2));
}

#[tokio::test]
async fn what_was_never_sent_is_repeated_whatever_it_is() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::builder(&url).retries(3).build().unwrap();
    let begun = Instant::now();
    let error = client.reserve(Reserve { queues: vec!["q".into()], ..Reserve::default() }).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { sent: false, .. }) && error.is_retryable(), "{error}");
    assert!(!error.may_have_happened() && error.to_string().contains("nothing was sent"), "{error}");
    // At least half of 50, 100 and 200 ms.
    assert!(begun.elapsed() >= Duration::from_millis(175), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_reservation_that_may_have_been_carried_out_is_not_repeated() {
    let stub = Stub::start(|before, _| match before {
        0 => Reply::Break,
        1 => Reply::Json(503, problem(503, "outcome-unknown")),
        2 => Reply::Json(503, problem(503, "a-word-of-another-version")),
        _ => Reply::Raw(503, "", "<html>a proxy</html>"),
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    for requests in 1..=4 {
        let error = client.reserve(Reserve { queues: vec!["q".into()], ..Reserve::default() }).await.unwrap_err();
        assert!(error.may_have_happened(), "{error}");
        assert_eq!(stub.asked().len(), requests);
    }
}

#[tokio::test]
async fn what_the_server_has_not_done_is_repeated_whatever_it_is() {
    let codes = [(503, "overloaded"), (503, "stopping"), (507, "store-full"), (503, "unavailable")];
    let stub = Stub::start(move |before, asked| match codes.get(before % 5) {
        Some((status, code)) if asked.path.ends_with("batch") => {
            Reply::Json(200, json!({"results": [{"problem": problem(*status, code)}]}))
        }
        Some((status, code)) => Reply::Json(*status, problem(*status, code)),
        None if asked.path.ends_with("batch") => Reply::Json(
            200,
            json!({"results": [scheduled(&Asked { body: asked.body["tasks"][0].clone(), ..asked.clone() }, "replaced")]}),
        ),
        None if asked.path == "/v1/reserve" => Reply::Json(200, json!({"deliveries": []})),
        None => Reply::Json(200, json!({"matched": 1, "changed": 1, "too_late": 0, "no_room": 0})),
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    let reserved = client.reserve(Reserve { queues: vec!["q".into()], ..Reserve::default() }).await.unwrap();
    assert_eq!((reserved.len(), stub.asked().len()), (0, 5));
    assert_eq!(client.cancel_key("ann", None, false).await.unwrap().changed, 1);
    assert_eq!(stub.asked().len(), 10);
    let done = client.batcher().schedule(Task::new("orders").id("7").replace()).await.unwrap();
    assert_eq!((done.outcome, stub.asked().len()), (ScheduleOutcome::Replaced, 15));
}

#[tokio::test]
async fn the_server_says_how_long_to_wait() {
    let stub = Stub::start(|before, asked| match before {
        0 => {
            let mut body = problem(429, "rate-limited");
            body["retry_after"] = json!(400);
            Reply::Json(429, body)
        }
        _ => Reply::Json(201, scheduled(asked, "created")),
    });
    let stub = stub.await;
    let begun = Instant::now();
    Client::new(&stub.url).unwrap().schedule(Task::new("orders")).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    assert_eq!(stub.asked().len(), 2);
}

#[tokio::test]
async fn a_wait_that_is_longer_than_the_timeout_is_not_begun() {
    let stub = Stub::start(|_, _| {
        let body = r#"{"type":"x","title":"x","status":503,"code":"overloaded","detail":"busy"}"#;
        Reply::Raw(503, "retry-after: 60\r\n", body)
    });
    let stub = stub.await;
    let client = Client::builder(&stub.url).timeout(Duration::from_secs(2)).build().unwrap();
    let begun = Instant::now();
    let error = client.stats().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    assert!(begun.elapsed() < Duration::from_secs(15) && stub.asked().len() == 1);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for_longer_than_said() {
    let stub = Stub::start(|_, _| Reply::Late(Duration::from_secs(30), 200, json!({}))).await;
    let client = Client::builder(&stub.url).timeout(Duration::from_millis(200)).build().unwrap();
    let error = client.stats().await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }) && error.may_have_happened(), "{error}");
}

#[tokio::test]
async fn a_repeated_acknowledgement_that_finds_it_done_succeeds() {
    let done = json!({"state": "finished", "ending": "done", "at": 5});
    let stub = Stub::start(move |before, _| match before {
        0 => Reply::Break,
        _ => {
            let mut lost = problem(409, "lease-lost");
            lost["standing"] = done.clone();
            Reply::Json(200, json!({"results": [{"problem": lost}]}))
        }
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    client.acknowledge("lease").await.unwrap();
    // Here no answer was lost, so it was not this lease under which it was done.
    let error = client.acknowledge("lease").await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "lease-lost");
}

#[tokio::test]
async fn too_late_and_unknown_are_answers_and_not_errors() {
    let stub = Stub::start(|before, _| match before {
        0 => {
            let mut late = problem(409, "too-late");
            late["standing"] = json!({"state": "leased", "queue": "q", "holder": "h", "until": 9});
            Reply::Json(409, late)
        }
        1..=3 => Reply::Json(404, problem(404, "no-such-task")),
        _ => Reply::Json(404, problem(404, "not-found")),
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    assert!(matches!(client.cancel("t", "i").await.unwrap(), Ruling::TooLate(Standing::Leased { .. })));
    assert_eq!(client.cancel("t", "i").await.unwrap(), Ruling::Unknown);
    assert!(client.get("t", "i").await.unwrap().is_none());
    assert!(client.numbered(4711).await.unwrap().is_none());
    assert_eq!(stub.asked()[3].path, "/v1/numbers/4711");
    // An address that is not Punctual's is not the same as a task that is not there.
    assert_eq!(client.get("t", "i").await.unwrap_err().problem().unwrap().code, "not-found");
}

#[tokio::test]
async fn what_is_not_punctual_is_told_apart() {
    let stub = Stub::start(|_, _| Reply::Raw(404, "", "<html>nginx</html>")).await;
    let error = Client::new(&stub.url).unwrap().stats().await.unwrap_err();
    assert!(matches!(&error, Error::BadAnswer { status: 404, reason } if reason.contains("nginx")), "{error}");
}

#[tokio::test]
async fn the_token_goes_along_and_stays_out_of_the_log() {
    let stub = Stub::start(|_, _| Reply::Json(200, json!({"topics": []}))).await;
    let builder = Client::builder(&stub.url).token("s3cret");
    assert!(!format!("{builder:?}").contains("s3cret"));
    let client = builder.build().unwrap();
    assert!(!format!("{client:?}").contains("s3cret"));
    client.topics().await.unwrap();
    assert!(stub.asked()[0].head.contains("authorization: bearer s3cret"));
    assert_eq!(Client::builder(&stub.url).token("a\nb").build().unwrap_err(), Error::BadToken);
}
