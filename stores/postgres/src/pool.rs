//! Connections that are kept for the next call. One that has failed is not, so that the pool comes back by itself after
//! the server was away.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Trouble;
use crate::session::Session;
use crate::target::Target;

/// A number of connections to one server.
pub(crate) struct Pool {
    target: Arc<Target>,
    size: usize,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
    open: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(target: Arc<Target>, size: usize) -> Arc<Pool> {
        let permits = Arc::new(Semaphore::new(size));
        Arc::new(Pool { target, size, permits, idle: Mutex::default(), open: AtomicUsize::new(0) })
    }

    /// A connection: an idle one, or a new one, or the first that comes free.
    pub(crate) async fn take(self: &Arc<Pool>) -> Result<Taken, Trouble> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Trouble::Refused("the store is closed".to_owned()))?;
        while let Some(session) = self.pop() {
            if !session.is_closed() {
                return Ok(Taken { session: Some(session), pool: Arc::clone(self), _permit: permit });
            }
            self.lose(session);
        }
        let session = Session::open(&self.target).await?;
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Taken { session: Some(session), pool: Arc::clone(self), _permit: permit })
    }

    /// How many connections there are, and how many of them are in use.
    pub(crate) fn usage(&self) -> (usize, usize) {
        (self.open.load(Ordering::Relaxed), self.size - self.permits.available_permits())
    }

    fn pop(&self) -> Option<Session> {
        self.idle().pop()
    }

    fn lose(&self, session: Session) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        session.cut();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is in use. Unless it is [kept](Taken::keep), it ends with its use: who stops waiting for an answer
/// must not leave it to the next.
pub(crate) struct Taken {
    session: Option<Session>,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Taken {
    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().expect("it is there until it is kept")
    }

    /// Leaves it to the next.
    pub(crate) fn keep(mut self) {
        if let Some(session) = self.session.take() {
            self.pool.idle().push(session);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.pool.lose(session);
        }
    }
}
