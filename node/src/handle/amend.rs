//! Changing some of the settings of a topic or queue, and no others.
//!
//! Looking and changing is one turn, which all changes of settings take: what two callers change at the same time
//! is changed by both.

use punctual_core::{Answer, Command, Name, QueueSettings, Refused, TopicSettings};

use super::admin::first;
use super::{Handle, answered};
use crate::error::Error;

impl Handle {
    /// Gives a topic the settings that `amend` makes of its present ones, unless `amend` refuses. On an error some
    /// shards may have done it; do it again.
    pub async fn amend_topic<E>(
        &self,
        name: &Name,
        amend: impl FnOnce(TopicSettings) -> Result<TopicSettings, E>,
    ) -> Result<Result<TopicSettings, E>, Error> {
        let _turn = self.shared.settings.lock().await;
        let Some(present) = self.topic(name).await?.map(|topic| topic.settings) else {
            return self.counted(Err(Refused::NoSuchTopic(name.clone()).into()));
        };
        let settings = match amend(present) {
            Ok(settings) => Box::new(settings),
            Err(refused) => return Ok(Err(refused)),
        };
        let put = Command::PutTopic { name: name.clone(), settings };
        let outcome = self.counted(first(self.ask_all(put).await));
        let settings: Result<TopicSettings, Error> = answered!(outcome, Answer::Topic(settings) => settings);
        settings.map(Ok)
    }

    /// The same for a queue.
    pub async fn amend_queue<E>(
        &self,
        name: &Name,
        amend: impl FnOnce(QueueSettings) -> Result<QueueSettings, E>,
    ) -> Result<Result<QueueSettings, E>, Error> {
        let _turn = self.shared.settings.lock().await;
        let Some(present) = self.queue(name).await?.map(|queue| queue.settings) else {
            return self.counted(Err(Refused::NoSuchQueue(name.clone()).into()));
        };
        let paused_until = present.paused_until;
        let settings = match amend(present) {
            Ok(settings) => Box::new(settings),
            Err(refused) => return Ok(Err(refused)),
        };
        // A pause that stays as it was may end while something else is changed.
        if settings.paused_until != paused_until {
            let pause = QueueSettings::check_pause(settings.paused_until, "paused_until", self.now());
            self.counted(pause.map_err(Error::from))?;
        }
        let put = Command::PutQueue { name: name.clone(), settings };
        let outcome = self.counted(first(self.ask_all(put).await));
        let settings: Result<QueueSettings, Error> = answered!(outcome, Answer::Queue(settings) => settings);
        settings.map(Ok)
    }
}
