//! Changing some of the settings of a topic or queue, and no others.
//!
//! What is amended is written down only if nothing else was since it was looked at: what two callers change at the same
//! time is changed by both, also through different nodes.

use punctual_core::{Name, QueueSettings, TopicSettings};

use super::Handle;
use super::admin::Settings;
use super::changes::Decision;
use crate::error::Error;

impl Handle {
    /// Gives a topic the settings that `amend` makes of its present ones, unless `amend` refuses. If somebody else was
    /// quicker it is asked again. If the outcome is unknown, it may still come to be.
    pub async fn amend_topic<E: Send + 'static>(
        &self,
        name: &Name,
        amend: impl FnMut(TopicSettings) -> Result<TopicSettings, E> + Send + 'static,
    ) -> Result<Result<TopicSettings, E>, Error> {
        self.amend(name, amend, |_, _| Ok(())).await
    }

    /// The same for a queue.
    pub async fn amend_queue<E: Send + 'static>(
        &self,
        name: &Name,
        amend: impl FnMut(QueueSettings) -> Result<QueueSettings, E> + Send + 'static,
    ) -> Result<Result<QueueSettings, E>, Error> {
        let handle = self.clone();
        let check = move |present: &QueueSettings, settings: &QueueSettings| {
            // A pause that stays as it was may end while something else is changed.
            if settings.paused_until != present.paused_until {
                QueueSettings::check_pause(settings.paused_until, "paused_until", handle.now())?;
            }
            Ok(())
        };
        self.amend(name, amend, check).await
    }

    /// Creates a topic or replaces its settings, unless `admit` refuses the present ones. If somebody else was quicker it is
    /// asked again.
    pub async fn put_topic_if<E: Send + 'static>(
        &self,
        name: &Name,
        settings: TopicSettings,
        admit: impl Fn(Option<&TopicSettings>) -> Result<(), E> + Send + 'static,
    ) -> Result<Result<TopicSettings, E>, Error> {
        self.put_if(name, settings, admit).await
    }

    /// The same for a queue.
    pub async fn put_queue_if<E: Send + 'static>(
        &self,
        name: &Name,
        settings: QueueSettings,
        admit: impl Fn(Option<&QueueSettings>) -> Result<(), E> + Send + 'static,
    ) -> Result<Result<QueueSettings, E>, Error> {
        let pause = QueueSettings::check_pause(settings.paused_until, "paused_until", self.now());
        self.counted(pause.map_err(Error::from))?;
        self.put_if(name, settings, admit).await
    }

    async fn put_if<S: Settings, E: Send + 'static>(
        &self,
        name: &Name,
        settings: S,
        admit: impl Fn(Option<&S>) -> Result<(), E> + Send + 'static,
    ) -> Result<Result<S, E>, Error> {
        let put = self.change::<S, _>(name, move |handle, name| {
            settings.check(handle, name)?;
            let present = S::present(handle, name)?;
            if let Err(refused) = admit(present.as_ref()) {
                return Ok(Decision::Leave(Err(refused)));
            }
            if present.is_none() {
                handle.shared.check_room()?;
            }
            let settings = settings.clone().in_place_of(present.as_ref(), handle.now());
            Ok(Decision::put(name, settings.clone(), Ok(settings)))
        });
        self.counted(put.await)
    }

    async fn amend<S: Settings, E: Send + 'static>(
        &self,
        name: &Name,
        mut amend: impl FnMut(S) -> Result<S, E> + Send + 'static,
        check: impl Fn(&S, &S) -> Result<(), Error> + Send + 'static,
    ) -> Result<Result<S, E>, Error> {
        let amended = self.change::<S, _>(name, move |handle, name| {
            let present = S::present(handle, name)?.ok_or_else(|| S::missing(name))?;
            let settings = match amend(present.clone()) {
                Ok(settings) => settings,
                Err(refused) => return Ok(Decision::Leave(Err(refused))),
            };
            check(&present, &settings)?;
            settings.check(handle, name)?;
            let settings = settings.in_place_of(Some(&present), handle.now());
            Ok(Decision::put(name, settings.clone(), Ok(settings)))
        });
        self.counted(amended.await)
    }
}
