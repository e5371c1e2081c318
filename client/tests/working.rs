//! What a worker does with deliveries, leases, failures and its end.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stub;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use punctual_client::{Client, Failure, Job, Summary, Worker, WorkerBuilder};
use serde_json::{Value, json};
use stub::{Asked, Reply, Stub, problem};
use tokio::sync::oneshot;

/// A server with one queue: it hands out what is in it and remembers what was said.
#[derive(Clone, Default)]
struct Queue {
    ready: Arc<Mutex<VecDeque<Value>>>,
    /// What was said about each lease, in order; extensions with the rest.
    said: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    /// Leases that are lost by the time they are asked about.
    lost: Arc<Mutex<Vec<String>>>,
    /// How many requests about leases came.
    settles: Arc<AtomicUsize>,
}

impl Queue {
    fn put(&self, id: &str, priority: u32) {
        let delivery = json!({
            "topic": "t", "id": id, "queue": "q", "body": {"name": id}, "priority": priority, "attempt": 1,
            "scheduled_at": 0, "due": 0, "fired_at": 0, "lease": format!("lease-{id}"), "until": 9,
        });
        self.ready.lock().unwrap().push_back(delivery);
    }

    async fn serve(&self) -> Stub {
        let queue = self.clone();
        Stub::start(move |_, asked| queue.answer(asked)).await
    }

    fn answer(&self, asked: &Asked) -> Reply {
        match asked.path.as_str() {
            "/v1/reserve" => {
                let mut ready = self.ready.lock().unwrap();
                let max = (asked.body["max"].as_u64().unwrap() as usize).min(ready.len());
                let deliveries: Vec<Value> = ready.drain(..max).collect();
                let wait = if deliveries.is_empty() { 60 } else { 1 };
                Reply::Late(Duration::from_millis(wait), 200, json!({"deliveries": deliveries}))
            }
            "/v1/leases" => {
                self.settles.fetch_add(1, Ordering::Relaxed);
                let actions = asked.body["actions"].as_array().unwrap();
                let results: Vec<Value> = actions.iter().map(|action| self.settle(action)).collect();
                Reply::Late(Duration::from_millis(5), 200, json!({"results": results}))
            }
            path => panic!("nobody should ask for {path}"),
        }
    }

    fn settle(&self, action: &Value) -> Value {
        let (what, lease) = (action["do"].as_str().unwrap(), action["lease"].as_str().unwrap());
        if self.lost.lock().unwrap().iter().any(|lost| lost == lease) {
            return json!({"problem": problem(409, "lease-lost")});
        }
        let words = match (what, &action["after"], &action["note"]) {
            ("release", Value::String(after), _) => format!("release after {after}"),
            ("release" | "reject", _, Value::String(note)) => format!("{what}: {note}"),
            (what, ..) => what.to_owned(),
        };
        self.said.lock().unwrap().entry(lease.to_owned()).or_default().push(words);
        match what {
            "acknowledge" => json!({"outcome": "acknowledged"}),
            "release" => json!({"outcome": "released", "standing": {"state": "ready", "since": 1}}),
            "reject" => json!({"outcome": "rejected"}),
            _ => json!({"outcome": "extended", "until": 99}),
        }
    }

    fn said(&self, id: &str) -> Vec<String> {
        self.said.lock().unwrap().get(&format!("lease-{id}")).cloned().unwrap_or_default()
    }

    /// Waits until something but extensions was said about so many.
    async fn settled(&self, deliveries: usize) {
        let begun = Instant::now();
        loop {
            let said =
                self.said.lock().unwrap().values().filter(|said| said.iter().any(|word| word != "extend")).count();
            if said >= deliveries {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", self.said.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

struct Started {
    stop: oneshot::Sender<()>,
    running: tokio::task::JoinHandle<Summary>,
}

impl Started {
    fn new(worker: WorkerBuilder) -> Started {
        let worker = worker.wait(Duration::from_millis(100)).build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            worker.run(shutdown).await.unwrap()
        });
        Started { stop, running }
    }

    async fn stop(self) -> Summary {
        self.stop.send(()).unwrap();
        self.running.await.unwrap()
    }
}

fn worker(stub: &Stub) -> WorkerBuilder {
    Worker::builder(Client::new(&stub.url).unwrap())
}

#[tokio::test]
async fn each_outcome_of_a_handler_is_told_to_the_server() {
    let queue = Queue::default();
    for id in ["done", "error", "later", "never", "panic"] {
        queue.put(id, 1);
    }
    let stub = queue.serve().await;
    let started = Started::new(worker(&stub).handle("q", |job: Job| async move {
        match job.id.as_str() {
            "error" => Err("seven".parse::<u32>().unwrap_err().into()),
            "later" => Err(Failure::retry_after(Duration::from_secs(7))),
            "never" => Err(Failure::reject("no such order")),
            "panic" => panic!("a handler may panic"),
            _ => Ok(()),
        }
    }));
    queue.settled(5).await;
    let summary = started.stop().await;
    assert_eq!(queue.said("done"), ["acknowledge"]);
    assert_eq!(queue.said("error"), ["release: invalid digit found in string"]);
    assert_eq!(queue.said("later"), ["release after 7s"]);
    assert_eq!(queue.said("never"), ["reject: no such order"]);
    assert_eq!(queue.said("panic"), ["release: the handler panicked: a handler may panic"]);
    assert_eq!((summary.done, summary.failed, summary.rejected, summary.panicked), (1, 3, 1, 1));
}

#[tokio::test]
async fn a_body_of_another_type_is_rejected() {
    #[derive(serde::Deserialize)]
    struct Order {
        name: String,
    }
    let queue = Queue::default();
    queue.put("good", 1);
    queue.put("bad", 1);
    queue.ready.lock().unwrap()[1]["body"] = json!([1, 2]);
    let stub = queue.serve().await;
    let started = Started::new(worker(&stub).handle_json("q", |order: Order, job: Job| async move {
        assert_eq!(order.name, job.id);
        Ok(())
    }));
    queue.settled(2).await;
    started.stop().await;
    assert_eq!(queue.said("good"), ["acknowledge"]);
    assert!(queue.said("bad")[0].starts_with("reject: the body has an unexpected form"), "{:?}", queue.said("bad"));
}

#[tokio::test]
async fn no_more_handlers_run_than_told_and_all_is_done() {
    let queue = Queue::default();
    for number in 0..200 {
        queue.put(&number.to_string(), 1);
    }
    let stub = queue.serve().await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = Arc::clone(&most);
    let started = Started::new(worker(&stub).concurrency(7).handle("q", move |_| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(2)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    }));
    queue.settled(200).await;
    let summary = started.stop().await;
    assert_eq!(summary.done, 200);
    assert_eq!(highest.load(Ordering::SeqCst), 7);
    let settles = queue.settles.load(Ordering::Relaxed);
    assert!(settles < 150, "acknowledgements go together: {settles} requests");
}

#[tokio::test]
async fn what_is_more_urgent_overtakes_what_waits_here() {
    let queue = Queue::default();
    for (id, priority) in [("warm-up", 0), ("a", 9), ("b", 9), ("c", 3), ("d", 1)] {
        queue.put(id, priority);
    }
    let stub = queue.serve().await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let started = Started::new(worker(&stub).concurrency(1).prefetch(10).handle("q", move |job: Job| {
        let order = Arc::clone(&order);
        async move {
            // Once the worker knows that the work is quick it fetches ahead.
            order.lock().unwrap().push(job.id.clone());
            Ok(())
        }
    }));
    queue.settled(5).await;
    started.stop().await;
    assert_eq!(*seen.lock().unwrap(), ["warm-up", "d", "c", "a", "b"]);
}

#[tokio::test]
async fn leases_are_extended_while_a_handler_runs() {
    let queue = Queue::default();
    queue.put("slow", 1);
    let stub = queue.serve().await;
    let slow = |_| async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        Ok(())
    };
    let started = Started::new(worker(&stub).lease(Duration::from_millis(750)).handle("q", slow));
    queue.settled(1).await;
    let summary = started.stop().await;
    let said = queue.said("slow");
    assert!(said.len() >= 4 && said[..said.len() - 1].iter().all(|word| word == "extend"), "{said:?}");
    assert_eq!((said.last().unwrap().as_str(), summary.done, summary.lost), ("acknowledge", 1, 0));
}

#[tokio::test]
async fn a_lease_is_as_long_as_the_task_says_and_is_extended_by_as_much() {
    let queue = Queue::default();
    queue.put("own", 1);
    queue.ready.lock().unwrap()[0]["lease_time"] = json!("600ms");
    let stub = queue.serve().await;
    let slow = |_| async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        Ok(())
    };
    let started = Started::new(worker(&stub).handle("q", slow));
    queue.settled(1).await;
    let summary = started.stop().await;
    assert_eq!((summary.done, summary.lost), (1, 0));
    let asked = stub.asked();
    assert!(asked.iter().filter(|asked| asked.path == "/v1/reserve").all(|asked| asked.body["lease"].is_null()));
    let actions = asked.iter().filter(|asked| asked.path == "/v1/leases").map(|asked| &asked.body["actions"]);
    let extensions: Vec<&Value> =
        actions.flat_map(|actions| actions.as_array().unwrap()).filter(|action| action["do"] == "extend").collect();
    assert!(!extensions.is_empty(), "after a third of its own time, not of thirty seconds");
    assert!(extensions.iter().all(|extension| extension["after"] == "600ms"), "{extensions:?}");
}

#[tokio::test]
async fn a_handler_is_told_that_its_lease_is_lost_and_its_outcome_is_not_sent() {
    let queue = Queue::default();
    queue.put("lost", 1);
    queue.lost.lock().unwrap().push("lease-lost".into());
    let stub = queue.serve().await;
    let (told, hears) = oneshot::channel();
    let told = Arc::new(Mutex::new(Some(told)));
    let started = Started::new(worker(&stub).lease(Duration::from_millis(300)).handle("q", move |job: Job| {
        let told = Arc::clone(&told);
        async move {
            assert!(!job.is_lease_lost());
            job.lease_lost().await;
            assert!(job.is_lease_lost());
            told.lock().unwrap().take().unwrap().send(()).unwrap();
            Ok(())
        }
    }));
    tokio::time::timeout(Duration::from_secs(5), hears).await.unwrap().unwrap();
    let summary = started.stop().await;
    assert_eq!((summary.lost, summary.done), (1, 0));
    assert!(stub.asked().iter().all(|asked| !asked.body.to_string().contains("acknowledge")));
}

#[tokio::test]
async fn a_worker_that_leaves_gives_back_what_it_has_not_done() {
    let queue = Queue::default();
    for (id, priority) in [("warm-up", 0), ("slow", 1), ("waits", 2), ("waits-too", 3)] {
        queue.put(id, priority);
    }
    let stub = queue.serve().await;
    let (begun, begins) = oneshot::channel();
    let begun = Arc::new(Mutex::new(Some(begun)));
    let builder = worker(&stub).concurrency(1).prefetch(10).grace(Duration::from_millis(200));
    let started = Started::new(builder.handle("q", move |job: Job| {
        let begun = Arc::clone(&begun);
        async move {
            if job.id == "slow" {
                begun.lock().unwrap().take().unwrap().send(()).unwrap();
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            Ok(())
        }
    }));
    begins.await.unwrap();
    let asked = Instant::now();
    let summary = started.stop().await;
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    for id in ["slow", "waits", "waits-too"] {
        assert_eq!(queue.said(id), ["release after 0s"]);
    }
    assert_eq!((summary.done, summary.given_back, summary.left, summary.failed), (1, 3, 0, 0));
}

#[tokio::test]
async fn a_running_handler_may_finish_within_the_grace_period() {
    let queue = Queue::default();
    queue.put("slow", 1);
    let stub = queue.serve().await;
    let (begun, begins) = oneshot::channel();
    let begun = Arc::new(Mutex::new(Some(begun)));
    let started = Started::new(worker(&stub).handle("q", move |_| {
        let begun = Arc::clone(&begun);
        async move {
            begun.lock().unwrap().take().unwrap().send(()).unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(())
        }
    }));
    begins.await.unwrap();
    let summary = started.stop().await;
    assert_eq!((summary.done, queue.said("slow").last().unwrap().as_str()), (1, "acknowledge"));
}

#[tokio::test]
async fn a_worker_outlives_a_server_that_fails() {
    let queue = Queue::default();
    queue.put("a", 1);
    queue.put("b", 1);
    let serving = queue.clone();
    let stub = Stub::start(move |before, asked| match (before, asked.path.as_str()) {
        (0, _) => Reply::Break,
        (1, _) => Reply::Json(503, problem(503, "overloaded")),
        (2, _) => Reply::Raw(502, "", "a proxy says no"),
        // The first acknowledgement is heard, and its answer lost.
        (4, "/v1/leases") => {
            serving.answer(asked);
            Reply::Break
        }
        _ => serving.answer(asked),
    });
    let stub = stub.await;
    let started = Started::new(worker(&stub).handle("q", |_| async { Ok(()) }));
    queue.settled(2).await;
    let summary = started.stop().await;
    assert_eq!((summary.done, summary.lost, summary.left), (2, 0, 0));
}

#[tokio::test]
async fn a_worker_that_is_not_wanted_ends_with_the_reason() {
    let stub = Stub::start(|_, _| Reply::Json(403, problem(403, "forbidden"))).await;
    let worker = worker(&stub).handle("q", |_| async { Ok(()) }).build().unwrap();
    let error = worker.run(std::future::pending()).await.unwrap_err();
    assert_eq!(error.problem().unwrap().code, "forbidden");
}

#[tokio::test]
async fn a_worker_that_could_not_work_is_not_built() {
    let client = Client::new("http://127.0.0.1:1").unwrap();
    let builder = || Worker::builder(client.clone()).handle("q", |_| async { Ok(()) });
    assert!(Worker::builder(client.clone()).build().is_err());
    assert!(builder().concurrency(0).build().is_err());
    assert!(builder().lease(Duration::from_millis(1)).build().is_err());
    assert!(builder().wait(Duration::ZERO).build().is_err());
    assert!(builder().build().is_ok());
}
