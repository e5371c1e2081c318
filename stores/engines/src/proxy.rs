//! A proxy in front of a server that can hang, cut connections at any byte, and refuse.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use crate::port::free_port;

/// The direction in which bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    There,
    /// From the server to the client.
    Back,
}

/// A proxy on the loopback. It passes everything, until it is told otherwise.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Traffic>,
    changed: Condvar,
}

#[derive(Default)]
struct Traffic {
    mood: Mood,
    /// Both ends of every connection that there was.
    open: Vec<(TcpStream, TcpStream)>,
    passed: [u64; 2],
    /// How many more bytes pass in a direction before the connection that they pass on is cut.
    fuse: Option<(Way, u64)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Passing,
    Hanging,
    Refusing,
    Over,
}

impl Proxy {
    /// A proxy in front of a port of the loopback.
    pub fn to(server: u16) -> Proxy {
        let port = free_port();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port was free a moment ago");
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::spawn(move || theirs.accept(&listener, server));
        Proxy { port, shared }
    }

    /// Where it listens on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Passes everything from now on, also what it held back while it hung.
    pub fn pass(&self) {
        self.shared.turn(Mood::Passing);
    }

    /// Takes connections and bytes from now on, and passes nothing.
    pub fn hang(&self) {
        self.shared.turn(Mood::Hanging);
    }

    /// Cuts all connections, and closes those that come.
    pub fn refuse(&self) {
        self.shared.turn(Mood::Refusing);
        self.cut();
    }

    /// Cuts all connections; new ones are as they would be.
    pub fn cut(&self) {
        self.shared.state().open.drain(..).for_each(|ends| cut(&ends));
    }

    /// Lets so many more bytes pass in a direction, on whatever connections; then the one that the last of them passed
    /// on is cut, once.
    pub fn cut_after(&self, way: Way, bytes: u64) {
        self.shared.state().fuse = Some((way, bytes));
    }

    /// Whether a cut that was asked for by [`cut_after`](Proxy::cut_after) is still to come; it does not come any more.
    pub fn disarm(&self) -> bool {
        self.shared.state().fuse.take().is_some()
    }

    /// How many bytes have passed in a direction so far.
    pub fn passed(&self, way: Way) -> u64 {
        self.shared.state().passed[way as usize]
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.turn(Mood::Over);
        self.cut();
        // The thread that takes connections takes this one, and sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Traffic> {
        self.state.lock().expect("nothing panics under it")
    }

    fn turn(&self, mood: Mood) {
        self.state().mood = mood;
        self.changed.notify_all();
    }

    fn accept(self: &Arc<Shared>, listener: &TcpListener, server: u16) {
        for client in listener.incoming().flatten() {
            let mut state = self.state();
            match state.mood {
                Mood::Over => return,
                Mood::Refusing => continue,
                Mood::Passing | Mood::Hanging => {}
            }
            // A server that is away looks like one that closes the connection.
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
            let (Ok(_), Ok(_)) = (client.set_nodelay(true), server.set_nodelay(true)) else { continue };
            let (Ok(there), Ok(back)) = (ends(&client, &server), ends(&server, &client)) else { continue };
            state.open.push((client, server));
            drop(state);
            for (way, (from, to)) in [(Way::There, there), (Way::Back, back)] {
                let shared = Arc::clone(self);
                thread::spawn(move || shared.carry(way, from, to));
            }
        }
    }

    /// Carries bytes in one direction until the connection ends, and then ends it in both.
    fn carry(&self, way: Way, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let allowed = self.let_pass(way, read);
            if to.write_all(&buffer[..allowed]).is_err() || allowed < read {
                break;
            }
        }
        cut(&(from, to));
    }

    /// How many of these bytes may pass, once any may.
    fn let_pass(&self, way: Way, read: usize) -> usize {
        let hanging = |state: &mut Traffic| state.mood == Mood::Hanging;
        let mut state = self.changed.wait_while(self.state(), hanging).expect("nothing panics under it");
        let mut allowed = read;
        if let Some((armed, left)) = &mut state.fuse
            && *armed == way
        {
            if *left < read as u64 {
                allowed = usize::try_from(*left).expect("it is less than what was read");
                state.fuse = None;
            } else {
                *left -= read as u64;
            }
        }
        state.passed[way as usize] += allowed as u64;
        allowed
    }
}

fn ends(from: &TcpStream, to: &TcpStream) -> io::Result<(TcpStream, TcpStream)> {
    Ok((from.try_clone()?, to.try_clone()?))
}

/// It may be cut already.
fn cut((client, server): &(TcpStream, TcpStream)) {
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
