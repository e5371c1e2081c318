//! The OpenAPI document: made from the routes and the wire's types, so that it cannot drift from them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use punctual_wire as wire;
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, Schema, ServerBuilder};

use crate::routes::{
    audit, consumers, dead, dead_groups, deliveries, events, find, history, keys, leases, look, nodes, numbers, pulse,
    queues, series, server, store, sweeps, tasks, topics,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Punctual",
        description = "A durable delay queue. Give it a task and a time: when the time comes, it delivers the task to your consumer, and redelivers it until the consumer acknowledges it.",
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
        tasks::revoke,
        tasks::hasten,
        tasks::restore,
        audit::timeline,
        audit::list,
        find::find,
        numbers::get,
        keys::list,
        keys::cancel,
        keys::shift,
        consumers::list,
        leases::reserve,
        leases::settle,
        topics::list,
        topics::get,
        topics::put,
        topics::patch,
        topics::pause,
        topics::resume,
        topics::delete,
        queues::list,
        queues::get,
        queues::put,
        queues::patch,
        queues::pause,
        queues::resume,
        queues::delete,
        deliveries::list,
        dead::list,
        dead_groups::list,
        dead::replay,
        dead::purge,
        history::list,
        history::replay,
        sweeps::begin,
        sweeps::list,
        sweeps::get,
        sweeps::stop,
        sweeps::undo,
        look::forecast,
        look::stats,
        series::series,
        pulse::follow,
        nodes::list,
        nodes::drain,
        nodes::undrain,
        nodes::shards,
        nodes::pin,
        nodes::unpin,
        store::begin,
        store::look,
        store::cancel,
        events::follow,
        server::me,
        server::alive,
        server::ready,
        server::metrics,
    ),
    components(schemas(
        wire::Problem,
        wire::Event,
        wire::Pulse,
        wire::SeriesStep,
        wire::DeliveryState,
        wire::Name,
        wire::ListState,
        wire::Unit,
        wire::First,
        wire::Ending
    ))
)]
struct Document;

/// The document as JSON.
pub fn document(version: &str) -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut document = Document::openapi();
        document.info.version = version.into();
        let components = document.components.get_or_insert_default();
        for (path, item) in &mut document.paths.paths {
            let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
            for operation in operations.into_iter().flatten() {
                add_problem(operation);
                leave_out_what_is_refused(path, operation);
                if let Some(RefOr::T(body)) = &mut operation.request_body
                    && let Some(RefOr::T(body)) = body.content.get_mut(PATCH)
                    && let Some(RefOr::Ref(whole)) = &mut body.schema
                {
                    *whole = patch_of(whole, &mut components.schemas);
                }
                if OPEN.contains(&path.as_str()) {
                    operation.security = Some(Vec::new());
                }
            }
        }
        let here = ServerBuilder::new().url("/").description(Some("The server that this document came from."));
        document.servers = Some(vec![here.build()]);
        let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme(TOKEN, token);
        // A server without tokens asks for none.
        let needed = SecurityRequirement::new(TOKEN, Vec::<String>::new());
        document.security = Some(vec![needed, SecurityRequirement::default()]);
        document.to_json().expect("the document can be written as JSON") + "\n"
    })
}

/// The name under which the document tells of tokens.
const TOKEN: &str = "token";

/// Where nobody needs one.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// All lists take their filters from one type, and refuse those that do not fit them: these are never of use there.
const REFUSED: [(&str, &[&str]); 4] = [
    ("/v1/tasks", &["queue", "key", "reason", "note", "ending", "first"]),
    ("/v1/dead", &["state", "ending", "holder"]),
    ("/v1/history", &["state", "reason", "note", "holder"]),
    ("/v1/keys/{key}", &["topic", "queue", "from", "until", "key", "reason", "note", "ending", "first"]),
];

fn leave_out_what_is_refused(path: &str, operation: &mut Operation) {
    let lists = operation.operation_id.as_ref().is_some_and(|id| id.starts_with("list_"));
    if let (true, Some((_, refused))) = (lists, REFUSED.iter().find(|(list, _)| *list == path)) {
        let is_of_use = |parameter: &RefOr<Parameter>| match parameter {
            RefOr::T(parameter) => {
                parameter.parameter_in != ParameterIn::Query || !refused.contains(&parameter.name.as_str())
            }
            RefOr::Ref(_) => true,
        };
        operation.parameters.iter_mut().for_each(|parameters| parameters.retain(is_of_use));
    }
}

/// The form of bodies in which `null` stands for the default (RFC 7396).
const PATCH: &str = "application/merge-patch+json";

/// The form of a patch of something: like that, and every part may be `null`.
fn patch_of(whole: &Ref, schemas: &mut BTreeMap<String, RefOr<Schema>>) -> Ref {
    let name = whole.ref_location.rsplit('/').next().unwrap_or_default();
    let Some(RefOr::T(Schema::Object(object))) = schemas.get(name) else { return whole.clone() };
    if object.properties.is_empty() {
        return whole.clone();
    }
    let (patch, mut object) = (format!("{name}Patch"), object.clone());
    object.required.clear();
    for part in object.properties.values_mut() {
        *part = or_null(part, schemas);
    }
    schemas.insert(patch.clone(), Schema::Object(object).into());
    Ref::from_schema_name(patch)
}

/// This part of a patch, or `null`.
fn or_null(part: &RefOr<Schema>, schemas: &mut BTreeMap<String, RefOr<Schema>>) -> RefOr<Schema> {
    let null = || ObjectBuilder::new().schema_type(Type::Null);
    match part.clone() {
        RefOr::Ref(whole) => {
            let described = Some(whole.description.clone()).filter(|text| !text.is_empty());
            OneOfBuilder::new().item(null()).item(patch_of(&whole, schemas)).description(described).into()
        }
        RefOr::T(Schema::OneOf(mut choice)) => {
            for item in &mut choice.items {
                if let RefOr::Ref(whole) = item {
                    *whole = patch_of(whole, schemas);
                }
            }
            Schema::OneOf(choice).into()
        }
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = match object.schema_type {
                SchemaType::Type(kind) => SchemaType::Array(vec![kind, Type::Null]),
                several => several,
            };
            object.default = None;
            Schema::Object(object).into()
        }
        // Lists of settings are optional, and say so.
        other => other,
    }
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
            // What browsers get is not asked for by programs.
            if path == "/" || path == "/v1/openapi.json" || path.starts_with("/console") {
                continue;
            }
            assert!(document["paths"][path].is_object(), "{path}");
            seen += 1;
        }
        assert!(seen > 20, "the routes were found");
    }

    #[test]
    fn every_part_of_a_patch_may_be_null() {
        let document: serde_json::Value = serde_json::from_str(document("0")).expect("it is JSON");
        for (path, patch) in [("topic", "TopicSettingsPatch"), ("queue", "QueueSettingsPatch")] {
            let body = &document["paths"][format!("/v1/{path}s/{{{path}}}")]["patch"]["requestBody"]["content"][PATCH];
            assert_eq!(body["schema"]["$ref"], format!("#/components/schemas/{patch}"));
        }
        let schemas = document["components"]["schemas"].as_object().expect("there are forms");
        let patches: Vec<_> = schemas.iter().filter(|(name, _)| name.ends_with("Patch")).collect();
        assert!(patches.iter().any(|(name, _)| *name == "RetryPatch"), "what is within has one, too");
        for (name, patch) in patches {
            for (part, form) in patch["properties"].as_object().expect("it has parts") {
                assert!(form.to_string().contains("\"null\""), "{name}: {part}: {form}");
            }
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let document: serde_json::Value = serde_json::from_str(document("0")).expect("it is JSON");
        let paths = document["paths"].as_object().expect("there are paths").values();
        let operations = paths.flat_map(|path| path.as_object().expect("a path has operations").values());
        let mut names: Vec<&str> =
            operations.map(|operation| operation["operationId"].as_str().expect("it has a name")).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
