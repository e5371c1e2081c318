//! How long tasks wait when the server that has their shard is killed: every millisecond something falls due, consumers wait at
//! the servers that live on, and one server after the other is killed with -9.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use punctual_node::shard_of;
use serde_json::json;

use super::Size;
use super::caller::Caller;
use super::center::{Center, Ids, SHARDS, task};
use crate::arena::crew::Crew;
use crate::arena::tally::shares_ms;
use crate::arena::task::{now_ms, now_us};
use crate::table::{Table, decimals, grouped};

/// What falls due while it is measured, a second.
const RATE: u64 = 200;
/// For so long before and after the kill.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(8);

/// When tasks came, in microseconds since 1970, by their ids.
type Came = Arc<Mutex<BTreeMap<String, u64>>>;

pub async fn measure(size: &Size) -> io::Result<Table> {
    let mut center = Center::start(3).await?;
    let mut late: Histogram<u64> = histogram();
    let mut worst: Histogram<u64> = histogram();
    let mut other: Histogram<u64> = histogram();
    for kill in 0..size.kills {
        let victim = 1 + kill % 2;
        let told = strike(&mut center, victim).await?;
        let mut last = 0;
        for (micros, is_of_victim) in told {
            let of = if is_of_victim { &mut late } else { &mut other };
            of.record(micros).map_err(io::Error::other)?;
            last = last.max(if is_of_victim { micros } else { 0 });
        }
        worst.record(last).map_err(io::Error::other)?;
        eprintln!("failover: kill {kill}: {:.2} s", last as f64 / 1e6);
        center.revive(victim)?;
        center.settle().await?;
    }
    let mut table = Table::new(&["seconds", "p50", "p99", "p99.9", "max"]);
    let mut row = |label: String, values: &Histogram<u64>| {
        let cells = shares_ms(values).map(|ms| decimals(ms / 1e3, 2));
        table.row([label].into_iter().chain(cells).collect());
    };
    let kills = size.kills;
    row(format!("a dead server's shards all hand out again, of {kills} kills"), &worst);
    row(format!("late, {} tasks of its shards that fell due in the 4 s after", grouped(late.len())), &late);
    row("late, tasks of other shards at the same time".to_owned(), &other);
    Ok(table)
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are allowed")
}

/// Kills a server while tasks fall due; says of each that fell due in the four seconds after it how late it was, and whether
/// it was in a shard of that server.
async fn strike(center: &mut Center, victim: usize) -> io::Result<Vec<(u64, bool)>> {
    let part = center.part_of(victim).await?;
    let start = now_ms() + 1_500;
    let due = schedule(center, start).await?;
    let came = Came::default();
    let mut crew = Crew::new();
    for server in (0..center.servers.len()).filter(|server| *server != victim) {
        for _ in 0..4 {
            crew.add(consume(center.servers[server].port, Arc::clone(&came)));
        }
    }
    let until = |ms: u64| Duration::from_millis(ms.saturating_sub(now_ms()));
    let blow = start + BEFORE.as_millis() as u64;
    crew.work_until(tokio::time::sleep(until(blow))).await?;
    center.servers[victim].process.kill();
    let begun = Instant::now();
    let all = due.len();
    let waited = async {
        while came.lock().unwrap_or_else(PoisonError::into_inner).len() < all
            && begun.elapsed() < Duration::from_secs(60)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    crew.work_until(waited).await?;
    let came = came.lock().unwrap_or_else(PoisonError::into_inner);
    if came.len() < all {
        return Err(io::Error::other(format!("{} of {all} have not come within a minute", all - came.len())));
    }
    let in_time = |due: &u64| (blow..blow + 4_000).contains(due);
    let told = due.iter().filter(|(_, due)| in_time(due)).map(|(id, due)| {
        let shard = shard_of("orders", id, SHARDS).0;
        (came[id].saturating_sub(due * 1_000), part.contains(&shard))
    });
    Ok(told.collect())
}

/// Tasks of all shards, due one after the other.
async fn schedule(center: &Center, start: u64) -> io::Result<Vec<(String, u64)>> {
    let mut caller = Caller::connect(center.servers[0].port).await?;
    let mut ids = Ids::new((0..SHARDS).collect());
    let count = RATE * (BEFORE + AFTER).as_secs();
    let due: Vec<(String, u64)> = (0..count).map(|number| (ids.next(), start + number * 1_000 / RATE)).collect();
    for some in due.chunks(256) {
        let tasks: Vec<_> = some.iter().map(|(id, due)| task(id, *due)).collect();
        caller.post("/v1/tasks/batch", &json!({ "tasks": tasks }), 200).await?;
    }
    Ok(due)
}

/// Takes what is due and acknowledges it, for as long as it is let. Requests may fail while a server is gone.
async fn consume(port: u16, came: Came) -> io::Result<()> {
    let mut caller = Caller::connect(port).await?;
    loop {
        let reserve = json!({ "queues": ["orders"], "wait": "1s", "max": 16 });
        let Ok(taken) = caller.post("/v1/reserve", &reserve, 200).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let now = now_us();
        let deliveries = taken["deliveries"].as_array().cloned().unwrap_or_default();
        {
            let mut came = came.lock().unwrap_or_else(PoisonError::into_inner);
            for delivery in &deliveries {
                let id = delivery["id"].as_str().unwrap_or_default().to_owned();
                came.entry(id).or_insert(now);
            }
        }
        let actions: Vec<_> =
            deliveries.iter().map(|one| json!({ "do": "acknowledge", "lease": one["lease"] })).collect();
        if !actions.is_empty() {
            // What was not acknowledged comes again, and counts as it came first.
            _ = caller.post("/v1/leases", &json!({ "actions": actions }), 200).await;
        }
    }
}
