//! What happened when: counts and gauges in slots of time.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::{Millis, Subject, Timestamp};
use punctual_node::access::Role;
use punctual_node::{Gauges, Grain, Slot};
use punctual_wire::{self as wire, Metric, SeriesStep};

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Query, maybe_name};
use crate::output::json;
use crate::translate::{self, time};

/// How far back it goes if nobody says, which is also how long the finest slots are kept.
const HOUR: Millis = Millis::from_hours(1);
/// How long the others are kept.
const KEPT: Millis = Millis::from_hours(48);

/// Show what happened when: of one topic or queue, or of all together. Each node keeps this in memory since it started, for all
/// together and for some topics and queues.
#[utoipa::path(get, operation_id = "series", path = "/v1/series", tag = "numbers", params(wire::SeriesQuery),
    responses((status = 200, description = "The values of each slot, oldest first.", body = wire::Series)))]
pub(crate) async fn series(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::SeriesQuery>,
) -> Result<Response, Fault> {
    let of = subject(&bearer, &query)?;
    let metrics = metrics(&query, of.as_ref())?;
    let (step, grain, kept) = match query.step {
        SeriesStep::TenSeconds => (Millis::from_secs(10), Grain::TenSeconds, HOUR),
        SeriesStep::Minute => (Millis::from_mins(1), Grain::Minute, KEPT),
        SeriesStep::TenMinutes => (Millis::from_mins(10), Grain::Minute, KEPT),
    };
    let now = app.handle.now();
    let until = query.until.map_or(now, |until| translate::timestamp(until).min(now));
    let from = query.from.map_or(until.minus(HOUR), translate::timestamp).max(now.minus(kept));
    let from = Timestamp::from_millis(from.as_millis() / step.0 * step.0);
    if query.from.is_some() && query.until.is_some() && query.from >= query.until {
        return Err(Fault::invalid("until", "must be after `from`"));
    }
    // The slot of the first instant is told, even if nothing lies between both.
    let slots = until.since(from).0.div_ceil(step.0).max(1);
    let each = step.0 / grain.length().0;
    let (found, silent) = app.handle.series(of, grain, from, (slots * each) as usize).await;
    let mut slots: Vec<Slot> = found.slots.chunks(each as usize).map(joined).collect();
    // What was before anybody counted is not nothing.
    let known = found.known_since.map_or(Timestamp::NEVER, |since| since.max(from));
    let unknown = known.since(from).0 / step.0;
    slots.drain(..slots.len().min(unknown as usize));
    let values = |metric: Metric| slots.iter().map(|slot| value(slot, metric)).collect();
    let series: BTreeMap<String, Vec<Option<u64>>> =
        metrics.into_iter().map(|metric| (metric.as_str().to_owned(), values(metric))).collect();
    let series = wire::Series {
        step: query.step,
        from: time(from.plus(Millis(unknown.saturating_mul(step.0))).min(now)),
        slots: slots.len() as u64,
        known_since: found.known_since.map(time),
        series,
        silent: silent.iter().map(ToString::to_string).collect(),
    };
    Ok(json(StatusCode::OK, &series))
}

/// Whose series it is, if that is for this token.
fn subject(bearer: &Bearer, query: &wire::SeriesQuery) -> Result<Option<Subject>, Fault> {
    let topic = maybe_name("topic", query.topic.as_deref())?;
    let queue = maybe_name("queue", query.queue.as_deref())?;
    match (topic, queue) {
        (Some(_), Some(_)) => Err(Fault::invalid("queue", "ask for a topic or for a queue, not for both")),
        (Some(name), None) => bearer.needs(Role::View, Some(&name)).map(|()| Some(Subject::Topic(name))),
        (None, Some(name)) => bearer.needs(Role::View, Some(&name)).map(|()| Some(Subject::Queue(name))),
        (None, None) => bearer.needs_for_all(Role::View).map(|()| None),
    }
}

/// Which metrics are meant; without a word, all that there are of such a thing.
fn metrics(query: &wire::SeriesQuery, of: Option<&Subject>) -> Result<Vec<Metric>, Fault> {
    let is_told = |metric: Metric| match of {
        Some(Subject::Topic(_)) => metric != Metric::Ready,
        Some(Subject::Queue(_)) => !matches!(metric, Metric::Scheduled | Metric::Waiting),
        None => true,
    };
    let all = || Metric::ALL.into_iter().filter(|(_, metric)| is_told(*metric));
    let Some(text) = &query.metric else { return Ok(all().map(|(_, metric)| metric).collect()) };
    let read = |word: &str| {
        let known = all().find(|(known, _)| *known == word).map(|(_, metric)| metric);
        known.ok_or_else(|| {
            let words: Vec<&str> = all().map(|(known, _)| known).collect();
            Fault::invalid("metric", format!("{word:?} is not a metric of this: use some of {}", words.join(", ")))
        })
    };
    text.split(',').map(str::trim).map(read).collect()
}

/// Slots one after the other as one.
fn joined(slots: &[Slot]) -> Slot {
    let mut sum = Slot::default();
    slots.iter().for_each(|slot| sum.append(slot));
    sum
}

fn value(slot: &Slot, metric: Metric) -> Option<u64> {
    let gauge = |read: fn(&Gauges) -> u64| slot.gauges.as_ref().map(read);
    match metric {
        Metric::Scheduled => Some(slot.scheduled),
        Metric::Fired => Some(slot.fired),
        Metric::Done => Some(slot.done),
        Metric::Failed => Some(slot.failed),
        Metric::Dead => Some(slot.died),
        Metric::Cancelled => Some(slot.cancelled),
        Metric::LatenessP50 => slot.lateness_at_most(500),
        Metric::LatenessP99 => slot.lateness_at_most(990),
        Metric::Waiting => gauge(|gauges| gauges.waiting),
        Metric::Ready => gauge(|gauges| gauges.ready),
        Metric::Leased => gauge(|gauges| gauges.leased),
        Metric::DeadLetters => gauge(|gauges| gauges.dead),
    }
}
