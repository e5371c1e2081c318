//! The store's time, as a node knows it by its beats: by the same code as the real node's, over a clock that nobody sets but
//! that runs a little fast or slow.

use punctual_center::{Anchor, StoreTime};
use punctual_core::Timestamp;

use super::DOUBT;
use crate::Sabotage;
use crate::auditor::Bounds;
use crate::clock::Moment;

/// What a node that goes by the store's clock knows of it.
#[derive(Debug)]
pub struct ByStore {
    /// What must be true of it.
    pub bounds: Bounds,
    /// By how many millionths the machine's steady clock runs fast.
    ppm: i64,
    time: Option<(StoreTime, Anchor)>,
    sabotage: Option<Sabotage>,
}

impl ByStore {
    /// On a machine whose steady clock is so many millionths fast.
    pub fn new(ppm: i64, sabotage: Option<Sabotage>) -> ByStore {
        ByStore { bounds: Bounds::default(), ppm, time: None, sabotage }
    }

    /// The process starts, and knows nothing.
    pub fn start(&mut self) {
        (self.time, self.bounds) = (None, Bounds::default());
    }

    /// A beat was answered: the store's clock showed this since it was asked.
    pub fn heard(&mut self, micros: u64, asked_at: Moment, moment: Moment) {
        let (asked_at, answered_at) = (self.steady(asked_at), self.steady(moment));
        let doubt = if self.sabotage == Some(Sabotage::NoDoubt) { 0 } else { DOUBT * 1_000 };
        let mut time = match self.time.take() {
            None => StoreTime::new(micros, asked_at, answered_at, doubt),
            Some((mut time, _)) => {
                time.hear(micros, asked_at, answered_at);
                time
            }
        };
        let anchor = time.anchor();
        self.time = Some((time, anchor));
    }

    fn steady(&self, moment: Moment) -> u64 {
        (moment * 1_000).saturating_add_signed(moment as i64 * self.ppm / 1_000)
    }

    /// The time to go by, once there was a beat.
    pub fn now(&self, moment: Moment) -> Option<Timestamp> {
        let anchor = self.time.as_ref().map(|(_, anchor)| anchor)?;
        let micros = match self.sabotage {
            Some(Sabotage::MachineTime) => return None,
            Some(Sabotage::LatestTime) => anchor.most(self.steady(moment)),
            _ => anchor.micros(self.steady(moment)),
        };
        Some(Timestamp::from_millis(micros / 1_000))
    }

    /// From when lengths of time count that begin now.
    pub fn ceiling(&self, moment: Moment) -> Option<Timestamp> {
        let (_, anchor) = self.time.as_ref()?;
        if self.sabotage == Some(Sabotage::ShortLengths) {
            return self.now(moment);
        }
        Some(Timestamp::from_millis((anchor.most(self.steady(moment)) + 1).div_ceil(1_000)))
    }

    /// The first moment from `moment` on at which it is this time, if no beat tells otherwise.
    pub fn when(&self, shows: Timestamp, moment: Moment) -> Option<Moment> {
        let shown = self.now(moment)?;
        // Time passes more slowly here than anywhere else, but not by much: so this is too soon, and not by much.
        let ahead = shows.since(shown).0;
        let mut when = moment.saturating_add((ahead - ahead / 900).saturating_sub(1));
        while self.now(when)? < shows {
            let left = shows.since(self.now(when)?).0;
            when = when.saturating_add((left - left / 900).max(1));
        }
        Some(when)
    }
}
