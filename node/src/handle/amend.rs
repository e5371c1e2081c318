//! Changing some of the settings of a topic or queue, and no others.
//!
//! Looking and changing is one turn of the administrator, who makes all changes of settings: what two callers change at the
//! same time is changed by both.

use punctual_core::{Command, Name, QueueSettings, Refused, TopicSettings};

use super::Handle;
use crate::deletions::What;
use crate::error::Error;

impl Handle {
    /// Gives a topic the settings that `amend` makes of its present ones, unless `amend` refuses. On an error some
    /// shards may have done it; do it again.
    pub async fn amend_topic<E: Send + 'static>(
        &self,
        name: &Name,
        amend: impl FnOnce(TopicSettings) -> Result<TopicSettings, E> + Send + 'static,
    ) -> Result<Result<TopicSettings, E>, Error> {
        let name = name.clone();
        let amended = self.in_turn(|handle| async move {
            let Some(present) = handle.topic(&name).await?.map(|topic| topic.settings) else {
                return Err(Refused::NoSuchTopic(name).into());
            };
            let settings = match amend(present) {
                Ok(settings) => Box::new(settings),
                Err(refused) => return Ok(Err(refused)),
            };
            let put = Command::PutTopic { name: name.clone(), settings };
            handle.put_now(What::Topic, &name, put).await.map(Ok)
        });
        self.counted(amended.await)
    }

    /// The same for a queue.
    pub async fn amend_queue<E: Send + 'static>(
        &self,
        name: &Name,
        amend: impl FnOnce(QueueSettings) -> Result<QueueSettings, E> + Send + 'static,
    ) -> Result<Result<QueueSettings, E>, Error> {
        let name = name.clone();
        let amended = self.in_turn(|handle| async move {
            let Some(present) = handle.queue(&name).await?.map(|queue| queue.settings) else {
                return Err(Refused::NoSuchQueue(name).into());
            };
            let paused_until = present.paused_until;
            let settings = match amend(present) {
                Ok(settings) => Box::new(settings),
                Err(refused) => return Ok(Err(refused)),
            };
            // A pause that stays as it was may end while something else is changed.
            if settings.paused_until != paused_until {
                QueueSettings::check_pause(settings.paused_until, "paused_until", handle.now())?;
            }
            let put = Command::PutQueue { name: name.clone(), settings };
            handle.put_now(What::Queue, &name, put).await.map(Ok)
        });
        self.counted(amended.await)
    }
}
