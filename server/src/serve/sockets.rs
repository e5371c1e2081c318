//! Where the server listens, and whether it may without tokens.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use punctual_socket::{Listener, UnixError, listen_unix};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

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

/// Opens all sockets. Refuses an address that other machines reach if whoever reaches it could do everything.
pub fn bind(config: &Config, has_tokens: bool, runtime: &Runtime) -> Result<Vec<Socket>, Failure> {
    let _runtime = runtime.enter();
    let endpoints: Vec<Endpoint> =
        config.listen.iter().map(|address| resolve("listen", address)).collect::<Result<_, _>>()?;
    if let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.is_exposed())
        && !has_tokens
        && !config.access.open
    {
        return Err(Failure::Usage(exposed(config, endpoint)));
    }
    endpoints.into_iter().map(|endpoint| listen(config, "listen", endpoint)).collect()
}

/// Opens the socket of the beanstalk door, if there is to be one. Its protocol knows no tokens: where they would be
/// needed it has to be asked for twice.
pub fn bind_beanstalk(config: &Config, has_tokens: bool, runtime: &Runtime) -> Result<Option<Socket>, Failure> {
    let _runtime = runtime.enter();
    let Some(address) = &config.beanstalk.listen else { return Ok(None) };
    let endpoint = resolve("beanstalk.listen", address)?;
    let is_guarded = !has_tokens && !endpoint.is_exposed();
    if !is_guarded && !config.beanstalk.open {
        return Err(Failure::Usage(unguarded(&endpoint, has_tokens)));
    }
    listen(config, "beanstalk.listen", endpoint).map(Some)
}

fn unguarded(endpoint: &Endpoint, has_tokens: bool) -> String {
    let why = if has_tokens { "tokens are in force elsewhere" } else { "other machines reach it" };
    format!(
        "`beanstalk.listen`: {endpoint} would be open to everybody, and {why}: the protocol knows no tokens.\n  \
         Say --beanstalk-open if something else keeps strangers out, or listen on 127.0.0.1 without tokens"
    )
}

fn exposed(config: &Config, endpoint: &Endpoint) -> String {
    format!(
        "{endpoint} can be reached by other machines, and there are no tokens in {}: anybody could do everything.\n  \
         Make a token first: punctual token create --name admin --role admin --data {}\n  \
         or listen on 127.0.0.1 only, or say --access-open if something else keeps strangers out",
        config.tokens().display(),
        config.data.display(),
    )
}

/// The endpoint that a setting means. A name may stand for one address of each family, which would be two sockets on one port;
/// people mean one.
fn resolve(setting: &str, address: &Address) -> Result<Endpoint, Failure> {
    let name = match address {
        Address::Named(name) => name,
        Address::Unix(path) => return Ok(Endpoint::Unix(path.clone())),
    };
    let unknown = |why: &str| Failure::Usage(format!("`{setting}`: {name} {why}; write an IP address and a port"));
    let mut found = name.to_socket_addrs().map_err(|error| unknown(&format!("cannot be found: {error}")))?;
    found.next().map(Endpoint::Address).ok_or_else(|| unknown("stands for no address"))
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
            io::ErrorKind::AddrInUse => "another process listens there: stop that one, or choose another port",
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address: choose one that it has",
            io::ErrorKind::PermissionDenied => "this user may not use that port: choose one above 1023",
            _ => "choose another address",
        };
        let flag = setting.replace('.', "-");
        Failure::Failed(format!("cannot listen on {address}: {fix} by --{flag} ({error})"))
    })
}

fn listen_on_file(setting: &str, path: &Path, mode: u32) -> Result<Socket, Failure> {
    let endpoint = Endpoint::Unix(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    match listen_unix(path, mode, LINE) {
        Ok(listener) => Ok(Socket { listener, endpoint }),
        Err(error) => {
            let fix = match &error {
                UnixError::InUse => "stop that one, or choose another path",
                UnixError::NotASocket => "remove it if it is not needed, or choose another path",
                UnixError::TooLong(_) => "choose a shorter path",
                UnixError::System(error) => match error.kind() {
                    io::ErrorKind::NotFound => "make its directory first, or choose another path",
                    io::ErrorKind::PermissionDenied => "this user may not make files there: choose another path",
                    _ => "choose another path",
                },
            };
            let flag = setting.replace('.', "-");
            Err(Failure::Failed(format!("cannot listen on {endpoint}: {error}: {fix} by --{flag}")))
        }
    }
}
