//! Topics and queues: made, changed, paused, deleted.

use super::desk::Resident;
use super::directory::{QueueIndex, TopicIndex};
use super::open::{encode_queue, encode_setting, queue_key, topic_key};
use super::sweep::{Job, Work};
use super::{Closed, Shard};
use crate::answer::{Answer, Refused, Reply};
use crate::name::Name;
use crate::settings::{QueueSettings, TopicSettings};
use crate::store::{Position, Table, TallyKind};
use crate::time::Timestamp;

impl<R> Shard<R> {
    pub(super) fn create_topic(&mut self, name: &Name, settings: TopicSettings) -> TopicIndex {
        let feeds_default = settings.feeds.is_none();
        self.settings.insert(topic_key(name), Some(encode_setting(&settings)));
        self.adopt_topic(name, &settings);
        let index = self.directory.add_topic(name, settings);
        if feeds_default && self.config.create_on_use {
            self.ensure_queue(name);
        }
        index
    }

    pub(super) fn create_queue(&mut self, name: &Name, settings: QueueSettings) -> QueueIndex {
        self.settings.insert(queue_key(name), Some(encode_queue(&settings)));
        self.adopt_queue(name, &settings);
        self.directory.add_queue(name, settings)
    }

    /// Begins to do what a topic's settings say.
    pub(super) fn adopt_topic(&mut self, name: &Name, settings: &TopicSettings) {
        self.rates.push((name.clone(), settings.rate));
        self.history.add(settings.history, self.now);
    }

    /// Begins to do what a queue's settings say.
    pub(super) fn adopt_queue(&mut self, name: &Name, settings: &QueueSettings) {
        self.limited.insert(name.clone(), settings.rate);
        if let Some(period) = settings.dead_retention {
            self.dead.add(period, self.now);
        }
        if let Some(until) = settings.paused_until.filter(|until| *until < Timestamp::NEVER) {
            self.pauses.insert((until, name.clone()));
        }
    }

    pub(super) fn put_topic(&mut self, name: &Name, settings: TopicSettings) -> Reply {
        settings.check()?;
        let mut fed = settings.feeds.iter().flatten().map(|binding| &binding.queue);
        // Where queues do not come to be by use, what is fed to a missing one would be lost to everybody's sight.
        match fed.find(|queue| !self.config.create_on_use && self.directory.queue_index(queue).is_none()) {
            Some(queue) => Err(Refused::NoSuchQueue(queue.clone())),
            None => self.adjust_topic(name, settings),
        }
    }

    /// Gives a topic settings that can be kept.
    fn adjust_topic(&mut self, name: &Name, settings: TopicSettings) -> Reply {
        match self.directory.topic_index(name) {
            Some(index) => {
                if self.directory.topic(index).closing {
                    return Err(Refused::TopicPaused(name.clone()));
                }
                let before = self.directory.set_topic(index, settings.clone());
                self.settings.insert(topic_key(name), Some(encode_setting(&settings)));
                self.adopt_topic(name, &settings);
                if before.history != settings.history {
                    self.history.keep(settings.history, Position::START);
                }
            }
            None => _ = self.create_topic(name, settings.clone()),
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
    fn adjust_queue(&mut self, name: &Name, settings: QueueSettings) -> Reply {
        match self.directory.queue_index(name) {
            Some(index) => {
                let queue = self.directory.queue_mut(index);
                if queue.closing {
                    return Err(Refused::BadSettings(format!("queue {name} is being deleted: try again in a moment")));
                }
                let before = std::mem::replace(&mut queue.settings, settings.clone());
                queue.ready.reorder(settings.order);
                self.settings.insert(queue_key(name), Some(encode_queue(&settings)));
                self.adopt_queue(name, &settings);
                if let Some(period) =
                    settings.dead_retention.filter(|_| before.dead_retention != settings.dead_retention)
                {
                    self.dead.keep(period, Position::START);
                }
            }
            None => _ = self.create_queue(name, settings.clone()),
        }
        Ok(Answer::Queue(settings))
    }

    pub(super) fn pause_topic(&mut self, name: &Name, paused: bool) -> Reply {
        let Some(index) = self.directory.topic_index(name) else {
            return Err(Refused::NoSuchTopic(name.clone()));
        };
        let settings = TopicSettings { paused, ..self.directory.topic(index).settings.clone() };
        self.adjust_topic(name, settings)
    }

    pub(super) fn pause_queue(&mut self, name: &Name, until: Option<Timestamp>) -> Reply {
        let Some(index) = self.directory.queue_index(name) else {
            return Err(Refused::NoSuchQueue(name.clone()));
        };
        let settings = QueueSettings { paused_until: until, ..self.directory.queue(index).settings.clone() };
        self.adjust_queue(name, settings)
    }

    pub(super) fn delete_topic(&mut self, name: &Name, force: bool, reply: R) {
        let Some(index) = self.directory.topic_index(name) else {
            return self.answers.push((reply, Err(Refused::NoSuchTopic(name.clone()))));
        };
        // History alone does not hold a topic: it goes with it.
        let history = self.directory.topic(index).count(TallyKind::History) + self.touched_history(index);
        let rows = self.topic_holds(name) - history;
        if rows > 0 && !force {
            return self.answers.push((reply, Err(Refused::NotEmpty { name: name.clone(), rows })));
        }
        self.directory.topic_mut(index).closing = true;
        self.jobs.push(Job::new(Work::delete_topic(name.clone()), reply, self.numbers.next_row(), self.now));
    }

    pub(super) fn delete_queue(&mut self, name: &Name, force: bool, reply: R) {
        let Some(index) = self.directory.queue_index(name) else {
            return self.answers.push((reply, Err(Refused::NoSuchQueue(name.clone()))));
        };
        let rows = self.queue_holds(name);
        if rows > 0 && !force {
            return self.answers.push((reply, Err(Refused::NotEmpty { name: name.clone(), rows })));
        }
        self.directory.queue_mut(index).closing = true;
        self.directory.reroute_to(name);
        if force {
            return self.jobs.push(Job::new(
                Work::delete_queue(name.clone()),
                reply,
                self.numbers.next_row(),
                self.now,
            ));
        }
        // What waits for its next attempt is not in the queue: it goes where its topic feeds then.
        self.close_queue(name);
        self.answers.push((reply, Ok(Answer::Deleted(0))));
    }

    /// How many rows a topic holds, changes of this step included: those are counted at its end.
    pub(super) fn topic_holds(&self, name: &Name) -> u64 {
        let Some(index) = self.directory.topic_index(name) else { return 0 };
        let topic = self.directory.topic(index);
        let kinds = [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
        let counted = kinds.into_iter().map(|kind| topic.count(kind)).sum::<u64>();
        counted + self.touched_where(|row| row.topic == index)
    }

    fn touched_history(&self, index: TopicIndex) -> u64 {
        self.touched_where(|row| row.topic == index && row.table == Table::History)
    }

    /// How many deliveries and dead letters a queue holds, changes of this step included.
    pub(super) fn queue_holds(&self, name: &Name) -> u64 {
        let Some(index) = self.directory.queue_index(name) else { return 0 };
        let queue = self.directory.queue(index);
        let counted = queue.ready.len() + queue.count(TallyKind::QueueLeased) + queue.count(TallyKind::QueueDead);
        counted
            + self.touched_where(|row| {
                let counts = row.table == Table::Dead || (row.table == Table::Live && !row.is_waiting());
                counts && row.state.queue.as_ref() == Some(name)
            })
    }

    fn touched_where(&self, matches: impl Fn(&Resident) -> bool) -> u64 {
        let touched = self.desk.touched().iter().map(|slot| &self.desk[*slot]);
        touched.filter(|row| !row.gone && matches(row)).count() as u64
    }

    /// Everything the topic held is gone: now it goes itself.
    pub(super) fn close_topic(&mut self, name: &Name) {
        if let Some(index) = self.directory.topic_index(name) {
            self.settings.insert(topic_key(name), None);
            self.rates.push((name.clone(), None));
            self.gone.push(name.clone());
            self.closed.insert(Closed::Topic(index));
        }
    }

    /// Everything the queue held is gone: now it goes itself.
    pub(super) fn close_queue(&mut self, name: &Name) {
        if let Some(index) = self.directory.queue_index(name) {
            self.settings.insert(queue_key(name), None);
            self.limited.remove(name);
            self.forgotten.insert(name.clone());
            self.gone_queues.push(name.clone());
            self.closed.insert(Closed::Queue(index));
        }
    }
}
