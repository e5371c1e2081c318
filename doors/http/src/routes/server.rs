//! The server itself: whether it lives, whether it answers, what it measures, what it speaks.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::{ACCEPT, CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use punctual_console::PLACE;
use punctual_node::access::Role;
use punctual_wire as wire;

use crate::app::{Exposition, Shared};
use crate::fault::Fault;
use crate::gate::Bearer;
use crate::openapi;
use crate::output::json;
use crate::routes::console;
use crate::translate;

/// Greet whoever looks at the address; browsers are led to the console.
pub(crate) async fn welcome(State(app): State<Shared>, headers: HeaderMap) -> Response {
    if app.console.is_some() && console::is_browser(&headers) {
        return ([(VARY, "accept")], Redirect::to(PLACE)).into_response();
    }
    let text = format!(
        "Punctual {}: give it a task and a time.\n\n\
         schedule  POST /v1/tasks    {{\"topic\": \"orders\", \"delay\": \"15m\", \"body\": {{\"order\": 7}}}}\n\
         receive   POST /v1/reserve  {{\"queues\": [\"orders\"], \"wait\": \"20s\"}}\n\
         more      GET /v1/openapi.json\n",
        app.version
    );
    ([(VARY, "accept")], text).into_response()
}

/// Liveness: whether the process is alive.
#[utoipa::path(get, operation_id = "alive", path = "/healthz", tag = "server", responses((status = 200, description = "The process is alive.", body = String)))]
pub(crate) async fn alive() -> &'static str {
    "alive\n"
}

/// Readiness: whether the server accepts commands.
#[utoipa::path(get, operation_id = "ready", path = "/readyz", tag = "server",
    responses((status = 200,
        description = "It accepts commands: `ready`, or `degraded` with the reason if it accepts all except new tasks.",
        body = String)))]
pub(crate) async fn ready(State(app): State<Shared>) -> Result<String, Fault> {
    app.handle.ready()?;
    Ok(match app.handle.hardship() {
        None => "ready\n".to_owned(),
        Some(hardship) => format!("degraded: new tasks are refused: {}\n", hardship.why()),
    })
}

/// Show who the caller is and what they may do, and the server's version and time. Every token may ask.
#[utoipa::path(get, operation_id = "me", path = "/v1/me", tag = "server",
    responses((status = 200, description = "Who you are, and which server this is.", body = wire::Me)))]
pub(crate) async fn me(State(app): State<Shared>, bearer: Bearer) -> Response {
    let role = |role: &Role| match role {
        Role::Produce => wire::Role::Produce,
        Role::Consume => wire::Role::Consume,
        Role::View => wire::Role::View,
        Role::Operate => wire::Role::Operate,
        Role::Admin => wire::Role::Admin,
    };
    let grant = bearer.grant();
    let me = wire::Me {
        name: grant.name().into(),
        roles: grant.roles().iter().map(role).collect(),
        topics: grant.patterns(),
        version: app.version.into(),
        now: translate::time(app.handle.now()),
    };
    json(StatusCode::OK, &me)
}

/// Metrics for Prometheus, in the format that `Accept` prefers. A token that is bound to topics sees only those of its topics
/// and queues.
#[utoipa::path(get, operation_id = "metrics", path = "/metrics", tag = "server",
    responses((status = 200, description = "The metrics.",
        content((String = "text/plain"), (String = "application/openmetrics-text")))))]
pub(crate) async fn metrics(State(app): State<Shared>, bearer: Bearer, headers: HeaderMap) -> Result<Response, Fault> {
    bearer.needs(Role::View, None)?;
    let format = preferred(&headers);
    let media = match format {
        Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
    };
    let text = (app.metrics)(bearer.scope().clone(), format).await;
    Ok(([(CONTENT_TYPE, media), (VARY, "accept")], text).into_response())
}

/// OpenMetrics for those who ask for it and do not like the older format better; everybody can read that one.
fn preferred(headers: &HeaderMap) -> Exposition {
    let (mut open_metrics, mut text) = (0.0, 0.0);
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    for range in lines.flat_map(|line| line.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let weight: f64 = weight.map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0));
        if media.eq_ignore_ascii_case("application/openmetrics-text") {
            open_metrics = weight.max(open_metrics);
        } else if media.eq_ignore_ascii_case("text/plain") {
            text = weight.max(text);
        }
    }
    if open_metrics > 0.0 && open_metrics >= text { Exposition::OpenMetrics } else { Exposition::Text }
}

/// What the server speaks.
pub(crate) async fn openapi(State(app): State<Shared>) -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::document(app.version)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_are_for_those_who_ask_for_them() {
        let preferred = |accept: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in accept {
                headers.append(ACCEPT, line.parse().expect("a header value"));
            }
            preferred(&headers)
        };
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [
            &[prometheus][..],
            &["Application/OpenMetrics-Text"],
            &["text/plain;q=0.2", "application/openmetrics-text; q=0.5"],
        ] {
            assert_eq!(preferred(accept), Exposition::OpenMetrics, "{accept:?}");
        }
        for accept in [
            &[][..],
            &["*/*"],
            &["text/html,*/*;q=0.8"],
            &["text/plain;version=0.0.4;q=0.6,application/openmetrics-text;q=0.5"],
            &["application/openmetrics-text;q=0"],
            &["application/openmetrics-text;q=x"],
            &["application/json"],
        ] {
            assert_eq!(preferred(accept), Exposition::Text, "{accept:?}");
        }
    }
}
