//! A change of settings as all shards are told it: the whole settings of a topic or queue, or that it is to go.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::settings::{QueueSettings, TopicSettings};
use crate::stored;

/// A topic or a queue, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// A topic.
    Topic(Name),
    /// A queue.
    Queue(Name),
}

impl Subject {
    /// Its name.
    pub fn name(&self) -> &Name {
        match self {
            Subject::Topic(name) | Subject::Queue(name) => name,
        }
    }
}

/// What becomes of a topic or queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// A topic has these settings from now on, also if there was none.
    PutTopic {
        /// Its name.
        name: Name,
        /// What it is to do.
        settings: Box<TopicSettings>,
    },
    /// A queue has these settings from now on, also if there was none.
    PutQueue {
        /// Its name.
        name: Name,
        /// What it is to do.
        settings: Box<QueueSettings>,
    },
    /// It goes.
    Delete {
        /// The topic or queue.
        subject: Subject,
        /// Also with all that it holds.
        force: bool,
    },
}

impl Adjustment {
    /// The topic or queue that it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Adjustment::PutTopic { name, .. } => Subject::Topic(name.clone()),
            Adjustment::PutQueue { name, .. } => Subject::Queue(name.clone()),
            Adjustment::Delete { subject, .. } => subject.clone(),
        }
    }

    /// Whether something goes by it.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Adjustment::Delete { .. })
    }

    /// Its stored form: settings as shards store them.
    pub fn lay(&self) -> Bytes {
        let form = match self {
            Adjustment::PutTopic { name, settings } => Adjustment1::PutTopic(name.clone(), settings.lay().into()),
            Adjustment::PutQueue { name, settings } => Adjustment1::PutQueue(name.clone(), settings.lay().into()),
            Adjustment::Delete { subject, force } => Adjustment1::Delete(subject.clone(), *force),
        };
        stored::lay(1, &form)
    }

    /// What was stored; `None` if a newer version wrote it.
    pub fn read(bytes: &[u8]) -> Option<Adjustment> {
        let (1, fields) = stored::version(bytes) else { return None };
        Some(match stored::read(fields) {
            Adjustment1::PutTopic(name, settings) => {
                Adjustment::PutTopic { name, settings: Box::new(TopicSettings::read(&settings)) }
            }
            Adjustment1::PutQueue(name, settings) => {
                Adjustment::PutQueue { name, settings: Box::new(QueueSettings::read(&settings)) }
            }
            Adjustment1::Delete(subject, force) => Adjustment::Delete { subject, force },
        })
    }
}

#[derive(Serialize, Deserialize)]
enum Adjustment1 {
    PutTopic(Name, Vec<u8>),
    PutQueue(Name, Vec<u8>),
    Delete(Subject, bool),
}

/// An adjustment with its place among all of the center, and who waits for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopt {
    /// Greater than that of every change before it. A shard that has adopted this one, or a later one, does nothing.
    pub number: u64,
    /// What to do.
    pub adjustment: Adjustment,
    /// Whether the answer to a deletion waits until everything is cleared away, and tells how much that was. Else it says
    /// that it has begun, for good.
    pub to_its_end: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of changes, as they stand in stores that exist.
    #[test]
    fn changes_of_settings_stay_readable() {
        let name = || Name::new("t").expect("a name");
        let topic = [1, 0, 0, 128, 184, 153, 41, 0, 0, 128, 128, 4, 0];
        let queue = [1, 176, 234, 1, 5, 1, 232, 7, 128, 221, 219, 1, 10, 0, 0, 0, 0, 0, 0];
        for (bytes, adjustment) in [
            (
                [&[1, 0, 1, b't', 13], &topic[..]].concat(),
                Adjustment::PutTopic { name: name(), settings: Box::default() },
            ),
            (
                [&[1, 1, 1, b't', 19], &queue[..]].concat(),
                Adjustment::PutQueue { name: name(), settings: Box::default() },
            ),
            (vec![1, 2, 0, 1, b't', 1], Adjustment::Delete { subject: Subject::Topic(name()), force: true }),
            (vec![1, 2, 1, 1, b't', 0], Adjustment::Delete { subject: Subject::Queue(name()), force: false }),
        ] {
            assert_eq!(Adjustment::read(&bytes).as_ref(), Some(&adjustment));
            assert_eq!(adjustment.lay(), bytes);
        }
        assert_eq!(Adjustment::read(&[2, 0]), None, "a newer version is not guessed at");
    }
}
