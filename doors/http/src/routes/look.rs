//! Numbers: what falls due when, and how the server works.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::{Name, Unit};
use punctual_node::access::Role;
use punctual_node::{AllWork, Distribution, Spread};
use punctual_wire as wire;
use serde::Deserialize;

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Query, maybe_name};
use crate::output::json;
use crate::translate;

/// How many slots a forecast has if nobody says.
const SLOTS: u32 = 60;
const MOST_SLOTS: u32 = 1_440;
/// How many topics a forecast tells apart at most.
const MOST_TOPICS: u32 = 100;
/// How many topics are told apart.
const BUSIEST: usize = 100;

/// Count the deliveries that come due in each of the next minutes, hours, days, weeks, or months, or of those from a time on, for the topics that the token covers, for
/// one of them, or told apart by topic.
#[utoipa::path(get, operation_id = "forecast", path = "/v1/forecast", tag = "numbers", params(wire::ForecastQuery),
    responses((status = 200, description = "The slots, starting with the current one.", body = wire::Forecast)))]
pub(crate) async fn forecast(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(wanted): Query<wire::ForecastQuery>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, wanted.topic.as_deref())?;
    let topic = maybe_name("topic", wanted.topic.as_deref())?;
    let slots = wanted.slots.unwrap_or(SLOTS);
    if !(1..=MOST_SLOTS).contains(&slots) {
        return Err(Fault::invalid("slots", format!("ask for 1 to {MOST_SLOTS} slots")));
    }
    let unit = match wanted.unit {
        wire::Unit::Minute => Unit::Minute,
        wire::Unit::Hour => Unit::Hour,
        wire::Unit::Day => Unit::Day,
        wire::Unit::Week => Unit::Week,
        wire::Unit::Month => Unit::Month,
    };
    if wanted.top.is_some_and(|top| !(1..=MOST_TOPICS).contains(&top)) {
        return Err(Fault::invalid("top", format!("ask for 1 to {MOST_TOPICS} topics")));
    }
    let (handle, scope, slots) = (&app.handle, bearer.scope(), slots as usize);
    let from = wanted.from.map_or(handle.now(), translate::timestamp);
    let (mut topics, mut topics_until, mut counted) = (Vec::new(), None, None);
    if topic.is_some() || wanted.top.is_some() {
        let ahead = handle.count_ahead(scope, topic.as_ref(), from, unit, slots).await?;
        topics = wanted.top.map_or(Vec::new(), |top| ahead.top_topics(top as usize));
        let slots = ahead.into_slots();
        topics_until = slots.1.filter(|_| wanted.top.is_some());
        counted = Some(slots);
    }
    // What all topics have together is known also where it is too much to be told apart.
    let (slots, counted_until) = match counted {
        Some(counted) if topic.is_some() || counted.1.is_none() || !scope.is_all() => counted,
        _ => handle.forecast_within(scope, from, unit, slots).await?,
    };
    let slot = |(from, due)| wire::ForecastSlot { from: translate::time(from), due };
    let slots = slots.into_iter().map(slot).collect();
    let [counted_until, topics_until] = [counted_until, topics_until].map(|until| until.map(translate::time));
    let of_topic = |(topic, due): (Option<Name>, Vec<u64>)| wire::TopicForecast {
        topic: topic.map(|topic| topic.to_string()),
        due,
    };
    let topics = topics.into_iter().map(of_topic).collect();
    Ok(json(StatusCode::OK, &wire::Forecast { unit: wanted.unit, slots, counted_until, topics, topics_until }))
}

/// Whose statistics.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfNode {
    /// The name of a node; without, those of all nodes together.
    node: Option<String>,
}

/// Show how the nodes have performed since each of them started. A token that is bound to topics sees what happened in these.
#[utoipa::path(get, operation_id = "stats", path = "/v1/stats", tag = "numbers", params(OfNode),
    responses((status = 200, description = "The statistics.", body = wire::Stats)))]
pub(crate) async fn stats(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(OfNode { node }): Query<OfNode>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    let node = node.map(Name::new).transpose().map_err(|bad| Fault::invalid("node", bad))?;
    let AllWork { work, topics, silent } = app.handle.work(bearer.scope(), BUSIEST, node.as_ref()).await?;
    let topics =
        topics.into_iter().map(|(topic, happened)| (topic.to_string(), translate::happened(&happened))).collect();
    // Who has to do with some topics only is not told of all of them together.
    let is_all = bearer.scope().is_all();
    let distribution = |values: &Spread| is_all.then(|| distribution(Distribution::of(values)));
    let number = |number: u64| is_all.then_some(number);
    let refusals = || work.refusals.iter().map(|refused| (refused.code.clone(), refused.count)).collect();
    let recent = if is_all && node.is_none() {
        Some(Distribution::of(&app.handle.pulse(Vec::new()).await.0.lateness))
    } else {
        None
    };
    let total = if is_all { Some(translate::total(app.handle.total().await?)) } else { None };
    Ok(json(
        StatusCode::OK,
        &wire::Stats {
            version: app.version.into(),
            now: translate::time(app.handle.now()),
            started_at: translate::time(work.started_at),
            lateness_micros: distribution(&work.lateness),
            recent_lateness_micros: recent.map(self::distribution),
            offered_micros: distribution(&work.offered),
            taken_micros: distribution(&work.taken),
            commit_micros: distribution(&work.commit_time),
            commit_changes: distribution(&work.commit_changes),
            failed_commits: number(work.failed_commits),
            lost_commits: number(work.lost_commits),
            answers: number(work.answers),
            waiting_consumers: number(work.waiting_consumers),
            waiting_requests: number(work.waiting_requests),
            happened: is_all.then(|| translate::happened(&work.happened)),
            total,
            topics,
            refusals: is_all.then(refusals),
            store: is_all.then(|| (app.store_stats)()),
            silent: silent.iter().map(ToString::to_string).collect(),
        },
    ))
}

pub(super) fn distribution(distribution: Distribution) -> wire::Distribution {
    let Distribution { count, mean, p50, p90, p99, p999, max } = distribution;
    wire::Distribution { count, mean, p50, p90, p99, p999, max }
}
