//! Nodes that are restarted one after the other: a client that knows two of them notices nothing.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual_client::{Client, Job, Task, Worker};
use punctual_engines::{Postgres, Redis, free_port};
use stage::{PATIENCE, Server};

/// How often each node is restarted.
const ROUNDS: usize = 2;

/// Every request of a client that knows both nodes is answered while they are restarted in turn, and every task is done.
async fn no_request_fails(store: String) {
    let node = |name: &str| {
        let address = format!("127.0.0.1:{}", free_port());
        Server::start_with(&["--store", &store, "--node-name", name, "--listen", &address])
    };
    let mut nodes = [node("first"), node("second")];
    let client = Client::builder(&format!("http://{}", nodes[0].address()));
    let client = client.or(&format!("http://{}", nodes[1].address())).build().unwrap();

    // A task may come twice, if its lease ended while a node was away.
    let (done, end) = (Arc::new(Mutex::new(HashSet::new())), Arc::new(AtomicBool::new(false)));
    let (doing, told) = (Arc::clone(&done), Arc::new(tokio::sync::Notify::new()));
    let worker = Worker::builder(client.clone()).handle("orders", move |job: Job| {
        doing.lock().unwrap().insert(job.id.clone());
        async { Ok(()) }
    });
    let shutdown = Arc::clone(&told);
    let worker = tokio::spawn(worker.build().unwrap().run(async move { shutdown.notified().await }));
    let (asking, ended) = (client.clone(), Arc::clone(&end));
    let asker = tokio::spawn(async move {
        let mut scheduled = 0_usize;
        while !ended.load(Ordering::SeqCst) {
            let task = Task::new("orders").after(Duration::from_millis(50)).text("x");
            asking.schedule(task).await.unwrap_or_else(|error| panic!("after {scheduled}: {error}"));
            scheduled += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        scheduled
    });

    for _ in 0..ROUNDS {
        for node in &mut nodes {
            tokio::task::block_in_place(|| {
                assert!(node.stop().success());
                node.start_again();
            });
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
    end.store(true, Ordering::SeqCst);
    let scheduled = asker.await.unwrap();
    let all_done = async {
        while done.lock().unwrap().len() < scheduled {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_done).await.expect("every task is done");
    told.notify_one();
    worker.await.unwrap().unwrap();
    assert!(scheduled > 20, "{scheduled} tasks");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_on_postgres() {
    let engine = Postgres::start();
    no_request_fails(engine.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_on_redis() {
    let engine = Redis::start();
    no_request_fails(engine.url()).await;
}
