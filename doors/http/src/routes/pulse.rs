//! How the nodes are doing, once a second: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use punctual_core::{Name, QueueView, Timestamp, TopicView};
use punctual_node::access::Role;
use punctual_node::{Distribution, Happened};
use punctual_wire as wire;

use super::look::distribution;
use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Query, name};
use crate::output::EVENTS_HEARTBEAT;
use crate::pulse::{Follower, Stock, Taken};
use crate::translate::{self, time};

/// How many topics, and how many queues, one can ask for.
const MOST_NAMES: usize = 100;

/// Follow how all nodes together are doing: a small snapshot every second, with the topics and queues that are asked for. Who is
/// slow gets the latest one. The stream ends when the token is revoked or changed.
#[utoipa::path(get, operation_id = "follow_pulse", path = "/v1/pulse", tag = "numbers", params(wire::PulseQuery),
    responses((status = 200, description = "Server-sent events named `pulse`, with a Pulse as their data.",
        content_type = "text/event-stream", body = String)))]
pub(crate) async fn follow(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::PulseQuery>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    let topics = names(&bearer, "topics", query.topics.as_deref())?;
    let queues = names(&bearer, "queues", query.queues.as_deref())?;
    let follower = app.pulses.follow(&app.handle, topics, queues)?;
    let (access, grant) = (Arc::clone(&app.access), bearer.grant().clone());
    let is_all = bearer.scope().is_all();
    let pulses = stream::unfold(follower, move |mut follower| async move {
        let taken = follower.next().await?;
        let data = serde_json::to_string(&shown(&taken, &follower, is_all)).expect("a pulse can be written as JSON");
        Some((Ok::<_, Infallible>(Sent::default().event("pulse").data(data)), follower))
    });
    let pulses = pulses.take_until(async move { access.until_withdrawn(&grant).await });
    Ok(Sse::new(pulses).keep_alive(KeepAlive::new().interval(EVENTS_HEARTBEAT)).into_response())
}

/// Names with spaces between them, none of which is not for this token.
fn names(bearer: &Bearer, field: &str, text: Option<&str>) -> Result<Vec<Name>, Fault> {
    let words = || text.into_iter().flat_map(str::split_ascii_whitespace);
    if words().count() > MOST_NAMES {
        return Err(Fault::invalid(field, format!("ask for at most {MOST_NAMES}")));
    }
    let mut names = words().map(|word| name(field, word)).collect::<Result<Vec<Name>, Fault>>()?;
    names.sort();
    names.dedup();
    names.iter().try_for_each(|name| bearer.needs(Role::View, Some(name)))?;
    Ok(names)
}

/// What a follower is told. Who has to do with some topics only is not told of all of them together.
fn shown(taken: &Taken, follower: &Follower, is_all: bool) -> wire::Pulse {
    let Taken { at, pulse, silent, stock, .. } = taken;
    let stock = stock.as_ref();
    let found = |stock: &Stock| -> (Vec<_>, Vec<_>) {
        let topic = |name: &Name| stock.topics.get(name).map(|(view, happened)| topic(name, view, happened));
        let queue = |name: &Name| stock.queues.get(name).map(|view| queue(name, view, *at));
        (follower.topics.iter().filter_map(topic).collect(), follower.queues.iter().filter_map(queue).collect())
    };
    let (topics, queues) = stock.map(found).unwrap_or_default();
    wire::Pulse {
        now: time(*at),
        started_at: time(pulse.started_at),
        happened: is_all.then(|| translate::happened(&pulse.happened)),
        refused: is_all.then_some(pulse.refused),
        total: stock.ok().filter(|_| is_all).map(|stock| translate::total(stock.total)),
        lateness_micros: is_all.then(|| distribution(Distribution::of(&pulse.lateness))),
        topics: topics.into_iter().collect(),
        queues: queues.into_iter().collect(),
        silent: silent.iter().map(ToString::to_string).collect(),
        problem: stock.err().cloned(),
    }
}

fn topic(name: &Name, view: &TopicView, happened: &Happened) -> (String, wire::TopicPulse) {
    let (waiting, leased, dead) = (view.counts.waiting, view.counts.leased, view.counts.dead);
    let (paused, happened) = (view.settings.paused, translate::happened(happened));
    (name.to_string(), wire::TopicPulse { waiting, leased, dead, paused, happened })
}

fn queue(name: &Name, view: &QueueView, now: Timestamp) -> (String, wire::QueuePulse) {
    let (ready, leased, dead) = (view.counts.ready, view.counts.leased, view.counts.dead);
    let pause = view.settings.paused_until.filter(|until| *until > now);
    let pulse = wire::QueuePulse {
        ready,
        leased,
        dead,
        paused: pause.is_some(),
        paused_until: pause.filter(|until| *until != Timestamp::NEVER).map(time),
        oldest_ready: view.oldest.map(time),
    };
    (name.to_string(), pulse)
}
