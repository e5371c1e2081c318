//! Server-sent events: messages of a stream that has no end.

use std::collections::VecDeque;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::address::Path;
use crate::client::Client;
use crate::error::Error;
use crate::server::Server;

/// A stream of messages, from when it was opened until the connection ends.
#[derive(Debug)]
pub(crate) struct Stream {
    server: Arc<Server>,
    body: Incoming,
    lines: Lines,
    ready: VecDeque<Message>,
    /// The id of the last message that was given out.
    last_id: Option<String>,
    over: bool,
}

impl Client {
    pub(crate) async fn stream(&self, path: Path) -> Result<Stream, Error> {
        let (server, answer) = self.transport.open(path).await?;
        let (body, lines, ready) = (answer.into_body(), Lines::default(), VecDeque::new());
        Ok(Stream { server, body, lines, ready, last_id: None, over: false })
    }
}

impl Stream {
    /// The id of the last message, or of what came after it and was left out.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The next message; `None` after the connection ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        loop {
            if let Some(mut message) = self.ready.pop_front() {
                self.last_id = message.id.take().or(self.last_id.take());
                // One without data says no more than how far the stream is.
                if message.data.is_empty() {
                    continue;
                }
                return Some(Ok(message));
            }
            if self.over {
                return None;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.ready.extend(self.lines.feed(&bytes));
                    }
                }
                Some(Err(error)) => {
                    self.over = true;
                    return Some(Err(self.server.cut(&error)));
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
pub(crate) struct Message {
    pub name: String,
    pub data: String,
    pub id: Option<String>,
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
            return (!message.data.is_empty() || message.id.is_some()).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.message.name = value.into(),
            "id" => self.message.id = Some(value.into()),
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
    /// What it says.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let bad = |error| Error::BadAnswer { status: 200, reason: format!("a message {:?}: {error}", self.name) };
        serde_json::from_str(&self.data).map_err(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = ": hello\n\nevent: fired\ndata: {\"id\":\"é\"}\n\n\
        : still here\r\n\r\nevent: missed\r\ndata: {\"rounds\":3}\r\n\r\n";

    fn heard(bytes_at_once: usize) -> Vec<Message> {
        let mut lines = Lines::default();
        TOLD.as_bytes().chunks(bytes_at_once).flat_map(|piece| lines.feed(piece)).collect()
    }

    #[test]
    fn messages_are_read_however_the_stream_is_cut() {
        let message = |name: &str, data: &str| Message { name: name.into(), data: data.into(), id: None };
        let whole = [message("fired", "{\"id\":\"é\"}"), message("missed", "{\"rounds\":3}")];
        for bytes in (1..10).chain([TOLD.len()]) {
            assert_eq!(heard(bytes), whole);
        }
    }

    #[test]
    fn data_of_several_lines_is_one_message() {
        let mut lines = Lines::default();
        let messages = lines.feed(b"data: {\"rounds\":\ndata: 4}\nevent: missed\nid: 7\n\n");
        assert_eq!(
            messages,
            [Message { name: "missed".into(), data: "{\"rounds\":\n4}".into(), id: Some("7".into()) }]
        );
    }
}
