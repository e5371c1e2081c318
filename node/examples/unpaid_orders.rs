//! Orders that are not paid in time are closed; paying takes the closing back, unless it is too late.
//!
//! Run it with `cargo run --package punctual-node --example unpaid_orders`.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual_core::{Choice, Millis, Name, Reserve, Ruling, Standing, Task};
use punctual_memory::MemoryStore;
use punctual_node::{Handle, Node, NodeConfig, SystemClock, block_on};

/// 15 minutes in a shop, a moment here.
const TIME_TO_PAY: Duration = Duration::from_millis(300);

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let node = Node::start(NodeConfig::new(Name::new("shop")?), store, clock)?;
    let handle = node.handle();

    for order in ["order-1", "order-2"] {
        let close = Task::new(Name::new("close-order")?, format!("close {order}")).id(Name::new(order)?);
        block_on(handle.schedule(close.after(TIME_TO_PAY)))?;
        println!("{order}: to be closed in {} ms", TIME_TO_PAY.as_millis());
    }
    thread::sleep(TIME_TO_PAY / 3);
    pay(&handle, "order-1")?;
    close_orders(&handle)?;
    pay(&handle, "order-2")?;
    node.stop();
    Ok(())
}

/// What the shop does when money comes in.
fn pay(handle: &Handle, order: &str) -> Result<(), Failure> {
    match block_on(handle.cancel(&Name::new("close-order")?, &Name::new(order)?))? {
        Ruling::Done(()) => println!("{order}: paid in time, it stays open"),
        Ruling::TooLate(Standing::Finished { .. }) => {
            println!("{order}: paid too late, it was closed: give the money back")
        }
        Ruling::TooLate(standing) => println!("{order}: too late, it is being closed: {standing:?}"),
        Ruling::Unknown => println!("{order}: there is no such order"),
    }
    Ok(())
}

/// What the shop's worker does all day; here until nothing has come for a while.
fn close_orders(handle: &Handle) -> Result<(), Failure> {
    loop {
        let reserve = Reserve {
            queues: vec![Name::new("close-order")?],
            max: 10,
            lease: None,
            until: handle.now().plus(Millis(500)),
            consumer: Name::new("worker-1")?,
            choice: Choice::default(),
        };
        let deliveries = block_on(handle.reserve(reserve))?;
        if deliveries.is_empty() {
            return Ok(());
        }
        for delivery in deliveries {
            let late = handle.now().since(delivery.due);
            println!("{}: not paid, closed {late} after it was due", delivery.id);
            block_on(handle.acknowledge(delivery.lease))?;
        }
    }
}
