//! What the batcher puts into one request, and how each caller gets an answer of its own.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stub;

use std::time::Duration;

use punctual_client::{Client, Error, Scheduled, Task};
use serde_json::{Value, json};
use stub::{Asked, Reply, Stub, problem};

fn tasks(asked: &Asked) -> Vec<Value> {
    asked.body["tasks"].as_array().unwrap().clone()
}

fn created(task: &Value) -> Value {
    json!({"topic": task["topic"], "id": task["id"], "outcome": "created", "due": 5})
}

fn all_created(asked: &Asked) -> Value {
    json!({"results": tasks(asked).iter().map(created).collect::<Vec<_>>()})
}

async fn schedule_all(client: &Client, ids: impl IntoIterator<Item = String>) -> Vec<Result<Scheduled, Error>> {
    let batcher = client.batcher();
    let calls: Vec<_> = ids
        .into_iter()
        .map(|id| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.schedule(Task::new("t").id(id)).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    answers
}

#[tokio::test]
async fn what_comes_while_a_request_is_under_way_goes_into_the_next() {
    let stub = Stub::start(|_, asked| Reply::Late(Duration::from_millis(50), 200, all_created(asked))).await;
    let client = Client::new(&stub.url).unwrap();
    let answers = schedule_all(&client, (0..500).map(|number| format!("{number}"))).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().id, number.to_string());
    }
    assert!(stub.asked().len() <= 3, "{} requests", stub.asked().len());
}

#[tokio::test]
async fn a_lone_task_is_not_kept_waiting() {
    let stub = Stub::start(|_, asked| Reply::Json(200, all_created(asked))).await;
    let batcher = Client::new(&stub.url).unwrap().batcher();
    for requests in 1..=3 {
        batcher.schedule(Task::new("t")).await.unwrap();
        assert_eq!(stub.asked().len(), requests);
    }
}

#[tokio::test]
async fn a_task_that_is_refused_is_refused_to_its_caller_only() {
    let stub = Stub::start(|_, asked| {
        let results = tasks(asked).into_iter().map(|task| match task["id"].as_str() {
            Some("bad") => json!({"problem": problem(413, "body-too-large")}),
            _ => created(&task),
        });
        Reply::Json(200, json!({"results": results.collect::<Vec<_>>()}))
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    let answers = schedule_all(&client, ["a", "bad", "c"].map(String::from)).await;
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert_eq!(answers[1].as_ref().unwrap_err().problem().unwrap().code, "body-too-large");
}

#[tokio::test]
async fn a_task_that_spoils_the_whole_request_is_found_by_halving() {
    let stub = Stub::start(|_, asked| {
        let spoilt = tasks(asked).iter().any(|task| task["id"] == "bad");
        if spoilt { Reply::Json(400, problem(400, "bad-request")) } else { Reply::Json(200, all_created(asked)) }
    });
    let stub = stub.await;
    let client = Client::new(&stub.url).unwrap();
    let ids = (0..40).map(|number| if number == 17 { "bad".into() } else { format!("{number}") });
    let answers = schedule_all(&client, ids).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), number == 17, "{number}: {answer:?}");
    }
}

#[tokio::test]
async fn a_task_the_server_has_no_room_for_is_handed_in_again() {
    let stub = Stub::start(|before, asked| match before {
        0 => Reply::Json(200, json!({"results": [{"problem": problem(429, "rate-limited")}]})),
        _ => Reply::Json(200, all_created(asked)),
    });
    let stub = stub.await;
    Client::new(&stub.url).unwrap().batcher().schedule(Task::new("t")).await.unwrap();
    let asked = stub.asked();
    assert_eq!((asked.len(), tasks(&asked[0])), (2, tasks(&asked[1])));
}

#[tokio::test]
async fn a_request_that_fails_fails_for_all_its_callers() {
    let stub = Stub::start(|_, _| Reply::Json(401, problem(401, "unauthorized"))).await;
    let client = Client::new(&stub.url).unwrap();
    for answer in schedule_all(&client, ["a", "b", "c"].map(String::from)).await {
        assert_eq!(answer.unwrap_err().problem().unwrap().code, "unauthorized");
    }
}

#[tokio::test]
async fn many_tasks_go_in_requests_of_ten_thousand() {
    let stub = Stub::start(|_, asked| Reply::Json(200, all_created(asked))).await;
    let client = Client::new(&stub.url).unwrap();
    let many = (0..10_001).map(|number| Task::new("t").id(format!("{number}")).into()).collect();
    let results = client.schedule_many(many).await.unwrap();
    assert_eq!(results.len(), 10_001);
    assert_eq!(results[10_000].as_ref().unwrap().id, "10000");
    let sizes: Vec<usize> = stub.asked().iter().map(|asked| tasks(asked).len()).collect();
    assert_eq!(sizes, [10_000, 1]);
    assert!(client.schedule_many(Vec::new()).await.unwrap().is_empty());
}
