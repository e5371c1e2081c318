//! How long requests wait while a shard changes hands: one caller for each shard, at the server that keeps its own, while the
//! other one is drained and gets its part again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Size;
use super::caller::Caller;
use super::center::{Center, Ids, SHARDS, task};
use crate::arena::crew::Crew;
use crate::arena::task::far_due;
use crate::table::{Table, decimals};

pub async fn measure(size: &Size) -> io::Result<Table> {
    let center = Center::start(2).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut crew = Crew::new();
    for shard in 0..SHARDS {
        crew.add(longest(center.servers[0].port, shard, Arc::clone(&is_over)));
    }
    let mut took = Vec::new();
    let work = async {
        for _ in 0..size.moves {
            took.push(drain(&center, "POST", 0).await?);
            took.push(drain(&center, "DELETE", SHARDS / 2).await?);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        io::Result::Ok(())
    };
    work.await?;
    is_over.store(true, Relaxed);
    let mut waits: Vec<Wait> = crew.finish().await?;
    waits.sort_by_key(|wait| wait.longest);
    let usual: Duration = waits.iter().map(|wait| wait.usual).sum::<Duration>() / u32::from(SHARDS);
    let ms = |time: Duration| decimals(time.as_secs_f64() * 1e3, 1);
    let mut table = Table::new(&["8 of 16 shards handed over and back, a request under way for each shard", "ms"]);
    let moves = size.moves * 2;
    table.row(vec!["a request otherwise, mean".to_owned(), ms(usual)]);
    table.row(vec![
        format!("the longest wait of a shard over {moves} moves, median of the shards"),
        ms(waits[waits.len() / 2].longest),
    ]);
    table.row(vec!["the same, longest of all shards".to_owned(), ms(waits[waits.len() - 1].longest)]);
    took.sort();
    table.row(vec!["until all 8 have changed hands, median".to_owned(), ms(took[took.len() / 2])]);
    Ok(table)
}

struct Wait {
    longest: Duration,
    usual: Duration,
}

/// Schedules tasks of one shard, one after the other, and says how long the slowest took.
async fn longest(port: u16, shard: u16, is_over: Arc<AtomicBool>) -> io::Result<Wait> {
    let mut caller = Caller::connect(port).await?;
    let mut ids = Ids::new(vec![shard]);
    let (mut longest, mut sum, mut count) = (Duration::ZERO, Duration::ZERO, 0);
    while !is_over.load(Relaxed) {
        let task = task(&ids.next(), far_due());
        let begun = Instant::now();
        caller.post("/v1/tasks", &task, 201).await?;
        let took = begun.elapsed();
        (longest, sum, count) = (longest.max(took), sum + took, count + 1);
        // Few enough that they wait for each other and not for the machine.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Wait { longest, usual: sum / count })
}

/// Has the second server give its shards away, or get them back; says how long it took.
async fn drain(center: &Center, method: &str, part: u16) -> io::Result<Duration> {
    let begun = Instant::now();
    let path = format!("/v1/nodes/{}/drain", center.servers[1].name);
    Caller::connect(center.servers[0].port).await?.send(method, &path, &Value::Null, 200).await?;
    center.until("it has so many", async |center| Ok(center.part_of(1).await?.len() == usize::from(part))).await?;
    Ok(begun.elapsed())
}
