//! The threads that work on connections while callers wait: a small runtime of the store's own, since calls come from
//! threads of all kinds, also from those of other runtimes, which must not run another one.

use tokio::runtime::{Builder, Handle, Runtime};

use crate::config::OpenError;

pub(crate) struct Threads(Option<Runtime>);

impl Threads {
    pub(crate) fn start() -> Result<Threads, OpenError> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).thread_name("redis").enable_io().enable_time();
        let runtime = builder.build().map_err(|error| OpenError::Away(format!("no thread can be started: {error}")))?;
        Ok(Threads(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0.as_ref().expect("they run until they are dropped").handle().clone()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // The store may be dropped by a thread that must not block.
            runtime.shutdown_background();
        }
    }
}
