//! The server itself: whether it lives, whether it answers, what it measures, what it speaks.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use punctual_node::access::Role;

use crate::app::Shared;
use crate::fault::Fault;
use crate::gate::Caller;
use crate::openapi;

/// Greet whoever looks at the address.
pub(crate) async fn welcome(State(app): State<Shared>) -> String {
    format!(
        "Punctual {}: hand it a task and a time.\n\n\
         schedule  POST /v1/tasks    {{\"topic\": \"orders\", \"delay\": \"15m\", \"body\": {{\"order\": 7}}}}\n\
         receive   POST /v1/reserve  {{\"queues\": [\"orders\"], \"wait\": \"20s\"}}\n\
         all else  GET /v1/openapi.json\n",
        app.version
    )
}

/// Tell whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = 200, description = "It lives.", body = String)))]
pub(crate) async fn alive() -> &'static str {
    "alive\n"
}

/// Tell whether commands are taken.
#[utoipa::path(get, path = "/readyz", tag = "server",
    responses((status = 200, description = "Commands are taken.", body = String)))]
pub(crate) async fn ready(State(app): State<Shared>) -> Result<&'static str, Fault> {
    app.handle.ready()?;
    Ok("ready\n")
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "In the text format.", body = String,
        content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(State(app): State<Shared>, caller: Caller) -> Result<Response, Fault> {
    caller.needs(Role::Operate, None)?;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, format)], (app.metrics)().await).into_response())
}

/// What the server speaks.
pub(crate) async fn openapi(State(app): State<Shared>) -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::document(app.version)).into_response()
}
