//! Topics and queues, looked at over all shards: their settings and how much they hold.
//!
//! A page costs what is on it, however many others there are. Who wants all of them turns pages, so that a shard is
//! never held up for longer than one of them.

use std::collections::BTreeMap;

use punctual_core::{Chosen, Command, Counts, Name, QueueView, Told, TopicView, Total};

use super::Handle;
use crate::error::Error;

/// How many are looked at together, at least, when not all of them are meant.
const STRIDE: usize = 1_000;

/// One page of topics or queues, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names<T> {
    /// The topics or queues.
    pub entries: Vec<T>,
    /// The name after which the list goes on; `None` if that was all.
    pub next: Option<Name>,
}

/// Topics or queues.
trait Entry: Sized {
    fn name(&self) -> &Name;
    /// Adds what another shard has of the same one.
    fn add(&mut self, other: &Self);
    fn look(chosen: Chosen) -> Command;
}

impl Entry for TopicView {
    fn name(&self) -> &Name {
        &self.counts.name
    }

    fn add(&mut self, other: &TopicView) {
        self.counts.add(&other.counts);
    }

    fn look(chosen: Chosen) -> Command {
        Command::Topics(chosen)
    }
}

impl Entry for QueueView {
    fn name(&self) -> &Name {
        &self.counts.name
    }

    fn add(&mut self, other: &QueueView) {
        self.counts.add(&other.counts);
        self.oldest = [self.oldest, other.oldest].into_iter().flatten().min();
    }

    fn look(chosen: Chosen) -> Command {
        Command::Queues(chosen)
    }
}

impl Handle {
    /// Looks at a topic, if it is there.
    pub async fn topic(&self, name: &Name) -> Result<Option<TopicView>, Error> {
        Ok(self.topics_named(vec![name.clone()]).await?.pop())
    }

    /// Looks at a queue, if it is there.
    pub async fn queue(&self, name: &Name) -> Result<Option<QueueView>, Error> {
        Ok(self.queues_named(vec![name.clone()]).await?.pop())
    }

    /// Looks at the topics of these names, in the order of their names, as far as they are there.
    pub async fn topics_named(&self, names: Vec<Name>) -> Result<Vec<TopicView>, Error> {
        self.counted(self.look(Chosen::Named(names), usize::MAX).await)
    }

    /// Looks at the queues of these names, in the order of their names, as far as they are there.
    pub async fn queues_named(&self, names: Vec<Name>) -> Result<Vec<QueueView>, Error> {
        self.counted(self.look(Chosen::Named(names), usize::MAX).await)
    }

    /// Looks at so many of the topics that are meant, from after a name on.
    pub async fn topics(
        &self,
        after: Option<Name>,
        limit: usize,
        is_meant: impl Fn(&Name) -> bool,
    ) -> Result<Names<TopicView>, Error> {
        self.counted(self.turn_names(after, limit, is_meant).await)
    }

    /// Looks at so many of the queues that are meant, from after a name on.
    pub async fn queues(
        &self,
        after: Option<Name>,
        limit: usize,
        is_meant: impl Fn(&Name) -> bool,
    ) -> Result<Names<QueueView>, Error> {
        self.counted(self.turn_names(after, limit, is_meant).await)
    }

    /// How much there is in all topics and queues together.
    pub async fn total(&self) -> Result<Total, Error> {
        let totals: Vec<Total> = self.counted(self.look_all(Command::Total).await)?;
        Ok(totals.into_iter().fold(Total::default(), Total::plus))
    }

    /// How much there is, by topic, queue and state. It is counted page by page, and takes as long as there are many.
    pub async fn counts(&self) -> Result<Counts, Error> {
        let topics = self.counted(self.turn_names(None, usize::MAX - 1, |_| true).await)?.entries;
        let queues = self.counted(self.turn_names(None, usize::MAX - 1, |_| true).await)?.entries;
        Ok(Counts {
            topics: topics.into_iter().map(|topic: TopicView| topic.counts).collect(),
            queues: queues.into_iter().map(|queue: QueueView| queue.counts).collect(),
        })
    }

    async fn turn_names<T: Entry>(
        &self,
        mut after: Option<Name>,
        limit: usize,
        is_meant: impl Fn(&Name) -> bool,
    ) -> Result<Names<T>, Error>
    where
        Vec<T>: Told,
    {
        let mut entries: Vec<T> = Vec::new();
        // One more than is wanted tells whether there are more.
        let mut stride = limit.saturating_add(1).min(STRIDE + 1);
        loop {
            let page: Vec<T> = self.look(Chosen::After { name: after, limit: stride }, stride).await?;
            let is_last = page.len() < stride;
            after = page.last().map(|entry| entry.name().clone());
            for entry in page.into_iter().filter(|entry| is_meant(entry.name())) {
                if entries.len() == limit {
                    let next = entries.last().map(|entry| entry.name().clone());
                    return Ok(Names { entries, next });
                }
                entries.push(entry);
            }
            if is_last {
                return Ok(Names { entries, next: None });
            }
            stride = STRIDE;
        }
    }

    /// What all shards have of those that are chosen, the first ones by name. A shard's first ones hold all that it
    /// has of the first ones of all.
    async fn look<T: Entry>(&self, chosen: Chosen, most: usize) -> Result<Vec<T>, Error>
    where
        Vec<T>: Told,
    {
        let mut merged: BTreeMap<Name, T> = BTreeMap::new();
        let pages: Vec<Vec<T>> = self.look_all(T::look(chosen)).await?;
        for entry in pages.into_iter().flatten() {
            match merged.get_mut(entry.name()) {
                Some(known) => known.add(&entry),
                None => _ = merged.insert(entry.name().clone(), entry),
            }
        }
        Ok(merged.into_values().take(most).collect())
    }
}
