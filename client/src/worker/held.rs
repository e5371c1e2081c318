//! The leases that a worker holds, when each is to be extended, and which are lost.
//!
//! Time comes in as an argument. The end of a lease is reckoned by this machine's clock from when its grant was
//! heard of, so clocks that differ do no harm; the server has the last word either way.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// All leases held, by the worker's own numbers for them.
#[derive(Debug, Default)]
pub(crate) struct Held {
    next_number: u64,
    leases: BTreeMap<u64, Lease>,
    /// Nothing is to be done before this. It is not put off when a lease goes: to look once in vain costs less.
    wake_at: Option<Instant>,
}

#[derive(Debug)]
struct Lease {
    token: String,
    /// How long it was granted for, and is extended by.
    length: Duration,
    ends_at: Instant,
    extend_at: Instant,
    /// An extension is under way.
    extending: bool,
    lost: watch::Sender<bool>,
}

/// A lease to extend.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Extension {
    pub number: u64,
    pub token: String,
    pub by: Duration,
    /// When it ends if it is not extended.
    pub ends_at: Instant,
}

impl Held {
    /// Whether this lease is held.
    pub fn has(&self, number: u64) -> bool {
        self.leases.contains_key(&number)
    }

    /// The length of the shortest lease.
    pub fn shortest(&self) -> Option<Duration> {
        self.leases.values().map(|lease| lease.length).min()
    }

    /// A lease was granted just now, for so long.
    pub fn insert(&mut self, token: String, length: Duration, now: Instant) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let (ends_at, extend_at) = (now + length, now + length / 3);
        let lost = watch::Sender::new(false);
        self.leases.insert(number, Lease { token, length, ends_at, extend_at, extending: false, lost });
        self.wake_by(extend_at);
        number
    }

    /// Word of whether this lease is lost; `None` if it is already.
    pub fn watch(&self, number: u64) -> Option<watch::Receiver<bool>> {
        self.leases.get(&number).map(|lease| lease.lost.subscribe())
    }

    /// It is not held any longer because it is being answered: its token and its end. `None` if it was lost.
    pub fn remove(&mut self, number: u64) -> Option<(String, Instant)> {
        self.leases.remove(&number).map(|lease| (lease.token, lease.ends_at))
    }

    /// It is lost: whoever works under it is told.
    pub fn lose(&mut self, number: u64) -> bool {
        let Some(lease) = self.leases.remove(&number) else { return false };
        lease.lost.send_replace(true);
        true
    }

    /// When there is something to do next.
    pub fn wake_at(&self) -> Option<Instant> {
        if self.leases.is_empty() { None } else { self.wake_at }
    }

    fn wake_by(&mut self, at: Instant) {
        self.wake_at = Some(self.wake_at.map_or(at, |wake_at| wake_at.min(at)));
    }

    /// Drops those that have ended, and answers how many.
    pub fn end(&mut self, now: Instant) -> usize {
        let ended: Vec<u64> = self.leases.iter().filter(|(_, lease)| lease.ends_at <= now).map(|(n, _)| *n).collect();
        ended.into_iter().filter(|number| self.lose(*number)).count()
    }

    /// Those to extend now, and with them those that are soon to be, so that they go in one request.
    pub fn extend(&mut self, now: Instant) -> Vec<Extension> {
        let is_due = self.leases.values().any(|lease| !lease.extending && lease.extend_at <= now);
        let is_soon = |lease: &Lease| lease.extend_at <= if is_due { now + lease.length / 12 } else { now };
        let due = self.leases.iter_mut().filter(|(_, lease)| !lease.extending && is_soon(lease));
        let marked = due.map(|(number, lease)| {
            lease.extending = true;
            Extension { number: *number, token: lease.token.clone(), by: lease.length, ends_at: lease.ends_at }
        });
        let marked = marked.collect();
        let next = self.leases.values().map(|lease| if lease.extending { lease.ends_at } else { lease.extend_at });
        self.wake_at = next.min();
        marked
    }

    /// It was extended by a request that was sent at this time, so it lasts at least from then.
    pub fn extended(&mut self, number: u64, sent_at: Instant) {
        if let Some(lease) = self.leases.get_mut(&number) {
            lease.extending = false;
            lease.ends_at = lease.ends_at.max(sent_at + lease.length);
            lease.extend_at = sent_at + lease.length / 3;
            let extend_at = lease.extend_at;
            self.wake_by(extend_at);
        }
    }

    /// The extension did not come through: soon again.
    pub fn not_extended(&mut self, number: u64, now: Instant) {
        if let Some(lease) = self.leases.get_mut(&number) {
            lease.extending = false;
            lease.extend_at = now + lease.length / 12;
            let extend_at = lease.extend_at;
            self.wake_by(extend_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(12);

    fn numbers(due: Vec<Extension>) -> Vec<u64> {
        due.into_iter().map(|extension| extension.number).collect()
    }

    #[test]
    fn a_lease_is_extended_after_a_third_of_its_time() {
        let start = Instant::now();
        let mut held = Held::default();
        let number = held.insert("l".into(), LENGTH, start);
        assert_eq!(held.wake_at(), Some(start + LENGTH / 3));
        assert_eq!(numbers(held.extend(start + LENGTH / 4)), [] as [u64; 0]);
        assert_eq!(numbers(held.extend(start + LENGTH / 3)), [number]);
        assert_eq!(numbers(held.extend(start + LENGTH / 3)), [] as [u64; 0]);
        held.extended(number, start + LENGTH / 3);
        assert_eq!(held.wake_at(), Some(start + LENGTH * 2 / 3));
        assert_eq!(held.end(start + LENGTH), 0);
    }

    #[test]
    fn each_lease_is_extended_in_its_own_time_and_by_its_own_length() {
        let start = Instant::now();
        let mut held = Held::default();
        let long = held.insert("long".into(), LENGTH, start);
        let short = held.insert("short".into(), LENGTH / 10, start);
        assert_eq!((held.shortest(), held.wake_at()), (Some(LENGTH / 10), Some(start + LENGTH / 30)));
        let [extension] = <[Extension; 1]>::try_from(held.extend(start + LENGTH / 30)).unwrap();
        assert_eq!((extension.number, extension.by), (short, LENGTH / 10));
        held.extended(short, start + LENGTH / 30);
        assert_eq!(held.end(start + LENGTH / 5), 1, "the short one has ended");
        assert!(held.has(long));
    }

    #[test]
    fn what_is_soon_to_be_extended_goes_along() {
        let start = Instant::now();
        let mut held = Held::default();
        held.insert("a".into(), LENGTH, start);
        held.insert("b".into(), LENGTH, start + LENGTH / 12);
        held.insert("c".into(), LENGTH, start + LENGTH / 3);
        assert_eq!(numbers(held.extend(start + LENGTH / 3)), [0, 1]);
    }

    #[test]
    fn a_lease_that_could_not_be_extended_is_tried_again_and_then_lost() {
        let start = Instant::now();
        let mut held = Held::default();
        let number = held.insert("l".into(), LENGTH, start);
        let lost = held.watch(number).unwrap();
        held.extend(start + LENGTH / 3);
        held.not_extended(number, start + LENGTH / 3);
        assert_eq!(numbers(held.extend(start + LENGTH / 2)), [number]);
        assert_eq!(held.wake_at(), Some(start + LENGTH));
        assert!(!*lost.borrow());
        assert_eq!(held.end(start + LENGTH), 1);
        assert!(*lost.borrow());
        assert_eq!(held.remove(number), None);
    }

    #[test]
    fn a_lease_that_was_answered_is_not_told_lost() {
        let start = Instant::now();
        let mut held = Held::default();
        let number = held.insert("l".into(), LENGTH, start);
        let lost = held.watch(number).unwrap();
        assert_eq!(held.remove(number), Some(("l".into(), start + LENGTH)));
        assert!(!held.lose(number) && !*lost.borrow());
        assert_eq!(held.wake_at(), None);
    }
}
