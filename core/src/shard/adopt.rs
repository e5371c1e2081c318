//! Changes of settings that all shards make, each once and in the order of their numbers.
//!
//! The highest number that was adopted stands in the shard's note, and is durable with what it changed. So whoever carries
//! a change out again, or goes on with an old one after a long sleep, changes nothing.

use super::Shard;
use super::directory::Closed;
use crate::adjustment::{Adjustment, Adopt, Subject};
use crate::answer::{Answer, Refused};

impl<R> Shard<R> {
    /// Makes a change of settings, unless it was made already.
    pub(super) fn adopt(&mut self, adopt: Adopt, reply: R) {
        let Adopt { number, adjustment, to_its_end } = adopt;
        let is_awaited = to_its_end && adjustment.is_deletion();
        let subject = adjustment.subject();
        let closed = match number > self.catalogue.adopted() {
            true => self.adjust(adjustment),
            false => Ok(self.being_deleted(&subject)),
        };
        let is_missing = matches!(closed, Err(Refused::NoSuchTopic(_) | Refused::NoSuchQueue(_)));
        // What is refused is not adopted, and can be tried again; what is not here is gone already.
        if closed.is_ok() || is_missing {
            self.catalogue.adopt(number);
        }
        match closed {
            Ok(Some(closed)) if is_awaited => self.join_deletion(closed, reply),
            Ok(None) if is_awaited => self.draft.answer(reply, Ok(Answer::Deleted(0))),
            Err(refused) if is_awaited || !is_missing => self.draft.answer(reply, Err(refused)),
            _ => self.draft.answer(reply, Ok(Answer::Noted)),
        }
    }

    /// Makes a change of settings; says what is being deleted now, if it is a deletion.
    fn adjust(&mut self, adjustment: Adjustment) -> Result<Option<Closed>, Refused> {
        match adjustment {
            Adjustment::PutTopic { name, settings } => self.adjust_topic(&name, *settings).map(|_| None),
            Adjustment::PutQueue { name, settings } => self.adjust_queue(&name, *settings).map(|_| None),
            Adjustment::Delete { subject, force } => self.close(&subject, force).map(Some),
        }
    }

    fn being_deleted(&self, subject: &Subject) -> Option<Closed> {
        match subject {
            Subject::Topic(name) => {
                let index = self.directory.topic_index(name)?;
                self.directory.topic(index).closing.is_some().then_some(Closed::Topic(index))
            }
            Subject::Queue(name) => {
                let index = self.directory.queue_index(name)?;
                self.directory.queue(index).closing.is_some().then_some(Closed::Queue(index))
            }
        }
    }
}
