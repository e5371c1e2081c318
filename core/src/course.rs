//! The course of a task: what has happened to it as far as its rows remember, and what is to come if nobody interferes.
//!
//! A row keeps its beginning, its end, and the first and the last of its attempts that failed (`attempt.rs`). When it was
//! moved, extended or called back is not kept: what is told here is exact or says that it is not.

use std::collections::BTreeMap;

use crate::answer::Standing;
use crate::attempt::Attempt;
use crate::name::Name;
use crate::settings::{QueueSettings, Retry, TopicSettings};
use crate::state::{Death, Ending};
use crate::time::{Millis, Timestamp};
use crate::view::{DeliveryView, TaskView};

/// What has happened to a task, and what is to come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// What has happened, the earliest first.
    pub passed: Vec<Passed>,
    /// What is to come, what has a time first.
    pub to_come: Vec<ToCome>,
    /// How many attempts were counted that nothing is told of.
    pub untold_attempts: u32,
    /// How often it was called back: as a dead letter, as finished, or before its time.
    pub replays: u32,
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// When; not before this, if that is not known exactly.
    pub at: Timestamp,
    /// Whether it was exactly then.
    pub is_exact: bool,
    /// In which queue, if it was in one.
    pub queue: Option<Name>,
    /// What.
    pub what: Happening,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It was taken in, to be due then. A task that was moved since is due at its new time.
    Scheduled {
        /// When it is or was due.
        due: Timestamp,
    },
    /// Its time came.
    Due,
    /// It began to wait for a consumer again.
    Ready,
    /// A consumer got it, and has it.
    Leased {
        /// The consumer.
        holder: Name,
        /// Which attempt it is.
        attempt: u32,
        /// The end of the lease.
        until: Timestamp,
    },
    /// An attempt ended without the work being done.
    Undone(Attempt),
    /// It finished.
    Finished(Ending),
    /// It was given up.
    Died(Death),
}

/// Something that is to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToCome {
    /// In which queue, if that is known.
    pub queue: Option<Name>,
    /// What.
    pub what: Prospect,
}

/// What is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// Its time comes.
    Due(Timestamp),
    /// It is available again, for its next attempt.
    Retry {
        /// When.
        at: Timestamp,
        /// Which attempt.
        attempt: u32,
    },
    /// The lease ends, unless its consumer is done or has it extended.
    LeaseEnds {
        /// When.
        at: Timestamp,
        /// Which attempt that is.
        attempt: u32,
    },
    /// It is not worth handing over any more.
    Expires(Timestamp),
    /// It is not kept any longer.
    Removed(Timestamp),
    /// If the attempt before this one fails, it comes back.
    RetryIfFailed {
        /// Which attempt.
        attempt: u32,
        /// After at least so long.
        after: Millis,
    },
    /// If this attempt and all before it fail, it is a dead letter.
    DeadIfFailed {
        /// Which attempt.
        attempt: u32,
    },
}

impl Prospect {
    /// When, if that is known.
    pub fn at(self) -> Option<Timestamp> {
        match self {
            Prospect::Due(at) | Prospect::Expires(at) | Prospect::Removed(at) => Some(at),
            Prospect::Retry { at, .. } | Prospect::LeaseEnds { at, .. } => Some(at),
            Prospect::RetryIfFailed { .. } | Prospect::DeadIfFailed { .. } => None,
        }
    }
}

/// The settings under which a task goes its way.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Those of its topic, if that is there.
    pub topic: Option<&'a TopicSettings>,
    /// Those of the queues it has to do with, as far as they are there.
    pub queues: &'a BTreeMap<Name, QueueSettings>,
}

impl TopicSettings {
    /// The queues to which tasks of the topic of this name go that have this routing key.
    pub fn fed_queues(&self, topic: &Name, routing_key: &str) -> Vec<Name> {
        let Some(feeds) = &self.feeds else { return vec![topic.clone()] };
        feeds.iter().filter(|feed| feed.pattern.fits(routing_key)).map(|feed| feed.queue.clone()).collect()
    }
}

impl TaskView {
    /// Where a delivery is or goes: to several queues if the task is yet to be broadcast, to none if no queue takes it.
    pub fn queues_of(&self, delivery: &DeliveryView, topic: Option<&TopicSettings>) -> Vec<Name> {
        match (&delivery.queue, topic) {
            (Some(queue), _) => vec![queue.clone()],
            (None, Some(topic)) => topic.fed_queues(&self.topic, self.routing_key.as_deref().unwrap_or_default()),
            (None, None) => Vec::new(),
        }
    }

    /// Its deliveries that are not finished, or itself if it has none of its own.
    pub fn deliveries(&self) -> &[DeliveryView] {
        if matches!(self.delivery.standing, Standing::Spread { .. }) {
            &self.parts
        } else {
            std::slice::from_ref(&self.delivery)
        }
    }
}

impl Course {
    /// The course of a task, by its rows.
    pub fn of(task: &TaskView, rules: Rules<'_>, now: Timestamp) -> Course {
        let mut course = Course::default();
        course.pass(task.scheduled_at, None, Happening::Scheduled { due: task.due });
        let ended_at = match task.delivery.standing {
            Standing::Finished { at, .. } | Standing::Dead { at, .. } => at,
            _ => now,
        };
        if task.due <= ended_at {
            course.pass(task.due, None, Happening::Due);
        }
        for delivery in task.deliveries() {
            course.tell_passed(task, delivery);
            course.tell_to_come(task, delivery, rules, now);
        }
        // Nothing happens to a task before it is scheduled. It may be due before that: by what its caller says, or by as little as
        // it is not known how late it is.
        course.passed.sort_by_key(|passed| passed.at.max(task.scheduled_at));
        course.to_come.sort_by_key(|coming| coming.what.at().unwrap_or(Timestamp::NEVER));
        course
    }

    fn pass(&mut self, at: Timestamp, queue: Option<&Name>, what: Happening) {
        self.passed.push(Passed { at, is_exact: true, queue: queue.cloned(), what });
    }

    fn tell_passed(&mut self, task: &TaskView, delivery: &DeliveryView) {
        let queue = delivery.queue.as_ref();
        let mut told = delivery.log.len() as u32;
        for attempt in &delivery.log {
            self.pass(attempt.at, queue, Happening::Undone(attempt.clone()));
        }
        match &delivery.standing {
            Standing::Leased { holder, until, .. } => {
                told += 1;
                // When the lease began is not kept, only when it ends.
                let at = delivery.log.last().map_or(task.due.max(task.scheduled_at), |attempt| attempt.at);
                let what = Happening::Leased { holder: holder.clone(), attempt: delivery.attempts, until: *until };
                self.passed.push(Passed { at, is_exact: false, queue: queue.cloned(), what });
            }
            Standing::Ready { since } if *since != task.due => self.pass(*since, queue, Happening::Ready),
            Standing::Finished { ending, at } => {
                told += u32::from(*ending == Ending::Done);
                self.pass(*at, queue, Happening::Finished(*ending));
            }
            _ => {}
        }
        if let Some(death) = &delivery.death {
            self.pass(death.at, queue, Happening::Died(death.clone()));
        }
        let counted = delivery.attempts.saturating_add(delivery.past.attempts);
        self.untold_attempts = self.untold_attempts.saturating_add(counted.saturating_sub(told));
        self.replays = self.replays.max(delivery.past.replays);
    }

    fn tell_to_come(&mut self, task: &TaskView, delivery: &DeliveryView, rules: Rules<'_>, now: Timestamp) {
        let queues = task.queues_of(delivery, rules.topic);
        // Of a task that is yet to be broadcast nothing is said that depends on its queues.
        let queue = if let [queue] = &queues[..] { Some(queue) } else { None };
        let settings = queue.and_then(|queue| rules.queues.get(queue));
        let mut come = |what: Prospect| self.to_come.push(ToCome { queue: queue.cloned(), what });
        let next = delivery.attempts.saturating_add(1);
        let attempt = match &delivery.standing {
            Standing::Scheduled { at } if delivery.attempts > 0 => {
                come(Prospect::Retry { at: *at, attempt: next });
                next
            }
            Standing::Scheduled { at } => {
                come(Prospect::Due(*at));
                next
            }
            Standing::Ready { .. } => next,
            Standing::Leased { until, .. } => {
                come(Prospect::LeaseEnds { at: *until, attempt: delivery.attempts });
                delivery.attempts
            }
            Standing::Finished { at, .. } => {
                rules.topic.into_iter().for_each(|topic| come(Prospect::Removed(at.plus(topic.history))));
                return;
            }
            Standing::Dead { at, .. } => {
                let kept = settings.and_then(|settings| settings.dead_retention);
                kept.into_iter().for_each(|kept| come(Prospect::Removed(at.plus(kept))));
                return;
            }
            Standing::Spread { .. } => return,
        };
        if let Some(ttl) = task.ttl {
            let expires = task.due.plus(ttl).plus(Millis(1));
            if expires > now {
                come(Prospect::Expires(expires));
            }
        }
        if let Some(retry) = task.retry.or(settings.map(|settings| settings.retry)) {
            failing(retry, attempt, delivery.failures).for_each(come);
        }
    }
}

/// What comes of it if this attempt fails, after so many failures, and those after it.
fn failing(retry: Retry, attempt: u32, failures: u32) -> impl Iterator<Item = Prospect> {
    let failed = failures.saturating_add(1);
    let again = (!retry.is_exhausted(failed)).then(|| {
        let after = Retry { jitter_percent: 0, ..retry }.wait(failed, 0);
        Prospect::RetryIfFailed { attempt: attempt.saturating_add(1), after }
    });
    let left = retry.attempts.saturating_sub(failed);
    let dead = (retry.attempts != 0).then(|| Prospect::DeadIfFailed { attempt: attempt.saturating_add(left) });
    again.into_iter().chain(dead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Backoff;

    fn retry(attempts: u32) -> Retry {
        let backoff = Backoff::Exponential { first: Millis(100), cap: Millis(1_000) };
        Retry { attempts, backoff, jitter_percent: 50 }
    }

    #[test]
    fn what_fails_comes_back_until_it_has_failed_often_enough() {
        let of = |attempt, failures| failing(retry(3), attempt, failures).collect::<Vec<_>>();
        let dead = Prospect::DeadIfFailed { attempt: 3 };
        assert_eq!(of(1, 0), [Prospect::RetryIfFailed { attempt: 2, after: Millis(100) }, dead]);
        assert_eq!(of(2, 1), [Prospect::RetryIfFailed { attempt: 3, after: Millis(200) }, dead]);
        assert_eq!(of(3, 2), [dead]);
        // It was given back twice without having failed.
        assert_eq!(of(5, 2), [Prospect::DeadIfFailed { attempt: 5 }]);
    }

    #[test]
    fn what_may_fail_any_number_of_times_never_dies_of_it() {
        let coming: Vec<Prospect> = failing(retry(0), 7, 6).collect();
        assert_eq!(coming, [Prospect::RetryIfFailed { attempt: 8, after: Millis(1_000) }]);
    }
}
