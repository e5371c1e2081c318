//! A task outlives the process that took it: `cargo run --example outlives_a_crash` twice.
//!
//! The first run schedules a task on the embedded store and dies at once, as hard as a process can.
//! The second finds it, waits for its time and hands it over.

use std::error::Error;
use std::sync::Arc;

use punctual_almanac::{Almanac, Config, Directory};
use punctual_core::{Choice, Millis, Name, Reserve, Task};
use punctual_node::{Node, NodeConfig, SystemClock, block_on};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join("punctual-outlives-a-crash");
    let store = Almanac::open(Arc::new(Directory::open(&directory)?), Config::default(), Arc::new(SystemClock))?;
    let node = Node::start(NodeConfig::new(Name::new("here")?), Arc::new(store), Arc::new(SystemClock))?;
    let handle = node.handle();
    let (topic, id) = (Name::new("reminders")?, Name::new("coupon-7")?);

    if block_on(handle.get(&topic, &id))?.is_none() {
        let reminder = Task::new(topic, "your coupon ends in 2 hours").id(id).after(Millis::from_secs(3));
        block_on(handle.schedule(reminder))?;
        println!("scheduled for 3 seconds from now; dying without a word of farewell. Run me again");
        std::process::abort();
    }
    let until = handle.now().plus(Millis::from_secs(10));
    let (queues, consumer) = (vec![topic], Name::new("example")?);
    let reserve = Reserve { queues, max: 1, lease: None, until, consumer, choice: Choice::default() };
    for delivery in block_on(handle.reserve(reserve))? {
        println!("here it is: {}", String::from_utf8_lossy(&delivery.body));
        block_on(handle.acknowledge(delivery.lease))?;
    }
    node.stop();
    drop(handle);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}
