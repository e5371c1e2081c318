//! Finding something of which only a word is known.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::view::TaskView;
use punctual_node::access::Role;
use punctual_wire as wire;
use serde::Deserialize;

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::Query;
use crate::output::json;
use crate::translate;

/// What to look for.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// An id, a topic and an id as `topic/id`, a number, a key, or a part of the name of a topic or queue.
    #[param(min_length = 1)]
    q: String,
}

/// Find tasks by their ids or numbers, keys, and topics and queues by parts of their names, as far as the token covers them.
#[utoipa::path(get, operation_id = "find", path = "/v1/find", tag = "tasks", params(Wanted),
    responses((status = 200, description = "What was found; maybe nothing.", body = wire::Found)))]
pub(crate) async fn find(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    if wanted.q.is_empty() {
        return Err(Fault::invalid("q", "say what to look for"));
    }
    let found = app.handle.find(bearer.scope(), &wanted.q).await?;
    let task = |task: TaskView| {
        let info = translate::task_info(task, Some(&app.handle), false);
        let wire::TaskInfo { topic, id, number, queue, due, standing, .. } = info;
        wire::Hit::Task { topic, id, number, queue, due, standing }
    };
    let mut hits: Vec<wire::Hit> = found.tasks.into_iter().map(task).collect();
    hits.extend(found.is_key.then(|| wire::Hit::Key { key: wanted.q.clone() }));
    hits.extend(found.topics.iter().map(|name| wire::Hit::Topic { name: name.to_string() }));
    hits.extend(found.queues.iter().map(|name| wire::Hit::Queue { name: name.to_string() }));
    Ok(json(StatusCode::OK, &wire::Found { hits, is_complete: found.is_complete }))
}
