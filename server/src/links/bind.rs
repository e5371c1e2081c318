//! Where this server listens for others on the same store, and what they are told.
//!
//! Whoever reaches the store most likely reaches this machine by the address from which the machine itself does: so several
//! servers find each other without set-up.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use crate::config::{Address, Config};
use crate::failure::Failure;

/// A socket on which other servers are let in.
#[derive(Debug)]
pub struct Bound {
    /// The socket.
    pub listener: TcpListener,
    /// What others are told.
    pub address: String,
}

/// Listens for other servers, if the store is one that several can work with.
pub fn bind(config: &Config) -> Result<Option<Bound>, Failure> {
    if !config.store.url.is_remote() {
        return Ok(None);
    }
    let wanted = match &config.links.listen {
        Some(Address::Named(address)) => address.clone(),
        Some(Address::Unix(_)) => return Err(not_a_port("listen")),
        None => SocketAddr::new(nearest(config.store.url.host()), 0).to_string(),
    };
    let cannot =
        |error| Failure::Failed(format!("cannot listen on {wanted} for other servers (`links.listen`): {error}"));
    let listener = TcpListener::bind(&*wanted).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let bound = listener.local_addr().map_err(cannot)?;
    let address = match &config.links.advertise {
        Some(Address::Named(address)) => address.clone(),
        Some(Address::Unix(_)) => return Err(not_a_port("advertise")),
        // One that listens everywhere is reached where the store's other servers most likely are.
        None if bound.ip().is_unspecified() => {
            SocketAddr::new(nearest(config.store.url.host()), bound.port()).to_string()
        }
        None => bound.to_string(),
    };
    Ok(Some(Bound { listener, address }))
}

fn not_a_port(setting: &str) -> Failure {
    Failure::Usage(format!("`links.{setting}`: other servers need an address with a port, such as 10.0.0.5:7401"))
}

/// The address from which this machine reaches a host; the loopback if it names none or cannot be found.
fn nearest(host: Option<&str>) -> IpAddr {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some(host) = host else { return loopback };
    let route = |local: &str| {
        let socket = UdpSocket::bind(local)?;
        // Nothing is sent: the system only looks which way it would go.
        socket.connect((host, 9))?;
        socket.local_addr()
    };
    route("0.0.0.0:0").or_else(|_| route("[::]:0")).map_or(loopback, |address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_on_this_machine_is_reached_by_the_loopback() {
        for host in [None, Some("127.0.0.1"), Some("localhost"), Some("no.such.host.invalid")] {
            assert_eq!(nearest(host), IpAddr::V4(Ipv4Addr::LOCALHOST), "{host:?}");
        }
    }
}
