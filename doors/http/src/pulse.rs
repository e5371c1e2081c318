//! How the nodes are doing, found out once a second for all who follow together, and not at all while nobody does.
//!
//! **Invariant**: while somebody follows, one task takes the pulse, and what it is asked for is bounded, however many follow.
//! Who is slow misses what is old, and gets the latest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::try_join;
use punctual_core::{Name, QueueView, Timestamp, TopicView, Total};
use punctual_node::{Error, Handle, Happened, Pulse};
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often it is taken.
const BEAT: Duration = Duration::from_secs(1);

/// How long the shards may take to say how much there is. What comes later is of no use to who looks every second.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many topics, and how many queues, all who follow can ask for together.
const MOST_NAMES: usize = 10_000;

/// All who follow.
#[derive(Clone, Default)]
pub struct Pulses(Arc<Mutex<Followed>>);

#[derive(Default)]
struct Followed {
    followers: usize,
    /// By name: how many ask for it.
    topics: BTreeMap<Name, usize>,
    queues: BTreeMap<Name, usize>,
    /// How often it was taken, or is being.
    rounds: u64,
    /// Where what was taken goes; there while a task takes it.
    told: Option<Sender<Option<Arc<Taken>>>>,
}

/// What is to be found out.
struct Wanted {
    round: u64,
    topics: Vec<Name>,
    queues: Vec<Name>,
}

/// What was found out at one time.
#[derive(Debug)]
pub(crate) struct Taken {
    round: u64,
    pub at: Timestamp,
    pub pulse: Pulse,
    pub silent: Vec<Name>,
    /// How much there is, or why that is not known.
    pub stock: Result<Stock, String>,
}

/// How much there is: in all, and in the topics and queues that somebody asks for, as far as they exist.
#[derive(Debug)]
pub(crate) struct Stock {
    pub total: Total,
    pub topics: BTreeMap<Name, (TopicView, Happened)>,
    pub queues: BTreeMap<Name, QueueView>,
}

/// Somebody who follows.
pub(crate) struct Follower {
    pulses: Pulses,
    pub topics: Vec<Name>,
    pub queues: Vec<Name>,
    /// The first round with what it asks for.
    first: u64,
    taken: Receiver<Option<Arc<Taken>>>,
}

impl Follower {
    /// Waits for the next one; nothing if there will be none, because the node stops.
    pub async fn next(&mut self) -> Option<Arc<Taken>> {
        loop {
            self.taken.changed().await.ok()?;
            let taken = self.taken.borrow_and_update().clone()?;
            // What was being taken when it came is not for it.
            if taken.round >= self.first {
                return Some(taken);
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followed = self.pulses.lock();
        followed.followers -= 1;
        let Followed { topics, queues, .. } = &mut *followed;
        leave(topics, &self.topics);
        leave(queues, &self.queues);
    }
}

fn leave(asked: &mut BTreeMap<Name, usize>, names: &[Name]) {
    for name in names {
        if let Some(count) = asked.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                asked.remove(name);
            }
        }
    }
}

impl Pulses {
    /// Follows, with these topics and queues. The first pulse that is heard is one that was taken with them.
    pub(crate) fn follow(&self, handle: &Handle, topics: Vec<Name>, queues: Vec<Name>) -> Result<Follower, Error> {
        let mut followed = self.lock();
        let is_room = |asked: &BTreeMap<Name, usize>, names: &[Name]| {
            asked.len() + names.iter().filter(|name| !asked.contains_key(*name)).count() <= MOST_NAMES
        };
        if !is_room(&followed.topics, &topics) || !is_room(&followed.queues, &queues) {
            return Err(Error::Overloaded);
        }
        followed.followers += 1;
        topics.iter().for_each(|topic| *followed.topics.entry(topic.clone()).or_default() += 1);
        queues.iter().for_each(|queue| *followed.queues.entry(queue.clone()).or_default() += 1);
        let taken = match &followed.told {
            Some(told) => told.subscribe(),
            None => {
                let (told, taken) = watch::channel(None);
                followed.told = Some(told);
                tokio::spawn(self.clone().beat(handle.clone()));
                taken
            }
        };
        let first = followed.rounds + 1;
        drop(followed);
        Ok(Follower { pulses: self.clone(), topics, queues, first, taken })
    }

    /// Takes the pulse as long as somebody follows and the node is not stopping.
    async fn beat(self, handle: Handle) {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            let Some(wanted) = self.wanted() else { return };
            let taken = take(&handle, wanted).await;
            let mut followed = self.lock();
            match (taken, &followed.told) {
                (Some(taken), Some(told)) => _ = told.send_replace(Some(Arc::new(taken))),
                _ => {
                    followed.told = None;
                    return;
                }
            }
        }
    }

    /// What those who follow ask for, in a round of its own; nothing if nobody follows any more.
    fn wanted(&self) -> Option<Wanted> {
        let mut followed = self.lock();
        if followed.followers == 0 {
            followed.told = None;
            return None;
        }
        followed.rounds += 1;
        let names = |asked: &BTreeMap<Name, usize>| asked.keys().cloned().collect();
        Some(Wanted { round: followed.rounds, topics: names(&followed.topics), queues: names(&followed.queues) })
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the pulse once; nothing if the node is stopping.
async fn take(handle: &Handle, wanted: Wanted) -> Option<Taken> {
    let Wanted { round, topics, queues } = wanted;
    let (pulse, silent) = handle.pulse(topics.clone()).await;
    let stock = async {
        let looks = (handle.total(), handle.topics_named(topics.clone()), handle.queues_named(queues));
        let (total, views, queues) = try_join!(looks.0, looks.1, looks.2)?;
        let happened: BTreeMap<&Name, &Happened> = topics.iter().zip(&pulse.topics).collect();
        let topics = views.into_iter().map(|view| {
            let name = view.counts.name.clone();
            let happened = happened.get(&name).copied().cloned().unwrap_or_default();
            (name, (view, happened))
        });
        let queues = queues.into_iter().map(|view| (view.counts.name.clone(), view)).collect();
        Ok(Stock { total, topics: topics.collect(), queues })
    };
    let stock = match timeout(PATIENCE, stock).await {
        Ok(Err(Error::Stopping)) => return None,
        Ok(stock) => stock.map_err(|error: Error| error.to_string()),
        Err(_) => Err("the shards did not say in time how much there is".into()),
    };
    Some(Taken { round, at: handle.now(), pulse, silent, stock })
}
