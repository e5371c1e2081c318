//! The course of a task, and why it is still where it is: what its rows, its queues and those who wait for them say.

use std::collections::BTreeMap;

use punctual_core::course::{Course, Rules};
use punctual_core::store::{Bodies, Look, Position, Scan, ShardId, Store, StoreError, Table};
use punctual_core::view::{self, DeliveryView, TaskView};
use punctual_core::{
    Ending, Millis, Name, Order, PauseNote, Phase, QueueSettings, Reason, Scope, Standing, State, Timestamp,
    TopicSettings,
};

use super::Handle;
use crate::error::Error;

/// How many rows are looked at to count those that come before one.
const LOOKED_AT: usize = 10_000;

/// A task, its course, and why it is still where it is.
#[derive(Clone, Debug)]
pub struct Situation {
    /// The task, without its body.
    pub task: TaskView,
    /// What has happened to it, and what is to come.
    pub course: Course,
    /// Why it is where it is, the main cause first. Several may hold at once.
    pub why: Vec<Cause>,
    /// As of when.
    pub now: Timestamp,
}

/// Why a task or a delivery is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its time has not come.
    NotDue(Timestamp),
    /// It waits for its next attempt.
    Retry {
        /// When that is.
        at: Timestamp,
        /// Which attempt.
        attempt: u32,
    },
    /// A consumer has it.
    Held {
        /// The queue it was handed out from.
        queue: Name,
        /// The consumer.
        holder: Name,
        /// Until then.
        until: Timestamp,
        /// Which attempt.
        attempt: u32,
    },
    /// Its queue is paused.
    Paused {
        /// The queue.
        queue: Name,
        /// Until then; `None` until it is resumed.
        until: Option<Timestamp>,
        /// What is known of the pause.
        note: Option<PauseNote>,
    },
    /// No consumer waits for its queue.
    NobodyWaits(Name),
    /// Others come before it.
    Behind {
        /// The queue.
        queue: Name,
        /// So many.
        ahead: u64,
        /// Whether there may be more of them than were counted.
        is_more: bool,
    },
    /// Its queue hands out no more than so many a second.
    Rate {
        /// The queue.
        queue: Name,
        /// So many.
        per_second: u32,
    },
    /// Nothing is in its way: it is about to be handed out.
    Next(Name),
    /// It was broadcast; what its deliveries wait for is told with their queues.
    Spread(Vec<Name>),
    /// No queue takes it.
    Unrouted,
    /// It is a dead letter.
    Dead {
        /// Why.
        reason: Reason,
        /// Since when.
        at: Timestamp,
    },
    /// It is finished.
    Finished {
        /// How.
        ending: Ending,
        /// When.
        at: Timestamp,
    },
}

impl Cause {
    /// The queue of which it tells how it is, if it tells of one: whether it is paused, who waits for it, what stands in it.
    pub fn of_queue(&self) -> Option<&Name> {
        match self {
            Cause::Paused { queue, .. } | Cause::Behind { queue, .. } | Cause::Rate { queue, .. } => Some(queue),
            Cause::NobodyWaits(queue) | Cause::Next(queue) => Some(queue),
            Cause::NotDue(_) | Cause::Retry { .. } | Cause::Held { .. } | Cause::Spread(_) => None,
            Cause::Unrouted | Cause::Dead { .. } | Cause::Finished { .. } => None,
        }
    }
}

/// What there is to know of a queue for those who wait in it.
struct Waiting<'a> {
    queue: &'a Name,
    settings: Option<&'a QueueSettings>,
    consumers: u64,
}

/// A row that waits for a consumer, as far as its place among others goes.
struct Ranked {
    topic: Name,
    queue: Option<Name>,
    routing_key: Option<Name>,
    priority: u32,
    at: Timestamp,
    scheduled_at: Timestamp,
    number: u64,
}

impl Ranked {
    /// Which of several comes first. Within a shard that is the order; among shards it is nearly so.
    fn rank(&self, order: Order) -> (u32, Timestamp, u64) {
        let time = if order == Order::Due { self.at } else { self.scheduled_at };
        (self.priority, time, self.number)
    }
}

impl Handle {
    /// A task, its course, and why it is still where it is; `None` if there is no such task.
    pub async fn situation(&self, topic: &Name, id: &Name) -> Result<Option<Situation>, Error> {
        let (shard, now) = (self.shard_of(topic, id), self.now());
        let (of_topic, of_id) = (topic.clone(), id.clone());
        let look = self.read(move |store| view::without_body(store, shard, &of_topic, &of_id, now));
        let Some(task) = self.counted(look.await)? else { return Ok(None) };
        let rules = self.topic(topic).await?.map(|topic| topic.settings);
        let names: Vec<Name> =
            task.deliveries().iter().flat_map(|delivery| task.queues_of(delivery, rules.as_ref())).collect();
        let queues = self.queues_named(names).await?.into_iter();
        let queues: BTreeMap<Name, QueueSettings> = queues.map(|queue| (queue.counts.name, queue.settings)).collect();
        let course = Course::of(&task, Rules { topic: rules.as_ref(), queues: &queues }, now);
        let mut why = Vec::new();
        if let Standing::Spread { open, .. } = &task.delivery.standing {
            why.push(Cause::Spread(open.clone()));
        }
        for delivery in task.deliveries() {
            match &delivery.standing {
                Standing::Ready { since } => {
                    why.extend(self.held_up(&task, delivery, *since, rules.as_ref(), &queues, now).await?);
                }
                standing => why.extend(cause(standing, delivery)),
            }
        }
        Ok(Some(Situation { task, course, why, now }))
    }

    /// Why a delivery that is ready was not handed out yet.
    async fn held_up(
        &self,
        task: &TaskView,
        delivery: &DeliveryView,
        since: Timestamp,
        rules: Option<&TopicSettings>,
        queues: &BTreeMap<Name, QueueSettings>,
        now: Timestamp,
    ) -> Result<Vec<Cause>, Error> {
        let mut causes = Vec::new();
        for queue in task.queues_of(delivery, rules) {
            let settings = queues.get(&queue);
            let (nodes, _) = self.consumers(&Scope::ALL, Some(&queue), 0).await;
            let consumers = nodes.iter().map(|node| node.count).sum();
            let own = Ranked {
                topic: task.topic.clone(),
                queue: Some(queue.clone()),
                routing_key: None,
                priority: delivery.priority,
                at: since,
                scheduled_at: task.scheduled_at,
                number: delivery.number,
            };
            let order = settings.map_or(Order::Due, |settings| settings.order);
            let (ahead, is_more) = self.count_ahead_of(&own, &queue, order, now).await?;
            let waiting = Waiting { queue: &queue, settings, consumers };
            causes.extend(waiting.causes(ahead, is_more, now));
        }
        if causes.is_empty() {
            causes.push(Cause::Unrouted);
        }
        Ok(causes)
    }

    /// How many deliveries of a queue come before one, and whether there may be more: not all rows are looked at.
    async fn count_ahead_of(
        &self,
        own: &Ranked,
        queue: &Name,
        order: Order,
        now: Timestamp,
    ) -> Result<(u64, bool), Error> {
        let (shards, last) = (self.shared.config.shards, own.rank(order));
        let look = self.read(move |store| earlier(store, shards, last, order, now));
        let (rows, is_more) = self.counted(look.await)?;
        let mut topics: Vec<Name> = rows.iter().map(|row| row.topic.clone()).collect();
        topics.sort();
        topics.dedup();
        let topics = self.topics_named(topics).await?.into_iter();
        let feeds: BTreeMap<Name, TopicSettings> = topics.map(|topic| (topic.counts.name, topic.settings)).collect();
        let goes_there = |row: &&Ranked| match &row.queue {
            Some(stands_in) => stands_in == queue,
            None => feeds.get(&row.topic).is_some_and(|settings| {
                settings.fed_queues(&row.topic, row.routing_key.as_deref().unwrap_or_default()).contains(queue)
            }),
        };
        Ok((rows.iter().filter(goes_there).count() as u64, is_more))
    }
}

/// The rows of all shards that wait for a consumer and rank before one, whatever their queue, and whether some were not
/// looked at.
fn earlier(
    store: &dyn Store,
    shards: u16,
    last: (u32, Timestamp, u64),
    order: Order,
    now: Timestamp,
) -> Result<(Vec<Ranked>, bool), StoreError> {
    let (mut earlier, mut is_more) = (Vec::new(), false);
    let limit = (LOOKED_AT / usize::from(shards)).max(1);
    for shard in (0..shards).map(ShardId) {
        let (from, until) = (Position::START, now.plus(Millis(1)));
        let page = store
            .scan(shard, &Scan { table: Table::Live, from, until, topic: None, limit, bodies: Bodies::Without })?;
        is_more |= page.next.is_some();
        let ranked = page.rows.into_iter().filter_map(|row| {
            let state = State::decode(&row.state);
            (state.phase == Phase::Waiting).then(|| Ranked {
                topic: Name::stored(row.key.topic()),
                queue: state.queue,
                routing_key: state.routing_key,
                priority: state.priority,
                at: row.at,
                scheduled_at: state.scheduled_at,
                number: row.seq,
            })
        });
        earlier.extend(ranked.filter(|row| row.rank(order) < last));
    }
    Ok((earlier, is_more))
}

impl Waiting<'_> {
    /// What keeps a delivery in the queue, the main cause first.
    fn causes(&self, ahead: u64, is_more: bool, now: Timestamp) -> Vec<Cause> {
        let queue = || self.queue.clone();
        let mut causes = Vec::new();
        if let Some(settings) = self.settings.filter(|settings| settings.is_paused(now)) {
            let until = settings.paused_until.filter(|until| *until != Timestamp::NEVER);
            causes.push(Cause::Paused { queue: queue(), until, note: settings.pause.clone() });
        }
        if self.consumers == 0 {
            causes.push(Cause::NobodyWaits(queue()));
        }
        if ahead > 0 || is_more {
            causes.push(Cause::Behind { queue: queue(), ahead, is_more });
        }
        if let Some(rate) = self.settings.and_then(|settings| settings.rate) {
            causes.push(Cause::Rate { queue: queue(), per_second: rate.per_second });
        }
        if causes.is_empty() {
            causes.push(Cause::Next(queue()));
        }
        causes
    }
}

/// Why a delivery that is not ready is where it is.
fn cause(standing: &Standing, delivery: &DeliveryView) -> Option<Cause> {
    Some(match standing {
        Standing::Scheduled { at } if delivery.attempts > 0 => {
            Cause::Retry { at: *at, attempt: delivery.attempts.saturating_add(1) }
        }
        Standing::Scheduled { at } => Cause::NotDue(*at),
        Standing::Leased { queue, holder, until } => {
            Cause::Held { queue: queue.clone(), holder: holder.clone(), until: *until, attempt: delivery.attempts }
        }
        Standing::Dead { reason, at } => Cause::Dead { reason: *reason, at: *at },
        Standing::Finished { ending, at } => Cause::Finished { ending: *ending, at: *at },
        Standing::Ready { .. } | Standing::Spread { .. } => return None,
    })
}
