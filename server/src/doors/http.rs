//! The HTTP door as it is configured.

use std::net::SocketAddr;
use std::sync::Arc;

use punctual_http::{App, Console, Hosts, Limits, Pulses};
use punctual_socket::Listener;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Doorway, Endpoint, Ends, Guard, Inside, Protocol};
use crate::config::{Config, ConsolePart};
use crate::failure::Failure;

struct Http {
    app: App,
    tls: Option<Arc<ServerConfig>>,
    /// Whether the operator has said under which names it is asked.
    has_names: bool,
}

pub fn doorway(config: &Config) -> Doorway {
    Doorway {
        name: "http",
        scheme: if config.tls.certificate.is_some() { "https" } else { "http" },
        setting: "listen",
        addresses: config.listen.clone(),
        connections: config.http.connections.get(),
        guard: Guard::Tokens,
        ends: Ends::AfterTheNode,
        open,
    }
}

fn open(inside: &Inside<'_>) -> Result<Box<dyn Protocol>, Failure> {
    let Inside { config, certificate, store, .. } = inside;
    let store = Arc::clone(store);
    let app = App {
        handle: inside.handle.clone(),
        access: Arc::clone(&inside.access),
        secret: inside.secret,
        limits: limits(config),
        hosts: Hosts::new(config.http.hosts.iter().flatten().map(|host| host.0.clone())),
        version: env!("CARGO_PKG_VERSION"),
        metrics: Arc::clone(&inside.metrics).into_source(),
        store_stats: Arc::new(move || store.stats()),
        pulses: Pulses::default(),
        mover: Arc::clone(&inside.mover) as _,
        console: console(config),
    };
    let tls = certificate.as_ref().map(|certificate| certificate.server_config(&["http/1.1"])).transpose()?;
    Ok(Box::new(Http { app, tls, has_names: config.http.hosts.is_some() }))
}

fn console(config: &Config) -> Option<Console> {
    let ConsolePart { enabled, title, environment } = &config.console;
    enabled.then(|| Console::new(title, environment.as_deref()))
}

fn limits(config: &Config) -> Limits {
    let http = &config.http;
    Limits {
        request_bytes: http.request_size.as_usize(),
        headers: http.headers.get(),
        header_bytes: http.header_size.as_usize(),
        header_time: http.header_time.as_duration(),
        body_time: http.body_time.as_duration(),
        wait: http.wait.as_duration(),
        connections: http.connections.get(),
        batch: http.batch.get(),
    }
}

impl Protocol for Http {
    fn serve(&self, listener: Listener, stop: watch::Receiver<bool>) -> JoinHandle<()> {
        punctual_http::serve(listener, self.tls.clone(), self.app.clone(), stop)
    }

    /// Under which names it is asked, and how to try it.
    fn advice(&self, endpoints: &[&Endpoint]) -> String {
        let mut text = String::new();
        if endpoints.iter().any(|endpoint| endpoint.is_exposed()) && !self.has_names {
            text += "answers only requests for its IP addresses and localhost; add host names with --http-hosts\n";
        }
        if let Some(endpoint) = endpoints.first() {
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let url = match endpoint {
                Endpoint::Address(address) => format!("{scheme}://{}", reachable(*address)),
                Endpoint::Unix(path) => format!("--unix-socket {} http://localhost", path.display()),
            };
            let token = if self.app.access.is_open() { "" } else { " -H \"authorization: Bearer $PUNCTUAL_TOKEN\"" };
            text += &format!(
                "\nSchedule a task for 3 seconds from now and receive it:\n  \
                 curl -s {url}/v1/tasks{token} --json '{{\"topic\":\"hello\",\"delay\":\"3s\",\"text\":\"world\"}}'\n  \
                 curl -s {url}/v1/reserve{token} --json '{{\"queues\":[\"hello\"],\"wait\":\"10s\"}}'\n\n"
            );
        }
        text
    }
}

/// The address by which this machine reaches it.
fn reachable(address: SocketAddr) -> String {
    let port = address.port();
    if address.ip().is_unspecified() { format!("127.0.0.1:{port}") } else { address.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_the_door_are_its_own_defaults() {
        assert_eq!(limits(&Config::default()), Limits::default());
    }
}
