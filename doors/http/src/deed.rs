//! What is noted of something that an operator does: in the log, and for `/v1/audit`.

use punctual_core::{Certainty, Name, Selected, Swept};
use punctual_node::Error;

/// Something that was done, and to what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deed {
    pub what: &'static str,
    pub topic: Option<Name>,
    pub id: Option<Name>,
    pub queue: Option<Name>,
    pub subject: Option<String>,
    pub detail: Option<String>,
}

impl Deed {
    pub fn new(what: &'static str) -> Deed {
        Deed { what, ..Deed::default() }
    }

    /// To a topic, or to its tasks.
    pub fn topic(self, topic: &Name) -> Deed {
        Deed { topic: Some(topic.clone()), ..self }
    }

    /// To a queue, or to its deliveries.
    pub fn queue(self, queue: &Name) -> Deed {
        Deed { queue: Some(queue.clone()), ..self }
    }

    /// To one task.
    pub fn task(self, topic: &Name, id: &Name) -> Deed {
        Deed { id: Some(id.clone()), ..self.topic(topic) }
    }

    /// To what an operator has selected.
    pub fn selected(self, selected: &Selected) -> Deed {
        Deed { queue: selected.queue.clone(), ..self.task(&selected.topic, &selected.id) }
    }

    /// To something else: a key, a node, a shard, a store.
    pub fn subject(self, subject: &str) -> Deed {
        Deed { subject: Some(subject.to_owned()), ..self }
    }

    /// Why, if that was said.
    pub fn detail(self, detail: Option<String>) -> Deed {
        Deed { detail, ..self }
    }

    /// With what came of it; `None` if nothing was done.
    pub fn came_to(self, swept: &Result<Swept, Error>) -> Option<Deed> {
        let detail = match swept {
            Ok(swept) => format!("{} of {} changed", swept.changed, swept.matched),
            Err(error) if error.certainty() == Certainty::NothingDone => return None,
            Err(_) => "the outcome is unknown".into(),
        };
        Some(self.detail(Some(detail)))
    }

    /// What it was done to, in the log.
    pub fn target(&self) -> String {
        match (&self.subject, &self.topic, &self.id, &self.queue) {
            (Some(subject), ..) => subject.clone(),
            (None, Some(topic), Some(id), _) => format!("{topic}/{id}"),
            (None, Some(topic), None, Some(queue)) => format!("topic {topic}, queue {queue}"),
            (None, Some(name), ..) | (None, None, _, Some(name)) => name.to_string(),
            (None, None, _, None) => "all".into(),
        }
    }
}
