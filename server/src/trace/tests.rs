//! Facts about spans.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::thread;

use opentelemetry::trace::{SpanId, SpanKind};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::SpanData;
use prost::Message;
use punctual_core::{Form, Lease, Millis, Name, Reason};
use tracing_subscriber::layer::SubscriberExt;

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
const TOOK: Took = Took { from: 5_000_000, until: 5_000_300 };

/// Keeps spans.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

/// The spans that come of what is done meanwhile.
fn spans(sample: f64, act: impl FnOnce(&dyn Tracer)) -> Vec<SpanData> {
    let kept = Kept::default();
    let (traces, layer) = Traces::to(kept.clone(), sample, "node-1");
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || act(&*traces.tracer()));
    traces.stop();
    std::mem::take(&mut kept.0.lock().unwrap())
}

fn came(traceparent: Option<&str>) -> Headers {
    traceparent.into_iter().map(|context| ("traceparent".to_owned(), context.to_owned())).collect()
}

/// A request that takes a while, as a door tells of it; gives what carries it on.
fn request(tracer: &dyn Tracer, traceparent: Option<&str>) -> Headers {
    let span = tracing::info_span!(
        target: SPANS,
        "request",
        "otel.name" = "GET /v1/tasks",
        "otel.kind" = "server",
        "url.path" = "/v1/tasks/orders/7",
    );
    let carried = tracer.adopt(&span, &came(traceparent));
    span.in_scope(|| thread::sleep(Duration::from_micros(1_500)));
    carried
}

fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

fn delivery(headers: Headers) -> Delivery {
    Delivery {
        topic: name("orders"),
        id: name("7"),
        queue: name("work"),
        number: 1,
        body: "".into(),
        form: Form::Bytes,
        headers,
        routing_key: None,
        key: None,
        priority: 0,
        attempt: 1,
        scheduled_at: Timestamp::from_millis(1_000),
        due: Timestamp::from_millis(4_000),
        fired_at: Timestamp::from_millis(4_002),
        lease: Lease { key: Key::task(&name("orders"), &name("7")), token: 1 },
        until: Timestamp::from_millis(60_000),
        lease_time: Millis(55_000),
    }
}

fn event(what: What) -> Event {
    let task = Key::task(&name("orders"), &name("7"));
    Event { at: Timestamp::from_millis(5_000), task, number: 1, queue: Some(name("work")), key: None, by: None, what }
}

#[test]
fn a_request_becomes_a_span_of_its_length() {
    let spans = spans(1.0, |tracer| _ = request(tracer, None));
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((&*span.name, &span.span_kind), ("GET /v1/tasks", &SpanKind::Server));
    assert!(span.end_time.duration_since(span.start_time).unwrap() >= Duration::from_micros(1_500));
    assert_eq!(span.parent_span_id, SpanId::INVALID);
    assert_eq!(span.attributes, [KeyValue::new("url.path", "/v1/tasks/orders/7")]);
    assert_eq!(span.status, Status::Unset);
}

#[test]
fn a_request_that_brings_a_context_belongs_to_it_and_its_caller_decides() {
    let spans = spans(0.0, |tracer| {
        assert!(request(tracer, Some(PARENT))[0].1.starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
        assert!(request(tracer, Some(UNSAMPLED)).is_empty());
        assert!(request(tracer, None).is_empty());
    });
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(span.span_context.trace_id().to_bytes()[0], 0x0a);
    assert_eq!(span.parent_span_id.to_bytes()[7], 0x31);
}

#[test]
fn a_request_without_a_context_begins_a_trace_that_can_be_carried_on() {
    let mut carried = Headers::new();
    let spans = spans(1.0, |tracer| carried = request(tracer, None));
    let context = &spans[0].span_context;
    assert_eq!(carried, came(Some(&format!("00-{}-{}-01", context.trace_id(), context.span_id()))));
}

#[test]
fn a_context_of_a_later_version_is_understood() {
    let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
    let spans = spans(0.0, |tracer| _ = request(tracer, Some(later)));
    assert_eq!(spans[0].parent_span_id.to_string(), "b7ad6b7169203331");
}

#[test]
fn what_is_not_a_context_begins_a_trace() {
    for text in [
        "",
        "00",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
    ] {
        let spans = spans(1.0, |tracer| _ = request(tracer, Some(text)));
        assert_eq!(spans[0].parent_span_id, SpanId::INVALID, "{text}");
    }
}

#[test]
fn other_events_and_spans_are_no_spans() {
    let spans = spans(1.0, |_| {
        tracing::info!(status = 200_u64, "something else");
        tracing::info_span!("something else").in_scope(|| {});
    });
    assert!(spans.is_empty(), "{spans:?}");
}

#[test]
fn a_delivery_tells_of_its_firing_and_carries_its_trace_on() {
    let mut handed_out = delivery(came(Some(PARENT)));
    handed_out.headers.push(("tracestate".into(), "a=b".into()));
    handed_out.headers.push(("other".into(), "stays".into()));
    let spans = spans(1.0, |tracer| {
        tracer.handed_out(&mut handed_out, None, TOOK);
        tracer.happened(&event(What::Done), TOOK);
        tracer.happened(&event(What::Done), TOOK);
    });
    let [fire, lease, acknowledge] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!([&*fire.name, &*lease.name, &*acknowledge.name], ["fire", "lease", "acknowledge"]);
    let parents = [fire, lease, acknowledge].map(|span| span.parent_span_id.to_string());
    let lease_id = lease.span_context.span_id().to_string();
    assert_eq!(parents, ["b7ad6b7169203331", "b7ad6b7169203331", &lease_id]);
    let millis = |millis| UNIX_EPOCH + Duration::from_millis(millis);
    assert_eq!((fire.start_time, fire.end_time), (millis(4_000), millis(4_002)));
    assert_eq!((lease.start_time, lease.end_time), (micros(TOOK.from), micros(TOOK.until)));
    assert!(lease.attributes.contains(&KeyValue::new("punctual.attempt", 1_i64)));
    assert_eq!(
        handed_out.headers,
        [
            ("other".to_owned(), "stays".to_owned()),
            ("traceparent".to_owned(), format!("00-0af7651916cd43dd8448eb211c80319c-{lease_id}-01")),
            ("tracestate".to_owned(), "a=b".to_owned()),
        ]
    );
}

#[test]
fn a_lease_names_the_request_in_which_it_was_asked_for() {
    let spans = spans(1.0, |tracer| {
        let asking = tracing::info_span!(target: SPANS, "reserve");
        tracer.handed_out(&mut delivery(came(Some(PARENT))), Some(&asking), TOOK);
    });
    let [_, lease, reserve] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(lease.links.iter().map(|link| &link.span_context).collect::<Vec<_>>(), [&reserve.span_context]);
}

#[test]
fn what_fails_is_shown_as_an_error_and_what_nobody_traces_not_at_all() {
    let spans = spans(1.0, |tracer| {
        for untraced in [None, Some(UNSAMPLED)] {
            let mut handed_out = delivery(came(untraced));
            tracer.handed_out(&mut handed_out, None, TOOK);
            assert_eq!(handed_out, delivery(came(untraced)));
            tracer.happened(&event(What::Done), TOOK);
        }
        for what in [What::Failed { again: Timestamp::ZERO }, What::Died(Reason::Rejected)] {
            tracer.handed_out(&mut delivery(came(Some(PARENT))), None, TOOK);
            tracer.happened(&event(What::Fired), TOOK);
            tracer.happened(&event(what), TOOK);
        }
    });
    let ends: Vec<(&str, bool)> =
        spans.iter().map(|span| (&*span.name, matches!(span.status, Status::Error { .. }))).collect();
    let [fire, lease] = [("fire", false), ("lease", false)];
    assert_eq!(ends, [fire, lease, ("fail", true), fire, lease, ("die", true)]);
}

/// Takes one request by HTTP, and gives its first line and its body.
fn take_one(listener: &TcpListener) -> (String, Vec<u8>) {
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first).unwrap();
    for line in stream.by_ref().lines().map_while(|line| line.ok().filter(|line| !line.is_empty())) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    (first, body)
}

#[test]
fn spans_are_written_as_the_protocol_says() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/", collector.local_addr().unwrap());
    let taking = thread::spawn(move || take_one(&collector));
    let (traces, _layer) = Traces::to(send::exporter(&endpoint).unwrap(), 1.0, "node-1");
    let tracer = &traces.spans.tracer;
    let builder = tracer.span_builder("GET /v1/tasks").with_start_time(UNIX_EPOCH + Duration::from_nanos(300));
    let builder = builder.with_attributes([KeyValue::new("http.response.status_code", 503)]);
    let mut span = builder.start_with_context(tracer, &context_in(&came(Some(PARENT))));
    span.set_status(Status::error(""));
    span.end_with_timestamp(UNIX_EPOCH + Duration::from_secs(1));
    traces.stop();

    let (first, body) = taking.join().unwrap();
    assert_eq!(first, "POST /v1/traces HTTP/1.1\r\n");
    let sent = ExportTraceServiceRequest::decode(&*body).unwrap();
    let resource = sent.resource_spans[0].resource.as_ref().unwrap();
    let told: Vec<&str> = resource.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    for key in ["service.name", "service.instance.id", "service.version"] {
        assert!(told.contains(&key), "{told:?}");
    }
    let [span] = sent.resource_spans[0].scope_spans[0].spans.as_slice() else { panic!("{sent:?}") };
    assert_eq!(span.trace_id[0], 0x0a);
    assert_eq!(span.parent_span_id[7], 0x31);
    assert_eq!(span.name, "GET /v1/tasks");
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (300, 1_000_000_000));
    assert_eq!(span.attributes[0].key, "http.response.status_code");
    assert_eq!(span.attributes[0].value.as_ref().unwrap().value, Some(Any::IntValue(503)));
    assert_eq!(span.status.as_ref().unwrap().code, 2);
}
