//! Where the server listens, and whether it may without tokens.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;

use crate::config::{Address, Config};
use crate::failure::Failure;

/// How many connections may wait to be let in.
const LINE: u32 = 1_024;

/// A socket that is listening.
pub struct Socket {
    pub listener: TcpListener,
    /// Where; with the port that was chosen if none was asked for.
    pub address: SocketAddr,
}

/// Opens all sockets. Refuses an address that other machines reach if whoever reaches it could do everything.
pub fn bind(config: &Config, has_tokens: bool, runtime: &Runtime) -> Result<Vec<Socket>, Failure> {
    let _runtime = runtime.enter();
    let addresses: Vec<SocketAddr> =
        config.listen.iter().map(|address| resolve("listen", address)).collect::<Result<_, _>>()?;
    if let Some(address) = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback())
        && !has_tokens
        && !config.access.open
    {
        return Err(Failure::Usage(exposed(config, *address)));
    }
    addresses.into_iter().map(|address| listen("listen", address)).collect()
}

/// Opens the socket of the beanstalk door, if there is to be one. Its protocol knows no tokens: where they would be
/// needed it has to be asked for twice.
pub fn bind_beanstalk(config: &Config, has_tokens: bool, runtime: &Runtime) -> Result<Option<Socket>, Failure> {
    let _runtime = runtime.enter();
    let Some(address) = &config.beanstalk.listen else { return Ok(None) };
    let address = resolve("beanstalk.listen", address)?;
    let is_guarded = !has_tokens && address.ip().to_canonical().is_loopback();
    if !is_guarded && !config.beanstalk.open {
        return Err(Failure::Usage(unguarded(address, has_tokens)));
    }
    listen("beanstalk.listen", address).map(Some)
}

fn unguarded(address: SocketAddr, has_tokens: bool) -> String {
    let why = if has_tokens { "tokens are in force elsewhere" } else { "other machines reach it" };
    format!(
        "`beanstalk.listen`: {address} would be open to everybody, and {why}: the protocol knows no tokens.\n  \
         Say --beanstalk-open if something else keeps strangers out, or listen on 127.0.0.1 without tokens"
    )
}

fn exposed(config: &Config, address: SocketAddr) -> String {
    format!(
        "{address} can be reached by other machines, and there are no tokens in {}: anybody could do everything.\n  \
         Make a token first: punctual token create --name admin --role admin --data {}\n  \
         or listen on 127.0.0.1 only, or say --access-open if something else keeps strangers out",
        config.tokens().display(),
        config.data.display(),
    )
}

/// The address that a setting means. A name may stand for one of each family, which would be two sockets on one port;
/// people mean one.
fn resolve(setting: &str, address: &Address) -> Result<SocketAddr, Failure> {
    let name = &address.0;
    let unknown = |why: &str| Failure::Usage(format!("`{setting}`: {name} {why}; write an IP address and a port"));
    let mut found = name.to_socket_addrs().map_err(|error| unknown(&format!("cannot be found: {error}")))?;
    found.next().ok_or_else(|| unknown("stands for no address"))
}

fn listen(setting: &str, address: SocketAddr) -> Result<Socket, Failure> {
    let opened = (|| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A restart must not wait until the kernel has forgotten the connections of the one before.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(LINE)?;
        let address = listener.local_addr()?;
        Ok(Socket { listener, address })
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
