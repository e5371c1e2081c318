//! Turns the door's event about a request into a span.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::Sender;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as Place;

use super::context::Context;
use super::{Span, Value};

/// Where the door tells of requests.
pub const TARGET: &str = "punctual::http";

/// Makes spans of requests.
pub struct Requests {
    spans: Sender<Span>,
    lost: Arc<AtomicU64>,
    /// Which share of the requests is traced that do not say so themselves.
    sample: f64,
}

impl Requests {
    pub fn new(spans: Sender<Span>, lost: Arc<AtomicU64>, sample: f64) -> Requests {
        Requests { spans, lost, sample }
    }

    fn span(&self, request: Request) -> Option<Span> {
        let context = request.traceparent.as_deref().and_then(Context::parse);
        let mut random = [0; 32];
        getrandom::fill(&mut random).ok()?;
        let (ids, dice) = random.split_at(24);
        let dice = u64::from_le_bytes(dice.try_into().ok()?) as f64 / u64::MAX as f64;
        // Whoever sent the request has decided; a trace with holes helps nobody.
        if !context.map_or(dice < self.sample, |context| context.is_sampled) {
            return None;
        }
        let (trace_id, span_id) = ids.split_at(16);
        let route = request.route.unwrap_or_else(|| short(&request.path));
        let mut attributes = vec![
            ("http.request.method", Value::Text(request.method.clone())),
            ("url.path", Value::Text(request.path)),
            ("http.route", Value::Text(route.clone())),
            ("http.response.status_code", Value::Number(request.status)),
        ];
        if let Some(token) = request.token {
            attributes.push(("enduser.id", Value::Text(token)));
        }
        let end = SystemTime::now();
        Some(Span {
            trace_id: context.map_or(trace_id.try_into().ok()?, |context| context.trace_id),
            span_id: span_id.try_into().ok()?,
            parent_id: context.map(|context| context.parent_id),
            state: request.tracestate.unwrap_or_default(),
            name: format!("{} {route}", request.method),
            start: end - Duration::from_micros(request.micros),
            end,
            attributes,
            is_error: request.status >= 500,
        })
    }
}

/// The path without what differs from task to task, so that spans of the same kind bear the same name.
fn short(path: &str) -> String {
    path.split('/').take(3).collect::<Vec<_>>().join("/")
}

impl<S: Subscriber> Layer<S> for Requests {
    fn on_event(&self, event: &Event<'_>, _place: Place<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut request = Request::default();
        event.record(&mut request);
        if request.status != 0
            && let Some(span) = self.span(request)
            && self.spans.try_send(span).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What the door says about a request.
#[derive(Default)]
struct Request {
    method: String,
    path: String,
    route: Option<String>,
    status: i64,
    micros: u64,
    traceparent: Option<String>,
    tracestate: Option<String>,
    token: Option<String>,
}

impl Visit for Request {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "status" => self.status = i64::try_from(value).unwrap_or_default(),
            "micros" => self.micros = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "method" => value.clone_into(&mut self.method),
            "path" => value.clone_into(&mut self.path),
            "route" => self.route = Some(value.to_owned()),
            "traceparent" => self.traceparent = Some(value.to_owned()),
            "tracestate" => self.tracestate = Some(value.to_owned()),
            "token" => self.token = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
