//! Sending spans to a collector, beside everything else, on the exporter's own thread.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as Exporter};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How long a collector may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often the log is told about losses.
const COMPLAIN: Duration = Duration::from_secs(60);
/// How much of a collector's answer is read; it says next to nothing.
const ANSWER: usize = 64 << 10;

/// What sends spans to a collector there.
pub fn exporter(endpoint: &str) -> Result<impl Exporter + 'static, String> {
    // Collectors take traces there, whatever is in front of it.
    let full = if endpoint.ends_with("/v1/traces") {
        endpoint.to_owned()
    } else {
        format!("{}/v1/traces", endpoint.trim_end_matches('/'))
    };
    let wrong = |error: &dyn std::fmt::Display| {
        format!("`trace.endpoint`: {endpoint} is not a URL ({error}): write something like http://127.0.0.1:4318")
    };
    let client = Post::new().map_err(|error| wrong(&error))?;
    let exporter = SpanExporter::builder().with_http().with_http_client(client).with_endpoint(&full);
    let exporter = exporter.with_timeout(TIMEOUT).build().map_err(|error| wrong(&error))?;
    Ok(Telling { exporter, endpoint: full, losses: Mutex::default() })
}

/// Tells the log of spans that did not get there, once in a while.
#[derive(Debug)]
struct Telling {
    exporter: SpanExporter,
    endpoint: String,
    /// How many were lost that the log was not told of, and when it was last.
    losses: Mutex<(usize, Option<Instant>)>,
}

impl Exporter for Telling {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        if let Err(why) = self.exporter.export(batch).await {
            let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
            losses.0 += spans;
            if losses.1.is_none_or(|at| at.elapsed() > COMPLAIN) {
                let endpoint = &self.endpoint;
                tracing::warn!(spans = losses.0, %why, endpoint, "spans were lost on the way to the collector");
                *losses = (0, Some(Instant::now()));
            }
        }
        // What is to be said about it is said.
        Ok(())
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// A client with a runtime of its own: spans are sent after the server's has ended, too.
#[derive(Debug)]
struct Post {
    runtime: Runtime,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Post {
    fn new() -> std::io::Result<Post> {
        let provider = rustls::crypto::ring::default_provider();
        let connector = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
        let connector = connector.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Post { runtime: Builder::new_current_thread().enable_all().build()?, client })
    }
}

#[async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = async {
            let (head, body) = self.client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        // The exporter's thread has nothing else to do.
        self.runtime.block_on(async { timeout(TIMEOUT, exchange).await? })
    }
}
