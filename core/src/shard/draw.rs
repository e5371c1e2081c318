//! The rates of topics and queues that are kept by several nodes: one shard is the home of each name, and its bucket is the
//! one from which all of them draw.

use std::collections::BTreeMap;

use super::Shard;
use crate::adjustment::Subject;
use crate::answer::Drawn;
use crate::rate::TokenBucket;
use crate::settings::Rate;
use crate::time::{Millis, Timestamp};

/// The buckets of the names whose home this shard is.
#[derive(Debug)]
pub(super) struct Buckets {
    /// What was drawn before is not known: it may have been all.
    empty_at: Timestamp,
    buckets: BTreeMap<Subject, TokenBucket>,
}

impl Buckets {
    pub fn new(now: Timestamp) -> Buckets {
        Buckets { empty_at: now, buckets: BTreeMap::new() }
    }

    /// A topic or queue has another rate from now on: of that nobody has drawn yet.
    pub fn renew(&mut self, subject: Subject, rate: Option<Rate>) {
        match rate {
            Some(rate) => _ = self.buckets.insert(subject, TokenBucket::new(rate)),
            None => _ = self.buckets.remove(&subject),
        }
    }

    /// Takes tokens, and says how long until there is another one.
    fn draw(&mut self, from: &Subject, rate: Rate, tokens: u32, now: Timestamp) -> Drawn {
        let fresh = || TokenBucket::empty(rate, self.empty_at);
        let bucket = self.buckets.entry(from.clone()).or_insert_with(fresh);
        if bucket.rate() != rate {
            *bucket = fresh();
        }
        let granted = (0..tokens).take_while(|_| bucket.take(now).is_ok()).count();
        Drawn { tokens: granted as u32, wait: bucket.wait(now) }
    }
}

impl<R> Shard<R> {
    /// Draws tokens for what a topic takes in or a queue hands out. What has no rate gives all that is asked for.
    pub(super) fn draw(&mut self, from: &Subject, tokens: u32) -> Drawn {
        let rate = match from {
            Subject::Topic(name) => {
                self.directory.topic_index(name).and_then(|index| self.directory.topic(index).settings.rate)
            }
            Subject::Queue(name) => {
                self.directory.queue_index(name).and_then(|index| self.directory.queue(index).settings.rate)
            }
        };
        match rate {
            Some(rate) => self.buckets.draw(from, rate, tokens, self.now),
            None => Drawn { tokens, wait: Millis::ZERO },
        }
    }
}
