//! Tasks: scheduled, looked at, cancelled, moved, replayed.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use punctual_core::store::Bodies;
use punctual_core::view::{Kept, Listing, PAGE_BYTES, TaskView};
use punctual_core::{
    Back, Ending, Name, Refused, Revoke, Ruling, ScheduleOutcome, Scheduled, Selected, Sieve, Standing, Task, TimeRange,
};
use punctual_node::access::Role;
use punctual_node::{Counted, Error, Hold};
use punctual_wire::{self as wire, read_json};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{LOOKING, to_its_end};
use crate::app::{App, Shared};
use crate::cursor;
use crate::deed::Deed;
use crate::fault::{Code, Fault};
use crate::gate::Bearer;
use crate::input::{JsonBody, MaybeJson, Names, Query, maybe_name, name};
use crate::output::{self, ROW_BYTES, Rest, build_json, json};
use crate::trace::Context;
use crate::translate;

/// How many tasks a page has if nobody says.
const PAGE: u32 = 100;
const LONGEST_PAGE: u32 = 1_000;
/// Up to how many tasks are counted.
const MOST_COUNTED: u64 = 10_000;

/// What became of a task, on the wire.
fn told<'a>(topic: &'a Name, replace: bool, scheduled: &'a Scheduled) -> wire::ScheduledRef<'a> {
    let (outcome, due, standing) = match &scheduled.outcome {
        ScheduleOutcome::Created { due } => (wire::ScheduleOutcome::Created, Some(*due), None),
        ScheduleOutcome::Replaced { due } => (wire::ScheduleOutcome::Replaced, Some(*due), None),
        ScheduleOutcome::Existed(standing) => (wire::ScheduleOutcome::Existed, None, Some(standing.clone())),
    };
    let (due, standing) = (due.map(translate::time), standing.map(translate::standing));
    let hint = standing.as_ref().map(|standing| translate::way_on(standing, replace));
    wire::ScheduledRef { topic, id: &scheduled.id, outcome, due, standing, hint }
}

/// Schedule a task. Repeating the request with the same topic and id creates nothing new; without an id, an
/// `Idempotency-Key` header serves as one.
#[utoipa::path(post, operation_id = "schedule_task", path = "/v1/tasks", tag = "tasks", request_body = wire::NewTask,
    params(("Idempotency-Key" = Option<String>, Header, description = "Serves as the task's id if it has none.")),
    responses((status = 201, description = "The task was created and is on disk.", body = wire::Scheduled),
        (status = 200, description = "It replaced another task, or a task with this id already exists.", body = wire::Scheduled)))]
pub(crate) async fn schedule(
    State(app): State<Shared>,
    bearer: Bearer,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Fault> {
    let mut task = admit(body.parse()?, &bearer, &Context::of(&headers))?;
    if let (None, Some(id)) = (&task.id, headers.get("idempotency-key")) {
        let id = id
            .to_str()
            .map_err(|_| Fault::invalid("Idempotency-Key", "it must consist of visible ASCII characters"))?;
        task.id = Some(name("Idempotency-Key", id)?);
    }
    let (topic, replace) = (task.topic.clone(), task.replace);
    let scheduled = bearer.handle(&app).schedule(task).await?;
    let answer = told(&topic, replace, &scheduled);
    let is_new = answer.outcome == wire::ScheduleOutcome::Created;
    Ok(json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &answer))
}

/// Schedule many tasks together. Each is answered individually, in the order of the tasks.
#[utoipa::path(post, operation_id = "schedule_tasks", path = "/v1/tasks/batch", tag = "tasks", request_body = wire::Batch,
    responses((status = 200, description = "One result for each, in the same order.", body = wire::BatchResults)))]
pub(crate) async fn schedule_batch(
    State(app): State<Shared>,
    bearer: Bearer,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Fault> {
    let context = Context::of(&headers);
    let tasks = parse_batch(&body)?;
    check_batch(tasks.len(), &app)?;
    let (refused, wanted) = part(tasks.into_iter().map(|task| admit(task?, &bearer, &context)));
    let topics: Vec<(Name, bool)> = wanted.iter().map(|task| (task.topic.clone(), task.replace)).collect();
    let outcomes = bearer.handle(&app).schedule_many(wanted).await;
    let mut done = topics.iter().zip(outcomes);
    let mut out = br#"{"results":["#.to_vec();
    for (index, refused) in refused.into_iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"" } else { b"," });
        let fault = match refused {
            Some(fault) => fault,
            None => match done.next().expect("each task that was let in has an outcome") {
                ((topic, replace), Ok(scheduled)) => {
                    serde_json::to_writer(&mut out, &told(topic, *replace, &scheduled)).expect("memory takes it");
                    continue;
                }
                (_, Err(error)) => Fault::from(error),
            },
        };
        let answer: wire::Answer<wire::Scheduled> = wire::Answer::Refused { problem: fault.into_problem() };
        serde_json::to_writer(&mut out, &answer).expect("memory takes it");
    }
    out.extend_from_slice(b"]}");
    Ok(crate::output::json_bytes(StatusCode::OK, out))
}

/// A task that this caller may schedule, with the trace context of the request.
fn admit(task: wire::NewTask, bearer: &Bearer, context: &Context) -> Result<Task, Fault> {
    let mut task = translate::new_task(task)?;
    bearer.needs(Role::Produce, Some(&task.topic))?;
    context.put_into(&mut task);
    Ok(task)
}

/// The tasks of a batch. If one of them cannot be read, the others still can.
fn parse_batch(body: &JsonBody) -> Result<Vec<Result<wire::NewTask, Fault>>, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pieces {
        tasks: Vec<Box<RawValue>>,
    }
    match body.read::<wire::Batch>() {
        Ok(batch) => return Ok(batch.tasks.into_iter().map(Ok).collect()),
        Err(misread) if misread.field.starts_with("tasks[") => {}
        Err(misread) => return Err(misread.into()),
    }
    let pieces: Pieces = body.parse()?;
    let task = |piece: Box<RawValue>| read_json(piece.get().as_bytes()).map_err(Fault::from);
    Ok(pieces.tasks.into_iter().map(task).collect())
}

/// Parts what is let in from what is refused. Each has its entry among the refused, in its order: a fault, or none.
pub(super) fn part<T>(items: impl ExactSizeIterator<Item = Result<T, Fault>>) -> (Vec<Option<Fault>>, Vec<T>) {
    let mut wanted = Vec::with_capacity(items.len());
    let mut refused = Vec::with_capacity(items.len());
    for item in items {
        refused.push(item.map(|item| wanted.push(item)).err());
    }
    (refused, wanted)
}

/// Refuses what is too much for one request.
pub(super) fn check_batch(count: usize, app: &Shared) -> Result<(), Fault> {
    let limit = app.limits.batch;
    if count <= limit {
        return Ok(());
    }
    Err(Fault::new(
        Code::Invalid,
        format!("{count} in one request, but at most {limit} are allowed: send several requests"),
    ))
}

/// Get a task: where it stands, and its body.
#[utoipa::path(get, operation_id = "get_task", path = "/v1/tasks/{topic}/{id}", tag = "tasks",
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 200, description = "Everything known about it.", body = wire::TaskInfo)))]
pub(crate) async fn get(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&LOOKING, Some(&topic))?;
    match app.handle.get_held(&topic, &id).await? {
        Some((task, hold)) => Ok(show(app, task, hold).await),
        None => Err(Fault::no_such_task(&topic, &id)),
    }
}

/// All that is known of one task, which takes this room.
pub(super) async fn show(app: Shared, task: TaskView, hold: Hold) -> Response {
    let about = hold.bytes() + ROW_BYTES;
    build_json(StatusCode::OK, hold, move || output::task(task, about, &app.handle)).await
}

/// List unfinished tasks by when they come due, soonest first unless `first` is `latest`.
#[utoipa::path(get, operation_id = "list_tasks", path = "/v1/tasks", tag = "tasks", params(wire::List),
    responses((status = 200, description = "A page of the list.", body = wire::Page)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::List>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, query.topic.as_deref())?;
    refuse_kept(&query)?;
    if query.queue.is_some() {
        return Err(Fault::invalid(
            "queue",
            "pending tasks can be listed by topic; what stands in a queue is at /v1/queues/{queue}/deliveries",
        ));
    }
    let state = match query.state {
        None => None,
        Some(state) => Some(translate::list_state(state).ok_or_else(|| {
            Fault::invalid("state", "for this state use /v1/dead, /v1/history, or the list of a key")
        })?),
    };
    let topic = maybe_name("topic", query.topic.as_deref())?;
    let wakes = range(query.from, query.until);
    let latest_first = query.first == Some(wire::First::Latest);
    turn_page(&app, &bearer, Listing::Live { topic, state, wakes, latest_first }, &query).await
}

/// Refuses filters that are for dead letters and finished tasks.
pub(super) fn refuse_kept(query: &wire::List) -> Result<(), Fault> {
    let filters = [
        ("key", query.key.is_some()),
        ("reason", query.reason.is_some()),
        ("note", query.note.is_some()),
        ("ending", query.ending.is_some()),
    ];
    match filters.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(Fault::invalid(field, "only dead letters and finished tasks can be filtered by this")),
        None => Ok(()),
    }
}

/// What a query asks for of what is kept; the fields that fit only one of both tables are looked at by their routes.
pub(super) fn kept(kept: Kept, query: &wire::List) -> Result<Listing, Fault> {
    if query.holder.is_some() {
        return Err(Fault::invalid("holder", "nobody holds a dead letter or a finished task"));
    }
    Ok(Listing::Kept(Kept {
        latest_first: query.first.unwrap_or_default() == wire::First::Latest,
        topic: maybe_name("topic", query.topic.as_deref())?,
        queue: maybe_name("queue", query.queue.as_deref())?,
        key: maybe_name("key", query.key.as_deref())?,
        range: range(query.from, query.until),
        ..kept
    }))
}

/// The time from one instant to before another; what is left out is open.
pub(super) fn range(from: Option<wire::Time>, until: Option<wire::Time>) -> TimeRange {
    let all = TimeRange::ALL;
    TimeRange {
        from: from.map_or(all.from, translate::timestamp),
        until: until.map_or(all.until, translate::timestamp),
    }
}

/// One page of any list, of what this caller has to do with.
pub(super) async fn turn_page(
    app: &App,
    bearer: &Bearer,
    listing: Listing,
    query: &wire::List,
) -> Result<Response, Fault> {
    let (sieve, limit) = (sieve(query)?, page_length(query.limit)?);
    if query.count == Some(true) {
        let Counted { count, is_more, looked_at } =
            app.handle.count(bearer.scope(), listing, sieve, MOST_COUNTED).await?;
        let (count, more, looked_at) = (Some(count), Some(is_more), Some(looked_at));
        return Ok(json(StatusCode::OK, &wire::Page { tasks: Vec::new(), next: None, looked_at, count, more }));
    }
    let is_sifted = !sieve.is_all();
    let cursor = query.cursor.as_deref().map(|text| cursor::read(text, &app.secret)).transpose()?;
    let with_bodies = query.bodies.unwrap_or(false);
    let bodies = if with_bodies { Bodies::With } else { Bodies::Without };
    let rows = u64::from(limit) * ROW_BYTES;
    let most = if with_bodies { PAGE_BYTES as u64 + rows } else { rows };
    let mut hold = app.handle.hold(most)?;
    let page = app.handle.list_sifted(bearer.scope(), listing, sieve, cursor, limit as usize, bodies).await?;
    let looked_at = is_sifted.then_some(page.looked_at);
    let next = page.next.map(|next| cursor::write(&next, bearer.scope(), &app.secret));
    let rest = Rest { next, looked_at };
    let about = page.tasks.iter().map(|task| task.written() as u64 + ROW_BYTES).sum();
    hold.resize(about);
    let handle = app.handle.clone();
    Ok(build_json(StatusCode::OK, hold, move || output::page(page.tasks, &rest, about, &handle, with_bodies)).await)
}

/// What a query leaves out of any list.
fn sieve(query: &wire::List) -> Result<Sieve, Fault> {
    if query.contains.as_ref().is_some_and(|text| text.is_empty() || text.len() > Name::MAX_BYTES) {
        return Err(Fault::invalid("contains", format!("give 1 to {} bytes of text", Name::MAX_BYTES)));
    }
    Ok(Sieve {
        holder: maybe_name("holder", query.holder.as_deref())?,
        attempts_min: query.attempts_min,
        contains: query.contains.clone(),
    })
}

/// How long a page is to be.
pub(super) fn page_length(limit: Option<u32>) -> Result<u32, Fault> {
    let limit = limit.unwrap_or(PAGE);
    if (1..=LONGEST_PAGE).contains(&limit) {
        return Ok(limit);
    }
    Err(Fault::invalid("limit", format!("a page has 1 to {LONGEST_PAGE} tasks")))
}

/// Cancel a task, if it is not too late. Repeating the request after a lost answer is safe.
#[utoipa::path(delete, operation_id = "cancel_task", path = "/v1/tasks/{topic}/{id}", tag = "tasks",
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 200, description = "The task is cancelled and will never be handed over.", body = wire::Cancelled)))]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&[Role::Produce, Role::Operate], Some(&topic))?;
    let outcome = match bearer.handle(&app).cancel(&topic, &id).await? {
        Ruling::Done(()) => {
            bearer.audit_if_by_hand(&app, || Deed::new("cancel").task(&topic, &id));
            wire::CancelOutcome::Cancelled
        }
        Ruling::TooLate(Standing::Finished { ending: Ending::Cancelled, .. }) => wire::CancelOutcome::WasCancelled,
        Ruling::TooLate(standing) => return Err(Fault::too_late(translate::standing(standing))),
        Ruling::Unknown => return Err(Fault::no_such_task(&topic, &id)),
    };
    Ok(json(StatusCode::OK, &wire::Cancelled { topic: topic.to_string(), id: id.to_string(), outcome }))
}

/// Change a task's due time, priority, or body, if it is not too late.
#[utoipa::path(patch, operation_id = "reschedule_task", path = "/v1/tasks/{topic}/{id}", tag = "tasks", request_body = wire::Reschedule,
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 200, description = "The task was changed.", body = wire::Rescheduled)))]
pub(crate) async fn reschedule(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
    body: JsonBody,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&[Role::Produce, Role::Operate], Some(&topic))?;
    let change = translate::reschedule(topic.clone(), id.clone(), body.parse()?)?;
    match bearer.handle(&app).reschedule(change).await? {
        Ruling::Done(due) => {
            let due = translate::time(due);
            bearer.audit_if_by_hand(&app, || Deed::new("move").task(&topic, &id).detail(Some(format!("due at {due}"))));
            Ok(json(StatusCode::OK, &wire::Rescheduled { topic: topic.to_string(), id: id.to_string(), due }))
        }
        Ruling::TooLate(standing) => Err(Fault::too_late(translate::standing(standing))),
        Ruling::Unknown => Err(Fault::no_such_task(&topic, &id)),
    }
}

/// The delivery that is meant, of a task that was broadcast.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfQueue {
    /// For one delivery of a task that was broadcast: its queue.
    #[param(value_type = Option<wire::Name>)]
    queue: Option<String>,
}

/// What an operator means, if they may.
fn select(bearer: &Bearer, topic: Name, id: Name, of: &OfQueue) -> Result<Selected, Fault> {
    bearer.needs(Role::Operate, Some(&topic))?;
    bearer.needs(Role::Operate, of.queue.as_deref())?;
    let queue = maybe_name("queue", of.queue.as_deref())?;
    Ok(Selected { topic, id, queue })
}

/// Replay a dead letter or a finished task.
#[utoipa::path(post, operation_id = "replay_task", path = "/v1/tasks/{topic}/{id}/replay", tag = "tasks",
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id."), OfQueue),
    responses((status = 200, description = "Where it stands now.", body = wire::Replayed)))]
pub(crate) async fn replay(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
    Query(of): Query<OfQueue>,
) -> Result<Response, Fault> {
    let selected = select(&bearer, topic, id, &of)?;
    let deed = Deed::new("replay").selected(&selected);
    to_its_end(async move {
        let standing = translate::standing(bearer.handle(&app).replay(selected).await?);
        bearer.audit(&app, deed);
        Ok(json(StatusCode::OK, &wire::Replayed { standing }))
    })
    .await
}

/// Make a task that is waiting for its time or its next attempt, or a dead letter, available now.
#[utoipa::path(post, operation_id = "hasten_task", path = "/v1/tasks/{topic}/{id}/hasten", tag = "tasks",
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id."), OfQueue),
    responses((status = 200, description = "It is available.", body = wire::Hastened)))]
pub(crate) async fn hasten(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
    Query(of): Query<OfQueue>,
) -> Result<Response, Fault> {
    let selected = select(&bearer, topic, id, &of)?;
    let deed = Deed::new("hasten").selected(&selected);
    let (topic, id) = (selected.topic.clone(), selected.id.clone());
    let missing = Fault::not_there(&selected);
    to_its_end(async move {
        match bearer.handle(&app).hasten(selected).await? {
            Ruling::Done(standing) => {
                bearer.audit(&app, deed);
                let standing = translate::standing(standing);
                Ok(json(StatusCode::OK, &wire::Hastened { topic: topic.to_string(), id: id.to_string(), standing }))
            }
            Ruling::TooLate(standing) => Err(Fault::too_late(translate::standing(standing))),
            Ruling::Unknown => Err(missing),
        }
    })
    .await
}

/// Take back the cancellation of a task: it waits for its old due time again.
#[utoipa::path(post, operation_id = "restore_task", path = "/v1/tasks/{topic}/{id}/restore", tag = "tasks",
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 200, description = "It is waiting again.", body = wire::Restored)))]
pub(crate) async fn restore(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&[Role::Produce, Role::Operate], Some(&topic))?;
    match bearer.handle(&app).restore(&topic, &id).await? {
        Ruling::Done(standing) => {
            bearer.audit_if_by_hand(&app, || Deed::new("restore").task(&topic, &id));
            let standing = translate::standing(standing);
            Ok(json(StatusCode::OK, &wire::Restored { topic: topic.to_string(), id: id.to_string(), standing }))
        }
        Ruling::TooLate(standing) => Err(Fault::too_late(translate::standing(standing))),
        Ruling::Unknown => Err(Fault::no_such_task(&topic, &id)),
    }
}

/// Revoke the lease on a delivery: its consumer loses it.
#[utoipa::path(post, operation_id = "revoke_lease", path = "/v1/tasks/{topic}/{id}/revoke", tag = "tasks", request_body = Option<wire::Revoke>,
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id."), OfQueue),
    responses((status = 200, description = "The lease has ended.", body = wire::Revoked)))]
pub(crate) async fn revoke(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
    Query(of): Query<OfQueue>,
    MaybeJson(asked): MaybeJson<wire::Revoke>,
) -> Result<Response, Fault> {
    let selected = select(&bearer, topic, id, &of)?;
    let deed = Deed::new("revoke").selected(&selected).detail(asked.note.clone());
    let (topic, id) = (selected.topic.clone(), selected.id.clone());
    let missing = Fault::not_there(&selected);
    let holder = maybe_name("holder", asked.holder.as_deref())?;
    let back = asked.after.map_or(Back::Retry, |after| Back::After(translate::millis(after)));
    let revoke = Revoke { selected, holder, back, note: asked.note };
    to_its_end(async move {
        match bearer.handle(&app).revoke(revoke).await {
            Ok(standing) => {
                bearer.audit(&app, deed);
                let standing = translate::standing(standing);
                Ok(json(StatusCode::OK, &wire::Revoked { topic: topic.to_string(), id: id.to_string(), standing }))
            }
            Err(Error::Refused(Refused::LeaseLost { now: None })) => Err(missing),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

/// Purge a dead letter.
#[utoipa::path(post, operation_id = "purge_task", path = "/v1/tasks/{topic}/{id}/purge", tag = "tasks",
    params(("topic" = wire::Name, Path, description = "Its topic."), ("id" = wire::Name, Path, description = "Its id."), OfQueue),
    responses((status = 204, description = "The dead letter was removed.")))]
pub(crate) async fn purge(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic, id]): Names<2>,
    Query(of): Query<OfQueue>,
) -> Result<StatusCode, Fault> {
    let selected = select(&bearer, topic, id, &of)?;
    let deed = Deed::new("purge").selected(&selected);
    to_its_end(async move {
        bearer.handle(&app).purge(selected).await?;
        bearer.audit(&app, deed);
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
