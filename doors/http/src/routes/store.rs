//! The store: moving it into another one while the server runs.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_node::Error;
use punctual_node::access::Role;
use punctual_wire as wire;

use super::to_its_end;
use crate::app::{MoveRefused, Shared};
use crate::deed::Deed;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::JsonBody;
use crate::joined::joined;
use crate::output::json;

/// Begin to move everything into another store while the server runs, shard by shard. Ask again to see how far it is. The
/// same request joins a move that is under way.
#[utoipa::path(post, operation_id = "move_store", path = "/v1/store/move", tag = "store", request_body = wire::MoveStore,
    responses((status = 202, description = "It has begun, or is under way.", body = wire::StoreMove)))]
pub(crate) async fn begin(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::Admin)?;
    let wanted: wire::MoveStore = body.parse()?;
    to_its_end(async move {
        let mover = Arc::clone(&app.mover);
        let begun = blocking(move || mover.begin(&wanted)).await?;
        bearer.audit(&app, Deed::new("move-store").subject(&begun.to));
        Ok(json(StatusCode::ACCEPTED, &begun))
    })
    .await
}

/// Show how far the move of the store is, or how the last one ended.
#[utoipa::path(get, operation_id = "get_move", path = "/v1/store/move", tag = "store",
    responses((status = 200, description = "How far it is.", body = wire::StoreMove)))]
pub(crate) async fn look(State(app): State<Shared>, bearer: Bearer) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::View)?;
    let found = app.mover.look().ok_or(MoveRefused::NoMove)?;
    Ok(json(StatusCode::OK, &found))
}

/// Give up the move of the store. Refused once a shard has been moved.
#[utoipa::path(delete, operation_id = "cancel_move", path = "/v1/store/move", tag = "store",
    responses((status = 200, description = "It is given up, or about to be.", body = wire::StoreMove)))]
pub(crate) async fn cancel(State(app): State<Shared>, bearer: Bearer) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::Admin)?;
    to_its_end(async move {
        let mover = Arc::clone(&app.mover);
        let cancelled = blocking(move || mover.cancel()).await?;
        bearer.audit(&app, Deed::new("cancel-move").subject(&cancelled.to));
        Ok(json(StatusCode::OK, &cancelled))
    })
    .await
}

/// Does what takes its time where nobody else waits for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MoveRefused> + Send + 'static,
) -> Result<T, Fault> {
    match joined(tokio::task::spawn_blocking(work)).await {
        Some(done) => Ok(done?),
        None => Err(Error::unknown_outcome("the server is stopping").into()),
    }
}
