//! Coupons that all end at one moment, as campaigns do: many at each full hour, and fewer a few minutes ahead, so that whoever
//! looks sees one gather and be worked off.

use std::time::Duration;

use punctual_client::{Client, Error, NewTask, Task, Time};
use tokio::time::sleep;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// How many end at a full hour, and at the nearer moments.
const HOURLY: u64 = 4_000;
const NEAR: u64 = 1_200;

/// How often there is one of the nearer ones.
const ROUND: u64 = 10 * MINUTE;

/// Goes on for ever.
pub async fn gather(client: Client, run: u64) -> Result<(), Error> {
    let mut hour = 0;
    loop {
        let now = Time::now().0;
        // The full hour that is not over before anybody has seen it.
        let next_hour = (now + 5 * MINUTE).next_multiple_of(HOUR);
        if next_hour != hour {
            hour = next_hour;
            end_at(&client, run, "flash-sale", hour, HOURLY).await?;
        }
        let near = (now + 3 * MINUTE).next_multiple_of(MINUTE);
        end_at(&client, run, "lunch-deal", near, NEAR).await?;
        sleep(Duration::from_millis(ROUND)).await;
    }
}

async fn end_at(client: &Client, run: u64, campaign: &str, end: u64, coupons: u64) -> Result<(), Error> {
    let coupon = |number: u64| -> NewTask {
        let id = format!("{campaign}-{run}-{}-{number}", end / MINUTE);
        Task::new("coupon-end").id(id).key(format!("campaign-{campaign}")).at(Time(end)).text("it ends now").into()
    };
    // Outcomes of single coupons matter to nobody here: a topic that somebody has paused refuses them all.
    let _ = client.schedule_many((0..coupons).map(coupon).collect()).await?;
    Ok(())
}
