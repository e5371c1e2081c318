//! All tasks of a key together.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::view::Listing;
use punctual_core::{Matching, Name, Sweep, SweepAction, Swept};
use punctual_node::access::Role;
use punctual_wire as wire;
use serde::Deserialize;

use super::tasks::{refuse_kept, turn_page};
use crate::app::Shared;
use crate::deed::Deed;
use crate::fault::{Code, Fault};
use crate::gate::Bearer;
use crate::input::{JsonBody, Names, Query, maybe_name};
use crate::output::json;
use crate::translate;

/// What a sweep did, on the wire.
pub(super) fn swept(swept: Swept) -> Response {
    let Swept { matched, changed, too_late, no_room } = swept;
    json(StatusCode::OK, &wire::Swept { matched, changed, too_late, no_room })
}

/// List the tasks of a key, in the order in which they were scheduled.
#[utoipa::path(get, operation_id = "list_key", path = "/v1/keys/{key}", tag = "keys",
    params(("key" = wire::Name, Path, description = "The key."), wire::List),
    responses((status = 200, description = "A page of the list.", body = wire::Page)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([key]): Names<1>,
    Query(query): Query<wire::List>,
) -> Result<Response, Fault> {
    bearer.needs_one_of(&[Role::Produce, Role::View], None)?;
    refuse_kept(&query)?;
    let filters = [
        ("topic", query.topic.is_some()),
        ("queue", query.queue.is_some()),
        ("first", query.first.is_some()),
        ("from", query.from.is_some()),
        ("until", query.until.is_some()),
    ];
    if let Some((field, _)) = filters.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Fault::invalid(field, "tasks with a key cannot be filtered by this"));
    }
    let Some(table) = translate::table_of(query.state) else {
        return Err(Fault::invalid(
            "state",
            "tasks with a key can be listed as `dead` or `finished`, or without a state",
        ));
    };
    turn_page(&app, &bearer, Listing::Key { key, table }, &query).await
}

/// What to cancel.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Only tasks of this topic.
    #[param(value_type = Option<wire::Name>)]
    topic: Option<String>,
    /// Only count.
    #[serde(default)]
    dry_run: bool,
}

/// Cancel all tasks of a key for which it is not too late.
#[utoipa::path(delete, operation_id = "cancel_key", path = "/v1/keys/{key}", tag = "keys",
    params(("key" = wire::Name, Path, description = "The key."), Which),
    responses((status = 200, description = "How many matched and were changed.", body = wire::Swept)))]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([key]): Names<1>,
    Query(which): Query<Which>,
) -> Result<Response, Fault> {
    let topic = maybe_name("topic", which.topic.as_deref())?;
    bearer.needs_one_of(&[Role::Produce, Role::Operate], topic.as_deref())?;
    let act = SweepAction::Cancel;
    by_key(app, bearer, Deed::new("cancel-key"), Keyed { key, topic }, act, which.dry_run).await
}

/// Move the due times of all tasks of a key for which it is not too late.
#[utoipa::path(patch, operation_id = "shift_key", path = "/v1/keys/{key}", tag = "keys", request_body = wire::ShiftKey,
    params(("key" = wire::Name, Path, description = "The key.")),
    responses((status = 200, description = "How many matched and were changed.", body = wire::Swept)))]
pub(crate) async fn shift(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([key]): Names<1>,
    body: JsonBody,
) -> Result<Response, Fault> {
    let wire::ShiftKey { at, delay, by, topic, dry_run } = body.parse()?;
    let topic = maybe_name("topic", topic.as_deref())?;
    bearer.needs_one_of(&[Role::Produce, Role::Operate], topic.as_deref())?;
    let Some(shift) = translate::shift_of(at, delay, by)? else {
        return Err(Fault::new(Code::Invalid, "say where to move the tasks: give `at`, `delay` or `by`"));
    };
    let act = SweepAction::Shift(shift);
    by_key(app, bearer, Deed::new("move-key"), Keyed { key, topic }, act, dry_run).await
}

/// The tasks of a key, maybe of one topic only.
struct Keyed {
    key: Name,
    topic: Option<Name>,
}

/// Does something with all tasks of a key that this caller has to do with.
async fn by_key(
    app: Shared,
    bearer: Bearer,
    deed: Deed,
    keyed: Keyed,
    action: SweepAction,
    dry_run: bool,
) -> Result<Response, Fault> {
    let Keyed { key, topic } = keyed;
    let deed = Deed { topic: topic.clone(), ..deed.subject(&key) };
    let (matching, within) = (Matching::Key { key, topic }, bearer.scope().clone());
    let done = bearer.handle(&app).sweep(Sweep { matching, within, action, dry_run }).await;
    if let Some(deed) = deed.came_to(&done).filter(|_| !dry_run) {
        bearer.audit_if_by_hand(&app, || deed);
    }
    Ok(swept(done?))
}
