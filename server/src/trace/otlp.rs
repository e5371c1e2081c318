//! The few messages of OpenTelemetry's protocol that spans need, in protobuf's encoding.
//!
//! The numbers are those of `opentelemetry/proto/trace/v1/trace.proto`, and cannot change.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Span, Value};

/// The kind of span of whoever answers a request.
const SERVER: u64 = 2;
/// The status of a span that ended in an error.
const ERROR: u64 = 2;

/// All spans of one server as a request to a collector.
pub fn request(service: &str, instance: &str, version: &str, spans: &[Span]) -> Vec<u8> {
    let mut resource = Message::default();
    for (key, value) in [("service.name", service), ("service.instance.id", instance), ("service.version", version)] {
        resource.message(1, attribute(key, &Value::Text(value.to_owned())));
    }
    let mut scope = Message::default();
    scope.bytes(1, b"punctual");
    let mut scope_spans = Message::default();
    scope_spans.message(1, scope);
    for span in spans {
        scope_spans.message(2, encode(span));
    }
    let mut resource_spans = Message::default();
    resource_spans.message(1, resource);
    resource_spans.message(2, scope_spans);
    let mut request = Message::default();
    request.message(1, resource_spans);
    request.0
}

fn encode(span: &Span) -> Message {
    let mut message = Message::default();
    message.bytes(1, &span.trace_id);
    message.bytes(2, &span.span_id);
    message.bytes(3, span.state.as_bytes());
    if let Some(parent) = &span.parent_id {
        message.bytes(4, parent);
    }
    message.bytes(5, span.name.as_bytes());
    message.number(6, SERVER);
    message.fixed(7, nanos(span.start));
    message.fixed(8, nanos(span.end));
    for (key, value) in &span.attributes {
        message.message(9, attribute(key, value));
    }
    if span.is_error {
        let mut status = Message::default();
        status.number(3, ERROR);
        message.message(15, status);
    }
    message
}

fn attribute(key: &str, value: &Value) -> Message {
    let mut any = Message::default();
    match value {
        Value::Text(text) => any.bytes(1, text.as_bytes()),
        Value::Number(number) => any.number(3, *number as u64),
    }
    let mut attribute = Message::default();
    attribute.bytes(1, key.as_bytes());
    attribute.message(2, any);
    attribute
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A message of protobuf: fields with their numbers, one after the other.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u64, message: Message) {
        self.bytes(field, &message.0);
    }
}
