//! The handlers of a worker, one for each queue.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::failure::Failure;
use super::job::Job;

type Work = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;
type Handler = Arc<dyn Fn(Job) -> Work + Send + Sync>;

/// Which handler works on which queue.
#[derive(Clone, Default)]
pub(crate) struct Handlers(BTreeMap<String, Handler>);

impl Handlers {
    pub fn insert<H, F>(&mut self, queue: String, handler: H)
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.0.insert(queue, Arc::new(move |job| Box::pin(handler(job))));
    }

    /// A handler of bodies of one type. A body that is not of this type will never be, so it is given up.
    pub fn insert_json<T, H, F>(&mut self, queue: String, handler: H)
    where
        T: DeserializeOwned + Send + 'static,
        H: Fn(T, Job) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let work = move |job: Job| -> Work {
            match job.json::<T>() {
                Ok(body) => Box::pin(handler(body, job)),
                Err(error) => Box::pin(std::future::ready(Err(Failure::reject(error.to_string())))),
            }
        };
        self.0.insert(queue, Arc::new(work));
    }

    pub fn queues(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The work on a job; `None` if nobody works on its queue.
    pub fn work(&self, job: Job) -> Option<impl Future<Output = Result<(), Failure>> + Send + use<>> {
        let handler = Arc::clone(self.0.get(&job.queue)?);
        // The handler is called inside of the future, so that its panics are caught like those of its work.
        Some(async move { handler(job).await })
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
