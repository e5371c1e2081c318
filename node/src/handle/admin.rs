//! Topics and queues: made, changed, paused, deleted, in all shards.
//!
//! A topic that was made by being used is in some of the shards only. What changes it therefore
//! makes it in the others: else they would make it anew, with the settings of a new topic.

use std::sync::{Arc, PoisonError};

use punctual_core::store::ShardId;
use punctual_core::{
    Answer, Command, Name, QueueSettings, QueueView, Refused, Timestamp, TopicSettings, TopicView, view,
};

use super::{Handle, answered};
use crate::caller::{Concern, Outcome};
use crate::error::Error;

/// A topic or a queue.
#[derive(Clone, Copy)]
enum What {
    Topic,
    Queue,
}

impl Handle {
    /// Creates a topic or changes its settings. On an error some shards may have done it; do it again.
    pub async fn put_topic(&self, name: &Name, settings: TopicSettings) -> Result<TopicSettings, Error> {
        let command = Command::PutTopic { name: name.clone(), settings: Box::new(settings) };
        answered!(self.put(What::Topic, name, command).await, Answer::Topic(settings) => settings)
    }

    /// Creates a queue or changes its settings. On an error some shards may have done it; do it again.
    pub async fn put_queue(&self, name: &Name, settings: QueueSettings) -> Result<QueueSettings, Error> {
        let pause = QueueSettings::check_pause(settings.paused_until, "paused_until", self.now());
        self.counted(pause.map_err(Error::from))?;
        let command = Command::PutQueue { name: name.clone(), settings: Box::new(settings) };
        answered!(self.put(What::Queue, name, command).await, Answer::Queue(settings) => settings)
    }

    async fn put(&self, what: What, name: &Name, command: Command) -> Outcome {
        let _turn = self.shared.settings.lock().await;
        let outcome = match self.check_room_for(what, name).await {
            Ok(()) => first(self.ask_all_about(what, name, command).await),
            Err(full) => Err(full),
        };
        self.counted(outcome)
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
        answered!(self.change(name, command).await, Answer::Topic(settings) => settings)
    }

    /// Takes tasks for a topic again.
    pub async fn resume_topic(&self, name: &Name) -> Result<TopicSettings, Error> {
        let command = Command::PauseTopic { name: name.clone(), paused: false };
        answered!(self.change(name, command).await, Answer::Topic(settings) => settings)
    }

    /// Stops handing out from a queue until a time; without, until it is resumed.
    pub async fn pause_queue(&self, name: &Name, until: Option<Timestamp>) -> Result<QueueSettings, Error> {
        self.counted(QueueSettings::check_pause(until, "until", self.now()).map_err(Error::from))?;
        let command = Command::PauseQueue { name: name.clone(), until: Some(until.unwrap_or(Timestamp::NEVER)) };
        answered!(self.change(name, command).await, Answer::Queue(settings) => settings)
    }

    /// Hands out from a queue again.
    pub async fn resume_queue(&self, name: &Name) -> Result<QueueSettings, Error> {
        let command = Command::PauseQueue { name: name.clone(), until: None };
        answered!(self.change(name, command).await, Answer::Queue(settings) => settings)
    }

    /// Changes a topic or queue where it is, and makes it as it is then where it is not.
    async fn change(&self, name: &Name, command: Command) -> Outcome {
        self.counted(self.change_all(name, command).await)
    }

    async fn change_all(&self, name: &Name, command: Command) -> Outcome {
        let _turn = self.shared.settings.lock().await;
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
        let _turn = self.shared.settings.lock().await;
        self.counted(self.delete(What::Topic, name, force).await)
    }

    /// Removes a queue; refused if it holds deliveries, unless it is forced. Answers how many rows went with it.
    pub async fn delete_queue(&self, name: &Name, force: bool) -> Result<u64, Error> {
        let _turn = self.shared.settings.lock().await;
        self.counted(self.delete(What::Queue, name, force).await)
    }

    /// Makes or deletes a topic or queue in all shards. By their answers it is noted whether there is a queue of this
    /// name, also if the caller does not wait for them: whoever comes to consume it is refused by that.
    async fn ask_all_about(&self, what: What, name: &Name, command: Command) -> Vec<Outcome> {
        if let What::Topic = what {
            return self.ask_all(command).await;
        }
        let (shared, name) = (Arc::clone(&self.shared), name.clone());
        let concern: Concern = Box::new(move |outcomes| {
            let is_put = |outcome: &Option<Outcome>| matches!(outcome, Some(Ok(Answer::Queue(_))));
            let is_deleted = |outcome: &Option<Outcome>| matches!(outcome, Some(Ok(Answer::Deleted(_))));
            let is_gone = |outcome: &Option<Outcome>| outcome.as_ref().is_some_and(is_missing) || is_deleted(outcome);
            let mut known = shared.known_queues.write().unwrap_or_else(PoisonError::into_inner);
            if outcomes.iter().all(is_put) {
                known.insert(name);
            } else if outcomes.iter().all(is_gone) {
                known.remove(&name);
            }
        });
        self.ask_all_then(command, concern).await
    }

    async fn delete(&self, what: What, name: &Name, force: bool) -> Result<u64, Error> {
        if !force {
            // Each shard looks for itself too, but one that is empty must not be the first to go.
            let rows = self.rows_in(what, name).await?;
            if rows > 0 {
                return Err(Refused::NotEmpty { name: name.clone(), rows }.into());
            }
        }
        let put = self.put_again(what, name).await?;
        let outcomes = self.ask_all_about(what, name, what.delete(name, force)).await;
        let is_kept = |outcome: &Outcome| matches!(outcome, Err(Error::Refused(Refused::NotEmpty { .. })));
        if let Some(kept) = outcomes.iter().position(is_kept) {
            // Something came in meanwhile: it stays, and so it is put back where it has gone.
            let gone = (0..).map(ShardId).zip(&outcomes).filter(|(_, outcome)| outcome.is_ok());
            let again = gone.filter_map(|(shard, _)| Some((shard, put.clone()?))).collect();
            self.ask_several(again).await;
            return answered!(outcomes[kept].clone(), Answer::Deleted(rows) => rows);
        }
        let (missing, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_missing);
        if others.is_empty() {
            return answered!(first(missing), Answer::Deleted(rows) => rows);
        }
        let mut sum = 0;
        for outcome in others {
            let rows: Result<u64, Error> = answered!(outcome, Answer::Deleted(rows) => rows);
            sum += rows?;
        }
        Ok(sum)
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

/// The first error, else the first answer: all shards do the same.
pub(super) fn first(outcomes: Vec<Outcome>) -> Outcome {
    let mut answers = outcomes.into_iter().collect::<Result<Vec<Answer>, Error>>()?;
    Ok(answers.swap_remove(0))
}
