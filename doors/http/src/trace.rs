//! The trace context of a scheduling request, carried in the task to its consumer (W3C Trace Context).

use http::HeaderMap;
use punctual_core::{Headers, Task};

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
    fn a_state_without_its_parent_is_left_out() {
        let mut headers = HeaderMap::new();
        headers.insert("tracestate", "a=b".parse().expect("a header value"));
        assert!(Context::of(&headers).0.is_empty());
    }
}
