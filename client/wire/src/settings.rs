//! What topics and queues are told to do. What is left out has its default.

use serde::{Deserialize, Serialize};

use crate::object::objects;
use crate::time::{Span, Time};

/// The settings of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct TopicSettings {
    /// Whom to contact about its tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The queues it feeds. Default: one queue with the topic's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feeds: Option<Vec<Binding>>,
    /// How long finished tasks are kept; zero keeps none. Default: a day.
    pub history: Span,
    /// Whether new tasks are refused. Default: no.
    pub paused: bool,
    /// How many tasks a second it accepts; more are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The priority of tasks that do not set one; lower comes first. Default: 65536.
    #[cfg_attr(feature = "openapi", schema(value_type = u64, maximum = 4294967295_i64))]
    pub priority: u32,
    /// The time to live of tasks that do not set one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
}

impl Default for TopicSettings {
    fn default() -> TopicSettings {
        TopicSettings {
            owner: None,
            feeds: None,
            history: Span::from_secs(24 * 3_600),
            paused: false,
            rate: None,
            priority: 1 << 16,
            ttl: None,
        }
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

/// The settings of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct QueueSettings {
    /// The length of a lease for consumers that do not ask for one. Default: 30 seconds.
    pub lease: Span,
    /// The maximum length of a lease, from when it is granted or extended; longer requests are cut.
    /// Default: 12 hours, or `lease` if that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lease: Option<Span>,
    /// What happens to deliveries that fail, unless their task says otherwise.
    pub retry: Retry,
    /// How many ready deliveries it can hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 9007199254740990_i64))]
    pub max_length: Option<u64>,
    /// What gives way when it is full.
    pub overflow: Overflow,
    /// The topic to forward dead letters to. Default: they stay here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::Name>))]
    pub dead_letter: Option<String>,
    /// How long dead letters are kept. Default: until someone removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_retention: Option<Span>,
    /// Whether it hands out nothing, until it is resumed or until `paused_until`. Default: no.
    pub paused: bool,
    /// Until when it hands out nothing: a time in the future. It cannot be combined with `paused: false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Time>,
    /// How many deliveries a second it hands out; more have to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Which of several deliveries of the same priority comes first. Default: due.
    #[serde(skip_serializing_if = "Order::is_usual")]
    pub order: Order,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            lease: Span::from_secs(30),
            max_lease: None,
            retry: Retry::default(),
            max_length: None,
            overflow: Overflow::Refuse,
            dead_letter: None,
            dead_retention: None,
            paused: false,
            paused_until: None,
            rate: None,
            order: Order::Due,
        }
    }
}

/// Which of several deliveries of the same priority comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The one that came due first; at equal times, the one that was accepted first.
    #[default]
    Due,
    /// The one that was accepted first, whenever it came due.
    Arrival,
}

impl Order {
    /// Whether there is no need to say it.
    fn is_usual(&self) -> bool {
        *self == Order::default()
    }
}

/// What gives way to new deliveries when a queue is full. Replayed ones find no room then, whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The new delivery: refused if it is due at once, a dead letter if it comes due later.
    #[default]
    Refuse,
    /// The oldest of the least urgent deliveries, which becomes a dead letter.
    DropOldest,
}

/// What happens to a delivery that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Retry {
    /// How many attempts may fail before it becomes a dead letter; zero means any number. Default: 5.
    #[cfg_attr(feature = "openapi", schema(value_type = u64, maximum = 4294967295_i64))]
    pub attempts: u32,
    /// How long to wait before the next attempt.
    pub backoff: Backoff,
    /// The maximum random extension of the wait, in percent. Default: 10.
    #[cfg_attr(feature = "openapi", schema(maximum = 100))]
    pub jitter_percent: u8,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 5, backoff: Backoff::default(), jitter_percent: 10 }
    }
}

/// The wait before the next attempt: it doubles after each failure, up to the longest. If both are equal,
/// the wait does not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Backoff {
    /// The wait after the first failure. Default: a second.
    pub first: Span,
    /// The longest wait. Default: an hour.
    pub longest: Span,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Span::from_secs(1), longest: Span::from_secs(3_600) }
    }
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

objects!(TopicSettings, QueueSettings, Retry, Backoff, Rate, Binding);
