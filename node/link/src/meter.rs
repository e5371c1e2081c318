//! What is measured about links.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters over all links of a node, from its start on.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) messages_out: AtomicU64,
    pub(crate) messages_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) frames_out: AtomicU64,
    pub(crate) links_dialled: AtomicU64,
    pub(crate) links_answered: AtomicU64,
    pub(crate) links_lost: AtomicU64,
    pub(crate) rebuffs: AtomicU64,
    pub(crate) unclear: AtomicU64,
}

/// What has gone over the links of a node since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages that were written.
    pub messages_out: u64,
    /// Messages that came.
    pub messages_in: u64,
    /// Bytes that were written, with all that is around messages.
    pub bytes_out: u64,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Frames of messages that were written: what waited together went together.
    pub frames_out: u64,
    /// Links that this node dialled and that came up.
    pub links_dialled: u64,
    /// Links that others dialled and that came up.
    pub links_answered: u64,
    /// Links of both kinds that broke before somebody wanted them to end.
    pub links_lost: u64,
    /// Connections that did not become links because one end refused.
    pub rebuffs: u64,
    /// Messages that were not understood.
    pub unclear: u64,
}

pub(crate) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Relaxed);
}

impl Meter {
    pub(crate) fn read(&self) -> Traffic {
        Traffic {
            messages_out: self.messages_out.load(Relaxed),
            messages_in: self.messages_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            frames_out: self.frames_out.load(Relaxed),
            links_dialled: self.links_dialled.load(Relaxed),
            links_answered: self.links_answered.load(Relaxed),
            links_lost: self.links_lost.load(Relaxed),
            rebuffs: self.rebuffs.load(Relaxed),
            unclear: self.unclear.load(Relaxed),
        }
    }
}

/// How long it takes to the other node and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The last time.
    pub last: Duration,
    /// Over the last times, each weighing an eighth of what was before.
    pub smoothed: Duration,
}

impl RoundTrip {
    pub(crate) fn after(before: Option<RoundTrip>, last: Duration) -> RoundTrip {
        RoundTrip { last, smoothed: before.map_or(last, |before| (before.smoothed * 7 + last) / 8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_round_trip_changes_the_smoothed_one_a_little() {
        let quick = RoundTrip::after(None, Duration::from_millis(8));
        assert_eq!(quick.smoothed, Duration::from_millis(8));
        let slow = RoundTrip::after(Some(quick), Duration::from_millis(16));
        assert_eq!(slow, RoundTrip { last: Duration::from_millis(16), smoothed: Duration::from_millis(9) });
    }
}
