//! Who waits for deliveries, and who has some.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::Holder;
use punctual_node::access::Role;
use punctual_node::{AllHolders, Consumers};
use punctual_wire as wire;

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::input::{Query, maybe_name};
use crate::output::json;
use crate::translate::time;

/// How many consumers are listed if nobody says.
const PAGE: u32 = 100;
const LONGEST_PAGE: u32 = 1_000;

/// List the consumers that are waiting for deliveries, at all nodes, and those that hold some, for the queues that the token covers.
#[utoipa::path(get, operation_id = "list_consumers", path = "/v1/consumers", tag = "consumers", params(wire::ListConsumers),
    responses((status = 200, description = "Who is waiting right now, and who holds deliveries.", body = wire::ConsumerList)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::ListConsumers>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, query.queue.as_deref())?;
    let queue = maybe_name("queue", query.queue.as_deref())?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Fault::invalid("limit", format!("a list has 1 to {LONGEST_PAGE} consumers")));
    }
    let (nodes, silent) = app.handle.consumers(bearer.scope(), queue.as_ref(), limit as usize).await;
    let count = nodes.iter().map(|consumers| consumers.count).sum();
    let mut consumers: Vec<wire::ConsumerInfo> = nodes.into_iter().flat_map(infos).collect();
    consumers.sort_by(|a, b| (&a.name, &a.node).cmp(&(&b.name, &b.node)));
    consumers.truncate(limit as usize);
    let silent = silent.iter().map(ToString::to_string).collect();
    let AllHolders { mut holders, unknown } = app.handle.holders(bearer.scope(), queue.as_ref()).await?;
    let left_out = holders.len().saturating_sub(limit as usize);
    holders.truncate(limit as usize);
    Ok(json(
        StatusCode::OK,
        &wire::ConsumerList {
            consumers,
            count,
            holders: holders.into_iter().map(holder).collect(),
            holders_left_out: left_out as u64,
            leases_unknown: unknown,
            silent,
        },
    ))
}

fn infos(Consumers { node, longest, .. }: Consumers) -> impl Iterator<Item = wire::ConsumerInfo> {
    longest.into_iter().map(move |consumer| wire::ConsumerInfo {
        name: consumer.name.to_string(),
        node: node.to_string(),
        queues: consumer.queues.iter().map(ToString::to_string).collect(),
        max: consumer.max,
    })
}

fn holder(Holder { name, queue, leases, oldest, next_end }: Holder) -> wire::HolderInfo {
    wire::HolderInfo {
        name: name.to_string(),
        queue: queue.to_string(),
        leases,
        oldest: oldest.map(time),
        next_end: time(next_end),
    }
}
