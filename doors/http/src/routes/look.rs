//! Numbers: what falls due when, and how the server works.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::Unit;
use punctual_node::Distribution;
use punctual_node::access::Role;
use punctual_wire as wire;
use serde::Deserialize;

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::Query;
use crate::output::json;
use crate::translate;

/// How many slots a forecast has if nobody says.
const SLOTS: u32 = 60;
const MOST_SLOTS: u32 = 1_440;
/// How many topics are told apart.
const BUSIEST: usize = 100;

/// Which forecast.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// The length of a slot; without, a minute.
    #[serde(default)]
    unit: wire::Unit,
    /// How many slots; without, 60.
    #[param(minimum = 1, maximum = 1440)]
    slots: Option<u32>,
}

/// Count the deliveries that come due in each of the next minutes, hours, or days, for the topics that the token covers.
#[utoipa::path(get, operation_id = "forecast", path = "/v1/forecast", tag = "numbers", params(Wanted),
    responses((status = 200, description = "The slots, starting with the current one.", body = wire::Forecast)))]
pub(crate) async fn forecast(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    let slots = wanted.slots.unwrap_or(SLOTS);
    if !(1..=MOST_SLOTS).contains(&slots) {
        return Err(Fault::invalid("slots", format!("ask for 1 to {MOST_SLOTS} slots")));
    }
    let unit = match wanted.unit {
        wire::Unit::Minute => Unit::Minute,
        wire::Unit::Hour => Unit::Hour,
        wire::Unit::Day => Unit::Day,
    };
    let (slots, counted_until) = app.handle.forecast_within(bearer.scope(), unit, slots as usize).await?;
    let slot = |(from, due)| wire::ForecastSlot { from: translate::time(from), due };
    let slots = slots.into_iter().map(slot).collect();
    let counted_until = counted_until.map(translate::time);
    Ok(json(StatusCode::OK, &wire::Forecast { unit: wanted.unit, slots, counted_until }))
}

/// Show how the server has performed since it started. A token that is bound to topics sees what happened in these.
#[utoipa::path(get, operation_id = "stats", path = "/v1/stats", tag = "numbers",
    responses((status = 200, description = "The statistics.", body = wire::Stats)))]
pub(crate) async fn stats(State(app): State<Shared>, bearer: Bearer) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    let stats = app.handle.stats();
    let own = app.handle.busiest(BUSIEST, |topic| bearer.scope().fits(topic)).into_iter();
    let topics = own.map(|(topic, happened)| (topic.to_string(), translate::happened(&happened))).collect();
    // Who has to do with some topics only is not told of all of them together.
    let is_all = bearer.scope().is_all();
    let distribution = |values| is_all.then(|| distribution(values));
    let number = |number: u64| is_all.then_some(number);
    let refusals = || stats.refusals.iter().map(|(code, count)| ((*code).into(), *count)).collect();
    let total = if is_all { Some(translate::total(app.handle.total().await?)) } else { None };
    Ok(json(
        StatusCode::OK,
        &wire::Stats {
            version: app.version.into(),
            now: translate::time(app.handle.now()),
            started_at: translate::time(stats.started_at),
            lateness_micros: distribution(stats.lateness_micros),
            offered_micros: distribution(stats.offered_micros),
            taken_micros: distribution(stats.taken_micros),
            commit_micros: distribution(stats.commit_micros),
            commit_changes: distribution(stats.commit_changes),
            failed_commits: number(stats.failed_commits),
            lost_commits: number(stats.lost_commits),
            answers: number(stats.answers),
            waiting_consumers: number(stats.waiting_consumers as u64),
            waiting_requests: number(stats.inboxes.iter().sum::<usize>() as u64),
            happened: is_all.then(|| translate::happened(&stats.happened)),
            total,
            topics,
            refusals: is_all.then(refusals),
            store: is_all.then(|| (app.store_stats)()),
        },
    ))
}

fn distribution(distribution: Distribution) -> wire::Distribution {
    let Distribution { count, mean, p50, p90, p99, p999, max } = distribution;
    wire::Distribution { count, mean, p50, p90, p99, p999, max }
}
