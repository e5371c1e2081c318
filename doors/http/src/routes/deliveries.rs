//! What stands in a queue, in its order.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::view::TaskView;
use punctual_core::{Refused, Stage};
use punctual_node::access::Role;
use punctual_node::{Error, LinePage};
use punctual_wire as wire;

use super::tasks::page_length;
use crate::app::Shared;
use crate::cursor;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Names, Query};
use crate::output::{self, ROW_BYTES, Rest, build_json};

/// List the deliveries of a queue: those that are ready in the order in which they are handed out, or those that are with a
/// consumer by the end of their lease. Each entry is one delivery, of a broadcast task too.
#[utoipa::path(get, operation_id = "list_deliveries", path = "/v1/queues/{queue}/deliveries", tag = "queues",
    params(("queue" = wire::Name, Path, description = "Its name."), wire::ListDeliveries),
    responses((status = 200, description = "A page of the list.", body = wire::Page)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([queue]): Names<1>,
    Query(query): Query<wire::ListDeliveries>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, Some(&queue))?;
    let limit = page_length(query.limit)?;
    let cursor = query.cursor.as_deref().map(|text| cursor::read(text, &app.secret)).transpose()?;
    let stage = match query.state {
        wire::DeliveryState::Ready => Stage::Ready,
        wire::DeliveryState::Leased => Stage::Leased,
    };
    let mut hold = app.handle.hold(u64::from(limit) * ROW_BYTES)?;
    let LinePage { mut deliveries, next, .. } = app.handle.line(&queue, stage, cursor, limit as usize).await?;
    if deliveries.is_empty() && query.cursor.is_none() && app.handle.queue(&queue).await?.is_none() {
        return Err(Error::from(Refused::NoSuchQueue(queue)).into());
    }
    // A task is of its topic, in whichever queue it stands.
    deliveries.retain(|delivery: &TaskView| bearer.scope().fits(&delivery.topic));
    let about = deliveries.iter().map(|delivery| delivery.written() as u64 + ROW_BYTES).sum();
    hold.resize(about);
    let next = next.map(|next| cursor::write(&next, bearer.scope(), &app.secret));
    let (handle, rest) = (app.handle.clone(), Rest { next, looked_at: None });
    Ok(build_json(StatusCode::OK, hold, move || output::page(deliveries, &rest, about, &handle, false)).await)
}
