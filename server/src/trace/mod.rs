//! Traces: spans of requests and of what happens to tasks, sent to an OpenTelemetry collector.
//!
//! ```text
//! doors, node ── spans of `tracing` ────────► layer ─┐
//! node ── what happened to a task ─► Spans: fire … ──┴─► queue, bounded ─► a thread that sends them (send.rs)
//! ```
//! Nothing else knows OpenTelemetry. **Invariant**: exporting never holds up a request. A full queue drops spans, a
//! collector that does not answer loses them, and the log says so.

mod send;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{Link, Span as _, SpanContext, Status, TraceContextExt, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, SpanExporter,
};
use punctual_core::store::Key;
use punctual_core::{Delivery, Event, Headers, Timestamp, What};
use punctual_node::{SPANS, Took, Tracer};
use quick_cache::sync::Cache;
use tracing::Span;
use tracing::level_filters::LevelFilter;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;

use crate::config::Config;
use crate::logs::Extra;

/// How many spans may wait to be sent.
const WAITING: usize = 8_192;
/// How many are sent at once.
const TOGETHER: usize = 512;
/// How long the first of them waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long the last of them may hold up the end of the server.
const FLUSH: Duration = Duration::from_secs(2);
/// Of how many deliveries that are held it is known in which span they were handed out.
const HELD: usize = 65_536;

/// What makes spans and sends them.
pub struct Traces {
    provider: SdkTracerProvider,
    spans: Arc<Spans>,
}

impl Traces {
    /// What the configuration asks for, if it does, and what feeds it with the spans of requests.
    pub fn from(config: &Config) -> Result<Option<(Traces, Extra)>, String> {
        let Some(endpoint) = &config.trace.endpoint else { return Ok(None) };
        Ok(Some(Traces::to(send::exporter(endpoint)?, config.trace.sample.0, &config.node.name)))
    }

    fn to(exporter: impl SpanExporter + 'static, sample: f64, instance: &str) -> (Traces, Extra) {
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(WAITING)
            .with_max_export_batch_size(TOGETHER)
            .with_scheduled_delay(GATHER)
            .build();
        let resource = Resource::builder().with_service_name("punctual").with_attributes([
            KeyValue::new("service.instance.id", instance.to_owned()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ]);
        // Whoever sent a request has decided; a trace with holes helps nobody.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(sample)));
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            .with_sampler(sampler)
            .with_resource(resource.build())
            .build();
        let tracer = provider.tracer("punctual");
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer.clone())
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(Targets::new().with_target(SPANS, LevelFilter::INFO))
            .boxed();
        (Traces { provider, spans: Arc::new(Spans { tracer, held: Cache::new(HELD) }) }, layer)
    }

    /// What the node tells what happens.
    pub fn tracer(&self) -> Arc<dyn Tracer> {
        Arc::clone(&self.spans) as _
    }

    /// Sends what is left, if that does not take too long.
    pub fn stop(&self) {
        // What went wrong is in the log.
        _ = self.provider.shutdown_with_timeout(FLUSH);
    }
}

/// Makes spans of what happens to tasks. A task's trace is in its headers.
#[derive(Debug)]
struct Spans {
    tracer: SdkTracer,
    /// By row: the span in which it was handed out. An acknowledgement names only the row, and its headers may be on
    /// disk. What does not fit is forgotten, and so is everything by a restart: then the end is not shown.
    held: Cache<Key, SpanContext>,
}

impl Tracer for Spans {
    fn adopt(&self, span: &Span, came: &Headers) -> Headers {
        // It fails for spans that nobody records.
        _ = span.set_parent(context_in(came));
        carried_by(&span.context())
    }

    fn handed_out(&self, delivery: &mut Delivery, asked: Option<&Span>, took: Took) {
        let task = context_in(&delivery.headers);
        if !task.span().span_context().is_sampled() {
            return;
        }
        let attributes = attributes(&delivery.lease.key, &delivery.queue, delivery.attempt);
        let fired_at = millis(delivery.fired_at);
        // When it should have fired again is not known of one that was handed out before.
        let due = if delivery.attempt == 1 { millis(delivery.due).min(fired_at) } else { fired_at };
        let fire = self.tracer.span_builder("fire").with_start_time(due).with_attributes(attributes.clone());
        fire.start_with_context(&self.tracer, &task).end_with_timestamp(fired_at);

        let asked = asked.map(|asked| asked.context().span().span_context().clone());
        let asked = asked.filter(SpanContext::is_sampled).map(Link::with_context);
        let lease = self.tracer.span_builder("lease").with_start_time(micros(took.from)).with_attributes(attributes);
        let mut lease = lease.with_links(asked.into_iter().collect()).start_with_context(&self.tracer, &task);
        lease.end_with_timestamp(micros(took.until));
        let context = lease.span_context().clone();
        delivery.headers.retain(|(name, _)| !is_carrier(name));
        delivery.headers.extend(carried_by(&Context::new().with_remote_span_context(context.clone())));
        self.held.insert(delivery.lease.key.clone(), context);
    }

    fn happened(&self, event: &Event, took: Took) {
        let (name, status) = match &event.what {
            What::Done => ("acknowledge", Status::Unset),
            What::Released { .. } => ("release", Status::Unset),
            What::Failed { .. } => ("fail", Status::error("the attempt failed, and another one comes")),
            What::Died(reason) => ("die", Status::error(reason.as_str())),
            What::Cancelled => ("cancel", Status::Unset),
            _ => return,
        };
        let Some((_, lease)) = self.held.remove(&event.task) else { return };
        let queue = event.queue.as_deref().unwrap_or_default();
        let span = self.tracer.span_builder(name).with_start_time(micros(took.from));
        let span = span.with_attributes(attributes(&event.task, queue, None));
        let mut span = span.start_with_context(&self.tracer, &Context::new().with_remote_span_context(lease));
        span.set_status(status);
        span.end_with_timestamp(micros(took.until));
    }
}

/// What all spans of a delivery say, in the words of OpenTelemetry's conventions for messages.
fn attributes(row: &Key, queue: &str, attempt: impl Into<Option<u32>>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("messaging.system", "punctual"),
        KeyValue::new("messaging.destination.name", row.topic().to_owned()),
        KeyValue::new("messaging.message.id", row.id().to_owned()),
        KeyValue::new("punctual.queue", queue.to_owned()),
    ];
    attributes.extend(attempt.into().map(|attempt| KeyValue::new("punctual.attempt", i64::from(attempt))));
    attributes
}

fn millis(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.as_millis())
}

fn micros(at: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(at)
}

/// The trace that headers name; none, if they do not.
fn context_in(headers: &Headers) -> Context {
    let carrier = Carrier(headers);
    // The propagator takes ids that are too short for one.
    let is_whole = |parent: &str| parent.split('-').map(str::len).take(4).eq([2, 32, 16, 2]);
    if !carrier.get("traceparent").is_some_and(is_whole) {
        return Context::new();
    }
    TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier)
}

/// The headers that carry a span on, none if it is not recorded.
fn carried_by(context: &Context) -> Headers {
    let mut carried = Collected(Headers::new());
    if context.span().span_context().is_sampled() {
        TraceContextPropagator::new().inject_context(context, &mut carried);
    }
    carried.0
}

fn is_carrier(name: &str) -> bool {
    TraceContextPropagator::new().fields().any(|field| field.eq_ignore_ascii_case(name))
}

/// Where a trace is read from.
struct Carrier<'a>(&'a Headers);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// Where a trace is written to.
struct Collected(Headers);

impl Injector for Collected {
    fn set(&mut self, key: &str, value: String) {
        // A state without anything in it is the same as none.
        if !value.is_empty() {
            self.0.push((key.to_owned(), value));
        }
    }
}
