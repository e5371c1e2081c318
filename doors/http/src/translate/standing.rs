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
        Standing::Finished { ending, at } => wire::Standing::Finished { ending: ending_to_wire(ending), at: time(at) },
        Standing::Dead { reason, at } => {
            wire::Standing::Dead { reason: reason.as_str().into(), at: time(at), note: None }
        }
    }
}

/// The same ending on the wire.
pub(crate) fn ending_to_wire(ending: Ending) -> wire::Ending {
    match ending {
        Ending::Done => wire::Ending::Done,
        Ending::Cancelled => wire::Ending::Cancelled,
        Ending::Forwarded => wire::Ending::Forwarded,
        Ending::Purged => wire::Ending::Purged,
    }
}

/// The ending that is meant.
pub(crate) fn ending_from_wire(ending: wire::Ending) -> Ending {
    match ending {
        wire::Ending::Done => Ending::Done,
        wire::Ending::Cancelled => Ending::Cancelled,
        wire::Ending::Forwarded => Ending::Forwarded,
        wire::Ending::Purged => Ending::Purged,
    }
}

/// The ending that is meant by a choice; `None` for any.
pub(crate) fn chosen_ending(choice: wire::EndingChoice) -> Option<Ending> {
    match choice {
        wire::EndingChoice::Done => Some(Ending::Done),
        wire::EndingChoice::Cancelled => Some(Ending::Cancelled),
        wire::EndingChoice::Forwarded => Some(Ending::Forwarded),
        wire::EndingChoice::Purged => Some(Ending::Purged),
        wire::EndingChoice::Any => None,
    }
}

/// How to go on for somebody who scheduled a task whose id was taken.
pub(crate) fn way_on(standing: &wire::Standing, replace: bool) -> &'static str {
    match standing {
        wire::Standing::Finished { .. } => {
            "to schedule it anew, use \"replace\": true; to hand it out again as it was, replay it"
        }
        wire::Standing::Dead { .. } => "it is a dead letter: replay it, or purge it and schedule again",
        wire::Standing::Leased { .. } => "a consumer is working on it: wait until it ends, or use another id",
        wire::Standing::Spread { .. } => "its deliveries are under way: wait until they end, or use another id",
        wire::Standing::Scheduled { .. } | wire::Standing::Ready { .. } if replace => {
            "it was handed out before and is waiting for its next attempt: move it, cancel it, or use another id"
        }
        wire::Standing::Scheduled { .. } | wire::Standing::Ready { .. } => {
            "to replace it, use \"replace\": true; to move it, reschedule it"
        }
    }
}

/// Where a task or delivery stands, as a sentence.
pub(crate) fn in_words(standing: &wire::Standing) -> String {
    match standing {
        wire::Standing::Scheduled { at } => format!("it is due at {at}"),
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
