//! A lively shop on one delay center: orders that are not paid, coupons that end, reminders, tickets, and consumers of which
//! some fail. `./run demo` starts a server with it, so that there is something to see in the console.
//!
//! It goes on until it is stopped, at about 15 tasks a second. A minute of the shop takes 2 seconds here. Needs a server of
//! its own, at PUNCTUAL_URL: it sets up topics and queues there.

mod crew;
mod herds;
mod rooms;
mod shop;

use std::error::Error;
use std::time::Duration;

use punctual_client::{Client, Time};
use tokio::task::JoinSet;

/// So long a minute of the shop takes.
const MINUTE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("PUNCTUAL_URL").unwrap_or_else(|_| "http://127.0.0.1:7400".into());
    let client = Client::new(&url)?;
    rooms::set_up(&client).await?;

    // Ids have a little of the time, so that it can be run again on the same data.
    let run = Time::now().0 / 1_000 % 1_000_000;
    let mut shop = shop::Shop::open(client.clone(), run);
    shop.stock_up().await?;
    let mut going = JoinSet::new();
    going.spawn(herds::gather(client.clone(), run));
    going.spawn(shop.trade());
    crew::hire(&client, &mut going)?;
    println!("orders, coupons, reminders and tickets are on their way to {url}");

    // None of them ends but by a failure that waiting does not mend.
    while let Some(ended) = going.join_next().await {
        ended??;
    }
    Ok(())
}
