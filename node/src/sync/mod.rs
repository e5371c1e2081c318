//! Locks, bells, threads and instants, as all of the node takes them: from here.
//!
//! They are the system's. Built with `--cfg shuttle` they are a model checker's instead, which runs the same code
//! through thousands of interleavings (`node/check`).

#[cfg(shuttle)]
pub mod checked;

#[cfg(shuttle)]
pub(crate) use checked::{Condvar, Instant};
#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard, RwLock, atomic},
    thread,
};
#[cfg(not(shuttle))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, atomic},
    thread,
    time::Instant,
};

use std::sync::PoisonError;

/// Takes a lock, also after somebody panicked while holding it. A panic in one of the node's threads
/// makes it refuse everything from then on; those who clean up behind themselves must not panic too.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
