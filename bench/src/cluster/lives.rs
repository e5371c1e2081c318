//! Whole lives a second with one, two and three servers, and whose processor they take.

use std::io;
use std::time::{Duration, Instant};

use super::Size;
use super::center::Center;
use crate::arena::crew::Crew;
use crate::arena::machine::own_cpu;
use crate::arena::task::now_ms;
use crate::server::contestants::HttpClient;
use crate::table::{Table, decimals, grouped};

const BATCH: usize = 256;
/// Callers in all, spread over the servers.
const CALLERS: usize = 12;

pub async fn measure(size: &Size) -> io::Result<Table> {
    let headings = [
        "whole lives, 200-byte bodies, batches of 256",
        "a second",
        "database µs each",
        "all servers µs each",
        "load µs each",
        "cores busy",
    ];
    let mut table = Table::new(&headings);
    for servers in 1..=3 {
        let center = Center::start(servers).await?;
        // What runs once is not counted.
        live(&center, Duration::from_secs(1)).await?;
        let before = used(&center);
        let begun = Instant::now();
        let lives = live(&center, size.lasting).await?;
        let took = begun.elapsed();
        let used: Vec<Duration> =
            used(&center).into_iter().zip(before).map(|(after, before)| after.saturating_sub(before)).collect();
        let each = |time: Duration| decimals(time.as_secs_f64() * 1e6 / lives as f64, 1);
        let rate = grouped((lives as f64 / took.as_secs_f64()) as u64);
        let cores = used.iter().sum::<Duration>().as_secs_f64() / took.as_secs_f64();
        let plural = if servers == 1 { "" } else { "s" };
        eprintln!("lives: {servers} servers {rate}");
        table.row(vec![
            format!("{servers} server{plural}"),
            rate,
            each(used[0]),
            each(used[2..].iter().sum()),
            each(used[1]),
            decimals(cores, 2),
        ]);
    }
    Ok(table)
}

/// The processor time of the database, of this process, and of each server.
fn used(center: &Center) -> Vec<Duration> {
    let servers = center.servers.iter().map(|server| server.process.cpu());
    [center.postgres.cpu(), own_cpu()].into_iter().chain(servers).collect()
}

async fn live(center: &Center, lasting: Duration) -> io::Result<u64> {
    let begun = Instant::now();
    let mut crew = Crew::new();
    for caller in 0..CALLERS {
        let port = center.servers[caller % center.servers.len()].port;
        crew.add(async move {
            let mut client = HttpClient::connect(port).await?;
            let mut lives = 0;
            while begun.elapsed() < lasting {
                client.schedule_many(&[now_ms(); BATCH]).await?;
                let mut taken = 0;
                while taken < BATCH {
                    taken += client.take(BATCH - taken).await?.len();
                    client.acknowledge().await?;
                }
                lives += BATCH as u64;
            }
            Ok(lives)
        });
    }
    Ok(crew.finish().await?.into_iter().sum())
}
