//! The nodes of the delay center and its shards: who has what, and who is to.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::store::ShardId;
use punctual_core::{Name, Refused};
use punctual_node::access::Role;
use punctual_node::{Error, NodeView, ShardView};
use punctual_wire as wire;

use super::{LOOKING, to_its_end};
use crate::app::{App, Shared};
use crate::deed::Deed;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{JsonBody, Names};
use crate::output::json;
use crate::translate;

fn node(view: NodeView) -> wire::NodeInfo {
    wire::NodeInfo {
        name: view.who.node.to_string(),
        url: view.card.url,
        is_this: view.is_this,
        is_there: view.is_there,
        since: view.card.since.map(translate::time),
        until: translate::time(view.until),
        is_draining: view.is_draining,
        shards: view.shards,
        skew_ms: view.card.skew.map(|micros| micros / 1_000),
        version: view.card.version,
    }
}

fn shard(view: ShardView) -> wire::ShardInfo {
    wire::ShardInfo {
        shard: view.shard.0,
        node: view.owner.map(|name| name.to_string()),
        pinned_to: view.pinned_to.map(|name| name.to_string()),
        fence: view.fence.0,
    }
}

async fn all_nodes(app: &App) -> Result<Response, Fault> {
    let nodes = app.handle.nodes().await?.into_iter().map(node).collect();
    Ok(json(StatusCode::OK, &wire::NodeList { nodes }))
}

async fn all_shards(app: &App) -> Result<Response, Fault> {
    let shards = app.handle.shards().await?.into_iter().map(shard).collect();
    Ok(json(StatusCode::OK, &wire::ShardList { shards }))
}

/// The shard that a path names.
fn numbered(number: &Name) -> Result<ShardId, Fault> {
    let why = || format!("{number} is not the number of a shard");
    let number = number.parse().map_err(|_| Error::from(Refused::Invalid { field: "shard", why: why() }))?;
    Ok(ShardId(number))
}

/// List the nodes of the delay center: those that share the store.
#[utoipa::path(get, operation_id = "list_nodes", path = "/v1/nodes", tag = "nodes",
    responses((status = 200, description = "All of them, ordered by name.", body = wire::NodeList)))]
pub(crate) async fn list(State(app): State<Shared>, bearer: Bearer) -> Result<Response, Fault> {
    // Whoever may ask one node for something may ask the others.
    bearer.needs_one_of(&LOOKING, None)?;
    all_nodes(&app).await
}

/// Drain a node: it gives its shards to the others, one after the other, and gets none until this is taken back. It goes on
/// taking requests.
#[utoipa::path(post, operation_id = "drain_node", path = "/v1/nodes/{node}/drain", tag = "nodes",
    params(("node" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "It has begun. All nodes.", body = wire::NodeList)))]
pub(crate) async fn drain(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([node]): Names<1>,
) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::Admin)?;
    to_its_end(async move {
        app.handle.drain(&node).await?;
        bearer.audit(&app, Deed::new("drain-node").subject(&node));
        all_nodes(&app).await
    })
    .await
}

/// Let a node that was drained have shards again.
#[utoipa::path(delete, operation_id = "undrain_node", path = "/v1/nodes/{node}/drain", tag = "nodes",
    params(("node" = wire::Name, Path, description = "Its name.")),
    responses((status = 200, description = "It gets its part again. All nodes.", body = wire::NodeList)))]
pub(crate) async fn undrain(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([node]): Names<1>,
) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::Admin)?;
    to_its_end(async move {
        app.handle.undrain(&node).await?;
        bearer.audit(&app, Deed::new("undrain-node").subject(&node));
        all_nodes(&app).await
    })
    .await
}

/// List the shards of the store, and the nodes that have them.
#[utoipa::path(get, operation_id = "list_shards", path = "/v1/shards", tag = "nodes",
    responses((status = 200, description = "All of them, ordered by number.", body = wire::ShardList)))]
pub(crate) async fn shards(State(app): State<Shared>, bearer: Bearer) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::View)?;
    all_shards(&app).await
}

/// Pin a shard to a node: it is there whenever the node is, unless the node is drained.
#[utoipa::path(put, operation_id = "pin_shard", path = "/v1/shards/{shard}/pin", tag = "nodes", request_body = wire::PinShard,
    params(("shard" = u16, Path, description = "Its number.")),
    responses((status = 200, description = "It is on its way. All shards.", body = wire::ShardList)))]
pub(crate) async fn pin(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([shard]): Names<1>,
    body: JsonBody,
) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::Admin)?;
    let number = numbered(&shard)?;
    let wire::PinShard { node } = body.parse()?;
    let node = crate::input::name("node", &node)?;
    to_its_end(async move {
        app.handle.pin(number, &node).await?;
        bearer.audit(&app, Deed::new("pin-shard").subject(&shard));
        all_shards(&app).await
    })
    .await
}

/// Let a shard be at any node.
#[utoipa::path(delete, operation_id = "unpin_shard", path = "/v1/shards/{shard}/pin", tag = "nodes",
    params(("shard" = u16, Path, description = "Its number.")),
    responses((status = 200, description = "It is where it is needed. All shards.", body = wire::ShardList)))]
pub(crate) async fn unpin(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([shard]): Names<1>,
) -> Result<Response, Fault> {
    bearer.needs_for_all(Role::Admin)?;
    let number = numbered(&shard)?;
    to_its_end(async move {
        app.handle.unpin(number).await?;
        bearer.audit(&app, Deed::new("unpin-shard").subject(&shard));
        all_shards(&app).await
    })
    .await
}
