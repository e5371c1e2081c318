//! Topics and queues: made, changed, paused, deleted, in all shards.
//!
//! A topic that was made by being used is in some of the shards only. What changes it therefore
//! makes it in the others: else they would make it anew, with the settings of a new topic.

use std::sync::PoisonError;

use punctual_core::store::ShardId;
use punctual_core::{
    Answer, Command, Name, QueueSettings, QueueView, Refused, Timestamp, Told, TopicSettings, TopicView, view,
};
use tokio::sync::oneshot;

use super::{Handle, together};
use crate::caller::{Concern, Outcome, Outcomes};
use crate::deletions::{Ended, What};
use crate::error::Error;

impl Handle {
    /// Creates a topic or changes its settings. On an error some shards may have done it; do it again.
    pub async fn put_topic(&self, name: &Name, settings: TopicSettings) -> Result<TopicSettings, Error> {
        let command = Command::PutTopic { name: name.clone(), settings: Box::new(settings) };
        self.put(What::Topic, name, command).await
    }

    /// Creates a queue or changes its settings. On an error some shards may have done it; do it again.
    pub async fn put_queue(&self, name: &Name, settings: QueueSettings) -> Result<QueueSettings, Error> {
        let pause = QueueSettings::check_pause(settings.paused_until, "paused_until", self.now());
        self.counted(pause.map_err(Error::from))?;
        let command = Command::PutQueue { name: name.clone(), settings: Box::new(settings) };
        self.put(What::Queue, name, command).await
    }

    /// Creates a queue with these settings if there is none, and leaves one alone that is there.
    pub async fn make_queue(&self, name: &Name, settings: QueueSettings) -> Result<(), Error> {
        let put = Command::PutQueue { name: name.clone(), settings: Box::new(settings) };
        let name = name.clone();
        let made = self.in_turn(|handle| async move {
            if handle.queue(&name).await?.is_some() {
                return Ok(());
            }
            handle.put_now::<QueueSettings>(What::Queue, &name, put).await.map(|_| ())
        });
        self.counted(made.await)
    }

    async fn put<T: Told + Send + 'static>(&self, what: What, name: &Name, command: Command) -> Result<T, Error> {
        let name = name.clone();
        self.counted(self.in_turn(|handle| async move { handle.put_now(what, &name, command).await }).await)
    }

    pub(super) async fn put_now<T: Told>(&self, what: What, name: &Name, command: Command) -> Result<T, Error> {
        self.check_stays(what, name)?;
        self.check_room_for(what, name).await?;
        let settings = first(self.ask_all(command).await)?;
        if what == What::Queue {
            self.shared.known_queues.write().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        }
        Ok(settings)
    }

    /// Has something done by the administrator, to its end, also if this caller leaves.
    pub(super) async fn in_turn<T, F>(&self, work: impl FnOnce(Handle) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.shared.check()?;
        self.shared.administrator.turn(work(self.clone())).await
    }

    /// Refuses to change what is being deleted: shards that are done would make it anew, and others would not.
    fn check_stays(&self, what: What, name: &Name) -> Result<(), Error> {
        match self.shared.deletions.is_under_way(what, name) {
            true => Err(Refused::BeingDeleted(name.clone()).into()),
            false => Ok(()),
        }
    }

    /// A new topic or queue needs room. Changing one does not: other settings may be what makes room.
    async fn check_room_for(&self, what: What, name: &Name) -> Result<(), Error> {
        match self.shared.check_room() {
            Err(full) if self.put_again(what, name).await?.is_none() => Err(full),
            _ => Ok(()),
        }
    }

    /// Refuses tasks for a topic until it is resumed.
    pub async fn pause_topic(&self, name: &Name) -> Result<TopicSettings, Error> {
        let command = Command::PauseTopic { name: name.clone(), paused: true };
        self.change(What::Topic, name, command).await
    }

    /// Takes tasks for a topic again.
    pub async fn resume_topic(&self, name: &Name) -> Result<TopicSettings, Error> {
        let command = Command::PauseTopic { name: name.clone(), paused: false };
        self.change(What::Topic, name, command).await
    }

    /// Stops handing out from a queue until a time; without, until it is resumed.
    pub async fn pause_queue(&self, name: &Name, until: Option<Timestamp>) -> Result<QueueSettings, Error> {
        self.counted(QueueSettings::check_pause(until, "until", self.now()).map_err(Error::from))?;
        let command = Command::PauseQueue { name: name.clone(), until: Some(until.unwrap_or(Timestamp::NEVER)) };
        self.change(What::Queue, name, command).await
    }

    /// Hands out from a queue again.
    pub async fn resume_queue(&self, name: &Name) -> Result<QueueSettings, Error> {
        let command = Command::PauseQueue { name: name.clone(), until: None };
        self.change(What::Queue, name, command).await
    }

    /// Changes a topic or queue where it is, and makes it as it is then where it is not.
    async fn change<T: Told + Send + 'static>(&self, what: What, name: &Name, command: Command) -> Result<T, Error> {
        let name = name.clone();
        self.counted(self.in_turn(|handle| async move { handle.change_now(what, &name, command).await }).await)
    }

    async fn change_now<T: Told>(&self, what: What, name: &Name, command: Command) -> Result<T, Error> {
        self.check_stays(what, name)?;
        let outcomes = self.ask_all(command).await;
        let changed = outcomes.iter().find_map(|outcome| outcome.as_ref().ok()).cloned();
        let put = match &changed {
            None => return first(outcomes),
            Some(Answer::Topic(settings)) => {
                Command::PutTopic { name: name.clone(), settings: Box::new(settings.clone()) }
            }
            Some(Answer::Queue(settings)) => {
                Command::PutQueue { name: name.clone(), settings: Box::new(settings.clone()) }
            }
            Some(other) => unreachable!("a change of settings is answered with them, not with {other:?}"),
        };
        let (missing, others): (Vec<_>, Vec<_>) =
            (0..).map(ShardId).zip(outcomes).partition(|(_, outcome)| is_missing(outcome));
        let missing = missing.into_iter().map(|(shard, _)| (shard, put.clone())).collect();
        first(others.into_iter().map(|(_, outcome)| outcome).chain(self.ask_several(missing).await).collect())
    }

    /// Removes a topic; refused if it holds tasks, unless it is forced. Answers how many rows went with it.
    pub async fn delete_topic(&self, name: &Name, force: bool) -> Result<u64, Error> {
        self.counted(self.delete(What::Topic, name, force).await)
    }

    /// Removes a queue; refused if it holds deliveries, unless it is forced. Answers how many rows went with it.
    pub async fn delete_queue(&self, name: &Name, force: bool) -> Result<u64, Error> {
        self.counted(self.delete(What::Queue, name, force).await)
    }

    async fn delete(&self, what: What, name: &Name, force: bool) -> Ended {
        loop {
            let asked = name.clone();
            let ending = self.in_turn(|handle| async move { handle.begin_deletion(what, &asked, force).await }).await?;
            match ending.await.unwrap_or_else(|_| Err(self.shared.lost())) {
                // It was joined, and had been asked for without force.
                Err(Error::Refused(Refused::NotEmpty { .. })) if force => {}
                ended => return ended,
            }
        }
    }

    /// Tells all shards to delete it, or joins those who have. The turn is over then: it may take long, and other changes
    /// go on meanwhile.
    async fn begin_deletion(&self, what: What, name: &Name, force: bool) -> Result<oneshot::Receiver<Ended>, Error> {
        if let Some(ending) = self.shared.deletions.join(what, name) {
            return Ok(ending);
        }
        if !force {
            // Each shard looks for itself too, but one that is empty must not be the first to go.
            let rows = self.rows_in(what, name).await?;
            if rows > 0 {
                return Err(Refused::NotEmpty { name: name.clone(), rows }.into());
            }
        }
        let ending = self.shared.deletions.begin(what, name);
        let (handle, name) = (self.clone(), name.clone());
        let command = what.delete(&name, force);
        let concern: Concern = Box::new(move |outcomes| handle.end_deletion(what, name, outcomes));
        self.tell_all(command, concern).await;
        Ok(ending)
    }

    /// All shards have answered, whoever still waits for it.
    fn end_deletion(&self, what: What, name: Name, outcomes: &Outcomes) {
        let outcomes = self.heard(outcomes.clone());
        let is_kept = |outcome: &Outcome| matches!(outcome, Err(Error::Refused(Refused::NotEmpty { .. })));
        let Some(kept) = outcomes.iter().position(is_kept) else {
            if what == What::Queue && outcomes.iter().all(|outcome| outcome.is_ok() || is_missing(outcome)) {
                self.shared.known_queues.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
            }
            return self.shared.deletions.end(what, &name, &rows_gone(outcomes));
        };
        // Something came in meanwhile: it stays, and so it is put back where it has gone.
        let gone: Vec<ShardId> =
            (0..).map(ShardId).zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()).map(|(shard, _)| shard).collect();
        let ended = rows_gone(vec![outcomes[kept].clone()]);
        let handle = self.clone();
        self.shared.administrator.follow_up(async move {
            if let Ok(Some(put)) = handle.put_again(what, &name).await {
                handle.ask_several(gone.into_iter().map(|shard| (shard, put.clone())).collect()).await;
            }
            handle.shared.deletions.end(what, &name, &ended);
        });
    }

    /// The command that makes a topic or queue as it is now, if there is one.
    async fn put_again(&self, what: What, name: &Name) -> Result<Option<Command>, Error> {
        let name = name.clone();
        Ok(match what {
            What::Topic => {
                let settings = self.topic(&name).await?.map(|topic| Box::new(topic.settings));
                settings.map(|settings| Command::PutTopic { name, settings })
            }
            What::Queue => {
                let settings = self.queue(&name).await?.map(|queue| Box::new(queue.settings));
                settings.map(|settings| Command::PutQueue { name, settings })
            }
        })
    }

    /// How much a topic or queue holds that keeps it from being deleted.
    async fn rows_in(&self, what: What, name: &Name) -> Result<u64, Error> {
        Ok(match what {
            What::Topic => self
                .topic(name)
                .await?
                .map_or(0, |TopicView { counts, .. }| counts.waiting + counts.leased + counts.dead),
            What::Queue => {
                self.queue(name).await?.map_or(0, |QueueView { counts, .. }| counts.ready + counts.leased + counts.dead)
            }
        })
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

impl What {
    fn delete(self, name: &Name, force: bool) -> Command {
        let name = name.clone();
        match self {
            What::Topic => Command::DeleteTopic { name, force },
            What::Queue => Command::DeleteQueue { name, force },
        }
    }
}

fn is_missing(outcome: &Outcome) -> bool {
    matches!(outcome, Err(Error::Refused(Refused::NoSuchTopic(_) | Refused::NoSuchQueue(_))))
}

/// How many rows went with it in all shards that had it.
fn rows_gone(outcomes: Vec<Outcome>) -> Ended {
    let (missing, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_missing);
    let rows: Vec<u64> = together(if others.is_empty() { missing } else { others })?;
    Ok(rows.into_iter().sum())
}

/// The first error, else the first answer: all shards do the same.
fn first<T: Told>(outcomes: Vec<Outcome>) -> Result<T, Error> {
    Ok(together(outcomes)?.swap_remove(0))
}
