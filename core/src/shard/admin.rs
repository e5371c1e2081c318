//! Topics and queues: made, changed, paused.

use super::Shard;
use super::directory::{QueueIndex, TopicIndex};
use super::open::{queue_key, topic_key};
use crate::adjustment::Subject;
use crate::answer::{Answer, Refused, Reply};
use crate::name::Name;
use crate::settings::{QueueSettings, TopicSettings};
use crate::time::Timestamp;

impl<R> Shard<R> {
    pub(super) fn create_topic(&mut self, name: &Name, settings: TopicSettings) -> TopicIndex {
        let feeds_default = settings.feeds.is_none();
        self.catalogue.put(topic_key(name), settings.lay());
        self.adopt_topic(name, &settings);
        let index = self.directory.add_topic(name, settings);
        if feeds_default && self.config.create_on_use {
            self.ensure_queue(name);
        }
        index
    }

    pub(super) fn create_queue(&mut self, name: &Name, settings: QueueSettings) -> QueueIndex {
        self.catalogue.put(queue_key(name), settings.lay());
        self.adopt_queue(name, &settings);
        self.directory.add_queue(name, settings)
    }

    /// Begins to do what a topic's settings say.
    pub(super) fn adopt_topic(&mut self, name: &Name, settings: &TopicSettings) {
        self.draft.limit_topic(name, settings.rate);
        self.retained.history.add(settings.history, self.now);
    }

    /// Begins to do what a queue's settings say.
    pub(super) fn adopt_queue(&mut self, name: &Name, settings: &QueueSettings) {
        self.stock.limit(name, settings.rate);
        if let Some(period) = settings.dead_retention {
            self.retained.dead.add(period, self.now);
        }
    }

    /// A queue does not keep its dead letters any more as these settings said.
    pub(super) fn end_retention(&mut self, settings: &QueueSettings) {
        if let Some(period) = settings.dead_retention {
            self.retained.dead.drop(period);
        }
    }

    pub(super) fn put_topic(&mut self, name: &Name, settings: TopicSettings) -> Reply {
        settings.check()?;
        let own = settings.feeds.is_none().then_some(name);
        let mut fed = settings.feeds.iter().flatten().map(|binding| &binding.queue).chain(own);
        // Where queues do not come to be by use, what is fed to a missing one would be a dead letter at once.
        match fed.find(|queue| !self.config.create_on_use && self.directory.queue_index(queue).is_none()) {
            Some(queue) => Err(Refused::NoSuchQueue(queue.clone())),
            None => self.adjust_topic(name, settings),
        }
    }

    /// Gives a topic settings that can be kept.
    pub(super) fn adjust_topic(&mut self, name: &Name, settings: TopicSettings) -> Reply {
        match self.directory.topic_index(name) {
            Some(index) => {
                if self.directory.topic(index).closing.is_some() {
                    return Err(Refused::BeingDeleted(name.clone()));
                }
                let before = self.directory.set_topic(index, settings.clone());
                if before.rate != settings.rate {
                    self.buckets.renew(Subject::Topic(name.clone()), settings.rate);
                }
                self.catalogue.put(topic_key(name), settings.lay());
                self.adopt_topic(name, &settings);
                self.retained.history.drop(before.history);
                if before.history != settings.history {
                    self.retained.history.look_again(settings.history);
                }
            }
            None => {
                self.buckets.renew(Subject::Topic(name.clone()), settings.rate);
                self.create_topic(name, settings.clone());
            }
        }
        for binding in settings.feeds.iter().flatten() {
            if self.config.create_on_use {
                self.ensure_queue(&binding.queue);
            }
        }
        Ok(Answer::Topic(settings))
    }

    pub(super) fn put_queue(&mut self, name: &Name, settings: QueueSettings) -> Reply {
        settings.check()?;
        self.adjust_queue(name, settings)
    }

    /// Gives a queue settings that can be kept, or that it had before there were rules for them.
    pub(super) fn adjust_queue(&mut self, name: &Name, settings: QueueSettings) -> Reply {
        match self.directory.queue_index(name) {
            Some(index) => {
                if self.directory.queue(index).closing.is_some() {
                    return Err(Refused::BeingDeleted(name.clone()));
                }
                let before = self.directory.set_queue(index, settings.clone());
                if before.rate != settings.rate {
                    self.buckets.renew(Subject::Queue(name.clone()), settings.rate);
                }
                self.catalogue.put(queue_key(name), settings.lay());
                self.adopt_queue(name, &settings);
                self.end_retention(&before);
                if let Some(period) =
                    settings.dead_retention.filter(|_| before.dead_retention != settings.dead_retention)
                {
                    self.retained.dead.look_again(period);
                }
            }
            None => {
                self.buckets.renew(Subject::Queue(name.clone()), settings.rate);
                self.create_queue(name, settings.clone());
            }
        }
        Ok(Answer::Queue(settings))
    }

    pub(super) fn pause_topic(&mut self, name: &Name, paused: bool) -> Reply {
        let Some(index) = self.directory.topic_index(name) else {
            return Err(Refused::NoSuchTopic(name.clone()));
        };
        let settings = TopicSettings { paused, pause: None, ..self.directory.topic(index).settings.clone() };
        self.adjust_topic(name, settings)
    }

    pub(super) fn pause_queue(&mut self, name: &Name, until: Option<Timestamp>) -> Reply {
        let Some(index) = self.directory.queue_index(name) else {
            return Err(Refused::NoSuchQueue(name.clone()));
        };
        let settings =
            QueueSettings { paused_until: until, pause: None, ..self.directory.queue(index).settings.clone() };
        self.adjust_queue(name, settings)
    }

    pub(super) fn ensure_queue(&mut self, name: &Name) -> QueueIndex {
        match self.directory.queue_index(name) {
            Some(index) => index,
            None => self.create_queue(name, QueueSettings::default()),
        }
    }
}
