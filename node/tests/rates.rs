//! Rates that several nodes keep together.

use std::time::{Duration, Instant};

use crate::stage::nodes::Nodes;
use crate::stage::{finish, name, next, task};
use punctual_core::{QueueSettings, Rate, Refused, TopicSettings};
use punctual_node::Error;

/// Few enough that nodes which did not know of each other would give out twice as many.
const RATE: Rate = Rate { per_second: 20, burst: 2 };

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_hands_out_no_more_on_two_nodes_than_on_one() {
    const TASKS: usize = 30;
    let nodes = Nodes::start(2).await;
    let settings = QueueSettings { rate: Some(RATE), ..QueueSettings::default() };
    nodes.handles[0].put_queue(&name("slow"), settings).await.unwrap();
    for number in 0..2 {
        nodes.schedule_at(number, "slow", TASKS / 2).await;
    }
    let begun = Instant::now();
    let consumers = nodes.handles.iter().map(|handle| {
        let handle = handle.clone();
        tokio::spawn(async move {
            for _ in 0..TASKS / 2 {
                finish(&handle, next(&handle, "slow").await.lease).await;
            }
        })
    });
    for consumer in consumers.collect::<Vec<_>>() {
        consumer.await.unwrap();
    }
    let least = Duration::from_millis(1_000 * (TASKS as u64 - u64::from(RATE.burst)) / u64::from(RATE.per_second));
    assert!(begun.elapsed() >= least, "{:?} is less than {least:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_takes_in_no_more_on_two_nodes_than_on_one() {
    let nodes = Nodes::start(2).await;
    let settings = TopicSettings { rate: Some(Rate { per_second: 1, burst: 10 }), ..TopicSettings::default() };
    nodes.handles[0].put_topic(&name("slow"), settings).await.unwrap();
    nodes.handles[0].schedule(task("slow", "first")).await.expect("of a new rate nobody has drawn yet");
    let begun = Instant::now();
    let (mut taken, mut refused) = (0, 0);
    for number in 0..40 {
        let batch = (0..2).map(|part| task("slow", &format!("{number}-{part}"))).collect();
        for outcome in nodes.handles[number % 2].schedule_many(batch).await {
            match outcome {
                Ok(_) => taken += 1,
                Err(Error::Refused(Refused::RateLimited { retry_after, .. })) => {
                    assert!(retry_after.0 > 0);
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let most = 10 + begun.elapsed().as_secs() + 1;
    assert!(taken <= most && taken + refused == 80, "{taken} were taken in, and {refused} refused");
}
