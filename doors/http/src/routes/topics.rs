//! Topics: their settings and how much they hold.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::{Name, Refused, TopicCounts, TopicSettings, TopicView};
use punctual_node::access::Role;
use punctual_node::{Error, Happened};
use punctual_wire as wire;
use serde::Deserialize;

use super::{LOOKING, to_its_end};
use crate::app::{App, Shared};
use crate::condition::{Condition, tagged, version};
use crate::deed::Deed;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{JsonBody, MaybeJson, Names, Query, merged};
use crate::output::json;
use crate::translate;

/// How many topics or queues a page has if nobody says.
const PAGE: u32 = 100;
const LONGEST_PAGE: u32 = 1_000;

fn info(topic: &TopicView, happened: &Happened) -> wire::TopicInfo {
    let TopicCounts { name, waiting, leased, dead, history } = &topic.counts;
    let settings = translate::topic_to_wire(&topic.settings);
    wire::TopicInfo {
        name: name.to_string(),
        version: version(&settings),
        settings,
        waiting: *waiting,
        leased: *leased,
        dead: *dead,
        history: *history,
        happened: translate::happened(happened),
        pause: topic.settings.pause.as_ref().filter(|_| topic.settings.paused).map(translate::pause_note),
    }
}

/// One topic, as an answer.
async fn shown(app: &App, topic: &TopicView) -> Response {
    let info = info(topic, &app.handle.happened(&topic.counts.name).await);
    tagged(json(StatusCode::OK, &info), &info.version)
}

/// The answer to a change of settings.
async fn changed(app: &App, name: &Name, settings: TopicSettings) -> Result<Response, Fault> {
    let counts = app.handle.topic(name).await?.map(|topic| topic.counts);
    let empty = || TopicCounts { name: name.clone(), waiting: 0, leased: 0, dead: 0, history: 0 };
    Ok(shown(app, &TopicView { settings, counts: counts.unwrap_or_else(empty) }).await)
}

/// From which name on a page goes, and how long it is.
pub(super) fn page_of(query: &wire::ListNames) -> Result<(Option<Name>, usize), Fault> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Fault::invalid("limit", format!("a page has 1 to {LONGEST_PAGE} entries")));
    }
    // A page may end with a name from the time when `.` and `..` were names.
    let after = query.cursor.as_deref().map(Name::read_back).transpose();
    Ok((after.map_err(|bad| Fault::invalid("cursor", bad))?, limit as usize))
}

/// List the topics that the caller may see, with their settings and how much they hold.
#[utoipa::path(get, operation_id = "list_topics", path = "/v1/topics", tag = "topics", params(wire::ListNames),
    responses((status = 200, description = "A page, ordered by name.", body = wire::TopicList)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::ListNames>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&LOOKING, None)?;
    let (after, limit) = page_of(&query)?;
    let page = app.handle.topics(after, limit, |name| bearer.scope().fits(name)).await?;
    let names: Vec<Name> = page.entries.iter().map(|topic| topic.counts.name.clone()).collect();
    let happened = app.handle.happened_to(names).await;
    let topics = page.entries.iter().zip(&happened).map(|(topic, happened)| info(topic, happened)).collect();
    Ok(json(StatusCode::OK, &wire::TopicList { topics, next: page.next.map(|name| name.to_string()) }))
}

/// Get a topic.
#[utoipa::path(get, operation_id = "get_topic", path = "/v1/topics/{topic}", tag = "topics",
    params(("topic" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "Its settings, and how much it holds.", body = wire::TopicInfo)))]
pub(crate) async fn get(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic]): Names<1>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&LOOKING, Some(&topic))?;
    match app.handle.topic(&topic).await? {
        Some(found) => Ok(shown(&app, &found).await),
        None => Err(Error::from(Refused::NoSuchTopic(topic)).into()),
    }
}

/// Create a topic or replace its settings: those that are omitted get their defaults.
#[utoipa::path(put, operation_id = "put_topic", path = "/v1/topics/{topic}", tag = "topics", request_body = wire::TopicSettings,
    params(("topic" = wire::Name, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Only if the settings have this `version`, as in `ETag`.")),
    responses((status = 200, description = "The settings as they are now.", body = wire::TopicInfo)))]
pub(crate) async fn put(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic]): Names<1>,
    condition: Condition,
    body: JsonBody,
) -> Result<Response, Fault> {
    bearer.needs(Role::Admin, Some(&topic))?;
    let mut settings = translate::topic_from_wire(body.parse()?)?;
    settings.pause = bearer.pause_note(app.handle.now(), None);
    bearer.reaches("feeds", settings.feeds.iter().flatten().map(|feed| &feed.queue))?;
    to_its_end(async move {
        let admit =
            move |present: Option<&TopicSettings>| condition.check(present.map(translate::topic_to_wire).as_ref());
        let settings = app.handle.put_topic_if(&topic, settings, admit).await??;
        bearer.audit(&app, Deed::new("put-topic").topic(&topic));
        changed(&app, &topic, settings).await
    })
    .await
}

/// Change only the named settings of a topic (RFC 7396). Null resets one to its default.
#[utoipa::path(patch, operation_id = "patch_topic", path = "/v1/topics/{topic}", tag = "topics",
    request_body(content = wire::TopicSettings, content_type = "application/merge-patch+json"),
    params(("topic" = wire::Name, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Only if the settings have this `version`, as in `ETag`.")),
    responses((status = 200, description = "The settings as they are now.", body = wire::TopicInfo)))]
pub(crate) async fn patch(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic]): Names<1>,
    condition: Condition,
    body: JsonBody,
) -> Result<Response, Fault> {
    bearer.needs(Role::Admin, Some(&topic))?;
    to_its_end(async move {
        let (asking, now) = (bearer.clone(), app.handle.now());
        let amend = move |present: TopicSettings| {
            let seen = translate::topic_to_wire(&present);
            condition.check(Some(&seen))?;
            let mut settings = translate::topic_from_wire(merged(&seen, body.parse()?)?)?;
            settings.pause = asking.pause_note(now, None);
            if settings.feeds != present.feeds {
                asking.reaches("feeds", settings.feeds.iter().flatten().map(|feed| &feed.queue))?;
            }
            Ok::<_, Fault>(settings)
        };
        let settings = app.handle.amend_topic(&topic, amend).await??;
        bearer.audit(&app, Deed::new("patch-topic").topic(&topic));
        changed(&app, &topic, settings).await
    })
    .await
}

/// Pause a topic: new tasks are refused until it is resumed. Who did so is shown with it, and why.
#[utoipa::path(post, operation_id = "pause_topic", path = "/v1/topics/{topic}/pause", tag = "topics", request_body = Option<wire::PauseTopic>,
    params(("topic" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "The topic is paused.", body = wire::TopicInfo)))]
pub(crate) async fn pause(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic]): Names<1>,
    MaybeJson(pause): MaybeJson<wire::PauseTopic>,
) -> Result<Response, Fault> {
    bearer.needs(Role::Operate, Some(&topic))?;
    to_its_end(async move {
        let note = bearer.pause_note(app.handle.now(), pause.reason.clone());
        let settings = app.handle.pause_topic(&topic, note).await?;
        bearer.audit(&app, Deed::new("pause-topic").topic(&topic).detail(pause.reason));
        changed(&app, &topic, settings).await
    })
    .await
}

/// Resume a topic: it accepts tasks again.
#[utoipa::path(post, operation_id = "resume_topic", path = "/v1/topics/{topic}/resume", tag = "topics",
    params(("topic" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "The topic accepts tasks again.", body = wire::TopicInfo)))]
pub(crate) async fn resume(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic]): Names<1>,
) -> Result<Response, Fault> {
    bearer.needs(Role::Operate, Some(&topic))?;
    to_its_end(async move {
        let settings = app.handle.resume_topic(&topic).await?;
        bearer.audit(&app, Deed::new("resume-topic").topic(&topic));
        changed(&app, &topic, settings).await
    })
    .await
}

/// Whether to delete it even if it is not empty.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forced {
    /// Also with all that it holds.
    #[serde(default)]
    pub force: bool,
}

/// Delete a topic; refused if it holds tasks, unless forced.
#[utoipa::path(delete, operation_id = "delete_topic", path = "/v1/topics/{topic}", tag = "topics",
    params(("topic" = wire::Name, Path, description = "Its name."), Forced),
    responses((status = 200, description = "The topic is deleted.", body = wire::Deleted)))]
pub(crate) async fn delete(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([topic]): Names<1>,
    Query(forced): Query<Forced>,
) -> Result<Response, Fault> {
    bearer.needs(Role::Admin, Some(&topic))?;
    to_its_end(async move {
        let rows = bearer.handle(&app).delete_topic(&topic, forced.force).await?;
        bearer.audit(&app, Deed::new("delete-topic").topic(&topic));
        Ok(json(StatusCode::OK, &wire::Deleted { rows }))
    })
    .await
}
