//! The client's worker against a real server that is killed with -9 again and again.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual_client::{Client, Failure, Job, Task, Worker};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::stage::{PATIENCE, Server, eventually};

/// A port that was free a moment ago: the server keeps it over its lives.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Waits until so many ids have been handled.
async fn all_seen(seen: &Mutex<BTreeMap<String, u32>>, count: usize) {
    let done = async {
        while seen.lock().unwrap().len() < count {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, done).await.unwrap_or_else(|_| panic!("only {} of {count}", seen.lock().unwrap().len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_works_through_crashes_of_the_server_and_misses_nothing() {
    let address = free_address();
    let mut server = Server::start_with(&["--listen", &address]);
    let client = Client::new(&format!("http://{address}")).unwrap();
    let seen: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let worker = Worker::builder(client.clone()).concurrency(16).lease(Duration::from_secs(2)).handle(
        "jobs",
        move |job: Job| {
            let noted = Arc::clone(&noted);
            async move {
                *noted.lock().unwrap().entry(job.id.clone()).or_default() += 1;
                Ok::<(), Failure>(())
            }
        },
    );
    let stop = watch::Sender::new(false);
    let mut stopped = stop.subscribe();
    let running = tokio::spawn(worker.build().unwrap().run(async move {
        _ = stopped.wait_for(|stop| *stop).await;
    }));
    let producer = tokio::spawn(async move {
        for number in 0..600 {
            let task = Task::new("jobs").id(format!("job-{number}")).after(Duration::from_millis(number % 50));
            client.schedule(task).await.unwrap();
        }
    });
    for _ in 0..3 {
        sleep(Duration::from_millis(300)).await;
        tokio::task::block_in_place(|| server.crash());
    }
    timeout(PATIENCE, producer).await.unwrap().unwrap();
    all_seen(&seen, 600).await;
    // What was seen is done again if the server was away for longer than its lease.
    tokio::task::block_in_place(|| {
        eventually("all are done", || {
            let counts = server.get("/v1/topics/jobs").expect(200).json();
            ["waiting", "leased", "dead"].iter().all(|state| counts[*state] == 0)
        });
    });
    stop.send_replace(true);
    timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_panics_or_fails_is_tried_again() {
    let server = Server::start();
    let client = Client::new(&format!("http://{}", server.address())).unwrap();
    let retry = serde_json::json!({ "retry": { "backoff": { "first": "10ms", "longest": "10ms" } } });
    server.send("PUT", "/v1/queues/shaky", &retry).expect(200);
    let seen: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let worker = Worker::builder(client.clone()).handle("shaky", move |job: Job| {
        let noted = Arc::clone(&noted);
        async move {
            match job.attempt {
                1 => panic!("the first attempt panics on purpose"),
                2 => Err(Failure::retry("the second fails")),
                _ => {
                    *noted.lock().unwrap().entry(job.id.clone()).or_default() += job.attempt;
                    Ok(())
                }
            }
        }
    });
    let stop = watch::Sender::new(false);
    let mut stopped = stop.subscribe();
    let running = tokio::spawn(worker.build().unwrap().run(async move {
        _ = stopped.wait_for(|stop| *stop).await;
    }));
    client.schedule(Task::new("shaky").id("1")).await.unwrap();
    all_seen(&seen, 1).await;
    stop.send_replace(true);
    timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    assert_eq!(seen.lock().unwrap()["1"], 3);
    assert_eq!(server.get("/v1/tasks/shaky/1").json()["standing"]["ending"], "done");
}
