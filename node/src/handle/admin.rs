//! Topics and queues: made, changed, paused, deleted, in all shards.
//!
//! A topic that was made by being used is in some of the shards only. What changes it therefore
//! makes it in the others: else they would make it anew, with the settings of a new topic.

use punctual_core::store::ShardId;
use punctual_core::{
    Adjustment, Chosen, Command, Name, PauseNote, QueueSettings, QueueView, Refused, Subject, Timestamp, TopicSettings,
    TopicView, view,
};
use tokio::sync::oneshot;

use super::Handle;
use super::changes::{Decision, Made};
use crate::block_on;
use crate::deletions::Ended;
use crate::error::Error;

/// The settings of topics, or of queues.
pub(super) trait Settings: Clone + Send + 'static {
    fn subject(name: &Name) -> Subject;
    /// What gives them to the topic or queue of this name.
    fn put(self, name: &Name) -> Adjustment;
    fn missing(name: &Name) -> Refused;
    /// Those of the topic or queue of this name, if there is one.
    fn present(handle: &Handle, name: &Name) -> Result<Option<Self>, Error>;
    /// Whether they can be kept.
    fn check(&self, handle: &Handle, name: &Name) -> Result<(), Error>;
    /// Whether they say that it is paused.
    fn has_pause(&self) -> bool;
    /// These in the place of others: a pause that goes on keeps what is known of it.
    fn in_place_of(self, present: Option<&Self>, now: Timestamp) -> Self;
}

impl Settings for TopicSettings {
    fn subject(name: &Name) -> Subject {
        Subject::Topic(name.clone())
    }

    fn put(self, name: &Name) -> Adjustment {
        Adjustment::PutTopic { name: name.clone(), settings: Box::new(self) }
    }

    fn missing(name: &Name) -> Refused {
        Refused::NoSuchTopic(name.clone())
    }

    fn present(handle: &Handle, name: &Name) -> Result<Option<TopicSettings>, Error> {
        Ok(block_on(handle.topic(name))?.map(|topic| topic.settings))
    }

    fn check(&self, handle: &Handle, name: &Name) -> Result<(), Error> {
        TopicSettings::check(self)?;
        handle.check_fed(name, self)
    }

    fn has_pause(&self) -> bool {
        self.paused
    }

    fn in_place_of(self, present: Option<&TopicSettings>, _: Timestamp) -> TopicSettings {
        TopicSettings::in_place_of(self, present)
    }
}

impl Settings for QueueSettings {
    fn subject(name: &Name) -> Subject {
        Subject::Queue(name.clone())
    }

    fn put(self, name: &Name) -> Adjustment {
        Adjustment::PutQueue { name: name.clone(), settings: Box::new(self) }
    }

    fn missing(name: &Name) -> Refused {
        Refused::NoSuchQueue(name.clone())
    }

    fn present(handle: &Handle, name: &Name) -> Result<Option<QueueSettings>, Error> {
        Ok(block_on(handle.queue(name))?.map(|queue| queue.settings))
    }

    fn check(&self, _: &Handle, _: &Name) -> Result<(), Error> {
        Ok(QueueSettings::check(self)?)
    }

    fn has_pause(&self) -> bool {
        self.paused_until.is_some()
    }

    fn in_place_of(self, present: Option<&QueueSettings>, now: Timestamp) -> QueueSettings {
        QueueSettings::in_place_of(self, present, now)
    }
}

impl Handle {
    /// Creates a topic or changes its settings, in all shards. If the outcome is unknown, it may still come to be: look, or
    /// do it again.
    pub async fn put_topic(&self, name: &Name, settings: TopicSettings) -> Result<TopicSettings, Error> {
        self.put(name, settings).await
    }

    /// Creates a queue or changes its settings, likewise.
    pub async fn put_queue(&self, name: &Name, settings: QueueSettings) -> Result<QueueSettings, Error> {
        let pause = QueueSettings::check_pause(settings.paused_until, "paused_until", self.now());
        self.counted(pause.map_err(Error::from))?;
        self.put(name, settings).await
    }

    async fn put<S: Settings>(&self, name: &Name, settings: S) -> Result<S, Error> {
        let put = self.change::<S, _>(name, move |handle, name| {
            settings.check(handle, name)?;
            let room = handle.shared.check_room();
            // Asked only if it matters: a shard that is away keeps nobody from a change.
            let matters = room.is_err() || settings.has_pause();
            let present = if matters { S::present(handle, name)? } else { None };
            // A new one needs room. Changing one does not: other settings may be what makes room.
            if present.is_none() {
                room?;
            }
            let settings = settings.clone().in_place_of(present.as_ref(), handle.now());
            Ok(Decision::put(name, settings.clone(), settings))
        });
        self.counted(put.await)
    }

    /// Creates a queue with these settings if there is none, and leaves one alone that is there.
    pub async fn make_queue(&self, name: &Name, settings: QueueSettings) -> Result<(), Error> {
        let made = self.change::<QueueSettings, _>(name, move |handle, name| {
            if QueueSettings::present(handle, name)?.is_some() {
                return Ok(Decision::Leave(()));
            }
            settings.check()?;
            handle.shared.check_room()?;
            Ok(Decision::put(name, settings.clone(), ()))
        });
        self.counted(made.await)
    }

    /// Refuses tasks for a topic until it is resumed, and notes who wanted that and why.
    pub async fn pause_topic(&self, name: &Name, note: Option<PauseNote>) -> Result<TopicSettings, Error> {
        self.check_note(note.as_ref())?;
        self.adapt(name, move |present: TopicSettings| present.paused_by(note.clone())).await
    }

    /// Takes tasks for a topic again.
    pub async fn resume_topic(&self, name: &Name) -> Result<TopicSettings, Error> {
        self.adapt(name, |present| TopicSettings { paused: false, pause: None, ..present }).await
    }

    /// Stops handing out from a queue until a time; without, until it is resumed. Notes who wanted that and why.
    pub async fn pause_queue(
        &self,
        name: &Name,
        until: Option<Timestamp>,
        note: Option<PauseNote>,
    ) -> Result<QueueSettings, Error> {
        let now = self.now();
        self.counted(QueueSettings::check_pause(until, "until", now).map_err(Error::from))?;
        self.check_note(note.as_ref())?;
        let until = until.unwrap_or(Timestamp::NEVER);
        self.adapt(name, move |present: QueueSettings| present.paused_by(until, note.clone(), now)).await
    }

    fn check_note(&self, note: Option<&PauseNote>) -> Result<(), Error> {
        self.counted(note.map_or(Ok(()), PauseNote::check).map_err(Error::from))
    }

    /// Hands out from a queue again.
    pub async fn resume_queue(&self, name: &Name) -> Result<QueueSettings, Error> {
        self.adapt(name, |present| QueueSettings { paused_until: None, pause: None, ..present }).await
    }

    /// Changes a topic or queue that is there, also if its settings are from before there were rules for them.
    async fn adapt<S: Settings>(&self, name: &Name, adapt: impl Fn(S) -> S + Send + 'static) -> Result<S, Error> {
        let adapted = self.change::<S, _>(name, move |handle, name| {
            let settings = adapt(S::present(handle, name)?.ok_or_else(|| S::missing(name))?);
            Ok(Decision::put(name, settings.clone(), settings))
        });
        self.counted(adapted.await)
    }

    /// Has the administrator change the settings of a topic or queue, unless it is being deleted: shards that are done would
    /// make it anew, and others would not.
    pub(super) async fn change<S: Settings, T: Send + 'static>(
        &self,
        name: &Name,
        mut decide: impl FnMut(&Handle, &Name) -> Result<Decision<T>, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let name = name.clone();
        self.in_turn(move |handle| match handle.make(&S::subject(&name), || decide(handle, &name))? {
            Made::Done(told) => Ok(told),
            Made::Deleting(_) => Err(Refused::BeingDeleted(name).into()),
        })
        .await
    }

    /// Has something done by the administrator, to its end, also if this caller leaves.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Handle) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.shared.check()?;
        let handle = self.clone();
        self.shared.administrator.turn(move || work(&handle)).await
    }

    /// Where queues do not come to be by use, what is fed to a missing one would be a dead letter at once.
    fn check_fed(&self, topic: &Name, settings: &TopicSettings) -> Result<(), Error> {
        if self.shared.config.shard.create_on_use {
            return Ok(());
        }
        let own = settings.feeds.is_none().then_some(topic);
        let fed: Vec<Name> =
            settings.feeds.iter().flatten().map(|binding| &binding.queue).chain(own).cloned().collect();
        let shards: Vec<Vec<QueueView>> = block_on(self.look_all(Command::Queues(Chosen::Named(fed.clone()))))?;
        let is_missing =
            |queue: &&Name| shards.iter().any(|views| views.iter().all(|view| view.counts.name != **queue));
        match fed.iter().find(is_missing) {
            Some(queue) => Err(Refused::NoSuchQueue(queue.clone()).into()),
            None => Ok(()),
        }
    }

    /// Removes a topic; refused if it holds tasks, unless it is forced. Answers how many rows went with it.
    pub async fn delete_topic(&self, name: &Name, force: bool) -> Result<u64, Error> {
        self.counted(self.delete(Subject::Topic(name.clone()), force).await)
    }

    /// Removes a queue; refused if it holds deliveries, unless it is forced. Answers how many rows went with it.
    pub async fn delete_queue(&self, name: &Name, force: bool) -> Result<u64, Error> {
        self.counted(self.delete(Subject::Queue(name.clone()), force).await)
    }

    async fn delete(&self, subject: Subject, force: bool) -> Ended {
        loop {
            let asked = subject.clone();
            let ending = self.in_turn(move |handle| handle.begin_deletion(&asked, force)).await?;
            match ending.await.unwrap_or_else(|_| Err(self.shared.lost())) {
                // It was joined, and had been asked for without force.
                Err(Error::Refused(Refused::NotEmpty { .. })) if force => {}
                ended => return ended,
            }
        }
    }

    /// Writes a deletion down and tells all shards, or joins one that is under way.
    fn begin_deletion(&self, subject: &Subject, force: bool) -> Result<oneshot::Receiver<Ended>, Error> {
        let decide = || {
            let adjustment = Adjustment::Delete { subject: subject.clone(), force };
            if force {
                return Ok(Decision::Make { adjustment, otherwise: None, told: () });
            }
            // Each shard looks for itself too, but one that is empty must not be the first to go.
            let (rows, as_it_is) = self.holdings(subject)?;
            if rows > 0 {
                return Err(Refused::NotEmpty { name: subject.name().clone(), rows }.into());
            }
            Ok(Decision::Make { adjustment, otherwise: Some(as_it_is), told: () })
        };
        match self.make(subject, decide)? {
            Made::Deleting(deletion) => Ok(self.follow(deletion)),
            Made::Done(()) => unreachable!("a deletion that was written down is under way"),
        }
    }

    /// How much a topic or queue holds that keeps it from being deleted, and what would make it as it is.
    fn holdings(&self, subject: &Subject) -> Result<(u64, Adjustment), Error> {
        match subject {
            Subject::Topic(name) => {
                let topic = block_on(self.topic(name))?.ok_or_else(|| Refused::NoSuchTopic(name.clone()))?;
                let TopicView { counts, settings, .. } = topic;
                let put = Adjustment::PutTopic { name: name.clone(), settings: Box::new(settings) };
                Ok((counts.waiting + counts.leased + counts.dead, put))
            }
            Subject::Queue(name) => {
                let queue = block_on(self.queue(name))?.ok_or_else(|| Refused::NoSuchQueue(name.clone()))?;
                let QueueView { counts, settings, .. } = queue;
                let put = Adjustment::PutQueue { name: name.clone(), settings: Box::new(settings) };
                Ok((counts.ready + counts.leased + counts.dead, put))
            }
        }
    }

    /// What any shard has. Where several have the same, they agree, or are about to.
    pub(crate) async fn all_settings(&self) -> Result<punctual_core::shard::StoredSettings, Error> {
        let shards = self.shared.config.shards;
        self.read(move |store| {
            let mut all = view::settings_of(store, ShardId(0))?;
            for shard in (1..shards).map(ShardId) {
                let settings = view::settings_of(store, shard)?;
                settings.topics.into_iter().for_each(|(name, topic)| _ = all.topics.entry(name).or_insert(topic));
                settings.queues.into_iter().for_each(|(name, queue)| _ = all.queues.entry(name).or_insert(queue));
            }
            Ok(all)
        })
        .await
    }
}
