//! The doors that are open: let in, drained, closed and ended together, each in its time.

use std::fmt::Write;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::sockets::{BoundDoor, Socket};
use super::{Doorway, Endpoint, Ends, Inside, Protocol};
use crate::failure::Failure;

pub struct OpenDoors(Vec<OpenDoor>);

struct OpenDoor {
    doorway: Doorway,
    protocol: Box<dyn Protocol>,
    /// Where connections come from; none once they are let in.
    sockets: Vec<Socket>,
    serving: Vec<JoinHandle<()>>,
    /// Closes it, which may be before all others.
    stop: watch::Sender<bool>,
}

impl OpenDoors {
    /// Opens doors whose sockets are bound. Nobody is let in yet.
    pub fn open(bound: Vec<BoundDoor>, inside: Inside<'_>) -> Result<OpenDoors, Failure> {
        let mut doors = Vec::new();
        for BoundDoor { doorway, sockets } in bound {
            let protocol = (doorway.open)(&inside)?;
            doors.push(OpenDoor { doorway, protocol, sockets, serving: Vec::new(), stop: watch::Sender::new(false) });
        }
        inside.metrics.show_doors(doors.iter().filter_map(|door| door.protocol.meter()).collect());
        Ok(OpenDoors(doors))
    }

    /// The addresses of all of them, for the log.
    pub fn addresses(&self) -> String {
        let endpoints = self.0.iter().flat_map(OpenDoor::endpoints);
        endpoints.map(Endpoint::to_string).collect::<Vec<_>>().join(",")
    }

    /// A line for each socket.
    pub fn listening(&self) -> String {
        let mut lines = String::new();
        for door in &self.0 {
            for endpoint in door.endpoints() {
                _ = match endpoint {
                    Endpoint::Address(address) => writeln!(lines, "listening on {}://{address}", door.doorway.scheme),
                    // Nothing is encrypted that stays on the machine.
                    Endpoint::Unix(_) => writeln!(lines, "listening on {endpoint} for {}", door.doorway.name),
                };
            }
        }
        lines
    }

    /// What people should know who start a server with these.
    pub fn advice(&self) -> String {
        self.0.iter().map(|door| door.protocol.advice(&door.endpoints().collect::<Vec<_>>())).collect()
    }

    /// Lets connections in.
    pub fn serve(&mut self) {
        for door in &mut self.0 {
            for socket in door.sockets.drain(..) {
                door.serving.push(door.protocol.serve(socket.listener, door.stop.subscribe()));
            }
        }
    }

    /// Takes no more jobs, where a door can do so.
    pub fn drain(&self) {
        let drained: Vec<&str> =
            self.0.iter().filter(|door| door.protocol.drain()).map(|door| door.doorway.name).collect();
        for name in &drained {
            tracing::info!("the {name} door accepts no more jobs until the server is restarted");
        }
        if drained.is_empty() {
            tracing::warn!("told to drain, but no open door can be drained");
        }
    }

    /// Tokens are in force: closes the doors that would let in whom they keep out.
    pub fn close_unguarded(&self) {
        for door in self.0.iter().filter(|door| door.doorway.is_closed_by_tokens()) {
            if door.close() {
                let name = door.doorway.name;
                tracing::warn!(
                    "tokens are in force now, and the {name} protocol has none: its door is closed, and the jobs its \
                     connections held are given back; start with --{name}-open if something else keeps strangers out"
                );
            }
        }
    }

    /// Lets nobody in any more.
    pub fn close(&self) {
        for door in &self.0 {
            door.close();
        }
    }

    /// Waits until these have ended.
    pub async fn end(&mut self, ends: Ends) {
        for door in self.0.iter_mut().filter(|door| door.doorway.ends == ends) {
            for serving in door.serving.drain(..) {
                if let Err(error) = serving.await {
                    tracing::error!(%error, "the {} door did not close cleanly", door.doorway.name);
                }
            }
        }
    }
}

impl OpenDoor {
    fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.sockets.iter().map(|socket| &socket.endpoint)
    }

    /// Whether it was not closed before.
    fn close(&self) -> bool {
        self.stop.send_if_modified(|is_closed| !std::mem::replace(is_closed, true))
    }
}
