//! What clients asked for, what they were told, and what must follow from it. It is kept by those who ask, and knows
//! nothing of the server but its answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use punctual_wire::Time;

use super::Life;

/// How the names of tasks begin that come in by the beanstalk door.
pub const JOB: &str = "job-";

/// What somebody was told of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing yet, or that nobody knows.
    Unknown,
    /// That it was done.
    Done,
    /// That nothing was done.
    NothingDone,
}

/// A task, as its clients know it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What was said of its scheduling.
    pub scheduled: Told,
    /// What was said of acknowledging it.
    pub acknowledged: Told,
    /// Where it is looked for, once that is known.
    pub place: Option<String>,
    /// Before this it must not be handed over.
    due: Time,
    /// How often somebody got it.
    times: usize,
    /// Whoever got it last has it to himself until then, and as long as this life lasts.
    held: Option<(Time, Option<Life>)>,
    /// Nobody is to get it.
    is_buried: bool,
    /// Whoever got it last does not know whether it is done, or buried.
    is_doubtful: bool,
    /// Something was said of it that the store may forget; and what was said of its scheduling.
    is_forgettable: bool,
    may_be_missing: bool,
    /// Whoever got it up to this time cannot rely on that.
    forgiven: usize,
}

impl Entry {
    fn is_held(&self, now: Time) -> bool {
        let is_here = |life: &Option<Life>| life.as_ref().is_none_or(|life| !life.is_over());
        self.held.as_ref().is_some_and(|(until, life)| now < *until && is_here(life))
    }
}

/// A task that somebody has got, this time and not another.
#[derive(Clone, Debug)]
pub struct Receipt {
    name: String,
    times: usize,
}

/// All tasks by their names, which are in their bodies.
#[derive(Default)]
pub struct Ledger {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// What is said meanwhile may be forgotten.
    is_behind: AtomicBool,
    /// How often a task went out by another door than it came in by.
    crossings: AtomicUsize,
}

impl Ledger {
    /// Somebody is about to schedule a task, due in so many milliseconds.
    pub fn schedules(&self, name: &str, delay: u64) {
        let entry = Entry {
            scheduled: Told::Unknown,
            acknowledged: Told::Unknown,
            place: None,
            due: Time(Time::now().0 + delay),
            times: 0,
            held: None,
            is_buried: false,
            is_doubtful: false,
            is_forgettable: false,
            may_be_missing: false,
            forgiven: 0,
        };
        assert!(self.entries().insert(name.to_owned(), entry).is_none(), "{name} is scheduled once");
    }

    /// What was said of it.
    pub fn scheduled(&self, name: &str, told: Told) {
        let mut entries = self.entries();
        let entry = entries.get_mut(name).unwrap();
        entry.scheduled = told;
        entry.may_be_missing = self.is_behind();
        entry.is_forgettable |= entry.may_be_missing;
        assert!(told != Told::NothingDone || entry.times == 0, "{name} was there before: {entry:?}");
    }

    /// Where to look for it.
    pub fn is_at(&self, name: &str, place: String) {
        self.entries().get_mut(name).unwrap().place = Some(place);
    }

    /// A consumer has got it, for this long; and for as long as that life lasts, if it is bound to one.
    pub fn delivered(&self, name: &str, until: Time, life: Option<Life>) -> Receipt {
        let now = Time::now();
        let mut entries = self.entries();
        let entry = entries.get_mut(name).unwrap_or_else(|| panic!("nobody scheduled {name}"));
        assert_ne!(entry.scheduled, Told::NothingDone, "{name} was not taken in: {entry:?}");
        assert!(now >= entry.due, "{name} is early at {now}: {entry:?}");
        entry.times += 1;
        let receipt = Receipt { name: name.to_owned(), times: entry.times };
        let has_crossed = life.is_some() != name.starts_with(JOB);
        self.crossings.fetch_add(usize::from(has_crossed), Ordering::SeqCst);
        // An answer may have been held up on its way until it was of no use any more.
        if now < until && !life.as_ref().is_some_and(Life::is_over) {
            if !entry.is_forgettable {
                assert_ne!(entry.acknowledged, Told::Done, "{name} was done: {entry:?}");
                assert!(!entry.is_buried, "{name} is buried: {entry:?}");
                assert!(!entry.is_held(now), "{name} has two holders at {now}: {entry:?}");
            }
            entry.held = Some((until, life));
            entry.is_doubtful = false;
        }
        entry.is_forgettable |= self.is_behind();
        receipt
    }

    /// Its holder, or whoever looked, has heard that it is done.
    pub fn acknowledged(&self, name: &str) {
        let mut entries = self.entries();
        let entry = entries.get_mut(name).unwrap();
        entry.acknowledged = Told::Done;
        entry.is_forgettable |= self.is_behind();
    }

    /// Its holder has heard that it is not the holder any more.
    pub fn taken_away(&self, receipt: &Receipt, until: Time) {
        assert!(Time::now() >= until || self.is_forgiven(receipt), "{receipt:?} was taken away before {until}");
    }

    /// Whether its holder may hear that there is no such thing.
    pub fn is_forgiven(&self, receipt: &Receipt) -> bool {
        let entry = &self.entries()[&receipt.name];
        entry.is_forgettable || receipt.times <= entry.forgiven
    }

    /// Its holder is about to give it back, or to let others have what it has buried.
    pub fn lets_go(&self, receipt: &Receipt) {
        self.of(receipt, |entry| (entry.held, entry.is_buried) = (None, false));
    }

    /// Who gave it back was told that nobody gets it before.
    pub fn is_put_off(&self, receipt: &Receipt, until: Time) {
        if !self.is_behind() {
            self.of(receipt, |entry| entry.due = until);
        }
    }

    /// Its holder has heard that it is buried.
    pub fn buries(&self, receipt: &Receipt) {
        self.of(receipt, |entry| (entry.held, entry.is_buried) = (None, true));
    }

    /// Its holder does not know what became of it.
    pub fn doubts(&self, receipt: &Receipt) {
        self.of(receipt, |entry| entry.is_doubtful = true);
    }

    /// Those of which nobody knows whether they are done, or buried, and where they are looked for.
    pub fn doubtful(&self) -> Vec<(String, String)> {
        let is_doubtful = |entry: &Entry| entry.is_doubtful && entry.acknowledged != Told::Done;
        let entries = self.entries();
        let doubtful = entries.iter().filter(|(_, entry)| is_doubtful(entry));
        doubtful.filter_map(|(name, entry)| Some((name.clone(), entry.place.clone()?))).collect()
    }

    /// Whether nobody knows whether it is done, or buried.
    pub fn is_doubtful(&self, name: &str) -> bool {
        self.entries()[name].is_doubtful
    }

    /// What the store confirms from now on it may forget.
    pub fn may_be_forgotten(&self) {
        let _entries = self.entries();
        self.is_behind.store(true, Ordering::SeqCst);
    }

    /// It has forgotten by now whatever it forgets. Of what was said meanwhile nothing is certain but what it says when it is
    /// asked; gives the places of tasks that may be missing.
    pub fn is_forgotten(&self) -> Vec<String> {
        let mut entries = self.entries();
        self.is_behind.store(false, Ordering::SeqCst);
        let mut missing = Vec::new();
        for entry in entries.values_mut().filter(|entry| entry.is_forgettable) {
            (entry.acknowledged, entry.held, entry.is_buried) = (Told::Unknown, None, false);
            (entry.is_doubtful, entry.is_forgettable, entry.forgiven) = (true, false, entry.times);
            if entry.may_be_missing && entry.scheduled == Told::Done {
                entry.scheduled = Told::Unknown;
                // The number of a job may be given again.
                let place = entry.place.take_if(|place| place.starts_with("/v1/numbers/"));
                missing.extend(place.is_none().then(|| entry.place.clone()).flatten());
            }
        }
        missing
    }

    /// How many were told this of their scheduling.
    pub fn count(&self, told: Told) -> usize {
        self.entries().values().filter(|entry| entry.scheduled == told).count()
    }

    /// How many were scheduled for sure and are not done.
    pub fn open(&self) -> usize {
        let is_open = |entry: &&Entry| entry.scheduled == Told::Done && entry.acknowledged != Told::Done;
        self.entries().values().filter(is_open).count()
    }

    /// How many times a task went out by another door than it came in by.
    pub fn crossings(&self) -> usize {
        self.crossings.load(Ordering::SeqCst)
    }

    /// All that is in it.
    pub fn all(&self) -> Vec<(String, Entry)> {
        self.entries().clone().into_iter().collect()
    }

    /// Changes what is known of a task, unless somebody else has got it since.
    fn of(&self, receipt: &Receipt, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.entries();
        let entry = entries.get_mut(&receipt.name).unwrap();
        if entry.times == receipt.times {
            change(entry);
        }
        entry.is_forgettable |= self.is_behind();
    }

    fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        // A client that found something wrong has said so; the others go on.
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
