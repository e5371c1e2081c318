//! Facts about spans.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::mpsc::{Receiver, channel};
use tracing_subscriber::layer::SubscriberExt;

use super::layer::Requests;
use super::{Span, Value, otlp};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// The spans that come of what is told meanwhile.
fn spans(sample: f64, tell: impl FnOnce()) -> Vec<Span> {
    let (sender, mut receiver): (_, Receiver<Span>) = channel(16);
    let layer = Requests::new(sender, Arc::new(AtomicU64::new(0)), sample);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), tell);
    std::iter::from_fn(|| receiver.try_recv().ok()).collect()
}

fn request(traceparent: Option<&str>) {
    let (method, path, status, micros) = ("GET", "/v1/tasks/orders/7", 200_u16, 1_500_u64);
    tracing::debug!(target: "punctual::http", %method, path, status, micros, traceparent, "request");
}

#[test]
fn a_request_becomes_a_span_of_its_length() {
    let spans = spans(1.0, || request(None));
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(span.name, "GET /v1/tasks");
    assert_eq!(span.end.duration_since(span.start).unwrap(), Duration::from_micros(1_500));
    assert_eq!(span.parent_id, None);
    assert!(span.attributes.contains(&("url.path", Value::Text("/v1/tasks/orders/7".into()))));
    assert!(!span.is_error);
}

#[test]
fn a_request_that_brings_a_context_belongs_to_it_and_its_caller_decides() {
    let spans = spans(0.0, || {
        request(Some(PARENT));
        request(Some(UNSAMPLED));
        request(None);
    });
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((span.trace_id[0], span.parent_id.unwrap()[7]), (0x0a, 0x31));
}

#[test]
fn other_events_are_no_spans() {
    assert!(spans(1.0, || tracing::info!(status = 200_u64, "something else")).is_empty());
}

/// The fields of a message: number, and content without its length.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let content = match tag & 7 {
            0 => varint(&mut bytes).to_le_bytes().to_vec(),
            1 => bytes.split_off(..8).unwrap().to_vec(),
            _ => {
                let length = varint(&mut bytes) as usize;
                bytes.split_off(..length).unwrap().to_vec()
            }
        };
        fields.push((tag >> 3, content));
    }
    fields
}

/// The content of the only field with this number.
fn field(message: &[u8], number: u64) -> Vec<u8> {
    let found: Vec<Vec<u8>> =
        fields(message).into_iter().filter(|(known, _)| *known == number).map(|(_, field)| field).collect();
    assert_eq!(found.len(), 1, "field {number}");
    found[0].clone()
}

#[test]
fn spans_are_written_as_the_protocol_says() {
    let span = Span {
        trace_id: [1; 16],
        span_id: [2; 8],
        parent_id: Some([3; 8]),
        state: String::new(),
        name: "GET /v1/tasks".into(),
        start: UNIX_EPOCH + Duration::from_nanos(300),
        end: UNIX_EPOCH + Duration::from_secs(1),
        attributes: vec![("http.response.status_code", Value::Number(503))],
        is_error: true,
    };
    let request = otlp::request("punctual", "node-1", "0.1.0", &[span]);
    let scope_spans = field(&field(&request, 1), 2);
    let span = field(&scope_spans, 2);
    assert_eq!(field(&span, 1), [1; 16]);
    assert_eq!(field(&span, 4), [3; 8]);
    assert_eq!(field(&span, 5), b"GET /v1/tasks");
    assert_eq!(field(&span, 7), 300_u64.to_le_bytes());
    assert_eq!(field(&span, 8), 1_000_000_000_u64.to_le_bytes());
    let attribute = field(&span, 9);
    assert_eq!(field(&attribute, 1), b"http.response.status_code");
    assert_eq!(fields(&field(&attribute, 2)), [(3, 503_u64.to_le_bytes().to_vec())]);
    assert_eq!(fields(&field(&span, 15)), [(3, 2_u64.to_le_bytes().to_vec())]);
}
