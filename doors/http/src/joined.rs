//! Waiting for work that goes on in a task of its own, also if whoever waits leaves.

use std::panic::resume_unwind;

use tokio::task::JoinHandle;

/// What came of it; `None` if the server ended before. A panic there is one here.
pub(crate) async fn joined<T>(work: JoinHandle<T>) -> Option<T> {
    match work.await {
        Ok(done) => Some(done),
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => None,
        },
    }
}
