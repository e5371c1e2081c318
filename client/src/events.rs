//! What happens, as it happens: the server-sent events of `/v1/events`.

use punctual_wire::Event;
use serde::Deserialize;

use crate::address::Path;
use crate::client::Client;
use crate::error::Error;
use crate::stream::{Message, Stream};

/// Which events to be told of; without anything, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only of tasks of this topic.
    pub topic: Option<String>,
    /// Only of the task with this id.
    pub id: Option<String>,
    /// Only of deliveries of this queue.
    pub queue: Option<String>,
    /// Only of tasks of this key.
    pub key: Option<String>,
    /// Only these: see [`Event::what`].
    pub what: Vec<String>,
    /// What came after the event with this id ([`Events::last_id`]), as far as the server has kept it, and not only what happens from now on.
    pub after: Option<String>,
}

/// What is heard from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Something happened.
    Event(Box<Event>),
    /// So many rounds of events were left out, because this listener was too slow or came back too late.
    Missed(u64),
}

/// A stream of events, from when it was opened until the connection ends.
#[derive(Debug)]
pub struct Events(Stream);

impl Client {
    /// Listens to what happens from now on, or after an event. The server keeps the latest events for about a minute, and says what
    /// is missing: for what must not be missed, take deliveries instead.
    pub async fn events(&self, filter: EventFilter) -> Result<Events, Error> {
        let what = filter.what.join(",");
        let EventFilter { topic, id, queue, key, after, .. } = &filter;
        let named = [("topic", topic), ("id", id), ("queue", queue), ("key", key), ("after", after)];
        let mut query: Vec<(&str, &str)> =
            named.into_iter().filter_map(|(name, value)| value.as_deref().map(|value| (name, value))).collect();
        if !what.is_empty() {
            query.push(("what", &what));
        }
        self.stream(Path::new("events").query(&query)?).await.map(Events)
    }
}

impl Events {
    /// How far this listener is, for [`EventFilter::after`]. `None` if the server is of an earlier version.
    pub fn last_id(&self) -> Option<&str> {
        self.0.last_id()
    }

    /// The next one; `None` after the connection ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Happening, Error>> {
        Some(self.0.next().await?.and_then(|message| read(&message)))
    }
}

fn read(message: &Message) -> Result<Happening, Error> {
    #[derive(Deserialize)]
    struct Missed {
        rounds: u64,
    }
    match message.name.as_str() {
        "missed" => message.parse().map(|Missed { rounds }| Happening::Missed(rounds)),
        _ => message.parse().map(|event| Happening::Event(Box::new(event))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_from_what_was_missed() {
        let told = |name: &str, data: &str| read(&Message { name: name.into(), data: data.into(), id: None });
        let event = told("fired", r#"{"at":5,"what":"fired","topic":"t","id":"é"}"#);
        assert!(matches!(event, Ok(Happening::Event(event)) if event.id == "é"));
        assert_eq!(told("missed", r#"{"rounds":3}"#).unwrap(), Happening::Missed(3));
        assert!(told("fired", "{}").is_err());
    }
}
