//! How the work goes: of this node alone, and of all of them together.

use std::collections::BTreeMap;

use punctual_center::{Account, Busy, Consumers, Happened, Inquiry, Timing, Work};
use punctual_core::{Name, Refused, Scope};

use super::Handle;
use crate::error::Error;
use crate::stats::Stats;

/// How nodes have been working since each of them started. What a node has counted goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllWork {
    /// Of all of them together.
    pub work: Work,
    /// How often what has happened to the busiest topics.
    pub topics: BTreeMap<Name, Happened>,
    /// Nodes that are there and said nothing: what they have done is not counted in.
    pub silent: Vec<Name>,
}

impl Handle {
    /// How this node has been working since it started.
    pub fn stats(&self) -> Stats {
        let waiting_consumers = self.shared.board.lock().waiting.len();
        let inboxes = self.shared.inboxes.iter().map(|inbox| inbox.len()).collect();
        let archive = self.shared.config.archive.as_ref().map(|_| self.shared.archiving.stats());
        self.shared.meter.read(archive, waiting_consumers, inboxes)
    }

    /// How often what has happened to topics on this node since it started, in their order.
    pub fn happened_here(&self, topics: &[Name]) -> Vec<Happened> {
        self.shared.meter.happened(topics)
    }

    /// How long the deliveries of these queues took on this node since it started, in their order.
    pub fn timings_here(&self, queues: &[Name]) -> Vec<Timing> {
        self.shared.meter.timings(queues)
    }

    /// How all nodes have been working, or one of them, and what has happened to so many of the busiest topics of a scope.
    pub async fn work(&self, within: &Scope, most: usize, of: Option<&Name>) -> Result<AllWork, Error> {
        let inquiry = Inquiry::Work { within: within.clone(), most };
        let (accounts, mut silent) = self.shared.inquire(inquiry, of).await;
        let work = |account| if let Account::Work(work) = account { Some(*work) } else { None };
        let sum = together(accounts, work, |sum, work| sum.add(work));
        let Some(mut work) = sum else { return self.counted(Err(no_work(of, &silent))) };
        work.busiest.sort_by_key(|busy| std::cmp::Reverse(busy.bustle));
        work.busiest.truncate(most);
        // What is not among the busiest of a node has happened there all the same.
        let names: Vec<Name> = work.busiest.iter().map(|Busy { topic, .. }| topic.clone()).collect();
        let (happened, late) = self.happened_on(names.clone(), of).await;
        silent.extend(late);
        silent.sort();
        silent.dedup();
        Ok(AllWork { work, topics: names.into_iter().zip(happened).collect(), silent })
    }

    /// How often what has happened to a topic since the nodes started, or the topic was made.
    pub async fn happened(&self, topic: &Name) -> Happened {
        self.happened_to(vec![topic.clone()]).await.pop().unwrap_or_default()
    }

    /// The same for several topics, in their order.
    pub async fn happened_to(&self, topics: Vec<Name>) -> Vec<Happened> {
        self.happened_on(topics, None).await.0
    }

    async fn happened_on(&self, topics: Vec<Name>, of: Option<&Name>) -> (Vec<Happened>, Vec<Name>) {
        let count = topics.len();
        let (accounts, silent) = self.shared.inquire(Inquiry::Topics(topics), of).await;
        let topics = |account| if let Account::Topics(topics) = account { Some(topics) } else { None };
        let sums = together(accounts, topics, |sums, topics| {
            sums.iter_mut().zip(topics).for_each(|(sum, happened)| sum.add(happened));
        });
        (sums.unwrap_or_else(|| vec![Happened::default(); count]), silent)
    }

    /// Which consumers wait for a queue, or for any in a scope, by node: at most so many of each. Nodes that are there and
    /// said nothing are named.
    pub async fn consumers(&self, within: &Scope, queue: Option<&Name>, most: usize) -> (Vec<Consumers>, Vec<Name>) {
        let inquiry = Inquiry::Consumers { queue: queue.cloned(), within: within.clone(), most };
        let (accounts, silent) = self.shared.inquire(inquiry, None).await;
        let consumers = accounts.into_iter().filter_map(|account| match account {
            Account::Consumers(consumers) => Some(consumers),
            _ => None,
        });
        (consumers.collect(), silent)
    }

    /// How long the deliveries of these queues took since the nodes started, in their order.
    pub async fn timings(&self, queues: Vec<Name>) -> Vec<Timing> {
        let (accounts, _) = self.shared.inquire(Inquiry::Queues(queues), None).await;
        let queues = |account| if let Account::Queues(queues) = account { Some(queues) } else { None };
        let sums = together(accounts, queues, |sums, queues| {
            sums.iter_mut().zip(queues).for_each(|(sum, timing)| sum.add(timing));
        });
        // This node always says its part.
        sums.unwrap_or_default()
    }
}

/// What the nodes say, added up.
pub(super) fn together<T>(
    accounts: Vec<Account>,
    read: impl Fn(Account) -> Option<T>,
    add: impl Fn(&mut T, &T),
) -> Option<T> {
    accounts.into_iter().filter_map(read).reduce(|mut sum, other| {
        add(&mut sum, &other);
        sum
    })
}

/// One node was wanted, and is not there or says nothing.
fn no_work(of: Option<&Name>, silent: &[Name]) -> Error {
    match of {
        Some(node) if silent.is_empty() => {
            Refused::Invalid { field: "node", why: format!("there is no node {node} on this store") }.into()
        }
        _ => Error::nothing_done("the node does not say how its work goes; try again"),
    }
}
