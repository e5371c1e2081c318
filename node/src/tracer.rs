//! Tracing: what the node tells whoever makes spans of it, and the spans that it makes itself.
//!
//! A request has a span of its door's, whose children tell of the commits it waited for. What happens to a task is told
//! when it is durable, since its trace is in its headers and nowhere else: a task that waits for weeks costs no memory
//! for it. **Invariant**: without a [`Tracer`] nothing of this is done, and no header changes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use punctual_core::{Delivery, Event, Headers};
use tracing::Span;

use crate::caller::Caller;
use crate::committer::Sent;
use crate::shared::Shared;

/// The target of all spans. The log leaves it out.
pub const SPANS: &str = "punctual::span";

/// Makes spans of what happens to tasks, and knows in which traces.
pub trait Tracer: fmt::Debug + Send + Sync {
    /// Lets the span of a request belong to the trace that came along with it, in the headers of W3C Trace Context, or
    /// begin one. Gives the headers that carry it on, none if it is not recorded.
    fn adopt(&self, span: &Span, came: &Headers) -> Headers;

    /// A delivery is handed out, to whoever asked for it in this span. It carries the trace on from here.
    fn handed_out(&self, delivery: &mut Delivery, asked: Option<&Span>, took: Took);

    /// Something else has happened to a task or delivery.
    fn happened(&self, event: &Event, took: Took);
}

/// How long something took, from its step until it was durable, in microseconds of the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// When its step was taken.
    pub from: u64,
    /// When it was durable.
    pub until: u64,
}

impl Shared {
    /// The span of whoever calls, to be kept until there is an answer.
    pub fn span(&self) -> Option<Arc<Span>> {
        self.config.tracer.as_ref().map(|_| Arc::new(Span::current()))
    }

    /// A span of a commit for each span in which somebody waits for it.
    pub fn commit_spans(&self, sent: &[Sent]) -> Vec<Span> {
        if self.config.tracer.is_none() {
            return Vec::new();
        }
        // A request may wait for many answers, and for one commit all the same.
        let mut known = BTreeSet::new();
        sent.iter()
            .filter(|sent| sent.output.batch.is_some())
            .flat_map(|sent| &sent.output.answers)
            .filter_map(|(caller, _)| caller.span())
            .filter(|span| span.id().is_some_and(|id| known.insert(id.into_u64())))
            .map(|span| tracing::info_span!(target: SPANS, parent: span, "commit"))
            .collect()
    }
}

impl Caller {
    /// The span in which the answer is waited for.
    pub fn span(&self) -> Option<&Span> {
        match self {
            Caller::One { span, .. } | Caller::Share { span, .. } | Caller::Consumer { span, .. } => span.as_deref(),
            Caller::Forwarder(..) | Caller::Drawer(_) | Caller::Foreign(_) | Caller::Guest(_) | Caller::Nobody => None,
        }
    }
}
