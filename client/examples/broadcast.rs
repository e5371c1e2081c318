//! One topic feeds two queues: the statistics hear of every order, the call centre only of late ones. Each queue has a
//! worker of its own, and each gets its own delivery of the same task.
//!
//! Needs a server: `punctual serve`, or one at PUNCTUAL_URL.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use punctual_client::{Binding, Client, Job, List, Selection, Standing, Task, Time, TopicSettings, Worker};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("PUNCTUAL_URL").unwrap_or_else(|_| "http://127.0.0.1:7400".into());
    let client = Client::new(&url)?;
    // Names of their own, so that it can be run again.
    let run = Time::now().0;
    let (topic, calls, statistics) = (format!("orders-{run}"), format!("calls-{run}"), format!("statistics-{run}"));

    let bind = |queue: &str, pattern: &str| Binding { queue: queue.into(), pattern: Some(pattern.into()) };
    let feeds = vec![bind(&calls, "order.*.late"), bind(&statistics, "order.#")];
    client.put_topic(&topic, TopicSettings { feeds: Some(feeds), ..TopicSettings::default() }).await?;
    println!("{topic} feeds {calls} (order.*.late) and {statistics} (order.#)");

    let (heard, mut hears) = mpsc::unbounded_channel();
    let stop = watch::Sender::new(false);
    let mut working = Vec::new();
    for queue in [&calls, &statistics] {
        let heard = heard.clone();
        let worker = Worker::builder(client.clone()).handle(queue, move |job: Job| {
            let heard = heard.clone();
            async move {
                heard.send((job.queue.clone(), job.id.clone()))?;
                Ok(())
            }
        });
        let mut stopped = stop.subscribe();
        let worker = worker.consumer(format!("worker-of-{queue}")).build()?;
        working.push(tokio::spawn(worker.run(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        })));
    }

    let orders = [
        ("pizza", "order.food.late"),
        ("sushi", "order.food.placed"),
        ("lamp", "order.home.late"),
        ("dog", "parcel.lost"),
    ];
    for (id, routing_key) in orders {
        client.schedule(Task::new(&topic).id(id).routing_key(routing_key).after(Duration::from_millis(300))).await?;
    }

    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        let (queue, id) = timeout(Duration::from_secs(10), hears.recv()).await?.ok_or("the workers ended")?;
        println!("{queue}: {id}");
        seen.insert((queue, id));
    }
    let expect = |queue: &str, id: &str| (queue.to_owned(), id.to_owned());
    let expected = [
        expect(&calls, "pizza"),
        expect(&calls, "lamp"),
        expect(&statistics, "pizza"),
        expect(&statistics, "sushi"),
        expect(&statistics, "lamp"),
    ];
    assert_eq!(seen, BTreeSet::from(expected));

    // What no queue takes is not lost: it is a dead letter of its topic.
    let of_topic = List { topic: Some(topic.clone()), ..List::default() };
    let mut dead = client.dead(&of_topic).await?.tasks;
    while dead.is_empty() {
        // It was scheduled last, so its time comes last.
        sleep(Duration::from_millis(20)).await;
        dead = client.dead(&of_topic).await?.tasks;
    }
    println!("dead letters: {:?}", dead.iter().map(|task| (&task.id, &task.standing)).collect::<Vec<_>>());
    assert!(
        matches!(&dead[..], [task] if task.id == "dog" && matches!(&task.standing, Standing::Dead { reason, .. } if reason == "unrouted"))
    );
    let purged = client.purge_dead(Selection { topic: Some(topic.clone()), ..Selection::default() }).await?;
    assert_eq!(purged.changed, 1);

    stop.send_replace(true);
    for worker in working {
        let summary = worker.await??;
        println!("a worker: {summary:?}");
        assert!(summary.done >= 2 && summary.lost == 0);
    }
    // A broadcast task is finished when all its deliveries are; the workers have told so before they left.
    sleep(Duration::from_millis(50)).await;
    let pizza = client.get(&topic, "pizza").await?.ok_or("it is in the history")?;
    println!("pizza: {:?}", pizza.standing);
    assert!(matches!(pizza.standing, Standing::Finished { .. }));
    client.delete_topic(&topic, true).await?;
    client.delete_queue(&calls, true).await?;
    client.delete_queue(&statistics, true).await?;
    Ok(())
}
