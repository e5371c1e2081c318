//! What happens, as it happens: the server-sent events of `/v1/events`.

use std::collections::VecDeque;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use punctual_wire::Event;
use serde::Deserialize;

use crate::address::Path;
use crate::client::Client;
use crate::error::Error;
use crate::transport::Transport;

/// Which events to be told of; without anything, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only of tasks of this topic.
    pub topic: Option<String>,
    /// Only of deliveries of this queue.
    pub queue: Option<String>,
    /// Only of tasks of this key.
    pub key: Option<String>,
    /// Only these: see [`Event::what`].
    pub what: Vec<String>,
}

/// What is heard from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Something happened.
    Event(Event),
    /// So many rounds of events were left out, because this listener was too slow.
    Missed(u64),
}

/// A stream of events, from when it was opened until the connection ends.
#[derive(Debug)]
pub struct Events {
    transport: Arc<Transport>,
    body: Incoming,
    lines: Lines,
    ready: VecDeque<Result<Happening, Error>>,
    over: bool,
}

impl Client {
    /// Listens to what happens from now on. What happened while nobody listened is not told later: for
    /// what must not be missed, take deliveries instead.
    pub async fn events(&self, filter: EventFilter) -> Result<Events, Error> {
        let what = filter.what.join(",");
        let named = [("topic", &filter.topic), ("queue", &filter.queue), ("key", &filter.key)];
        let mut query: Vec<(&str, &str)> =
            named.into_iter().filter_map(|(name, value)| value.as_deref().map(|value| (name, value))).collect();
        if !what.is_empty() {
            query.push(("what", &what));
        }
        let body = self.transport.open(Path::new("events").query(&query)?).await?.into_body();
        let transport = Arc::clone(&self.transport);
        Ok(Events { transport, body, lines: Lines::default(), ready: VecDeque::new(), over: false })
    }
}

impl Events {
    /// The next one; `None` after the connection ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Happening, Error>> {
        loop {
            if let Some(happening) = self.ready.pop_front() {
                return Some(happening);
            }
            if self.over {
                return None;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        let messages = self.lines.feed(&bytes);
                        self.ready.extend(messages.into_iter().filter_map(Message::read));
                    }
                }
                Some(Err(error)) => {
                    self.over = true;
                    return Some(Err(self.transport.cut(&error)));
                }
                None => self.over = true,
            }
        }
    }
}

/// Puts messages together from pieces of a stream, as the HTML standard tells.
#[derive(Debug, Default)]
struct Lines {
    /// What is there of a line that has not ended yet.
    open: Vec<u8>,
    message: Message,
}

/// One message of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Message {
    name: String,
    data: String,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.open);
                messages.extend(self.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])));
            }
        }
        messages
    }

    /// Takes a line; an empty one ends the message.
    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return (!message.data.is_empty()).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.message.name = value.into(),
            "data" => {
                if !self.message.data.is_empty() {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // Comments, which keep the connection alive, and fields that mean nothing here.
            _ => {}
        }
        None
    }
}

impl Message {
    fn read(self) -> Option<Result<Happening, Error>> {
        #[derive(Deserialize)]
        struct Missed {
            rounds: u64,
        }
        let read = match self.name.as_str() {
            "missed" => serde_json::from_str(&self.data).map(|Missed { rounds }| Happening::Missed(rounds)),
            _ => serde_json::from_str(&self.data).map(Happening::Event),
        };
        Some(read.map_err(|error| Error::BadAnswer { status: 200, reason: format!("an event: {error}") }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = ": hello\n\nevent: fired\ndata: {\"at\":5,\"what\":\"fired\",\"topic\":\"t\",\"id\":\"é\"}\n\n\
        : still here\r\n\r\nevent: missed\r\ndata: {\"rounds\":3}\r\n\r\n";

    fn heard(bytes_at_once: usize) -> Vec<Happening> {
        let mut lines = Lines::default();
        let pieces = TOLD.as_bytes().chunks(bytes_at_once);
        pieces.flat_map(|piece| lines.feed(piece)).filter_map(Message::read).map(|read| read.unwrap()).collect()
    }

    #[test]
    fn events_are_read_however_the_stream_is_cut() {
        let whole = heard(TOLD.len());
        assert!(matches!(&whole[..], [Happening::Event(event), Happening::Missed(3)] if event.id == "é"));
        for bytes in 1..10 {
            assert_eq!(heard(bytes), whole);
        }
    }

    #[test]
    fn data_of_several_lines_is_one_message() {
        let mut lines = Lines::default();
        let messages = lines.feed(b"data: {\"rounds\":\ndata: 4}\nevent: missed\nid: 7\n\n");
        assert_eq!(messages, [Message { name: "missed".into(), data: "{\"rounds\":\n4}".into() }]);
    }
}
