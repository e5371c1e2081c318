//! Settings of topics and queues.

use punctual_core::{
    Backoff, Binding, Order, Overflow, Pattern, PauseNote, QueueSettings, Rate, Retry, Timestamp, TopicSettings,
};
use punctual_wire as wire;
use serde_json::Value;

use super::{millis, time, timestamp};
use crate::fault::Fault;
use crate::input::{Patch, maybe_name, name};

/// The greatest number that all who read JSON read alike.
const MOST: u64 = (1 << 53) - 2;

pub(crate) fn topic_from_wire(settings: wire::TopicSettings) -> Result<TopicSettings, Fault> {
    let feeds = settings.feeds.map(|feeds| feeds.into_iter().map(binding_from_wire).collect::<Result<_, _>>());
    Ok(TopicSettings {
        owner: settings.owner,
        feeds: feeds.transpose()?,
        history: millis(settings.history),
        paused: settings.paused,
        pause: None,
        rate: settings.rate.map(rate_from_wire),
        priority: settings.priority,
        ttl: settings.ttl.map(millis),
    })
}

pub(crate) fn topic_to_wire(settings: &TopicSettings) -> wire::TopicSettings {
    let binding = |binding: &Binding| wire::Binding {
        queue: binding.queue.to_string(),
        pattern: match &binding.pattern {
            Pattern::All => None,
            Pattern::Words(words) => Some(words.clone()),
        },
    };
    wire::TopicSettings {
        owner: settings.owner.clone(),
        feeds: settings.feeds.as_ref().map(|feeds| feeds.iter().map(binding).collect()),
        history: wire::Span(settings.history.0),
        paused: settings.paused,
        rate: settings.rate.map(rate_to_wire),
        priority: settings.priority,
        ttl: settings.ttl.map(|ttl| wire::Span(ttl.0)),
    }
}

fn binding_from_wire(binding: wire::Binding) -> Result<Binding, Fault> {
    let pattern = binding.pattern.map_or(Pattern::All, Pattern::Words);
    Ok(Binding { queue: name("feeds.queue", &binding.queue)?, pattern })
}

pub(crate) fn queue_from_wire(settings: wire::QueueSettings) -> Result<QueueSettings, Fault> {
    let paused_until = match (settings.paused, settings.paused_until) {
        (_, Some(until)) => Some(timestamp(until)),
        (true, None) => Some(Timestamp::NEVER),
        (false, None) => None,
    };
    if settings.max_length.is_some_and(|length| length > MOST) {
        return Err(Fault::invalid("max_length", format!("use 1 to {MOST}, or leave it out for no limit")));
    }
    Ok(QueueSettings {
        lease: millis(settings.lease),
        max_lease: settings.max_lease.map_or_else(|| QueueSettings::usual_max_lease(millis(settings.lease)), millis),
        retry: retry_from_wire(settings.retry),
        max_length: settings.max_length,
        overflow: match settings.overflow {
            wire::Overflow::Refuse => Overflow::Refuse,
            wire::Overflow::DropOldest => Overflow::DropOldest,
        },
        dead_letter: maybe_name("dead_letter", settings.dead_letter.as_deref())?,
        dead_retention: settings.dead_retention.map(millis),
        paused_until,
        pause: None,
        rate: settings.rate.map(rate_from_wire),
        order: match settings.order {
            wire::Order::Due => Order::Due,
            wire::Order::Arrival => Order::Arrival,
        },
    })
}

/// What is known of a pause, on the wire.
pub(crate) fn pause_note(note: &PauseNote) -> wire::PauseNote {
    let PauseNote { by, since, reason } = note.clone();
    wire::PauseNote { by, since: time(since), reason }
}

/// Refuses to be told both that a queue is not paused and until when it is.
pub(crate) fn check_pause(said: &Patch) -> Result<(), Fault> {
    let is_running = matches!(said.get("paused"), Some(Value::Bool(false) | Value::Null));
    if is_running && said.get("paused_until").is_some_and(|until| !until.is_null()) {
        let why = "a queue that is not `paused` cannot have an end of its pause: leave one of the two out";
        return Err(Fault::invalid("paused_until", why));
    }
    Ok(())
}

/// The same patch, in which a word on whether a queue is paused is the last one: the end of an earlier pause does not
/// outlive it.
pub(crate) fn with_whole_pause(mut patch: Patch) -> Result<Patch, Fault> {
    check_pause(&patch)?;
    if patch.contains_key("paused") {
        patch.entry("paused_until").or_insert(Value::Null);
    }
    Ok(patch)
}

pub(crate) fn queue_to_wire(settings: &QueueSettings, now: Timestamp) -> wire::QueueSettings {
    // A pause that is over is none.
    let paused_until = settings.paused_until.filter(|until| *until > now);
    wire::QueueSettings {
        lease: wire::Span(settings.lease.0),
        max_lease: Some(wire::Span(settings.max_lease.0)),
        retry: retry_to_wire(settings.retry),
        max_length: settings.max_length,
        overflow: match settings.overflow {
            Overflow::Refuse => wire::Overflow::Refuse,
            Overflow::DropOldest => wire::Overflow::DropOldest,
        },
        dead_letter: settings.dead_letter.as_ref().map(ToString::to_string),
        dead_retention: settings.dead_retention.map(|kept| wire::Span(kept.0)),
        paused: paused_until.is_some(),
        paused_until: paused_until.filter(|until| *until != Timestamp::NEVER).map(time),
        rate: settings.rate.map(rate_to_wire),
        order: match settings.order {
            Order::Due => wire::Order::Due,
            Order::Arrival => wire::Order::Arrival,
        },
    }
}

pub(crate) fn retry_from_wire(retry: wire::Retry) -> Retry {
    let wire::Backoff { first, longest } = retry.backoff;
    // What is backwards stays so, for the core to refuse.
    let backoff = if first == longest {
        Backoff::Fixed(millis(longest))
    } else {
        Backoff::Exponential { first: millis(first), cap: millis(longest) }
    };
    Retry { attempts: retry.attempts, backoff, jitter_percent: retry.jitter_percent }
}

pub(crate) fn retry_to_wire(retry: Retry) -> wire::Retry {
    let (first, longest) = match retry.backoff {
        Backoff::Fixed(wait) => (wait, wait),
        Backoff::Exponential { first, cap } => (first, cap),
    };
    let backoff = wire::Backoff { first: wire::Span(first.0), longest: wire::Span(longest.0) };
    wire::Retry { attempts: retry.attempts, backoff, jitter_percent: retry.jitter_percent }
}

fn rate_from_wire(rate: wire::Rate) -> Rate {
    Rate { per_second: rate.per_second, burst: rate.burst.unwrap_or(rate.per_second) }
}

fn rate_to_wire(rate: Rate) -> wire::Rate {
    wire::Rate { per_second: rate.per_second, burst: Some(rate.burst) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::Settings;

    use super::*;
    use crate::input::merged;

    #[test]
    fn the_defaults_of_the_wire_are_the_defaults_of_the_core() {
        let topic = topic_from_wire(wire::TopicSettings::default());
        assert_eq!(topic.ok(), Some(TopicSettings::default()));
        let queue = queue_from_wire(wire::QueueSettings::default());
        assert_eq!(queue.ok(), Some(QueueSettings::default()));
    }

    /// Sets each setting to something else, and looks whether it is that when it has passed through the core.
    fn each_passes<S: Settings>(pass: impl Fn(S) -> S) {
        for (path, setting) in S::values() {
            let example = setting.kind.example();
            let patch = path.rsplit('.').fold(example.clone(), |value, name| json!({ name: value }));
            let Value::Object(patch) = patch else { unreachable!("a setting is within an object") };
            let passed = json!(pass(merged(&S::default(), patch).expect("an example can be read")));
            assert_eq!(*path.split('.').fold(&passed, |within, name| &within[name]), example, "{path}");
        }
    }

    #[test]
    fn every_setting_passes_through_the_core() {
        each_passes(|topic| topic_to_wire(&topic_from_wire(topic).expect("it can be kept")));
        each_passes(|queue| queue_to_wire(&queue_from_wire(queue).expect("it can be kept"), Timestamp::from_millis(1)));
    }

    #[test]
    fn settings_come_back_as_they_went_in() {
        let retry = wire::Retry {
            attempts: 3,
            backoff: wire::Backoff { first: wire::Span(5), longest: wire::Span(5) },
            jitter_percent: 0,
        };
        let queue = wire::QueueSettings {
            max_lease: Some(wire::Span(60_000)),
            retry,
            max_length: Some(7),
            overflow: wire::Overflow::DropOldest,
            dead_letter: Some("graves".into()),
            paused: true,
            rate: Some(wire::Rate { per_second: 5, burst: Some(9) }),
            order: wire::Order::Arrival,
            ..wire::QueueSettings::default()
        };
        let core = queue_from_wire(queue.clone()).expect("the settings can be kept");
        assert_eq!(queue_to_wire(&core, Timestamp::from_millis(1)), queue);
        let feeds = Some(vec![wire::Binding { queue: "q".into(), pattern: Some("a.#".into()) }]);
        let topic = wire::TopicSettings { feeds, ttl: Some(wire::Span(4)), ..wire::TopicSettings::default() };
        let core = topic_from_wire(topic.clone()).expect("the settings can be kept");
        assert_eq!(topic_to_wire(&core), topic);
    }
}
