//! Finished tasks: looked at, replayed.

use axum::extract::State;
use axum::response::Response;
use punctual_core::view::Kept;
use punctual_node::access::Role;
use punctual_wire as wire;

use super::keys::swept;
use super::tasks::{kept, range, turn_page};
use super::to_its_end;
use crate::app::Shared;
use crate::deed::Deed;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{JsonBody, Query, name};
use crate::translate;

/// List finished tasks by when they finished, latest first.
#[utoipa::path(get, operation_id = "list_history", path = "/v1/history", tag = "history", params(wire::List),
    responses((status = 200, description = "A page of the list.", body = wire::Page)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::List>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, query.topic.as_deref())?;
    bearer.needs(Role::View, query.queue.as_deref())?;
    if query.state.is_some() {
        return Err(Fault::invalid("state", "finished tasks cannot be listed by state"));
    }
    if query.note.is_some() {
        return Err(Fault::invalid("note", "only dead letters can be listed by what was noted"));
    }
    if query.reason.is_some() {
        return Err(Fault::invalid("reason", "finished tasks have an `ending` instead of a reason"));
    }
    let ending = query.ending.map(translate::ending_from_wire);
    turn_page(&app, &bearer, kept(Kept { ending, ..Kept::history() }, &query)?, &query).await
}

/// Replay a topic's finished tasks: those that are done, unless you name another ending.
#[utoipa::path(post, operation_id = "replay_history", path = "/v1/history/replay", tag = "history", request_body = wire::Selection,
    responses((status = 200, description = "How many matched and were changed.", body = wire::Swept)))]
pub(crate) async fn replay(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    let wire::Selection { topic, queue, from, until, ending, all, dry_run } = body.parse()?;
    if queue.is_some() {
        return Err(Fault::invalid("queue", "finished tasks are selected by topic, not by queue"));
    }
    if all {
        return Err(Fault::invalid(
            "all",
            "not for finished tasks: by default those that are done are selected; for all of them give `\"ending\": \"any\"`",
        ));
    }
    let Some(topic) = topic else {
        return Err(Fault::invalid("topic", "give the topic whose finished tasks to hand out again"));
    };
    let topic = name("topic", &topic)?;
    bearer.needs(Role::Operate, Some(&topic))?;
    // What somebody took back is not brought to life by accident.
    let ending = translate::chosen_ending(ending.unwrap_or(wire::EndingChoice::Done));
    to_its_end(async move {
        let done = bearer.handle(&app).replay_history(&topic, range(from, until), ending, dry_run).await;
        let deed = Deed::new("replay-history").topic(&topic).came_to(&done);
        if let Some(deed) = deed.filter(|_| !dry_run) {
            bearer.audit(&app, deed);
        }
        Ok(swept(done?))
    })
    .await
}
