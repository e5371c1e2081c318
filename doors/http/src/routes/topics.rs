//! Topics: their settings and how much they hold.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::{Counts, Name, Refused, TopicSettings};
use punctual_node::Error;
use punctual_node::access::Role;
use punctual_wire as wire;
use serde::Deserialize;

use super::LOOKING;
use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Caller;
use crate::input::{JsonBody, Names, Query};
use crate::output::json;
use crate::translate;

fn info(name: &Name, settings: &TopicSettings, counts: &Counts) -> wire::TopicInfo {
    let counts = counts.topics.iter().find(|counts| counts.name == *name);
    let (waiting, leased, dead, history) =
        counts.map_or((0, 0, 0, 0), |counts| (counts.waiting, counts.leased, counts.dead, counts.history));
    let settings = translate::topic_to_wire(settings);
    wire::TopicInfo { name: name.to_string(), settings, waiting, leased, dead, history }
}

/// List the topics that the caller may look at, with their settings and how much they hold.
#[utoipa::path(get, operation_id = "list_topics", path = "/v1/topics", tag = "topics",
    responses((status = 200, description = "In the order of their names.", body = wire::TopicList)))]
pub(crate) async fn list(State(app): State<Shared>, caller: Caller) -> Result<Response, Fault> {
    caller.needs_one_of(&LOOKING, None)?;
    let (topics, counts) = (app.handle.topics().await?, app.handle.counts().await?);
    let own = topics.iter().filter(|(name, _)| caller.scope().fits(name));
    let topics = own.map(|(name, settings)| info(name, settings, &counts)).collect();
    Ok(json(StatusCode::OK, &wire::TopicList { topics }))
}

/// Look at a topic.
#[utoipa::path(get, operation_id = "get_topic", path = "/v1/topics/{topic}", tag = "topics",
    params(("topic" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "Its settings and how much it holds.", body = wire::TopicInfo)))]
pub(crate) async fn get(
    State(app): State<Shared>,
    caller: Caller,
    Names([topic]): Names<1>,
) -> Result<Response, Fault> {
    caller.needs_one_of(&LOOKING, Some(&topic))?;
    match app.handle.topics().await?.get(&topic) {
        Some(settings) => Ok(json(StatusCode::OK, &info(&topic, settings, &app.handle.counts().await?))),
        None => Err(Error::from(Refused::NoSuchTopic(topic)).into()),
    }
}

/// Create a topic or change its settings: those given are all there are, the others get their defaults.
#[utoipa::path(put, operation_id = "put_topic", path = "/v1/topics/{topic}", tag = "topics", request_body = wire::TopicSettings,
    params(("topic" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "It is so now.", body = wire::TopicInfo)))]
pub(crate) async fn put(
    State(app): State<Shared>,
    caller: Caller,
    Names([topic]): Names<1>,
    body: JsonBody,
) -> Result<Response, Fault> {
    caller.needs(Role::Admin, Some(&topic))?;
    let settings = translate::topic_from_wire(body.parse()?)?;
    caller.reaches("feeds", settings.feeds.iter().flatten().map(|feed| &feed.queue))?;
    let settings = app.handle.put_topic(&topic, settings).await?;
    caller.audit("put-topic", &topic);
    Ok(json(StatusCode::OK, &info(&topic, &settings, &app.handle.counts().await?)))
}

/// Refuse tasks for a topic until it is resumed.
#[utoipa::path(post, operation_id = "pause_topic", path = "/v1/topics/{topic}/pause", tag = "topics",
    params(("topic" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "It is paused.", body = wire::TopicInfo)))]
pub(crate) async fn pause(
    State(app): State<Shared>,
    caller: Caller,
    Names([topic]): Names<1>,
) -> Result<Response, Fault> {
    caller.needs(Role::Operate, Some(&topic))?;
    let settings = app.handle.pause_topic(&topic).await?;
    caller.audit("pause-topic", &topic);
    Ok(json(StatusCode::OK, &info(&topic, &settings, &app.handle.counts().await?)))
}

/// Take tasks for a topic again.
#[utoipa::path(post, operation_id = "resume_topic", path = "/v1/topics/{topic}/resume", tag = "topics",
    params(("topic" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "It takes tasks.", body = wire::TopicInfo)))]
pub(crate) async fn resume(
    State(app): State<Shared>,
    caller: Caller,
    Names([topic]): Names<1>,
) -> Result<Response, Fault> {
    caller.needs(Role::Operate, Some(&topic))?;
    let settings = app.handle.resume_topic(&topic).await?;
    caller.audit("resume-topic", &topic);
    Ok(json(StatusCode::OK, &info(&topic, &settings, &app.handle.counts().await?)))
}

/// Whether to delete also what is not empty.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forced {
    /// Also with all that it holds.
    #[serde(default)]
    pub force: bool,
}

/// Delete a topic; refused if it holds tasks, unless it is forced.
#[utoipa::path(delete, operation_id = "delete_topic", path = "/v1/topics/{topic}", tag = "topics",
    params(("topic" = wire::Name, Path, description = "Its name."), Forced),
    responses((status = 200, description = "It is gone.", body = wire::Deleted)))]
pub(crate) async fn delete(
    State(app): State<Shared>,
    caller: Caller,
    Names([topic]): Names<1>,
    Query(forced): Query<Forced>,
) -> Result<Response, Fault> {
    caller.needs(Role::Admin, Some(&topic))?;
    let rows = app.handle.delete_topic(&topic, forced.force).await?;
    caller.audit("delete-topic", &topic);
    Ok(json(StatusCode::OK, &wire::Deleted { rows }))
}
