//! Where tasks stand, for programs and in words.

use punctual_core::{Ending, Standing, Timestamp};
use punctual_wire as wire;

/// The same instant on the wire.
pub(crate) fn time(at: Timestamp) -> wire::Time {
    wire::Time(at.as_millis())
}

pub(crate) fn standing(standing: Standing) -> wire::Standing {
    let texts = |names: Vec<punctual_core::Name>| names.iter().map(ToString::to_string).collect();
    match standing {
        Standing::Scheduled { at } => wire::Standing::Scheduled { at: time(at) },
        Standing::Ready { since } => wire::Standing::Ready { since: time(since) },
        Standing::Leased { queue, holder, until } => {
            wire::Standing::Leased { queue: queue.to_string(), holder: holder.to_string(), until: time(until) }
        }
        Standing::Spread { open, finished } => wire::Standing::Spread { open: texts(open), finished: texts(finished) },
        Standing::Finished { ending, at } => wire::Standing::Finished { ending: self::ending(ending), at: time(at) },
        Standing::Dead { reason, at } => {
            wire::Standing::Dead { reason: reason.as_str().into(), at: time(at), note: None }
        }
    }
}

fn ending(ending: Ending) -> wire::Ending {
    match ending {
        Ending::Done => wire::Ending::Done,
        Ending::Cancelled => wire::Ending::Cancelled,
        Ending::Forwarded => wire::Ending::Forwarded,
        Ending::Purged => wire::Ending::Purged,
    }
}

/// Where a task or delivery stands, as a sentence.
pub(crate) fn in_words(standing: &wire::Standing) -> String {
    match standing {
        wire::Standing::Scheduled { at } => format!("it comes due at {at}"),
        wire::Standing::Ready { since } => format!("it has been waiting for a consumer since {since}"),
        wire::Standing::Leased { queue, holder, until } => {
            format!("it is with consumer {holder} of queue {queue} until {until}")
        }
        wire::Standing::Spread { open, .. } => format!("it was broadcast and is open in: {}", open.join(", ")),
        wire::Standing::Finished { ending, at } => {
            let ending = match ending {
                wire::Ending::Done => "acknowledged",
                wire::Ending::Cancelled => "cancelled",
                wire::Ending::Forwarded => "sent on to the dead-letter topic",
                wire::Ending::Purged => "purged",
            };
            format!("it was {ending} at {at}")
        }
        wire::Standing::Dead { reason, at, .. } => format!("it has been a dead letter ({reason}) since {at}"),
    }
}
