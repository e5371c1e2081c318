//! Where doors listen.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use punctual_socket::{Listener, UnixError, listen_unix};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

use super::Doorway;
use crate::config::{Address, Config};
use crate::failure::Failure;

/// How many connections may wait to be let in.
const LINE: u32 = 1_024;

/// A socket that is listening.
pub struct Socket {
    pub listener: Listener,
    pub endpoint: Endpoint,
}

/// Where a socket is.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// With the port that was chosen if none was asked for.
    Address(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// Whether other machines reach it.
    pub fn is_exposed(&self) -> bool {
        match self {
            Endpoint::Address(address) => !address.ip().to_canonical().is_loopback(),
            Endpoint::Unix(_) => false,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Address(address) => address.fmt(f),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A door whose sockets are listening. Whoever connects waits in their line until it is open.
pub struct BoundDoor {
    pub doorway: Doorway,
    pub sockets: Vec<Socket>,
}

/// Opens the sockets of all doors.
pub fn bind(doorways: Vec<Doorway>, config: &Config, runtime: &Runtime) -> Result<Vec<BoundDoor>, Failure> {
    let _runtime = runtime.enter();
    let listening = doorways.into_iter().filter(|doorway| !doorway.addresses.is_empty());
    let bind = |doorway: Doorway| {
        let resolved = doorway.addresses.iter().map(|address| resolve(doorway.setting, address));
        let endpoints: Vec<Endpoint> = resolved.collect::<Result<_, _>>()?;
        let sockets = endpoints.into_iter().map(|endpoint| listen(config, doorway.setting, endpoint));
        Ok(BoundDoor { sockets: sockets.collect::<Result<_, _>>()?, doorway })
    };
    listening.map(bind).collect()
}

/// The endpoint that a setting means. A name may stand for one address of each family, which would be two sockets on one port;
/// people mean one.
fn resolve(setting: &str, address: &Address) -> Result<Endpoint, Failure> {
    let name = match address {
        Address::Named(name) => name,
        Address::Unix(path) => return Ok(Endpoint::Unix(path.clone())),
    };
    let unknown = |why: &str| Failure::Usage(format!("`{setting}`: {name} {why}; write an IP address and a port"));
    let mut found = name.to_socket_addrs().map_err(|error| unknown(&format!("cannot be resolved: {error}")))?;
    found.next().map(Endpoint::Address).ok_or_else(|| unknown("has no address"))
}

fn listen(config: &Config, setting: &str, endpoint: Endpoint) -> Result<Socket, Failure> {
    match endpoint {
        Endpoint::Address(address) => listen_on_address(setting, address),
        Endpoint::Unix(path) => listen_on_file(setting, &path, config.unix.mode.0),
    }
}

fn listen_on_address(setting: &str, address: SocketAddr) -> Result<Socket, Failure> {
    let opened = (|| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A restart must not wait until the kernel has forgotten the connections of the one before.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(LINE)?;
        let endpoint = Endpoint::Address(listener.local_addr()?);
        Ok(Socket { listener: Listener::Tcp(listener), endpoint })
    })();
    opened.map_err(|error: io::Error| {
        let fix = match error.kind() {
            io::ErrorKind::AddrInUse => "another process is listening there: stop it, or choose another port",
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address: choose one of its own",
            io::ErrorKind::PermissionDenied => "this user may not use that port: choose one above 1023",
            _ => "choose another address",
        };
        let flag = setting.replace('.', "-");
        Failure::Failed(format!("cannot listen on {address}: {fix} with --{flag} ({error})"))
    })
}

fn listen_on_file(setting: &str, path: &Path, mode: u32) -> Result<Socket, Failure> {
    let endpoint = Endpoint::Unix(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    match listen_unix(path, mode, LINE) {
        Ok(listener) => Ok(Socket { listener, endpoint }),
        Err(error) => {
            let fix = match &error {
                UnixError::InUse => "stop it, or choose another path",
                UnixError::NotASocket => "remove it if you do not need it, or choose another path",
                UnixError::TooLong(_) => "choose a shorter path",
                UnixError::System(error) => match error.kind() {
                    io::ErrorKind::NotFound => "create its directory first, or choose another path",
                    io::ErrorKind::PermissionDenied => "this user may not create files there: choose another path",
                    _ => "choose another path",
                },
            };
            let flag = setting.replace('.', "-");
            Err(Failure::Failed(format!("cannot listen on {endpoint}: {error}: {fix} with --{flag}")))
        }
    }
}
