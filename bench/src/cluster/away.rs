//! What it costs that a task is not at the server that is asked: a request that is passed on, and a consumer that waits at one
//! server for what fires at another.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::json;

use super::Size;
use super::caller::Caller;
use super::center::{Center, Ids, task};
use crate::arena::tally::shares_ms;
use crate::arena::task::{far_due, now_ms, now_us};
use crate::table::{Table, decimals};

pub async fn measure(size: &Size) -> io::Result<Table> {
    let center = Center::start(2).await?;
    let mut table = Table::new(&["one caller, one at a time; ms", "p50", "p99"]);
    let mut row = |what: &str, measured: [Histogram<u64>; 2]| {
        for (place, took) in ["at the server that is asked", "at the other one"].into_iter().zip(&measured) {
            let [p50, p99, ..] = shares_ms(took);
            eprintln!("{what}, {place}: {p50} {p99}");
            table.row(vec![format!("{what}, its shard {place}"), decimals(p50, 2), decimals(p99, 2)]);
        }
        let [here, away] = measured.map(|took| shares_ms(&took)[0]);
        table.row(vec!["what being elsewhere costs".to_owned(), decimals(away - here, 2), String::new()]);
    };
    row("a task scheduled", scheduled(&center, size.requests).await?);
    row("a task handed over after its due time", handed_over(&center, size.requests / 3).await?);
    Ok(table)
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are allowed")
}

/// By turns, so that whatever else goes on falls on both.
async fn scheduled(center: &Center, requests: u64) -> io::Result<[Histogram<u64>; 2]> {
    let mut caller = Caller::connect(center.servers[0].port).await?;
    let mut ids = [Ids::new(center.part_of(0).await?), Ids::new(center.part_of(1).await?)];
    let mut took = [histogram(), histogram()];
    for number in 0..requests {
        for (ids, took) in ids.iter_mut().zip(&mut took) {
            let task = task(&ids.next(), far_due());
            let begun = Instant::now();
            caller.post("/v1/tasks", &task, 201).await?;
            if number >= requests / 10 {
                took.record(begun.elapsed().as_micros() as u64).map_err(io::Error::other)?;
            }
        }
    }
    Ok(took)
}

async fn handed_over(center: &Center, tasks: u64) -> io::Result<[Histogram<u64>; 2]> {
    let mut producer = Caller::connect(center.servers[0].port).await?;
    let mut consumer = Caller::connect(center.servers[0].port).await?;
    let mut ids = [Ids::new(center.part_of(0).await?), Ids::new(center.part_of(1).await?)];
    let mut late = [histogram(), histogram()];
    for number in 0..tasks {
        for (ids, late) in ids.iter_mut().zip(&mut late) {
            let due = now_ms() + 40 + fastrand::u64(..10);
            producer.post("/v1/tasks", &task(&ids.next(), due), 201).await?;
            let reserve = json!({ "queues": ["orders"], "wait": "10s" });
            let taken = consumer.post("/v1/reserve", &reserve, 200).await?;
            let micros = now_us().saturating_sub(due * 1_000);
            let lease = &taken["deliveries"][0]["lease"];
            if lease.is_null() {
                return Err(io::Error::other("nothing was handed over for ten seconds"));
            }
            let done = json!({ "actions": [{ "do": "acknowledge", "lease": lease }] });
            consumer.post("/v1/leases", &done, 200).await?;
            if number >= tasks / 10 {
                late.record(micros).map_err(io::Error::other)?;
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(late)
}
