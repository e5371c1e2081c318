//! A whole delay center in one process: schedule, receive, acknowledge.
//!
//! Run it with `cargo run -p punctual-node --example in_process`.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::{Choice, Millis, Name, Reserve, Task};
use punctual_memory::MemoryStore;
use punctual_node::{Node, NodeConfig, SystemClock, block_on};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let node = Node::start(NodeConfig::new(Name::new("here")?), store, clock)?;
    let handle = node.handle();

    block_on(async {
        let reminders = Name::new("reminders")?;
        for (delay, text) in [(300, "third"), (100, "first"), (200, "second")] {
            let task = Task::new(reminders.clone(), text).after(Duration::from_millis(delay));
            let scheduled = handle.schedule(task).await?;
            println!("scheduled {} in {delay} ms: {text}", scheduled.id);
        }
        for _ in 0..3 {
            let reserve = Reserve {
                queues: vec![reminders.clone()],
                max: 1,
                lease: None,
                until: handle.now().plus(Millis::from_secs(10)),
                consumer: Name::new("worker-1")?,
                choice: Choice::default(),
            };
            for delivery in handle.reserve(reserve).await? {
                let text = String::from_utf8_lossy(&delivery.body);
                println!("received {} {} after it was due: {text}", delivery.id, handle.now().since(delivery.due));
                handle.acknowledge(delivery.lease).await?;
            }
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    node.stop();
    Ok(())
}
