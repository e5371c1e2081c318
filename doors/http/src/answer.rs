//! What every request passes on its way to the routes and back: logging, packing of long answers, and the look at
//! whom it is meant for.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use futures_util::future::Either;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use punctual_node::Handle;
use tower::Service;
use tower_http::compression::predicate::{And, NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{Compression, CompressionBody};
use tracing::Instrument;

use crate::app::App;
use crate::host::{self, Hosts};
use crate::routes;
use crate::trace;

/// Answers shorter than this are not worth packing.
const WORTH_PACKING: u64 = 1_024;

/// Where requests are answered. Cheap to clone. It stands outside of the router, whose own layers would cost
/// each request a few allocations.
#[derive(Clone)]
pub(crate) struct Answering {
    packing: Compression<Guarded, And<SizeAbove, NotForContentType>>,
    handle: Handle,
}

impl Answering {
    pub fn new(app: App) -> Answering {
        let worthwhile = SizeAbove::new(WORTH_PACKING).and(NotForContentType::SSE);
        let handle = app.handle.clone();
        let guarded = Guarded { hosts: app.hosts.clone(), router: routes::router(app) };
        Answering { packing: Compression::new(guarded).compress_when(worthwhile), handle }
    }

    /// Answers, in a span if somebody makes them.
    pub async fn answer(&self, request: Request<Incoming>) -> Result<Response<CompressionBody<Body>>, Infallible> {
        let mut request = request.map(Body::new);
        let Some(tracer) = self.handle.tracer() else { return self.answer_and_tell(request).await };
        let span = trace::begin(&mut request, tracer);
        let response = self.answer_and_tell(request).instrument(span.clone()).await?;
        trace::end(&span, response.status());
        Ok(response)
    }

    /// Answers, and tells of it when somebody wants to know.
    async fn answer_and_tell(&self, request: Request<Body>) -> Result<Response<CompressionBody<Body>>, Infallible> {
        let mut packing = self.packing.clone();
        if !tracing::enabled!(target: "punctual::http", tracing::Level::DEBUG) {
            return packing.call(request).await;
        }
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let traceparent = text_of(request.headers(), "traceparent");
        let tracestate = text_of(request.headers(), "tracestate");
        let begun = Instant::now();
        let response = packing.call(request).await?;
        let (status, micros) = (response.status().as_u16(), begun.elapsed().as_micros() as u64);
        tracing::debug!(target: "punctual::http", %method, path, status, micros, traceparent, tracestate, "request");
        Ok(response)
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// The routes, for whoever means this server.
#[derive(Clone)]
struct Guarded {
    hosts: Hosts,
    router: Router,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response<Body>, Infallible>>, <Router as Service<Request<Body>>>::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <Router as Service<Request<Body>>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match host::check(&request, &self.hosts) {
            Ok(()) => Either::Right(self.router.call(request)),
            Err(fault) => Either::Left(ready(Ok(fault.into_response()))),
        }
    }
}
