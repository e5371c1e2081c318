//! The suite that every store must pass.
//!
//! Each check is a fact about stores, named as one: `an_old_fence_is_refused_and_changes_nothing`.
//! A store's own test says how to get a store and lets it be examined:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use punctual_conformance::Subject;
//! use punctual_core::{Millis, store::Store};
//!
//! # fn open() -> Arc<dyn Store> { panic!("a store is opened") }
//! struct Mine;
//!
//! impl Subject for Mine {
//!     fn fresh(&self) -> Arc<dyn Store> {
//!         open()
//!     }
//!     fn pass(&self, time: Millis) {
//!         std::thread::sleep(std::time::Duration::from_millis(time.0));
//!     }
//! }
//!
//! // In a test: fails with every fact that does not hold, and with what differed.
//! punctual_conformance::run(&Mine);
//! ```
//!
//! The facts about rows run twice: as they are, and with the store reopened after every commit, so
//! that each of them is also one about durability. Every read is made twice, as the shard's owner and as anybody. Where
//! ownership is concerned, the second node comes by a handle of its own if the store can be shared. At the end comes a
//! long random run that is compared, read by read, with a model too simple to be wrong.

mod astray;
mod back;
mod batches;
mod chain;
mod cluster;
mod concurrency;
mod content;
pub mod forged;
mod groups;
mod model;
mod order;
mod ownership;
mod pages;
mod random;
mod reads;
mod roll;
mod rollback;
mod rows;
mod stage;
mod tallies;
mod walk;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use punctual_core::Millis;
use punctual_core::store::Store;

use stage::{Outcome, Stage};

/// A kind of store, to be examined.
pub trait Subject {
    /// A new, empty store that shares nothing with those before it.
    fn fresh(&self) -> Arc<dyn Store>;

    /// The same store after its process has ended and begun anew. The given handle is the only one:
    /// drop it, then open what it left. A store that lives as long as its process stays as it is.
    fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store
    }

    /// Another node's handle to the same store, for stores that several nodes share: a connection of its own, say.
    /// Wherever ownership is concerned the second node comes by it.
    fn share(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let _ = store;
        None
    }

    /// Notes how a store is now. What comes back takes it there again, like a copy that was behind and takes over: rows,
    /// chains, fences, nodes and entries. For stores to which that can happen.
    fn mark<'a>(&'a self, store: &Arc<dyn Store>) -> Option<Box<dyn FnOnce() + 'a>> {
        let _ = store;
        None
    }

    /// Lets so much time pass by the stores' clock: by moving it, or else by sleeping.
    fn pass(&self, time: Millis);

    /// Whether the store notices by itself that a batch is not about the rows that are there, and refuses it as
    /// [`Refusal::Astray`](punctual_core::store::Refusal::Astray). A store with a single writer may trust it.
    fn tells_astray(&self) -> bool {
        true
    }

    /// How many commits there are from one reopening to the next where facts are checked with the store reopened; more
    /// is quicker and finds less.
    fn commits_between_reopenings(&self) -> u64 {
        1
    }

    /// How many commits the random run makes; less is quicker and finds less.
    fn rounds(&self) -> u64 {
        2_000
    }

    /// Where the random run begins. A failure names its seed, so that it can be repeated.
    fn seed(&self) -> u64 {
        1
    }
}

/// A fact that does not hold for a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The fact.
    pub fact: &'static str,
    /// Whether it failed with the store reopened after every commit.
    pub reopened: bool,
    /// What differed.
    pub difference: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.reopened { " (reopened after every commit)" } else { "" };
        write!(f, "{}{how}: {}", self.fact, self.difference)
    }
}

/// Examines a store.
///
/// # Panics
/// If the store fails, with all the facts that do not hold and what differed.
pub fn run(subject: &dyn Subject) {
    let failures = examine(subject);
    let lines: Vec<String> = failures.iter().map(|failure| format!("\n- {failure}")).collect();
    assert!(failures.is_empty(), "{} facts do not hold for this store:{}", failures.len(), lines.concat());
}

/// Examines a store and tells which facts do not hold for it.
pub fn examine(subject: &dyn Subject) -> Vec<Failure> {
    all().filter_map(|(fact, reopened)| check(subject, fact, reopened)).collect()
}

/// The names of all facts.
pub fn facts() -> impl Iterator<Item = &'static str> {
    all().filter(|(_, reopened)| !reopened).map(|((fact, _), _)| *fact)
}

/// Examines a store for one fact only: nothing if it holds.
///
/// # Panics
/// If there is no such fact.
pub fn examine_only(subject: &dyn Subject, name: &str) -> Vec<Failure> {
    let named: Vec<_> = all().filter(|((fact, _), _)| *fact == name).collect();
    assert!(!named.is_empty(), "there is no fact {name}");
    named.into_iter().filter_map(|(fact, reopened)| check(subject, fact, reopened)).collect()
}

/// All facts, those about rows twice: as they are, and with the store reopened.
fn all() -> impl Iterator<Item = (&'static Fact, bool)> {
    let of_rows = [
        rows::FACTS,
        order::FACTS,
        groups::FACTS,
        back::FACTS,
        pages::FACTS,
        content::FACTS,
        tallies::FACTS,
        batches::FACTS,
        astray::FACTS,
    ];
    let of_stores = [
        reads::FACTS,
        chain::FACTS,
        ownership::FACTS,
        roll::FACTS,
        rollback::FACTS,
        cluster::FACTS,
        concurrency::FACTS,
        random::FACTS,
    ];
    let plain = of_rows.into_iter().chain(of_stores).flatten().map(|fact| (fact, false));
    plain.chain(of_rows.into_iter().flatten().map(|fact| (fact, true)))
}

/// The name of a fact and the check of it.
type Fact = (&'static str, fn(&mut Stage<'_>) -> Outcome);

/// Lists checks under their own names.
macro_rules! listed {
    ($($fact:ident),* $(,)?) => {
        pub(crate) const FACTS: &[$crate::Fact] = &[$((stringify!($fact), $fact)),*];
    };
}
use listed;

/// Checks one fact. A store that panics fails this fact and may still be right about the others.
fn check(subject: &dyn Subject, (fact, check): &Fact, reopened: bool) -> Option<Failure> {
    let outcome = catch_unwind(AssertUnwindSafe(|| check(&mut Stage::new(subject, reopened)?)));
    let difference = match outcome {
        Ok(Ok(())) => return None,
        Ok(Err(difference)) => difference.0,
        Err(panic) => format!("panicked: {}", message(&*panic)),
    };
    Some(Failure { fact, reopened, difference })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
