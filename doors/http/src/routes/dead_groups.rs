//! Dead letters by what they have in common.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::view::{Kept, TaskView};
use punctual_core::{Group, InCommon, Trait};
use punctual_node::access::Role;
use punctual_wire as wire;

use super::dead::reason;
use super::tasks::range;
use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Query, maybe_name};
use crate::output::json;
use crate::translate;

/// What groups have in common if nobody says.
const BY: &str = "reason,queue,note";
/// How many groups are told.
const MOST: usize = 100;

/// Group dead letters by why they died and what was noted, for the topics that the token covers.
#[utoipa::path(get, operation_id = "group_dead", path = "/v1/dead/groups", tag = "dead letters", params(wire::DeadGroupsQuery),
    responses((status = 200, description = "The groups, largest first.", body = wire::DeadGroups)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::DeadGroupsQuery>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, query.topic.as_deref())?;
    bearer.needs(Role::View, query.queue.as_deref())?;
    let of = Kept {
        topic: maybe_name("topic", query.topic.as_deref())?,
        queue: maybe_name("queue", query.queue.as_deref())?,
        reason: query.reason.as_deref().map(reason).transpose()?,
        range: range(query.from, query.until),
        ..Kept::dead()
    };
    let groups = app.handle.dead_groups(bearer.scope(), of, in_common(query.by.as_deref().unwrap_or(BY))?).await?;
    let (looked_at, counted_since) = (groups.looked_at, groups.counted_since.map(translate::time));
    let (groups, others) = groups.largest(MOST);
    let groups = groups.into_iter().map(group).collect();
    Ok(json(StatusCode::OK, &wire::DeadGroups { groups, others, looked_at, counted_since }))
}

fn in_common(by: &str) -> Result<InCommon, Fault> {
    let mut common = InCommon::default();
    for word in by.split(',') {
        match word {
            "topic" => common.topic = true,
            "queue" => common.queue = true,
            "reason" => common.reason = true,
            "note" => common.note = true,
            _ => {
                return Err(Fault::invalid(
                    "by",
                    "use some of topic, queue, reason and note, with commas between them",
                ));
            }
        }
    }
    Ok(common)
}

fn group((common, group): (Trait, Group)) -> wire::DeadGroup {
    let Trait { topic, queue, reason, note } = common;
    let Group { count, last_hour, last_day, first_at, last_at, samples } = group;
    wire::DeadGroup {
        topic: topic.map(|topic| topic.to_string()),
        queue: queue.map(|queue| queue.to_string()),
        reason: reason.map(|reason| reason.as_str().into()),
        note,
        count,
        last_hour,
        last_day,
        first_at: translate::time(first_at),
        last_at: translate::time(last_at),
        samples: samples.into_iter().map(sample).collect(),
    }
}

fn sample(task: TaskView) -> wire::DeadSample {
    wire::DeadSample {
        topic: task.topic.to_string(),
        id: task.id.to_string(),
        queue: task.delivery.queue.map(|queue| queue.to_string()),
        note: task.delivery.death.and_then(|death| death.note),
    }
}
