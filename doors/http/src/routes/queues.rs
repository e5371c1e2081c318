//! Queues: their settings and how much they hold.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::{Name, QueueCounts, QueueSettings, QueueView, Refused, Timestamp};
use punctual_node::access::Role;
use punctual_node::{Error, Timing};
use punctual_wire as wire;

use super::topics::{Forced, page_of};
use super::{LOOKING, to_its_end};
use crate::app::{App, Shared};
use crate::condition::{Condition, tagged, version};
use crate::deed::Deed;
use crate::fault::{Code, Fault};
use crate::gate::Bearer;
use crate::input::{JsonBody, MaybeJson, Names, Query, merged};
use crate::output::json;
use crate::translate;

/// What is told of queues.
async fn infos(app: &App, queues: &[QueueView]) -> Vec<wire::QueueInfo> {
    let names: Vec<Name> = queues.iter().map(|queue| queue.counts.name.clone()).collect();
    let (now, timings) = (app.handle.now(), app.handle.timings(names).await);
    queues.iter().zip(&timings).map(|(queue, timing)| info(queue, timing, now)).collect()
}

fn info(queue: &QueueView, timing: &Timing, now: Timestamp) -> wire::QueueInfo {
    let QueueCounts { name, ready, leased, dead, .. } = &queue.counts;
    wire::QueueInfo {
        name: name.to_string(),
        settings: translate::queue_to_wire(&queue.settings, now),
        version: version(&as_set(&queue.settings)),
        ready: *ready,
        leased: *leased,
        dead: *dead,
        oldest_ready: queue.oldest.map(translate::time),
        offered_micros: translate::timing(&timing.offered),
        taken_micros: translate::timing(&timing.taken),
        pause: queue.settings.pause.as_ref().filter(|_| queue.settings.is_paused(now)).map(translate::pause_note),
    }
}

/// The settings as somebody made them, also with a pause that has ended by itself since: that changes no version.
fn as_set(settings: &QueueSettings) -> wire::QueueSettings {
    translate::queue_to_wire(settings, Timestamp::ZERO)
}

/// One queue, as an answer.
async fn shown(app: &App, queue: QueueView) -> Response {
    let info = &infos(app, &[queue]).await[0];
    tagged(json(StatusCode::OK, info), &info.version)
}

/// The answer to a change of settings.
async fn changed(app: &App, name: &Name, settings: QueueSettings) -> Result<Response, Fault> {
    let found = app.handle.queue(name).await?;
    let empty = || QueueCounts { name: name.clone(), ready: 0, urgent: 0, leased: 0, dead: 0 };
    let (counts, oldest) = found.map_or_else(|| (empty(), None), |queue| (queue.counts, queue.oldest));
    Ok(shown(app, QueueView { settings, counts, oldest }).await)
}

/// List the queues that the caller may see, with their settings and how much they hold.
#[utoipa::path(get, operation_id = "list_queues", path = "/v1/queues", tag = "queues", params(wire::ListNames),
    responses((status = 200, description = "A page, ordered by name.", body = wire::QueueList)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::ListNames>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&LOOKING, None)?;
    let (after, limit) = page_of(&query)?;
    let page = app.handle.queues(after, limit, |name| bearer.scope().fits(name)).await?;
    let queues = infos(&app, &page.entries).await;
    Ok(json(StatusCode::OK, &wire::QueueList { queues, next: page.next.map(|name| name.to_string()) }))
}

/// Get a queue.
#[utoipa::path(get, operation_id = "get_queue", path = "/v1/queues/{queue}", tag = "queues",
    params(("queue" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "Its settings, and how much it holds.", body = wire::QueueInfo)))]
pub(crate) async fn get(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([queue]): Names<1>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&LOOKING, Some(&queue))?;
    match app.handle.queue(&queue).await? {
        Some(found) => Ok(shown(&app, found).await),
        None => Err(Error::from(Refused::NoSuchQueue(queue)).into()),
    }
}

/// Create a queue or replace its settings: those that are omitted get their defaults.
#[utoipa::path(put, operation_id = "put_queue", path = "/v1/queues/{queue}", tag = "queues", request_body = wire::QueueSettings,
    params(("queue" = wire::Name, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Only if the settings have this `version`, as in `ETag`.")),
    responses((status = 200, description = "The settings as they are now.", body = wire::QueueInfo)))]
pub(crate) async fn put(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([queue]): Names<1>,
    condition: Condition,
    body: JsonBody,
) -> Result<Response, Fault> {
    bearer.needs(Role::Admin, Some(&queue))?;
    let mut settings = translate::queue_from_wire(body.parse()?)?;
    settings.pause = bearer.pause_note(app.handle.now(), None);
    translate::check_pause(&body.parse()?)?;
    bearer.reaches("dead_letter", &settings.dead_letter)?;
    to_its_end(async move {
        let admit = move |present: Option<&QueueSettings>| condition.check(present.map(as_set).as_ref());
        let settings = app.handle.put_queue_if(&queue, settings, admit).await??;
        bearer.audit(&app, Deed::new("put-queue").queue(&queue));
        changed(&app, &queue, settings).await
    })
    .await
}

/// Change only the named settings of a queue (RFC 7396). Null resets one to its default.
#[utoipa::path(patch, operation_id = "patch_queue", path = "/v1/queues/{queue}", tag = "queues",
    request_body(content = wire::QueueSettings, content_type = "application/merge-patch+json"),
    params(("queue" = wire::Name, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Only if the settings have this `version`, as in `ETag`.")),
    responses((status = 200, description = "The settings as they are now.", body = wire::QueueInfo)))]
pub(crate) async fn patch(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([queue]): Names<1>,
    condition: Condition,
    body: JsonBody,
) -> Result<Response, Fault> {
    bearer.needs(Role::Admin, Some(&queue))?;
    to_its_end(async move {
        let now = app.handle.now();
        let asking = bearer.clone();
        let amend = move |present: QueueSettings| {
            condition.check(Some(&as_set(&present)))?;
            let patch = translate::with_whole_pause(body.parse()?)?;
            let mut settings = translate::queue_from_wire(merged(&translate::queue_to_wire(&present, now), patch)?)?;
            settings.pause = asking.pause_note(now, None);
            if settings.dead_letter != present.dead_letter {
                asking.reaches("dead_letter", &settings.dead_letter)?;
            }
            Ok::<_, Fault>(settings)
        };
        let settings = app.handle.amend_queue(&queue, amend).await??;
        bearer.audit(&app, Deed::new("patch-queue").queue(&queue));
        changed(&app, &queue, settings).await
    })
    .await
}

/// Pause a queue for a duration, until a time, or until it is resumed: it hands out nothing. Who did so is shown with it, and why.
#[utoipa::path(post, operation_id = "pause_queue", path = "/v1/queues/{queue}/pause", tag = "queues", request_body = Option<wire::PauseQueue>,
    params(("queue" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "The queue is paused.", body = wire::QueueInfo)))]
pub(crate) async fn pause(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([queue]): Names<1>,
    MaybeJson(pause): MaybeJson<wire::PauseQueue>,
) -> Result<Response, Fault> {
    bearer.needs(Role::Operate, Some(&queue))?;
    let until = match (pause.until, pause.length) {
        (Some(_), Some(_)) => return Err(Fault::new(Code::Invalid, "only one of `until` and `for` can be given")),
        (Some(until), None) => Some(translate::timestamp(until)),
        (None, Some(length)) => Some(app.handle.after(translate::millis(length))),
        (None, None) => None,
    };
    to_its_end(async move {
        let note = bearer.pause_note(app.handle.now(), pause.reason.clone());
        let settings = app.handle.pause_queue(&queue, until, note).await?;
        bearer.audit(&app, Deed::new("pause-queue").queue(&queue).detail(pause.reason));
        changed(&app, &queue, settings).await
    })
    .await
}

/// Resume a queue: it hands out deliveries again.
#[utoipa::path(post, operation_id = "resume_queue", path = "/v1/queues/{queue}/resume", tag = "queues",
    params(("queue" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "The queue hands out deliveries again.", body = wire::QueueInfo)))]
pub(crate) async fn resume(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([queue]): Names<1>,
) -> Result<Response, Fault> {
    bearer.needs(Role::Operate, Some(&queue))?;
    to_its_end(async move {
        let settings = app.handle.resume_queue(&queue).await?;
        bearer.audit(&app, Deed::new("resume-queue").queue(&queue));
        changed(&app, &queue, settings).await
    })
    .await
}

/// Delete a queue; refused if it holds deliveries, unless forced.
#[utoipa::path(delete, operation_id = "delete_queue", path = "/v1/queues/{queue}", tag = "queues",
    params(("queue" = wire::Name, Path, description = "Its name."), Forced),
    responses((status = 200, description = "The queue is deleted.", body = wire::Deleted)))]
pub(crate) async fn delete(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([queue]): Names<1>,
    Query(forced): Query<Forced>,
) -> Result<Response, Fault> {
    bearer.needs(Role::Admin, Some(&queue))?;
    to_its_end(async move {
        let rows = bearer.handle(&app).delete_queue(&queue, forced.force).await?;
        bearer.audit(&app, Deed::new("delete-queue").queue(&queue));
        Ok(json(StatusCode::OK, &wire::Deleted { rows }))
    })
    .await
}
