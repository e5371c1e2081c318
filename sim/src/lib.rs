//! A seeded simulation of nodes on faulty stores and clocks: real shards and boards, driven without threads.
//!
//! One seed is one run: clients and consumers ([`workload`], [`consumers`]) act on nodes
//! ([`node`]) whose shards, board and committer are put together as in the real one, over a store
//! and clocks that fail as the seed wants. Time is virtual and jumps from event to event. The
//! [`auditor`] watches everything and checks the seven promises of the design.
//!
//! **Invariant**: the same seed gives the same bytes. Nothing reads a clock or draws randomness but
//! from the seed.

pub mod auditor;
mod beats;
mod calls;
pub mod census;
mod changes;
pub mod clock;
mod closing;
mod commits;
pub mod consumers;
pub mod demand;
mod failover;
mod faults;
mod hand_over;
mod lending;
mod levels;
mod links;
pub mod node;
mod ownership;
mod passing;
pub mod profile;
mod rates;
pub mod record;
mod sabotage;
pub mod store;
pub mod trace;
pub mod weight;
mod wishes;
pub mod workload;
pub mod world;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use auditor::{Promise, Violation};
use census::Census;
use clock::Moment;
use profile::{Kind, Profile};
use punctual_chance::Chance;
pub use sabotage::Sabotage;
use world::World;

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The kind of run it is.
    pub kind: Kind,
    /// The promise that was broken, if any.
    pub violation: Option<Violation>,
    /// How often what happened.
    pub census: Census,
    /// How much virtual time passed.
    pub length: Moment,
    /// What happened, if that was asked for.
    pub trace: String,
}

thread_local! {
    /// What the last panic said and where, if [`keep_panics_quiet`] was called.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on panics are not printed when they happen; those that break a promise are told with it.
pub fn keep_panics_quiet() {
    set_hook(Box::new(|panic| LAST_PANIC.set(Some(panic.to_string()))));
}

/// The kind of run that a seed gives.
pub fn kind_of(seed: u64) -> Kind {
    Profile::draw(&mut Chance::new(seed)).kind
}

/// Runs a seed; with its trace if that is asked for.
pub fn run(seed: u64, traced: bool, sabotage: Option<Sabotage>) -> Outcome {
    let mut world = World::new(seed, traced, sabotage);
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    let mut violation = world.auditor.violation().cloned();
    if let Err(panic) = ended {
        let text = LAST_PANIC.take().or_else(|| panic.downcast_ref::<String>().cloned());
        let what = text.unwrap_or_else(|| "panic".to_owned());
        violation = violation.or(Some(Violation { promise: Promise::KeepsWorking, subject: String::new(), what }));
    }
    let mut census = world.census.clone();
    census.join(&world.auditor.census);
    let (kind, length) = (world.kind(), world.now());
    Outcome { seed, kind, violation, census, length, trace: world.into_trace() }
}
