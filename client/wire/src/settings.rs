//! Every setting of topics and queues, once. The types that travel, the OpenAPI document, the flags of the command line and
//! docs/settings.md follow from these lists. What is left out of a request has its default.

use serde::{Deserialize, Serialize};

use crate::object::objects;
use crate::table::{choices, settings};
use crate::time::{Span, Time};

settings! {
    /// The settings of a topic.
    TopicSettings {
        /// Whom to contact about its tasks.
        owner: Option<String> = None;
        /// The queues it feeds. Default: one queue with the topic's name.
        feeds: Option<Vec<Binding>> = None;
        /// How long finished tasks are kept; zero keeps none. Default: a day.
        history: Span = Span::from_secs(24 * 3_600);
        /// Whether new tasks are refused. Default: no.
        paused: bool = false;
        /// How many tasks a second it accepts; more are refused.
        rate: Option<Rate> = None;
        /// The priority of tasks that do not set one; lower comes first. Default: 65536.
        priority: u32 = 1 << 16, in 0..=4294967295_i64, schema(value_type = u64);
        /// The time to live of tasks that do not set one.
        ttl: Option<Span> = None;
    }
}

settings! {
    /// The settings of a queue.
    QueueSettings {
        /// The length of a lease for consumers that do not ask for one. Default: 30 seconds.
        lease: Span = Span::from_secs(30);
        /// The maximum length of a lease, from when it is granted or extended; longer requests are cut.
        /// Default: 12 hours, or `lease` if that is longer.
        max_lease: Option<Span> = None;
        /// What happens to deliveries that fail, unless their task says otherwise.
        retry: Retry = Retry::default();
        /// How many ready deliveries it can hold.
        max_length: Option<u64> = None, in 1..=9007199254740990_i64;
        /// What gives way when it is full. Default: refuse.
        overflow: Overflow = Overflow::default();
        /// The topic to forward dead letters to. Default: they stay here.
        dead_letter: Option<String> = None, schema(value_type = Option<crate::Name>);
        /// How long dead letters are kept. Default: until someone removes them.
        dead_retention: Option<Span> = None;
        /// Whether it hands out nothing, until it is resumed or until `paused_until`. Default: no.
        paused: bool = false;
        /// Until when it hands out nothing: a time in the future. It cannot be combined with `paused: false`.
        paused_until: Option<Time> = None;
        /// How many deliveries a second it hands out; more have to wait.
        rate: Option<Rate> = None;
        /// Which of several deliveries of the same priority comes first. Default: due.
        order: Order = Order::default();
    }
}

settings! {
    /// What happens to a delivery that fails.
    Retry: Copy {
        /// How many attempts may fail before it becomes a dead letter; zero means any number. Default: 5.
        attempts: u32 = 5, in 0..=4294967295_i64, schema(value_type = u64);
        /// How long to wait before the next attempt.
        backoff: Backoff = Backoff::default();
        /// The maximum random extension of the wait, in percent. Default: 10.
        jitter_percent: u8 = 10, in 0..=100;
    }
}

settings! {
    /// The wait before the next attempt: it doubles after each failure, up to the longest. If both are equal,
    /// the wait does not grow.
    Backoff: Copy {
        /// The wait after the first failure; it doubles after each further one. Default: a second.
        first: Span = Span::from_secs(1);
        /// The longest wait between attempts. Default: an hour.
        longest: Span = Span::from_secs(3_600);
    }
}

choices! {
    /// Which of several deliveries of the same priority comes first.
    Order, unsaid {
        /// The one that came due first; at equal times, the one that was accepted first.
        Due = "due",
        /// The one that was accepted first, whenever it came due.
        Arrival = "arrival",
    }
}

choices! {
    /// What gives way to new deliveries when a queue is full. Replayed ones find no room then, whatever this says.
    Overflow {
        /// The new delivery: refused if it is due at once, a dead letter if it comes due later.
        Refuse = "refuse",
        /// The oldest of the least urgent deliveries, which becomes a dead letter.
        DropOldest = "drop_oldest",
    }
}

/// One queue that a topic feeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Binding {
    /// The queue.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::Name))]
    pub queue: String,
    /// Which routing keys go there: words separated by dots, `*` for one word, `#` for any
    /// number of words. Default: all tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// A limit on how often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Rate {
    /// How often per second, in the long run.
    #[cfg_attr(feature = "openapi", schema(value_type = u64, minimum = 1, maximum = 4294967295_i64))]
    pub per_second: u32,
    /// How often at once after a quiet period. Default: as often as per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, minimum = 1, maximum = 4294967295_i64))]
    pub burst: Option<u32>,
}

objects!(Rate, Binding);
