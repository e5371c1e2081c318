//! A client that knows all servers, keeps to one, and goes on with another when that one does not answer.

use std::io;
use std::thread;
use std::time::Duration;

use super::{Doors, Life, Servers};

/// A connection through one of the doors.
pub trait Connects: Sized {
    /// Connects, if somebody listens.
    fn open(doors: &Doors) -> io::Result<Self>;
}

/// A client. It knows nothing of the servers but their addresses and answers.
pub struct Roaming<'a, C> {
    servers: &'a dyn Servers,
    at: usize,
    connection: Option<(C, Life)>,
}

impl<'a, C: Connects> Roaming<'a, C> {
    /// One that likes a server best.
    pub fn new(servers: &'a dyn Servers, at: usize) -> Roaming<'a, C> {
        Roaming { servers, at: at % servers.count(), connection: None }
    }

    /// The next request goes to another server.
    pub fn leave(&mut self) {
        self.connection = None;
        self.at = (self.at + 1) % self.servers.count();
    }

    /// The connection to a server that runs, and which life of it that is.
    pub fn connect(&mut self) -> &mut (C, Life) {
        while self.connection.is_none() {
            let doors = self.servers.doors(self.at);
            self.connection = doors.and_then(|doors| Some((C::open(&doors).ok()?, doors.life)));
            if self.connection.is_none() {
                self.leave();
                thread::sleep(Duration::from_millis(10));
            }
        }
        self.connection.as_mut().expect("there is one")
    }
}
