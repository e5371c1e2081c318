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
    let mut addresses = Vec::new();
    for address in &config.listen {
        addresses.extend(resolve(address)?);
    }
    if let Some(address) = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback())
        && !has_tokens
        && !config.access.open
    {
        return Err(Failure::Usage(exposed(config, *address)));
    }
    addresses.into_iter().map(listen).collect()
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

fn resolve(address: &Address) -> Result<Vec<SocketAddr>, Failure> {
    let name = &address.0;
    let found = name.to_socket_addrs().map(Vec::from_iter).map_err(|error| {
        Failure::Usage(format!("`listen`: {name} cannot be found: {error}; write an IP address and a port"))
    })?;
    // A name may stand for an address of each family, which would be two sockets on one port; people mean one.
    let first = found.first().copied().into_iter().collect();
    Ok(first)
}

fn listen(address: SocketAddr) -> Result<Socket, Failure> {
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
            io::ErrorKind::AddrInUse => {
                "another process listens there: stop that one, or choose another port by --listen"
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have that address: choose one that it has by --listen"
            }
            io::ErrorKind::PermissionDenied => "this user may not use that port: choose one above 1023 by --listen",
            _ => "choose another address by --listen",
        };
        Failure::Failed(format!("cannot listen on {address}: {fix} ({error})"))
    })
}
