//! The OpenAPI document: made from the routes and the wire's types, so that it cannot drift from them.

use std::sync::OnceLock;

use punctual_wire as wire;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, ResponseBuilder};

use crate::routes::{dead, events, history, keys, leases, look, numbers, queues, server, tasks, topics};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Punctual",
        description = "Hand it a task and a time; at that time it hands the task to your consumer, and goes on until the consumer says that it is done.",
        license(name = "MIT")
    ),
    paths(
        tasks::schedule,
        tasks::schedule_batch,
        tasks::get,
        tasks::list,
        tasks::cancel,
        tasks::reschedule,
        tasks::replay,
        tasks::purge,
        numbers::get,
        keys::list,
        keys::cancel,
        keys::shift,
        leases::reserve,
        leases::settle,
        topics::list,
        topics::get,
        topics::put,
        topics::pause,
        topics::resume,
        topics::delete,
        queues::list,
        queues::get,
        queues::put,
        queues::pause,
        queues::resume,
        queues::delete,
        dead::list,
        dead::replay,
        dead::purge,
        history::list,
        history::replay,
        look::forecast,
        look::stats,
        events::follow,
        server::alive,
        server::ready,
        server::metrics,
    ),
    components(schemas(wire::Problem, wire::Event, wire::Name, wire::ListState, wire::Unit))
)]
struct Document;

/// The document as JSON.
pub fn document(version: &str) -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut document = Document::openapi();
        document.info.version = version.into();
        for path in document.paths.paths.values_mut() {
            let operations = [&mut path.get, &mut path.put, &mut path.post, &mut path.delete, &mut path.patch];
            operations.into_iter().flatten().for_each(add_problem);
        }
        let components = document.components.get_or_insert_default();
        let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("token", token);
        document.to_json().expect("the document can be written as JSON")
    })
}

/// Whatever goes wrong is told in the same form.
fn add_problem(operation: &mut Operation) {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let response = ResponseBuilder::new()
        .description("It was not carried out: what is wrong and what to do (RFC 9457).")
        .content("application/problem+json", problem)
        .build();
    operation.responses.responses.insert("default".into(), response.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        let document: serde_json::Value = serde_json::from_str(document("0")).expect("it is JSON");
        let routes = include_str!("routes/mod.rs");
        let mut seen = 0;
        for line in routes.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")) {
            let path = &line[..line.find('"').expect("a path ends")];
            if path == "/" || path == "/v1/openapi.json" {
                continue;
            }
            assert!(document["paths"][path].is_object(), "{path}");
            seen += 1;
        }
        assert!(seen > 20, "the routes were found");
    }
}
