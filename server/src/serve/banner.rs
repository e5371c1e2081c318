//! What the server says on standard output when it is ready: for people, and for whoever started it.
//!
//! The lines `listening on http://ADDRESS` are stable: with port 0, scripts and tests read from them which port was
//! taken. Those of unix sockets are `listening on unix:PATH for http`.

use std::io::{Write, stdout};
use std::net::SocketAddr;

use punctual_almanac::Almanac;
use punctual_node::access::Access;

use super::sockets::{Endpoint, Socket};
use crate::config::Effective;

/// Says where the server listens, where its data is, what a confirmation is worth, and how to try it.
pub fn show(effective: &Effective, sockets: &[Socket], beanstalk: Option<&Socket>, almanac: &Almanac, access: &Access) {
    let config = &effective.config;
    let scheme = if config.tls.certificate.is_some() { "https" } else { "http" };
    let mut text = format!("Punctual {}\n", env!("CARGO_PKG_VERSION"));
    let protocols = sockets.iter().map(|socket| (scheme, socket)).chain(beanstalk.map(|socket| ("beanstalk", socket)));
    for (protocol, socket) in protocols {
        text += &match &socket.endpoint {
            Endpoint::Address(address) => format!("listening on {protocol}://{address}\n"),
            // Nothing is encrypted that stays on the machine.
            endpoint @ Endpoint::Unix(_) => {
                format!("listening on {endpoint} for {}\n", protocol.replace("https", "http"))
            }
        };
    }
    let data = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
    text += &format!("data in {}\n", data.display());
    text += &format!("{almanac}\n");
    text += &match effective.files.as_slice() {
        [] => "no configuration file; `punctual config` shows what counts\n".to_owned(),
        files => format!("configured by {}; `punctual config` shows what counts\n", files.join(", ")),
    };
    text += &match access.is_open() {
        true => "no tokens: whoever reaches it may do everything\n".to_owned(),
        false => format!("every request needs a token of {}\n", config.tokens().display()),
    };
    let is_exposed = sockets.iter().any(|socket| socket.endpoint.is_exposed());
    if is_exposed && config.http.hosts.is_none() {
        text += "answers requests for its addresses only; add names with --http-hosts\n";
    }
    if let Some(socket) = sockets.first() {
        let url = match &socket.endpoint {
            Endpoint::Address(address) => format!("{scheme}://{}", reachable(*address)),
            Endpoint::Unix(path) => format!("--unix-socket {} http://localhost", path.display()),
        };
        let token = if access.is_open() { "" } else { " -H \"authorization: Bearer $PUNCTUAL_TOKEN\"" };
        text += &format!(
            "\nSchedule a task for 3 seconds from now, and receive it:\n  \
             curl -s {url}/v1/tasks{token} --json '{{\"topic\":\"hello\",\"delay\":\"3s\",\"text\":\"world\"}}'\n  \
             curl -s {url}/v1/reserve{token} --json '{{\"queues\":[\"hello\"],\"wait\":\"10s\"}}'\n\n"
        );
    }
    // Whoever closed the pipe does not want to know.
    let mut out = stdout().lock();
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The address by which this machine reaches it.
fn reachable(address: SocketAddr) -> String {
    let port = address.port();
    if address.ip().is_unspecified() { format!("127.0.0.1:{port}") } else { address.to_string() }
}
