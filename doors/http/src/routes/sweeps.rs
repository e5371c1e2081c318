//! Sweeps: changes to many tasks at once, previewed, begun, looked at, stopped and undone.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use punctual_core::{Matching, Name, Scope, Sweep};
use punctual_node::access::Role;
use punctual_node::{CannotUndo, SweepRecord, SweepView};
use punctual_wire as wire;

use super::to_its_end;
use crate::app::{App, Shared};
use crate::deed::Deed;
use crate::fault::{Code, Fault};
use crate::gate::Bearer;
use crate::input::{JsonBody, Names};
use crate::output::json;
use crate::{translate, undo};

/// Begin a sweep, or only preview it. A sweep goes on by itself, also if its caller hangs up or a server ends.
#[utoipa::path(post, operation_id = "begin_sweep", path = "/v1/sweeps", tag = "sweeps", request_body = wire::NewSweep,
    responses((status = 202, description = "It has begun.", body = wire::SweepInfo),
        (status = 200, description = "What it would do: a dry run.", body = wire::SweepPreview)))]
pub(crate) async fn begin(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    let asked: wire::NewSweep = body.parse()?;
    bearer.needs(Role::Operate, asked.select.topic.as_deref())?;
    bearer.needs(Role::Operate, asked.select.queue.as_deref())?;
    let (dry_run, act) = (asked.dry_run, asked.act);
    let sweep = translate::new_sweep(asked, bearer.scope(), app.handle.now())?;
    if dry_run {
        return preview(&app, sweep).await;
    }
    to_its_end(async move {
        let deed = deed(audited(act), &sweep);
        let begun = app.handle.begin_sweep(sweep, Some(bearer.grant().name().to_owned())).await?;
        bearer.audit(&app, deed.detail(Some(format!("sweep {}", begun.record.number))));
        shown(&app, begun, StatusCode::ACCEPTED).await
    })
    .await
}

/// Something that was done with a sweep: to the topic and the queue that it is about, if it is about such, and to a key.
fn deed(what: &'static str, sweep: &Sweep) -> Deed {
    let (queue, key) = match &sweep.matching {
        Matching::Tasks(select) => (select.queue.clone(), select.key.as_ref()),
        Matching::Key { key, .. } => (None, Some(key)),
        Matching::Dead { queue, .. } => (queue.clone(), None),
        Matching::History { .. } | Matching::Changed { .. } => (None, None),
    };
    let subject = key.map(ToString::to_string);
    Deed { topic: sweep.topic().cloned(), queue, subject, ..Deed::new(what) }
}

/// The same for one that was begun before: it is named by its number, and a key beside it.
fn deed_on(what: &'static str, id: &Name, sweep: &Sweep) -> Deed {
    let deed = deed(what, sweep);
    let detail = deed.subject.as_ref().map(|key| format!("key {key}"));
    deed.subject(id).detail(detail)
}

fn audited(act: wire::SweepAct) -> &'static str {
    match act {
        wire::SweepAct::Cancel => "sweep-cancel",
        wire::SweepAct::Move => "sweep-move",
        wire::SweepAct::Spread => "sweep-spread",
        wire::SweepAct::Replay => "sweep-replay",
        wire::SweepAct::Purge => "sweep-purge",
        wire::SweepAct::Hasten => "sweep-hasten",
    }
}

async fn preview(app: &App, sweep: Sweep) -> Result<Response, Fault> {
    let (preview, samples) = app.handle.preview(sweep.clone()).await?;
    // If all that matches was looked at, it is known of which topics that is.
    let is_known = !preview.more && samples.len() as u64 == preview.swept.matched;
    let topics = is_known.then(|| samples.iter().map(|task| task.topic.clone()).collect());
    let undo = undo::of_preview(app, &sweep, topics).await?;
    let samples = samples.into_iter().map(|task| translate::task_info(task, Some(&app.handle), false)).collect();
    let swept = preview.swept;
    let told = wire::SweepPreview {
        matched: swept.matched,
        changed: swept.changed,
        too_late: swept.too_late,
        no_room: swept.no_room,
        more: preview.more,
        samples,
        undo,
    };
    Ok(json(StatusCode::OK, &told))
}

/// List the sweeps that are running and the latest that ran, newest first, as far as the token covers them.
#[utoipa::path(get, operation_id = "list_sweeps", path = "/v1/sweeps", tag = "sweeps",
    responses((status = 200, description = "Those that are running, and the latest 100 others.", body = wire::SweepList)))]
pub(crate) async fn list(State(app): State<Shared>, bearer: Bearer) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    let mut views = app.handle.sweeps().await?;
    views.retain(|view| covers(&bearer, &view.record));
    let undo = undo::of_all(&app, &views).await?;
    let sweeps = views.into_iter().zip(undo).map(|(view, undo)| translate::sweep_info(view, undo)).collect();
    Ok(json(StatusCode::OK, &wire::SweepList { sweeps }))
}

/// Look at a sweep: what it does, who began it, and how far it is.
#[utoipa::path(get, operation_id = "get_sweep", path = "/v1/sweeps/{id}", tag = "sweeps",
    params(("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 200, description = "The sweep.", body = wire::SweepInfo)))]
pub(crate) async fn get(State(app): State<Shared>, bearer: Bearer, Names([id]): Names<1>) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    let view = find(&app, &bearer, &id).await?;
    shown(&app, view, StatusCode::OK).await
}

/// Stop a sweep. What it has changed stays changed, and can be undone.
#[utoipa::path(post, operation_id = "stop_sweep", path = "/v1/sweeps/{id}/stop", tag = "sweeps",
    params(("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 200, description = "It has ended, or is about to.", body = wire::SweepInfo)))]
pub(crate) async fn stop(State(app): State<Shared>, bearer: Bearer, Names([id]): Names<1>) -> Result<Response, Fault> {
    bearer.needs(Role::Operate, None)?;
    let number = find(&app, &bearer, &id).await?.record.number;
    to_its_end(async move {
        let stopped = app.handle.stop_sweep(number).await?.ok_or_else(|| no_such_sweep(&id))?;
        bearer.audit(&app, deed_on("stop-sweep", &id, &stopped.record.sweep));
        shown(&app, stopped, StatusCode::OK).await
    })
    .await
}

/// Undo a sweep that cancelled, moved or spread tasks: by another sweep, over all that nobody else has changed since.
#[utoipa::path(post, operation_id = "undo_sweep", path = "/v1/sweeps/{id}/undo", tag = "sweeps",
    params(("id" = wire::Name, Path, description = "Its id.")),
    responses((status = 202, description = "The sweep that undoes it.", body = wire::SweepInfo)))]
pub(crate) async fn undo(State(app): State<Shared>, bearer: Bearer, Names([id]): Names<1>) -> Result<Response, Fault> {
    bearer.needs(Role::Operate, None)?;
    let view = find(&app, &bearer, &id).await?;
    let undo = undo::of(&app, &view).await?;
    if let Some(why) = undo.why.filter(|_| !undo.possible) {
        return Err(Fault::new(Code::CannotUndo, why));
    }
    let number = view.record.number;
    to_its_end(async move {
        let who = Some(bearer.grant().name().to_owned());
        match app.handle.undo_sweep(number, bearer.scope(), who).await? {
            Ok(begun) => {
                bearer.audit(&app, deed_on("undo-sweep", &id, &begun.record.sweep));
                shown(&app, begun, StatusCode::ACCEPTED).await
            }
            Err(CannotUndo::TooMany(_)) => Err(punctual_node::Error::Overloaded.into()),
            Err(CannotUndo::Unknown) => Err(no_such_sweep(&id)),
            Err(refused) => Err(Fault::new(Code::CannotUndo, refused.to_string())),
        }
    })
    .await
}

/// Whether a token covers all that a sweep goes over, or the sweep was kept to what it covers.
fn covers(bearer: &Bearer, record: &SweepRecord) -> bool {
    let scope: &Scope = bearer.scope();
    scope.is_all() || *scope == record.sweep.within || record.sweep.topic().is_some_and(|topic| scope.fits(topic))
}

async fn find(app: &App, bearer: &Bearer, id: &Name) -> Result<SweepView, Fault> {
    let number = id.parse().map_err(|_| no_such_sweep(id))?;
    let found = app.handle.find_sweep(number).await?.filter(|view| covers(bearer, &view.record));
    found.ok_or_else(|| no_such_sweep(id))
}

fn no_such_sweep(id: &str) -> Fault {
    Fault::new(Code::NoSuchSweep, format!("there is no sweep {id}, or it was too long ago"))
}

async fn shown(app: &App, view: SweepView, status: StatusCode) -> Result<Response, Fault> {
    let undo = undo::of(app, &view).await?;
    let number = view.record.number;
    let mut response = json(status, &translate::sweep_info(view, undo));
    if status == StatusCode::ACCEPTED {
        let location = HeaderValue::try_from(format!("/v1/sweeps/{number}")).expect("a number is a header's value");
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}
