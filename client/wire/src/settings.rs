//! What topics and queues are told to do. What is left out has its default.

use serde::{Deserialize, Serialize};

use crate::object::objects;
use crate::time::{Span, Time};

/// The settings of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct TopicSettings {
    /// Who to tell when something is wrong with its tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The queues it feeds; without, one queue of the topic's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feeds: Option<Vec<Binding>>,
    /// How long finished tasks are kept; zero keeps none. Default: a day.
    pub history: Span,
    /// Whether scheduling is refused. Default: no.
    pub paused: bool,
    /// How many tasks it takes in a second; what comes above is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The priority of tasks that name none; lower comes first. Default: 65536.
    #[cfg_attr(feature = "openapi", schema(value_type = u64, maximum = 4294967295_i64))]
    pub priority: u32,
    /// The time to live of tasks that name none.
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
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub queue: String,
    /// Which routing keys go there: words with dots between them, `*` for one word, `#` for any
    /// number; without, all tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// The settings of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct QueueSettings {
    /// How long a consumer may work on a delivery if it does not say. Default: 30 seconds.
    pub lease: Span,
    /// How long a lease lasts at most, from when it is granted or extended; a longer one that is asked for is cut.
    /// Default: 12 hours, or `lease` if that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lease: Option<Span>,
    /// What happens to deliveries that fail, unless their task says otherwise.
    pub retry: Retry,
    /// How many ready deliveries it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 9007199254740990_i64))]
    pub max_length: Option<u64>,
    /// What gives way when it holds more.
    pub overflow: Overflow,
    /// The topic to which dead letters go on; without, they stay here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 255,
            pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$"
        )
    )]
    pub dead_letter: Option<String>,
    /// How long dead letters are kept; without, until a person removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_retention: Option<Span>,
    /// Whether nothing is handed out, until it is resumed or until the time below. Default: no.
    pub paused: bool,
    /// Until when nothing is handed out: a time to come. It does not go with `paused: false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Time>,
    /// How many deliveries it hands out in a second; what comes above waits.
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
    /// The one whose time came first; at equal times the one that was taken in first.
    #[default]
    Due,
    /// The one that was taken in first, whenever its time came.
    Arrival,
}

impl Order {
    /// Whether there is no need to say it.
    fn is_usual(&self) -> bool {
        *self == Order::default()
    }
}

/// What gives way to what is new when a queue is full. What is replayed finds no room then, whatever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The newcomer: refused if it is due at once, a dead letter if it comes due later.
    #[default]
    Refuse,
    /// The oldest of the least urgent, as a dead letter.
    DropOldest,
}

/// What happens to a delivery that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Retry {
    /// How many attempts may fail before it is a dead letter; zero means any number. Default: 5.
    #[cfg_attr(feature = "openapi", schema(value_type = u64, maximum = 4294967295_i64))]
    pub attempts: u32,
    /// How long to wait before the next one.
    pub backoff: Backoff,
    /// By how much of itself, in percent, the wait may grow at random. Default: 10.
    #[cfg_attr(feature = "openapi", schema(maximum = 100))]
    pub jitter_percent: u8,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 5, backoff: Backoff::default(), jitter_percent: 10 }
    }
}

/// The wait before the next attempt: twice as long after each failure, up to the longest. The same
/// number twice is a wait that does not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Backoff {
    /// After the first failure. Default: a second.
    pub first: Span,
    /// At most so long. Default: an hour.
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
    /// So often in a second, in the long run.
    #[cfg_attr(feature = "openapi", schema(value_type = u64, minimum = 1, maximum = 4294967295_i64))]
    pub per_second: u32,
    /// So often at once after a quiet time; without, as often as in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>, minimum = 1, maximum = 4294967295_i64))]
    pub burst: Option<u32>,
}

objects!(TopicSettings, QueueSettings, Retry, Backoff, Rate, Binding);
