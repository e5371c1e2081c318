//! The topics and queues of the shop, with settings that can be seen to do something: a limit, a pause, retries, bindings,
//! times to live.

use std::time::Duration;

use punctual_client::{Backoff, Binding, Client, Error, PauseQueue, QueueSettings, Rate, Retry, Span, TopicSettings};

/// Whoever lets the demo run for days finds no more than this much of the past.
const KEPT: Span = Span::from_secs(2 * 3_600);

/// Coupons go out at this pace, so that a herd of them takes a while.
const COUPONS_A_SECOND: u32 = 60;

pub async fn set_up(client: &Client) -> Result<(), Error> {
    let retry = |attempts| Retry {
        attempts,
        backoff: Backoff { first: Span::from_secs(1), longest: Span::from_secs(8) },
        ..Retry::default()
    };
    let usual = || QueueSettings { retry: retry(3), dead_retention: Some(KEPT), ..QueueSettings::default() };
    let seconds = |seconds| Span::from(Duration::from_secs(seconds));
    for (name, settings) in [
        ("order-unpaid", usual()),
        ("coupon-end", QueueSettings { rate: Some(Rate { per_second: COUPONS_A_SECOND, burst: None }), ..usual() }),
        ("sms", QueueSettings { lease: seconds(8), ..usual() }),
        ("email", usual()),
        ("ticket-escalation", QueueSettings { lease: seconds(60), retry: retry(5), ..usual() }),
        ("invoice", QueueSettings { max_length: Some(1_000), ..usual() }),
        ("parcel-lost", QueueSettings { max_length: Some(500), ..usual() }),
    ] {
        client.put_queue(name, settings).await?;
    }
    let bound = |queue: &str, pattern: &str| Binding { queue: queue.into(), pattern: Some(pattern.into()) };
    let owned = |owner: &str| TopicSettings { owner: Some(owner.into()), history: KEPT, ..TopicSettings::default() };
    for (name, settings) in [
        ("order-unpaid", owned("shop@example.org")),
        ("coupon-end", owned("marketing@example.org")),
        (
            "reminder",
            TopicSettings {
                feeds: Some(vec![bound("sms", "*.sms"), bound("email", "*.email")]),
                ..owned("care@example.org")
            },
        ),
        ("ticket-escalation", owned("support@example.org")),
        ("invoice", owned("finance@example.org")),
        ("parcel-lost", TopicSettings { ttl: Some(seconds(150)), ..owned("depot@example.org") }),
    ] {
        client.put_topic(name, settings).await?;
    }
    client.pause_queue("invoice", PauseQueue::default()).await?;
    Ok(())
}
