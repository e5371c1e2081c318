//! Taking a lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also after somebody panicked while holding it. A panic in one of the node's threads
/// makes it refuse everything from then on; those who clean up behind themselves must not panic too.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
