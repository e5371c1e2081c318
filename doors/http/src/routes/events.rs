//! What happens, as it happens: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt};
use http::HeaderMap;
use punctual_core::{Event, Name, Scope, What};
use punctual_node::access::Role;
use punctual_node::{BadEventId, EventId, EventRound, Handle, Watch, Watched};
use punctual_wire as wire;
use serde::Deserialize;

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Query, maybe_name};
use crate::output::EVENTS_HEARTBEAT;
use crate::translate::time;

/// How often a reader is told how far it has followed while nothing fits: before what came since is not kept any more.
const ROUNDS_TO_AN_ID: u64 = 256;

/// Which events to send; without filters, all.
#[derive(Clone, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    /// Only of this topic.
    #[param(value_type = Option<wire::Name>)]
    topic: Option<String>,
    /// Only of the task with this id.
    #[param(value_type = Option<wire::Name>)]
    id: Option<String>,
    /// Only in this queue.
    #[param(value_type = Option<wire::Name>)]
    queue: Option<String>,
    /// Only of tasks with this key.
    #[param(value_type = Option<wire::Name>)]
    key: Option<String>,
    /// Only these, with commas between them: `fired,done`.
    what: Option<String>,
    /// Begin after the event with this id instead of now; `Last-Event-ID` means the same.
    after: Option<String>,
}

impl Filter {
    /// Whoever waits for what never happens should know.
    fn check(&self) -> Result<(), Fault> {
        for (field, wanted) in [("topic", &self.topic), ("id", &self.id), ("queue", &self.queue), ("key", &self.key)] {
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
            && same(&self.id, Some(event.task.id()))
            && same(&self.queue, event.queue.as_deref())
            && same(&self.key, event.key.as_deref())
            && self.what.as_deref().is_none_or(|what| what.split(',').any(|word| word.trim() == event.what.as_str()))
    }
}

/// Follow what happens from now on, or since an event that was told by the same server not long ago. A reader that is too slow, or comes
/// back too late, gets an event `missed` with the number of rounds it missed. The stream ends when the token is revoked or changed.
#[utoipa::path(get, operation_id = "follow_events", path = "/v1/events", tag = "numbers",
    params(Filter, ("Last-Event-ID" = Option<String>, Header, description = "Begin after the event with this id.")),
    responses((status = 200, description = "Server-sent events, each named after what happened, with an Event as its data.",
        content_type = "text/event-stream", body = String)))]
pub(crate) async fn follow(
    State(app): State<Shared>,
    bearer: Bearer,
    headers: HeaderMap,
    Query(filter): Query<Filter>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, filter.topic.as_deref())?;
    bearer.needs(Role::View, filter.queue.as_deref())?;
    filter.check()?;
    // Who comes back has an id already. Any other one gets that of now, for coming back before anything has happened.
    let (watch, start) = match last_seen(&headers, &filter)? {
        Some(id) => (app.handle.watch_after(id), None),
        None => {
            let watch = app.handle.watch();
            let start = watch.start();
            (watch, Some(start))
        }
    };
    let access = Arc::clone(&app.access);
    let grant = bearer.grant().clone();
    let events = sent(watch, app.handle.clone(), filter, bearer.scope().clone());
    let events = stream::iter(start.map(|start| Ok(only_id(start)))).chain(events);
    let events = events.take_until(async move { access.until_withdrawn(&grant).await });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(EVENTS_HEARTBEAT)).into_response())
}

/// Up to which event the reader has followed before. A browser that comes back asks for what it asked for at first, and says so in a
/// header.
fn last_seen(headers: &HeaderMap, filter: &Filter) -> Result<Option<EventId>, Fault> {
    let header = headers.get("last-event-id").filter(|id| !id.is_empty());
    let (field, id) = match header {
        Some(id) => ("Last-Event-ID", Some(id.to_str().unwrap_or_default())),
        None => ("after", filter.after.as_deref()),
    };
    id.map(|id| id.parse().map_err(|bad: BadEventId| Fault::invalid(field, bad.to_string()))).transpose()
}

fn sent(watch: Watch, handle: Handle, filter: Filter, within: Scope) -> impl Stream<Item = Result<Sent, Infallible>> {
    let fits = move |event: &Event| within.fits(event.task.topic()) && filter.fits(event);
    let rounds = stream::unfold(watch, |mut watch| async move { watch.next().await.map(|watched| (watched, watch)) });
    rounds.flat_map(move |watched| {
        let round: Vec<Sent> = match watched {
            Watched::Missed(rounds) => {
                vec![Sent::default().event("missed").data(format!("{{\"rounds\":{rounds}}}"))]
            }
            Watched::Events(round) => send_round(&round, &fits, &handle),
        };
        stream::iter(round.into_iter().map(Ok))
    })
}

/// What fits of a round. The last one stands for all of it: the rest is not wanted.
fn send_round(round: &EventRound, fits: impl Fn(&Event) -> bool, handle: &Handle) -> Vec<Sent> {
    let fitting: Vec<(usize, &Event)> = round.events().iter().enumerate().filter(|(_, event)| fits(event)).collect();
    if fitting.is_empty() {
        let is_told = round.number().is_multiple_of(ROUNDS_TO_AN_ID);
        return is_told.then(|| only_id(round.id())).into_iter().collect();
    }
    let last = fitting.len() - 1;
    let id = |place: usize, index: usize| if place == last { round.id() } else { round.id_of(index) };
    fitting.into_iter().enumerate().map(|(place, (index, event))| send(event, id(place, index), handle)).collect()
}

fn send(event: &Event, id: EventId, handle: &Handle) -> Sent {
    let data = serde_json::to_string(&to_wire(event, handle)).expect("an event can be written as JSON");
    Sent::default().event(event.what.as_str()).id(id.to_string()).data(data)
}

/// Not an event: a reader only notes how far it has followed.
fn only_id(id: EventId) -> Sent {
    Sent::default().id(id.to_string())
}

fn to_wire(event: &Event, handle: &Handle) -> wire::Event {
    // Rows are numbered from one on: a node of an earlier version does not tell.
    let (topic, id) = (Name::stored(event.task.topic()), Name::stored(event.task.id()));
    let number = (event.number > 0).then(|| handle.number(&topic, &id, event.number).0);
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
        number,
        queue: event.queue.as_ref().map(ToString::to_string),
        key: event.key.as_ref().map(ToString::to_string),
        by: event.by.as_ref().map(ToString::to_string),
        holder,
        attempt,
        until: until.map(time),
        reason,
    }
}
