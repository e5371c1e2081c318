//! Setting a shard aside: its thread does something with what the store has of it, while nothing of it is in memory or
//! under way. Requests wait in the inbox meanwhile, bounded as ever; those to other shards are not held up.

use punctual_core::store::{ShardId, Tenure};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::handle::Handle;

/// What is done on the thread of a shard that is set aside. It hears how the node holds the shard, and what it gives back
/// is called when the shard is back.
pub(crate) type Work = Box<dyn FnOnce(Tenure) -> Box<dyn FnOnce()> + Send>;

impl Handle {
    /// Sets a shard aside: no step of it begins, all that was sent becomes durable and is answered, then this is done
    /// on the shard's thread, and the shard is claimed and opened anew. Comes back when all of that is over. Only one thing
    /// at a time can be done with a shard, and should not take long: its tasks wait.
    pub async fn set_aside<T: Send + 'static>(
        &self,
        shard: ShardId,
        work: impl FnOnce(Tenure) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        let shared = self.shared();
        shared.check()?;
        let work: Work = Box::new(move |tenure| {
            let done = work(tenure);
            // Who has left does not hear of it.
            Box::new(move || _ = sender.send(done))
        });
        shared.inbox(shard).set_aside(work)?;
        // Without a word it was not done: the node stops, or the shard was lost before.
        let not_done =
            |_| shared.inbox(shard).ready().err().unwrap_or_else(|| Error::nothing_done("the shard was lost"));
        receiver.await.map_err(not_done)
    }
}
