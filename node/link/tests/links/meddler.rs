//! A proxy that holds bytes back in one direction, or alters one of them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use punctual_engines::Way;

pub struct Meddler {
    port: u16,
    mood: Arc<(Mutex<Mood>, Condvar)>,
}

#[derive(Default)]
struct Mood {
    /// By direction: whether nothing passes.
    held: [bool; 2],
    /// By direction: which of the next bytes is altered.
    flip: [Option<usize>; 2],
}

impl Meddler {
    pub fn to(port: u16) -> Meddler {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let mood: Arc<(Mutex<Mood>, Condvar)> = Arc::default();
        let theirs = Arc::clone(&mood);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
                for (way, from, to) in [(Way::There, &client, &server), (Way::Back, &server, &client)] {
                    let (from, to, mood) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(&theirs));
                    thread::spawn(move || carry(way, from, to, &mood));
                }
            }
        });
        Meddler { port: own, mood }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Holds back what goes in this direction, on all connections.
    pub fn hold(&self, way: Way) {
        self.mood.0.lock().unwrap().held[way as usize] = true;
    }

    pub fn pass(&self) {
        self.mood.0.lock().unwrap().held = [false; 2];
        self.mood.1.notify_all();
    }

    /// Alters a byte: after so many more in this direction.
    pub fn flip(&self, way: Way, after: usize) {
        self.mood.0.lock().unwrap().flip[way as usize] = Some(after);
    }
}

fn carry(way: Way, mut from: TcpStream, mut to: TcpStream, mood: &(Mutex<Mood>, Condvar)) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mut state = mood.1.wait_while(mood.0.lock().unwrap(), |mood| mood.held[way as usize]).unwrap();
        match state.flip[way as usize].take() {
            Some(after) if after < count => bytes[after] ^= 1,
            Some(after) => state.flip[way as usize] = Some(after - count),
            None => {}
        }
        drop(state);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    _ = to.shutdown(Shutdown::Both);
    _ = from.shutdown(Shutdown::Both);
}
