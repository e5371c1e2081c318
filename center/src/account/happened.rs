//! How often what has happened.

use punctual_core::{Reason, What};

/// How often what has happened to the tasks and deliveries of a topic since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Tasks were taken in, in the place of another one or not.
    pub scheduled: u64,
    /// Tasks were changed.
    pub rescheduled: u64,
    /// Deliveries became available to consumers, for the first time or again.
    pub fired: u64,
    /// Deliveries were handed out.
    pub leased: u64,
    /// Leases were extended.
    pub extended: u64,
    /// Deliveries were given back, which was no failure.
    pub released: u64,
    /// Attempts failed, and others come.
    pub failed: u64,
    /// Deliveries were acknowledged.
    pub done: u64,
    /// Tasks or deliveries were cancelled.
    pub cancelled: u64,
    /// Deliveries were given up, in the order of [`Reason::ALL`].
    pub dead: [u64; Reason::ALL.len()],
    /// Dead letters arrived in another topic.
    pub forwarded: u64,
    /// Dead letters or finished tasks were handed out again.
    pub replayed: u64,
    /// Dead letters were removed.
    pub purged: u64,
}

impl Happened {
    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Happened) {
        self.change(other, u64::saturating_add);
    }

    /// Takes off what happened elsewhere.
    pub fn subtract(&mut self, other: &Happened) {
        self.change(other, u64::saturating_sub);
    }

    fn change(&mut self, other: &Happened, change: fn(u64, u64) -> u64) {
        let Happened { dead, .. } = other;
        let counts = [
            (&mut self.scheduled, other.scheduled),
            (&mut self.rescheduled, other.rescheduled),
            (&mut self.fired, other.fired),
            (&mut self.leased, other.leased),
            (&mut self.extended, other.extended),
            (&mut self.released, other.released),
            (&mut self.failed, other.failed),
            (&mut self.done, other.done),
            (&mut self.cancelled, other.cancelled),
            (&mut self.forwarded, other.forwarded),
            (&mut self.replayed, other.replayed),
            (&mut self.purged, other.purged),
        ];
        for (count, other) in counts.into_iter().chain(self.dead.iter_mut().zip(*dead)) {
            *count = change(*count, other);
        }
    }

    /// How much went on, to tell the busy from the idle.
    pub fn bustle(&self) -> u64 {
        self.scheduled + self.fired + self.leased + self.done
    }

    /// How many deliveries were given up for this reason.
    pub fn dead_of(&self, reason: Reason) -> u64 {
        self.dead[place(reason)]
    }

    /// Counts an event.
    pub fn count(&mut self, what: &What) {
        let count = match what {
            What::Scheduled { .. } | What::Replaced { .. } => &mut self.scheduled,
            What::Rescheduled { .. } => &mut self.rescheduled,
            What::Fired => &mut self.fired,
            What::Leased { .. } => &mut self.leased,
            What::Extended { .. } => &mut self.extended,
            What::Released { .. } => &mut self.released,
            What::Failed { .. } => &mut self.failed,
            What::Done => &mut self.done,
            What::Cancelled => &mut self.cancelled,
            What::Died(reason) => &mut self.dead[place(*reason)],
            What::Forwarded => &mut self.forwarded,
            What::Replayed => &mut self.replayed,
            What::Purged => &mut self.purged,
        };
        *count += 1;
    }
}

fn place(reason: Reason) -> usize {
    Reason::ALL.iter().position(|known| *known == reason).expect("all reasons are among all reasons")
}
