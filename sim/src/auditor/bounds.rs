//! How far a node's time may be from the store's clock: by the beats that it has heard, and by the steps of the store's clock
//! that these cannot have told it of. Reckoned without a look at how nodes reckon.

use punctual_core::Timestamp;

use super::{Auditor, Promise};
use crate::clock::Moment;
use crate::node::DOUBT;

/// More than this, in milliseconds, is a step forward that is doubted, if it is seen at once.
const STEP: u64 = 1_000;
/// So long a step is doubted also if it is seen by beats that take as long as they can.
const LONG_STEP: u64 = 15_000;
/// Beats that take longer than this do not tell when a step is believed: each better one is a step of its own.
const QUICK: Moment = 900;

/// How far the time of a node in one of its lives may be from the store's clock, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// By how much it may be ahead: the store's clock went back, and it cannot have noticed.
    ahead: u64,
    /// By how much lengths of time may begin too soon: the store's clock went forward, and it cannot have noticed.
    short: u64,
    /// Steps forward that are not to be believed, and until when.
    doubted: Vec<(u64, Moment)>,
    /// The steps of this life.
    steps: Vec<(Moment, i64)>,
    /// How long the latest beat took that began after the latest step, and when it was answered.
    heard: Option<(Moment, Moment)>,
    /// Whether it has heard the store's time at all.
    has_heard: bool,
    /// Whether it has had the time to believe all steps.
    is_settled: bool,
    /// When it heard first of the latest step forward.
    believes_from: Option<Moment>,
}

impl Bounds {
    /// The store's clock was set at this moment.
    pub fn stepped(&mut self, moment: Moment, by: i64) {
        let length = by.unsigned_abs();
        if by < 0 {
            self.ahead += length;
            self.short = self.short.saturating_sub(length);
            self.take_back(length);
        } else {
            // What only takes back a step that was not noticed is none.
            let news = length.saturating_sub(self.ahead);
            self.ahead = self.ahead.saturating_sub(length);
            self.short += length;
            self.is_settled = false;
            if news > LONG_STEP {
                self.doubted.push((news, moment + DOUBT - STEP));
            }
        }
        self.believes_from = None;
        self.heard = None;
        self.steps.push((moment, by));
    }

    /// The latest of the steps that are in doubt are taken back, so far.
    fn take_back(&mut self, mut length: u64) {
        while let Some((by, until)) = self.doubted.pop() {
            let left = by.saturating_sub(length);
            length = length.saturating_sub(by);
            if left > LONG_STEP {
                self.doubted.push((left, until));
            }
            if length == 0 {
                break;
            }
        }
    }

    /// A beat was answered.
    pub fn heard(&mut self, asked_at: Moment, answered_at: Moment) {
        let took = answered_at - asked_at;
        let longest = took + took / 1_000 + 1;
        let since = || self.steps.iter().filter(|(moment, _)| *moment >= asked_at).map(|(_, by)| *by);
        let back: u64 = since().filter(|by| *by < 0).map(i64::unsigned_abs).sum();
        let forward: u64 = since().filter(|by| *by > 0).map(i64::unsigned_abs).sum();
        let is_first = !std::mem::replace(&mut self.has_heard, true);
        if since().next().is_some() {
            // Whether the beat came before them or after is not known.
            (self.ahead, self.short) = (self.ahead.max(back), self.short.max(forward));
        } else {
            (self.ahead, self.short) = (self.ahead.min(longest), self.short.min(longest));
            self.heard = Some((took, answered_at));
            self.is_settled |= is_first;
            if !self.is_settled {
                self.settle(took, answered_at);
            }
        }
        if is_first {
            // What the store shows first is believed.
            self.doubted.clear();
            (self.ahead, self.short) = (back, forward);
        }
    }

    fn settle(&mut self, took: Moment, answered_at: Moment) {
        if took > QUICK {
            self.believes_from = None;
            return;
        }
        let first = *self.believes_from.get_or_insert(answered_at);
        self.is_settled = answered_at > first + DOUBT + STEP;
    }

    /// What is wrong with the time of a node, and with the beginning of its lengths of time, while the store's clock
    /// shows this.
    fn trouble(
        &self,
        store: Timestamp,
        now: Timestamp,
        ceiling: Timestamp,
        moment: Moment,
    ) -> Option<(Promise, String)> {
        let store = store.as_millis();
        let (now, ceiling) = (now.as_millis(), ceiling.as_millis());
        if now > store + self.ahead {
            let what = format!("it goes by {now}, but the store's clock shows {store} ({self:?})");
            return Some((Promise::NeverEarly, what));
        }
        let doubted: u64 = self.doubted.iter().filter(|(_, until)| moment < *until).map(|(by, _)| by - LONG_STEP).sum();
        if now + doubted > store + self.ahead {
            let what = format!("it goes by {now} since the store's clock has stepped by {doubted} ms to {store}");
            return Some((Promise::NeverEarly, what));
        }
        let (took, answered_at) = self.heard.filter(|_| self.is_settled)?;
        if ceiling + self.short < store {
            let what = format!("lengths of time begin at {ceiling}, but the store's clock shows {store} ({self:?})");
            return Some((Promise::NeverEarly, what));
        }
        let behind = took + (moment - answered_at) / 1_000 + 2;
        (now + behind < store).then(|| {
            let what = format!("it goes by {now}, but the store's clock shows {store}, and a beat took {took} ms");
            (Promise::AnyTime, what)
        })
    }
}

impl Auditor {
    /// A node goes by this time, and lengths of time begin at that one, while the store's clock shows a third.
    pub fn goes_by(
        &mut self,
        (node, bounds): (usize, &Bounds),
        store: Timestamp,
        (now, ceiling): (Timestamp, Timestamp),
        moment: Moment,
    ) {
        self.census.count("looks at the time of nodes");
        if let Some((promise, what)) = bounds.trouble(store, now, ceiling, moment) {
            self.accuse(promise, &format!("node {node}"), what);
        }
    }
}
