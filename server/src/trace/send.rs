//! Sending spans to a collector, many at once, beside everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::{Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;

use super::Span;
use super::layer::{Requests, TARGET};
use super::otlp;
use crate::config::Config;
use crate::logs::Extra;

/// How many spans may wait to be sent.
const WAITING: usize = 8_192;
/// How many are sent at once.
const TOGETHER: usize = 512;
/// How long the first of them waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often the log is told about losses.
const COMPLAIN: Duration = Duration::from_secs(60);
/// How much of a collector's answer is read; it says next to nothing.
const ANSWER: usize = 64 << 10;

/// Where spans are sent, and who asks for it.
pub struct Export {
    spans: Receiver<Span>,
    lost: Arc<AtomicU64>,
    endpoint: Uri,
    instance: String,
    client: Client<HttpsConnector<HttpConnector>, Full<bytes::Bytes>>,
}

impl Export {
    /// What the configuration asks for, if it does: the exporter, and what feeds it with the door's events.
    pub fn from(config: &Config) -> Result<Option<(Export, Extra)>, String> {
        let Some(endpoint) = &config.trace.endpoint else { return Ok(None) };
        // Collectors take traces there, whatever is in front of it.
        let full = if endpoint.ends_with("/v1/traces") {
            endpoint.clone()
        } else {
            format!("{}/v1/traces", endpoint.trim_end_matches('/'))
        };
        let wrong = |error: &dyn std::fmt::Display| {
            format!("`trace.endpoint`: {endpoint} is not a URL ({error}): write http://127.0.0.1:4318 or the like")
        };
        let endpoint: Uri = full.parse().map_err(|error| wrong(&error))?;
        let provider = rustls::crypto::ring::default_provider();
        let connector =
            HttpsConnectorBuilder::new().with_provider_and_native_roots(provider).map_err(|error| wrong(&error))?;
        let client = Client::builder(TokioExecutor::new()).build(connector.https_or_http().enable_http1().build());
        let (sender, spans) = channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let only_requests = Targets::new().with_target(TARGET, Level::DEBUG);
        let layer = Requests::new(sender, Arc::clone(&lost), config.trace.sample.0).with_filter(only_requests).boxed();
        Ok(Some((Export { spans, lost, endpoint, instance: config.node.name.to_string(), client }, layer)))
    }

    /// Sends for as long as spans come.
    pub async fn run(mut self) {
        let mut losses = 0;
        let mut complained: Option<Instant> = None;
        while let Some(first) = self.spans.recv().await {
            let mut spans = vec![first];
            // What does not come in time goes with the next ones.
            _ = timeout(GATHER, async {
                while spans.len() < TOGETHER
                    && let Some(span) = self.spans.recv().await
                {
                    spans.push(span);
                }
            })
            .await;
            let why = match self.send(&spans).await {
                Ok(()) => "too many requests to keep up with".to_owned(),
                Err(error) => {
                    losses += spans.len() as u64;
                    error
                }
            };
            losses += self.lost.swap(0, Ordering::Relaxed);
            if losses > 0 && complained.is_none_or(|at| at.elapsed() > COMPLAIN) {
                let endpoint = &self.endpoint;
                tracing::warn!(spans = losses, why, %endpoint, "spans were lost on their way to the collector");
                (losses, complained) = (0, Some(Instant::now()));
            }
        }
    }

    async fn send(&self, spans: &[Span]) -> Result<(), String> {
        let body = otlp::request("punctual", &self.instance, env!("CARGO_PKG_VERSION"), spans);
        let request = Request::post(self.endpoint.clone())
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::USER_AGENT, concat!("punctual/", env!("CARGO_PKG_VERSION")))
            .body(Full::from(body))
            .map_err(|error| error.to_string())?;
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| chain(&error))?;
            let status = answer.status();
            // Read to its end, so that the connection can be used again.
            _ = Limited::new(answer.into_body(), ANSWER).collect().await;
            if status.is_success() { Ok(()) } else { Err(format!("the collector answered {status}")) }
        };
        timeout(TIMEOUT, exchange).await.unwrap_or_else(|_| Err("the collector did not answer in time".to_owned()))
    }
}

/// An error with all that led to it: the client's own says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}
