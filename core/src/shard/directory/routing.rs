//! Which queues a topic's tasks go to.
//!
//! **Invariant**: a row that is ready stands in a queue to which its topic feeds now, or in one of those that it fed
//! before, so that it is found again when it comes from the store.

use super::{Directory, QueueIndex, TopicIndex};
use crate::name::Name;

/// Where a task goes when it fires.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::shard) enum Route {
    Nowhere,
    To(QueueIndex),
    ToSeveral(Vec<QueueIndex>),
    /// Nowhere before the deletion of this queue is over, which may be one of several.
    Detained {
        queue: QueueIndex,
        is_only: bool,
    },
}

impl Route {
    /// The queues that take it now.
    pub fn queues(self) -> Vec<QueueIndex> {
        match self {
            Route::Nowhere | Route::Detained { .. } => vec![],
            Route::To(queue) => vec![queue],
            Route::ToSeveral(queues) => queues,
        }
    }
}

impl Directory {
    pub(super) fn enter_feeder(&mut self, index: TopicIndex) {
        let topic = self.topics.get(index.0).expect("the topic exists");
        for binding in topic.settings.feeds.iter().flatten() {
            self.feeders.entry(binding.queue.clone()).or_default().insert(index);
        }
    }

    pub(super) fn leave_feeder(&mut self, index: TopicIndex) {
        let topic = self.topics.get(index.0).expect("the topic exists");
        for binding in topic.settings.feeds.iter().flatten() {
            if let Some(feeders) = self.feeders.get_mut(&binding.queue) {
                feeders.remove(&index);
                if feeders.is_empty() {
                    self.feeders.remove(&binding.queue);
                }
            }
        }
    }

    /// A task of a topic became ready in a queue because of where the topic feeds.
    pub fn feed(&mut self, topic: TopicIndex, queue: QueueIndex) {
        self.topic_mut(topic).fed.insert(queue);
    }

    /// A queue is there, or not any more, for those who feed it: their tasks go elsewhere from now on.
    pub fn reroute_to(&mut self, queue: &Name) {
        let named = self.topic_index(queue).filter(|index| self.topic(*index).settings.feeds.is_none());
        let feeders: Vec<TopicIndex> = self.feeders.get(queue).into_iter().flatten().copied().chain(named).collect();
        feeders.into_iter().for_each(|topic| self.reroute(topic));
    }

    /// Where a topic's tasks go is another question from now on: what is ready may stand elsewhere than it would go.
    pub(super) fn reroute(&mut self, index: TopicIndex) {
        let topic = self.topics.get_mut(index.0).expect("the topic exists");
        topic.fed_before.append(&mut topic.fed);
        let holds_some = |queue: &QueueIndex| self.queues.get(queue.0).is_some_and(|queue| queue.waiting() > 0);
        topic.fed_before.retain(holds_some);
    }

    /// The queues in which tasks of a topic may be ready though they would not go there now.
    pub fn fed_before(&self, topic: TopicIndex) -> impl Iterator<Item = QueueIndex> {
        let there = |queue: &QueueIndex| self.queues.get(queue.0).is_some();
        self.topic(topic).fed_before.iter().copied().filter(there)
    }

    /// The queues that take a task with this routing key, and the names of those that would if they existed.
    pub fn route(&self, topic: TopicIndex, routing_key: &str) -> (Route, Vec<Name>) {
        let topic = self.topic(topic);
        let Some(feeds) = &topic.settings.feeds else {
            return match self.queue_index(&topic.name) {
                Some(index) if self.queue(index).closing.is_some() => {
                    (Route::Detained { queue: index, is_only: true }, Vec::new())
                }
                Some(index) => (Route::To(index), Vec::new()),
                None => (Route::Nowhere, vec![topic.name.clone()]),
            };
        };
        let mut found: Vec<QueueIndex> = Vec::new();
        let mut missing: Vec<Name> = Vec::new();
        for binding in feeds.iter().filter(|binding| binding.pattern.fits(routing_key)) {
            match self.queue_index(&binding.queue) {
                Some(index) if found.contains(&index) => {}
                Some(index) => found.push(index),
                None => missing.push(binding.queue.clone()),
            }
        }
        if let Some(queue) = found.iter().find(|index| self.queue(**index).closing.is_some()) {
            let is_only = found.len() == 1 && missing.is_empty();
            return (Route::Detained { queue: *queue, is_only }, Vec::new());
        }
        let route = match found.len() {
            0 => Route::Nowhere,
            1 => Route::To(found[0]),
            _ => Route::ToSeveral(found),
        };
        (route, missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::settings::{Binding, QueueSettings, TopicSettings};

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn a_topic_feeds_the_queue_of_its_name_unless_told_otherwise() {
        let mut directory = Directory::default();
        let topic = directory.add_topic(&name("orders"), TopicSettings::default());
        assert_eq!(directory.route(topic, ""), (Route::Nowhere, vec![name("orders")]));
        let queue = directory.add_queue(&name("orders"), QueueSettings::default());
        assert_eq!(directory.route(topic, "any"), (Route::To(queue), vec![]));
        directory.set_topic(topic, TopicSettings { feeds: Some(vec![]), ..TopicSettings::default() });
        assert_eq!(directory.route(topic, "any"), (Route::Nowhere, vec![]));
    }

    #[test]
    fn several_bindings_of_one_queue_give_one_delivery() {
        let mut directory = Directory::default();
        let words =
            |queue: &str, pattern: &str| Binding { queue: name(queue), pattern: Pattern::Words(pattern.into()) };
        let feeds = Some(vec![words("a", "x.#"), words("a", "#.y"), words("b", "x.y")]);
        let topic = directory.add_topic(&name("t"), TopicSettings { feeds, ..TopicSettings::default() });
        let a = directory.add_queue(&name("a"), QueueSettings::default());
        let b = directory.add_queue(&name("b"), QueueSettings::default());
        assert_eq!(directory.route(topic, "x.y"), (Route::ToSeveral(vec![a, b]), vec![]));
        assert_eq!(directory.route(topic, "x.z"), (Route::To(a), vec![]));
        assert_eq!(directory.route(topic, "z"), (Route::Nowhere, vec![]));
    }
}
