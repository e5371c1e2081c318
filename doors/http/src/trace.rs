//! The trace context of a request (W3C Trace Context): carried in a task to its consumer, and what the request's own
//! span belongs to.

use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use punctual_core::{Headers, Task};
use punctual_node::{SPANS, Tracer};
use tracing::Span;
use tracing::field::Empty;

/// The headers in which a trace context travels, over HTTP and in a task alike.
const CARRIED: [&str; 2] = ["traceparent", "tracestate"];

/// The trace context of a request.
pub(crate) struct Context(Headers);

impl Context {
    pub fn of(headers: &HeaderMap) -> Context {
        // A state without its parent says nothing.
        if !headers.contains_key(CARRIED[0]) {
            return Context(Headers::new());
        }
        let carried = CARRIED.iter().filter_map(|name| {
            let value = headers.get(*name)?.to_str().ok()?;
            Some(((*name).to_owned(), value.to_owned()))
        });
        Context(carried.collect())
    }

    /// Puts the context into a task that does not bring its own.
    pub fn put_into(&self, task: &mut Task) {
        if !self.0.is_empty() && task.headers.iter().all(|(name, _)| !CARRIED.contains(&name.as_str())) {
            task.headers.extend(self.0.iter().cloned());
        }
    }
}

/// Begins the span of a request, in the trace that came along with it. From here on the request's own headers say what
/// carries it on, as if whoever sent it had begun the span.
pub(crate) fn begin<B>(request: &mut Request<B>, tracer: &dyn Tracer) -> Span {
    let (method, path) = (request.method().as_str(), request.uri().path());
    let route = route(path);
    let span = tracing::info_span!(
        target: SPANS,
        "request",
        "otel.name" = format!("{method} {route}"),
        "otel.kind" = "server",
        "otel.status_code" = Empty,
        "http.request.method" = method,
        "url.path" = path,
        "http.route" = route,
        "http.response.status_code" = Empty,
    );
    let carried = tracer.adopt(&span, &Context::of(request.headers()).0);
    let headers = request.headers_mut();
    if !carried.is_empty() {
        CARRIED.iter().for_each(|name| _ = headers.remove(*name));
    }
    for (name, value) in carried {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    span
}

/// Notes in its span how a request was answered.
pub(crate) fn end(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

/// The path without what differs from task to task, so that spans of the same kind bear the same name.
fn route(path: &str) -> &str {
    path.match_indices('/').nth(2).map_or(path, |(end, _)| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Name;

    #[test]
    fn a_context_travels_unless_the_task_brings_its_own() {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", "00-1-2-01".parse().expect("a header value"));
        headers.insert("tracestate", "a=b".parse().expect("a header value"));
        let context = Context::of(&headers);
        let mut task = Task::new(Name::new("t").expect("a name"), "");
        context.put_into(&mut task);
        assert_eq!(task.headers.len(), 2);
        context.put_into(&mut task);
        assert_eq!(task.headers.len(), 2);
    }

    #[test]
    fn paths_of_the_same_kind_are_one_route() {
        assert_eq!(["/v1/tasks/orders/7", "/v1/tasks", "/", ""].map(route), ["/v1/tasks", "/v1/tasks", "/", ""]);
    }

    #[test]
    fn a_state_without_its_parent_is_left_out() {
        let mut headers = HeaderMap::new();
        headers.insert("tracestate", "a=b".parse().expect("a header value"));
        assert!(Context::of(&headers).0.is_empty());
    }
}
