//! What happens, as it happens: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt};
use punctual_core::{Event, Scope, What};
use punctual_node::access::Role;
use punctual_node::{Watch, Watched};
use punctual_wire as wire;
use serde::Deserialize;

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Query, maybe_name};
use crate::translate::time;

/// How often a silent stream says that it is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Which events to send; without filters, all.
#[derive(Clone, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    /// Only of this topic.
    #[param(value_type = Option<wire::Name>)]
    topic: Option<String>,
    /// Only in this queue.
    #[param(value_type = Option<wire::Name>)]
    queue: Option<String>,
    /// Only of tasks with this key.
    #[param(value_type = Option<wire::Name>)]
    key: Option<String>,
    /// Only these, with commas between them: `fired,done`.
    what: Option<String>,
}

impl Filter {
    /// Whoever waits for what never happens should know.
    fn check(&self) -> Result<(), Fault> {
        for (field, wanted) in [("topic", &self.topic), ("queue", &self.queue), ("key", &self.key)] {
            maybe_name(field, wanted.as_deref())?;
        }
        let mut words = self.what.iter().flat_map(|what| what.split(',')).map(str::trim);
        match words.find(|word| !What::WORDS.contains(word)) {
            Some(word) => {
                let why = format!("{word:?} is not an event: use one of {}", What::WORDS.join(", "));
                Err(Fault::invalid("what", why))
            }
            None => Ok(()),
        }
    }

    fn fits(&self, event: &Event) -> bool {
        let same =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| is == Some(wanted));
        same(&self.topic, Some(event.task.topic()))
            && same(&self.queue, event.queue.as_deref())
            && same(&self.key, event.key.as_deref())
            && self.what.as_deref().is_none_or(|what| what.split(',').any(|word| word.trim() == event.what.as_str()))
    }
}

/// Follow what happens from now on. A reader that is too slow gets an event `missed` with the number of rounds it
/// missed. The stream ends when the token is revoked or changed.
#[utoipa::path(get, operation_id = "follow_events", path = "/v1/events", tag = "numbers", params(Filter),
    responses((status = 200, description = "Server-sent events, each named after what happened, with an Event as its data.",
        content_type = "text/event-stream", body = String)))]
pub(crate) async fn follow(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(filter): Query<Filter>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, filter.topic.as_deref())?;
    bearer.needs(Role::View, filter.queue.as_deref())?;
    filter.check()?;
    let watch = app.handle.watch();
    let access = Arc::clone(&app.access);
    let grant = bearer.grant().clone();
    let events = sent(watch, filter, bearer.scope().clone());
    let events = events.take_until(async move { access.until_withdrawn(&grant).await });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
}

fn sent(watch: Watch, filter: Filter, within: Scope) -> impl Stream<Item = Result<Sent, Infallible>> {
    let fits = move |event: &&Event| within.fits(event.task.topic()) && filter.fits(event);
    let rounds = stream::unfold(watch, |mut watch| async move { watch.next().await.map(|watched| (watched, watch)) });
    rounds.flat_map(move |watched| {
        let round: Vec<Sent> = match watched {
            Watched::Missed(rounds) => {
                vec![Sent::default().event("missed").data(format!("{{\"rounds\":{rounds}}}"))]
            }
            Watched::Events(events) => events.iter().filter(&fits).map(send).collect(),
        };
        stream::iter(round.into_iter().map(Ok))
    })
}

fn send(event: &Event) -> Sent {
    let data = serde_json::to_string(&to_wire(event)).expect("an event can be written as JSON");
    Sent::default().event(event.what.as_str()).data(data)
}

fn to_wire(event: &Event) -> wire::Event {
    let (mut holder, mut attempt, mut until, mut reason) = (None, None, None, None);
    match &event.what {
        What::Scheduled { due } | What::Replaced { due } | What::Rescheduled { due } => until = Some(*due),
        What::Leased { holder: by, attempt: count, until: end } => {
            holder = Some(by.to_string());
            attempt = Some(*count);
            until = Some(*end);
        }
        What::Extended { until: end } => until = Some(*end),
        What::Released { at } => until = Some(*at),
        What::Failed { again } => until = Some(*again),
        What::Died(why) => reason = Some(why.as_str().to_owned()),
        What::Fired | What::Done | What::Cancelled | What::Forwarded | What::Replayed | What::Purged => {}
    }
    wire::Event {
        at: time(event.at),
        what: event.what.as_str().into(),
        topic: event.task.topic().into(),
        id: event.task.id().into(),
        queue: event.queue.as_ref().map(ToString::to_string),
        key: event.key.as_ref().map(ToString::to_string),
        holder,
        attempt,
        until: until.map(time),
        reason,
    }
}
