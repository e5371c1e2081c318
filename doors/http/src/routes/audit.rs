//! Who did what: the actions of operators, and the course of one task with those on it.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::course::ToCome;
use punctual_core::{Scope, TimeRange};
use punctual_node::access::Role;
use punctual_node::{Act, Acts, Situation};
use punctual_wire as wire;

use super::LOOKING;
use super::tasks::range;
use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Names, Query, maybe_name};
use crate::output::json;
use crate::translate;

/// How many actions are listed if nobody says.
const PAGE: u32 = 100;
const LONGEST_PAGE: u32 = 1_000;

/// List what operators did, at all nodes, latest first: to the topics and queues that the token covers. A limited number of
/// actions is kept.
#[utoipa::path(get, operation_id = "list_acts", path = "/v1/audit", tag = "server", params(wire::ListActs),
    responses((status = 200, description = "Who did what.", body = wire::ActList)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::ListActs>,
) -> Result<Response, Fault> {
    bearer.needs(Role::Operate, query.topic.as_deref())?;
    bearer.needs(Role::Operate, query.queue.as_deref())?;
    maybe_name("topic", query.topic.as_deref())?;
    maybe_name("queue", query.queue.as_deref())?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Fault::invalid("limit", format!("a list has 1 to {LONGEST_PAGE} actions")));
    }
    let acts = app.handle.acts().await?;
    let mut fitting = acts.latest().filter(|act| is_covered(&bearer, act) && fits(&query, act));
    let listed = fitting.by_ref().take(limit as usize).map(info).collect();
    let known_since = translate::time(acts.known_since());
    Ok(json(StatusCode::OK, &wire::ActList { acts: listed, known_since, more: fitting.next().is_some() }))
}

/// Whether an action is about nothing that a token does not cover. What is about neither a topic nor a queue is about all.
fn is_covered(bearer: &Bearer, act: &Act) -> bool {
    let mut names = [&act.topic, &act.queue].into_iter().flatten().peekable();
    if names.peek().is_none() {
        return bearer.scope().is_all();
    }
    names.all(|name| bearer.scope().fits(name))
}

fn fits(query: &wire::ListActs, act: &Act) -> bool {
    let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
    let TimeRange { from, until } = range(query.from, query.until);
    (is(&query.by, Some(&act.by)) || is(&query.by, act.person.as_deref()))
        && is(&query.what, Some(&act.what))
        && is(&query.topic, act.topic.as_deref())
        && is(&query.queue, act.queue.as_deref())
        && (from..until).contains(&act.at)
}

fn info(act: &Act) -> wire::ActInfo {
    let Act { at, by, person, node, what, topic, id, queue, subject, detail } = act.clone();
    let [topic, id, queue] = [topic, id, queue].map(|name| name.map(|name| name.to_string()));
    wire::ActInfo { at: translate::time(at), by, person, what, topic, id, queue, subject, detail, node }
}

/// Tell the course of a task: what has happened to it, what is to come, and why it is still where it is.
#[utoipa::path(get, operation_id = "get_timeline", path = "/v1/tasks/{topic}/{id}/timeline", tag = "tasks",
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 200, description = "Its course.", body = wire::Timeline)))]
pub(crate) async fn timeline(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&LOOKING, Some(&topic))?;
    let Some(situation) = app.handle.situation(&topic, &id).await? else {
        return Err(Fault::no_such_task(&topic, &id));
    };
    let acts = app.handle.acts().await?;
    // Who acted is for those who look after tasks, not for all who produce or consume them.
    let is_told = bearer.grant().may(Role::View, Some(&topic));
    Ok(json(StatusCode::OK, &course(within(situation, bearer.scope()), &acts, is_told)))
}

/// What may be told to who may look at these queues. In which ones a task stands is the task's own; how they are, and what
/// their settings are, is not.
fn within(mut situation: Situation, scope: &Scope) -> Situation {
    situation.why.retain(|cause| cause.of_queue().is_none_or(|queue| scope.fits(queue)));
    // What is to come without a time is so by the settings of the queue.
    let is_told =
        |coming: &ToCome| coming.what.at().is_some() || coming.queue.as_ref().is_none_or(|queue| scope.fits(queue));
    situation.course.to_come.retain(is_told);
    situation
}

fn course(situation: Situation, acts: &Acts, is_told: bool) -> wire::Timeline {
    let Situation { task, course, why, now } = situation;
    let mut entries: Vec<wire::TimelineEntry> = course.passed.into_iter().map(translate::passed).collect();
    // A task that was scheduled anew under the same id has nothing to do with what was done to the one before.
    let is_about = |act: &&Act| {
        act.topic.as_ref() == Some(&task.topic) && act.id.as_ref() == Some(&task.id) && act.at >= task.scheduled_at
    };
    if is_told {
        entries.extend(acts.latest().filter(is_about).map(translate::acted));
    }
    let scheduled_at = translate::time(task.scheduled_at);
    entries.sort_by_key(|entry| entry.at.max(scheduled_at));
    wire::Timeline {
        topic: task.topic.to_string(),
        id: task.id.to_string(),
        now: translate::time(now),
        known_since: translate::time(acts.known_since()),
        untold_attempts: course.untold_attempts,
        replays: course.replays,
        entries,
        to_come: course.to_come.into_iter().map(translate::to_come).collect(),
        why: why.into_iter().map(translate::why).collect(),
    }
}
