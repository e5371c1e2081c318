//! Several servers on one PostgreSQL: what a second and a third one bring and cost, what it costs to ask the one that does not
//! have the task, and how long tasks wait when shards change hands or a server dies.

mod away;
mod caller;
mod center;
mod failover;
mod handover;
mod lives;

use std::env;
use std::io;
use std::time::Duration;

use crate::arena::machine;
use crate::memory;
use crate::table::Table;

pub const USAGE: &str = "  --small         one minute instead of six, to see that it works\n  --only a,b      of lives, away, handover, failover\n  PUNCTUAL_BIN as for server";

/// How much is done.
pub struct Size {
    pub lasting: Duration,
    pub requests: u64,
    pub moves: usize,
    pub kills: usize,
}

const WHOLE: Size = Size { lasting: Duration::from_secs(10), requests: 1_500, moves: 5, kills: 10 };
const SMALL: Size = Size { lasting: Duration::from_secs(3), requests: 300, moves: 1, kills: 2 };

pub fn run(options: &[String]) -> Result<(), String> {
    let mut size = WHOLE;
    let mut only: Option<Vec<String>> = None;
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--small" => size = SMALL,
            "--only" => {
                let names = words.next().ok_or("--only needs names")?;
                only = Some(names.split(',').map(str::to_owned).collect());
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    memory::stop_counting();
    println!("{}", machine::description());
    let sync = || format!("{:.2} ms", machine::sync_latency(&env::temp_dir()).as_secs_f64() * 1e3);
    println!("a small write and fdatasync take {} before the run\n", sync());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("there is no runtime: {error}"))?;
    let is_meant = |name: &str| only.as_ref().is_none_or(|only| only.iter().any(|one| one == name));
    runtime.block_on(measure(&size, is_meant)).map_err(|error| error.to_string())?;
    println!("a small write and fdatasync take {} after the run\n", sync());
    Ok(())
}

async fn measure(size: &Size, is_meant: impl Fn(&str) -> bool) -> io::Result<()> {
    let show = |table: Table| table.print();
    if is_meant("lives") {
        show(lives::measure(size).await?);
    }
    if is_meant("away") {
        show(away::measure(size).await?);
    }
    if is_meant("handover") {
        show(handover::measure(size).await?);
    }
    if is_meant("failover") {
        show(failover::measure(size).await?);
    }
    Ok(())
}
