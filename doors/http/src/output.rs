//! What goes out: JSON, and deliveries written straight into the answer.
//!
//! Deliveries are the bulk of what leaves, and their bodies are JSON already or need only be quoted.
//! So they are written by hand, without a copy in between; a test holds them to the wire's type.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use hyper::body::{Frame, SizeHint};
use punctual_core::view::TaskView;
use punctual_core::{Delivery, Form};
use punctual_node::{Error, Handle, Hold};
use punctual_wire::Span;
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::fault::Fault;
use crate::joined::joined;
use crate::lease;
use crate::translate::{task_info, time};

/// How often a stream of events that is silent says that it is still there.
pub(crate) const EVENTS_HEARTBEAT: Duration = Duration::from_secs(15);

/// An answer of JSON.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    json_bytes(status, serde_json::to_vec(value).expect("an answer can be written as JSON"))
}

/// Builds an answer that may be long. What `hold` says about its length decides where: a long one takes a while, in which
/// an async thread would serve nobody else.
pub(crate) async fn build_json(
    status: StatusCode,
    hold: Hold,
    build: impl FnOnce() -> Vec<u8> + Send + 'static,
) -> Response {
    if hold.bytes() <= PIECE as u64 {
        return long_json(status, build(), hold);
    }
    let turn = BUILDERS.acquire().await.expect("nobody closes it");
    // It goes on if the client leaves meanwhile, so its room and its turn go with it.
    let built = tokio::task::spawn_blocking(move || {
        let response = long_json(status, build(), hold);
        drop(turn);
        response
    });
    // What it tells of may have been done: deliveries that it was to hand over are leased.
    joined(built).await.unwrap_or_else(|| Fault::from(Error::unknown_outcome("the server is stopping")).into_response())
}

/// How many long answers are built at once. What an answer is made of is in memory beside it until then, and only one
/// of both is counted.
static BUILDERS: Semaphore = Semaphore::const_new(2);

/// An answer that may be long: it goes out in pieces as the client reads it, and takes room among all answers until the
/// last piece is out.
fn long_json(status: StatusCode, mut bytes: Vec<u8>, mut hold: Hold) -> Response {
    if bytes.len() <= SHORT {
        return json_bytes(status, bytes);
    }
    bytes.push(b'\n');
    hold.resize(bytes.capacity() as u64);
    let pieces = Pieces(Bytes::from_owner(Held { bytes, _hold: hold }));
    let mut response = Response::new(Body::new(pieces));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What is not longer takes no room. It is in the hands of the connection at once.
const SHORT: usize = 16 << 10;

/// About how many bytes of an answer a task or a delivery takes beside its body.
pub(crate) const ROW_BYTES: u64 = 512;

/// How much of a long answer is passed on at once. What was passed on is in the hands of the connection, which would
/// take all of it and then wait for the client.
const PIECE: usize = 64 << 10;

/// The bytes of an answer and the room they take, which end together.
struct Held {
    bytes: Vec<u8>,
    _hold: Hold,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What is left of a long answer.
struct Pieces(Bytes);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.0.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.0.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// The same for what is JSON already. Its line ends, as lines do: whoever looks at it in a terminal sees the prompt below.
pub(crate) fn json_bytes(status: StatusCode, mut bytes: Vec<u8>) -> Response {
    bytes.push(b'\n');
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// All that is known of one task, of about so many bytes.
pub(crate) fn task(task: TaskView, about: u64, node: &Handle) -> Vec<u8> {
    let mut out = Vec::with_capacity(about as usize);
    write(&mut out, &task_info(task, Some(node), true));
    out
}

/// What a page says beside its tasks.
#[derive(Default)]
pub(crate) struct Rest {
    pub next: Option<String>,
    pub looked_at: Option<u64>,
}

/// A page of tasks, of about so many bytes. Each task is written before the next one is translated, so that there is no
/// second copy of all bodies.
pub(crate) fn page(tasks: Vec<TaskView>, rest: &Rest, about: u64, node: &Handle, with_bodies: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + about as usize);
    out.extend_from_slice(b"{\"tasks\":[");
    for (index, task) in tasks.into_iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"" } else { b"," });
        write(&mut out, &task_info(task, Some(node), with_bodies));
    }
    out.push(b']');
    if let Some(next) = &rest.next {
        field(&mut out, "next", next);
    }
    if let Some(looked_at) = &rest.looked_at {
        field(&mut out, "looked_at", looked_at);
    }
    out.push(b'}');
    out
}

/// What a consumer gets, in about so many bytes.
pub(crate) fn deliveries(deliveries: &[Delivery], about: u64, secret: &[u8; 32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + about as usize);
    out.extend_from_slice(b"{\"deliveries\":[");
    for (index, delivery) in deliveries.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"" } else { b"," });
        write_delivery(&mut out, delivery, secret);
    }
    out.extend_from_slice(b"]}");
    out
}

fn write_delivery(out: &mut Vec<u8>, delivery: &Delivery, secret: &[u8; 32]) {
    out.extend_from_slice(b"{\"topic\":");
    write(out, &*delivery.topic);
    field(out, "id", &*delivery.id);
    field(out, "queue", &*delivery.queue);
    write_body(out, delivery);
    if !delivery.headers.is_empty() {
        out.extend_from_slice(b",\"headers\":{");
        for (index, (name, value)) in delivery.headers.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"" } else { b"," });
            write(out, name);
            out.push(b':');
            write(out, value);
        }
        out.push(b'}');
    }
    if let Some(key) = &delivery.key {
        field(out, "key", &**key);
    }
    if let Some(routing_key) = &delivery.routing_key {
        field(out, "routing_key", &**routing_key);
    }
    field(out, "priority", &delivery.priority);
    field(out, "attempt", &delivery.attempt);
    field(out, "scheduled_at", &time(delivery.scheduled_at));
    field(out, "due", &time(delivery.due));
    field(out, "fired_at", &time(delivery.fired_at));
    out.extend_from_slice(b",\"lease\":\"");
    lease::write(&delivery.lease, secret, out);
    out.push(b'"');
    field(out, "until", &time(delivery.until));
    field(out, "lease_time", &Span(delivery.lease_time.0));
    out.push(b'}');
}

fn write_body(out: &mut Vec<u8>, delivery: &Delivery) {
    match (delivery.form, std::str::from_utf8(&delivery.body)) {
        // It was checked to be JSON when it came in.
        (Form::Json, Ok(json)) => {
            out.extend_from_slice(b",\"body\":");
            out.extend_from_slice(json.as_bytes());
        }
        (Form::Text, Ok(text)) => field(out, "text", text),
        _ => {
            out.extend_from_slice(b",\"base64\":\"");
            out.extend_from_slice(STANDARD.encode(&delivery.body).as_bytes());
            out.push(b'"');
        }
    }
}

fn field<T: Serialize + ?Sized>(out: &mut Vec<u8>, name: &str, value: &T) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    write(out, value);
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("a value can be written as JSON into memory");
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;
    use punctual_core::store::Key;
    use punctual_core::{Lease, Millis, Name, Timestamp};
    use punctual_wire as wire;

    fn delivery(form: Form, body: &'static [u8]) -> Delivery {
        let name = |text| Name::new(text).unwrap();
        Delivery {
            topic: name("or\"ders"),
            id: name("7"),
            queue: name("mails"),
            number: 4,
            body: body.into(),
            form,
            headers: vec![("a".into(), "\n".into()), ("b".into(), "c".into())],
            routing_key: Some(name("eu.new")),
            key: Some(name("user-1")),
            priority: 3,
            attempt: 2,
            scheduled_at: Timestamp::from_millis(1),
            due: Timestamp::from_millis(2),
            fired_at: Timestamp::from_millis(3),
            lease: Lease { key: Key::new("or\"ders", "7", "mails"), token: 9 },
            until: Timestamp::LAST,
            lease_time: Millis(7_000),
        }
    }

    #[test]
    fn deliveries_are_what_the_wire_says() {
        let given = [
            delivery(Form::Json, b"{\"n\": [1]}"),
            delivery(Form::Text, b"say \"hi\""),
            delivery(Form::Bytes, b"\xff\0"),
            Delivery { headers: Vec::new(), key: None, routing_key: None, ..delivery(Form::Bytes, b"") },
        ];
        let text = deliveries(&given, 0, &[1; 32]);
        let read: wire::Deliveries = serde_json::from_slice(&text).unwrap();
        let [json, text, bytes, bare] = <[wire::Delivery; 4]>::try_from(read.deliveries).unwrap();
        assert_eq!(json.body.unwrap().get(), "{\"n\": [1]}");
        assert_eq!(text.text.as_deref(), Some("say \"hi\""));
        assert_eq!(bytes.base64, Some(wire::Base64(vec![255, 0])));
        assert_eq!((bare.base64, bare.key, bare.headers.len()), (Some(wire::Base64(vec![])), None, 0));
        assert_eq!((json.topic.as_str(), json.id.as_str(), json.queue.as_str()), ("or\"ders", "7", "mails"));
        assert_eq!((json.priority, json.attempt), (3, 2));
        assert_eq!((json.scheduled_at.0, json.due.0, json.fired_at.0, json.until), (1, 2, 3, wire::Time::LAST));
        assert_eq!(json.headers["a"], "\n");
        assert_eq!(json.lease_time, wire::Span(7_000));
        assert_eq!(lease::read(&json.lease, &[1; 32]).ok(), Some(given[0].lease.clone()));
    }
}
