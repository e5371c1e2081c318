//! The threads on which a driver works while callers block: a small runtime of the store's own, since calls come from
//! threads of all kinds, also from those of other runtimes, which must not run another one.

use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

use crate::OpenError;

/// Threads for asynchronous work. What is still under way when they are dropped is broken off.
pub struct Threads(Option<Runtime>);

impl Threads {
    /// Starts them under a name.
    pub fn start(name: &str) -> Result<Threads, OpenError> {
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build();
        let runtime = runtime.map_err(|error| OpenError::Away(format!("no thread can be started: {error}")))?;
        Ok(Threads(Some(runtime)))
    }

    /// What runs on them.
    pub fn handle(&self) -> &Handle {
        self.0.as_ref().expect("they run until they are dropped").handle()
    }

    /// Has something done on them.
    pub fn begin<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Work<T> {
        Work::begin(self.handle(), work)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // The last owner may be a thread that must not block.
            runtime.shutdown_background();
        }
    }
}

/// Something that is done on another thread. It ends with this, whether it is done or not.
pub struct Work<T> {
    answer: Receiver<T>,
    task: AbortHandle,
}

impl<T: Send + 'static> Work<T> {
    /// Has something done on these threads.
    pub fn begin(threads: &Handle, work: impl Future<Output = T> + Send + 'static) -> Work<T> {
        let (send, answer) = channel();
        let task = threads.spawn(async move {
            // Who does not wait any more has told its caller so.
            let _ = send.send(work.await);
        });
        Work { answer, task: task.abort_handle() }
    }

    /// What came of it; nothing if it is not done by then.
    pub fn wait_until(self, deadline: Instant) -> Option<T> {
        self.answer.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// What came of it, however long it takes; nothing if it was broken off.
    pub fn wait(self) -> Option<T> {
        self.answer.recv().ok()
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_that_nobody_waits_for_any_more_ends() {
        let threads = Threads::start("test").expect("threads can be started");
        assert_eq!(threads.begin(async { 7 }).wait(), Some(7));
        let held = Arc::new(());
        let theirs = Arc::clone(&held);
        let work = threads.begin(async move {
            pending::<()>().await;
            drop(theirs);
        });
        assert_eq!(work.wait_until(Instant::now() + Duration::from_millis(10)), None);
        while Arc::strong_count(&held) > 1 {
            std::thread::yield_now();
        }
    }
}
