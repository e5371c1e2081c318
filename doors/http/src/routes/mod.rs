//! The routes, one file for each noun.

pub(crate) mod audit;
pub(crate) mod console;
pub(crate) mod consumers;
pub(crate) mod dead;
pub(crate) mod dead_groups;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod find;
pub(crate) mod history;
pub(crate) mod keys;
pub(crate) mod leases;
pub(crate) mod look;
pub(crate) mod nodes;
pub(crate) mod numbers;
pub(crate) mod pulse;
pub(crate) mod queues;
pub(crate) mod series;
pub(crate) mod server;
pub(crate) mod store;
pub(crate) mod sweeps;
pub(crate) mod tasks;
pub(crate) mod topics;

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use http::Method;
use punctual_node::Error;
use punctual_node::access::Role;

use crate::app::App;
use crate::fault::{Code, Fault};
use crate::joined::joined;

/// Whoever has one of these roles for a topic or queue may look at it; who operates may, too.
pub(crate) const LOOKING: [Role; 3] = [Role::Produce, Role::Consume, Role::View];

pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/v1/tasks", post(tasks::schedule).get(tasks::list))
        .route("/v1/tasks/batch", post(tasks::schedule_batch))
        .route("/v1/tasks/{topic}/{id}", get(tasks::get).delete(tasks::cancel).patch(tasks::reschedule))
        .route("/v1/tasks/{topic}/{id}/replay", post(tasks::replay))
        .route("/v1/tasks/{topic}/{id}/purge", post(tasks::purge))
        .route("/v1/tasks/{topic}/{id}/revoke", post(tasks::revoke))
        .route("/v1/tasks/{topic}/{id}/hasten", post(tasks::hasten))
        .route("/v1/tasks/{topic}/{id}/restore", post(tasks::restore))
        .route("/v1/tasks/{topic}/{id}/timeline", get(audit::timeline))
        .route("/v1/audit", get(audit::list))
        .route("/v1/find", get(find::find))
        .route("/v1/numbers/{number}", get(numbers::get))
        .route("/v1/keys/{key}", get(keys::list).delete(keys::cancel).patch(keys::shift))
        .route("/v1/consumers", get(consumers::list))
        .route("/v1/reserve", post(leases::reserve))
        .route("/v1/leases", post(leases::settle))
        .route("/v1/topics", get(topics::list))
        .route("/v1/topics/{topic}", get(topics::get).put(topics::put).patch(topics::patch).delete(topics::delete))
        .route("/v1/topics/{topic}/pause", post(topics::pause))
        .route("/v1/topics/{topic}/resume", post(topics::resume))
        .route("/v1/queues", get(queues::list))
        .route(
            "/v1/queues/{queue}",
            get(queues::get).put(queues::put).patch(queues::patch).merge(delete(queues::delete)),
        )
        .route("/v1/queues/{queue}/deliveries", get(deliveries::list))
        .route("/v1/queues/{queue}/pause", post(queues::pause))
        .route("/v1/queues/{queue}/resume", post(queues::resume))
        .route("/v1/dead", get(dead::list))
        .route("/v1/dead/groups", get(dead_groups::list))
        .route("/v1/dead/replay", post(dead::replay))
        .route("/v1/dead/purge", post(dead::purge))
        .route("/v1/history", get(history::list))
        .route("/v1/history/replay", post(history::replay))
        .route("/v1/sweeps", post(sweeps::begin).get(sweeps::list))
        .route("/v1/sweeps/{id}", get(sweeps::get))
        .route("/v1/sweeps/{id}/stop", post(sweeps::stop))
        .route("/v1/sweeps/{id}/undo", post(sweeps::undo))
        .route("/v1/forecast", get(look::forecast))
        .route("/v1/stats", get(look::stats))
        .route("/v1/series", get(series::series))
        .route("/v1/pulse", get(pulse::follow))
        .route("/v1/store/move", post(store::begin).get(store::look).delete(store::cancel))
        .route("/v1/nodes", get(nodes::list))
        .route("/v1/nodes/{node}/drain", post(nodes::drain).delete(nodes::undrain))
        .route("/v1/shards", get(nodes::shards))
        .route("/v1/shards/{shard}/pin", put(nodes::pin).delete(nodes::unpin))
        .route("/v1/events", get(events::follow))
        .route("/v1/me", get(server::me))
        .route("/v1/openapi.json", get(server::openapi))
        .route("/", get(server::welcome))
        .route("/console", get(console::enter))
        .route("/console/", get(console::find))
        .route("/console/{*path}", get(console::find))
        .route("/healthz", get(server::alive))
        .route("/readyz", get(server::ready))
        .route("/metrics", get(server::metrics))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::new(app))
}

/// Does what an operator asks for to its end, also if they hang up meanwhile: a handler goes with its connection, but
/// what it has sent to the node happens, and must be in the audit log. Some changes also take several commands.
pub(crate) async fn to_its_end<T: Send + 'static>(
    act: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    let given_up = || Err(Error::unknown_outcome("the server is stopping").into());
    joined(tokio::spawn(act)).await.unwrap_or_else(given_up)
}

async fn nowhere(request: Request) -> Fault {
    let detail = format!("there is nothing at {}: see /v1/openapi.json for what exists", request.uri().path());
    Fault::new(Code::NotFound, detail)
}

async fn wrong_method(method: Method, request: Request) -> Response {
    let detail =
        format!("{} does not support {method}: see /v1/openapi.json for what it supports", request.uri().path());
    Fault::new(Code::MethodNotAllowed, detail).into_response()
}
