//! The two that are compared: the real beanstalkd, and Punctual with its beanstalk door open.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_engines::free_port;
use tempfile::TempDir;

use crate::stage::{self, ONE_SHARD, Server};
use crate::wire::{Manner, Wire};

/// A server that speaks the protocol.
pub trait Peer {
    fn address(&self) -> String;
    fn drain(&self);
    /// Ends it, in order or by kill -9, and starts it on the same data.
    fn start_again(&mut self, is_killed: bool);
    /// How long it may take until it knows of a closed connection.
    fn sees_a_close_within(&self) -> Duration;
    /// Whether its `list-tubes` must be put into Punctual's order.
    fn sorts_tubes(&self) -> bool;
}

/// The real one, on a port of its own.
pub struct Beanstalkd {
    directory: TempDir,
    is_durable: bool,
    child: Child,
    port: u16,
}

impl Beanstalkd {
    pub fn start(is_durable: bool) -> Beanstalkd {
        let directory = tempfile::Builder::new().prefix("beanstalkd-").tempdir().unwrap();
        let (child, port) = spawn(&directory, is_durable);
        Beanstalkd { directory, is_durable, child, port }
    }

    /// How it has ended, if it has by itself. Its end is seen a moment after its sockets are gone.
    pub fn ended_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + time;
        loop {
            match self.child.try_wait().unwrap() {
                None if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
                ended => return ended,
            }
        }
    }

    fn end(&mut self, signal: &str) {
        send(signal, self.child.id());
        self.child.wait().unwrap();
    }
}

/// Another process of these tests may take the port before it does; then another one is tried.
fn spawn(directory: &TempDir, is_durable: bool) -> (Child, u16) {
    loop {
        let port = free_port();
        let mut command = Command::new("beanstalkd");
        // As many bytes in a job as Punctual takes.
        command.args(["-l", "127.0.0.1", "-z", "1048576", "-p", &port.to_string()]);
        if is_durable {
            command.arg("-b").arg(directory.path()).arg("-f0");
        }
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("beanstalkd does not start ({error}): apt-get install beanstalkd"));
        let mut has_ended = false;
        stage::eventually("beanstalkd listens", || {
            has_ended = child.try_wait().unwrap().is_some();
            has_ended || is_beanstalkd(port)
        });
        if !has_ended {
            return (child, port);
        }
    }
}

/// Whether it is beanstalkd that listens, and not somebody who was quicker. When this says so, it has seen the end of the
/// connection: nothing of that is left for the next one. It does not count this command.
fn is_beanstalkd(port: u16) -> bool {
    let Ok(mut wire) = Wire::try_open(&format!("127.0.0.1:{port}")) else { return false };
    wire.send(b"quit\r\n", Manner::Plain);
    wire.answer() == Err(b"<closed>".to_vec())
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status().unwrap();
    assert!(sent.success(), "kill -{signal}");
}

impl Peer for Beanstalkd {
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn drain(&self) {
        send("USR1", self.child.id());
    }

    fn start_again(&mut self, is_killed: bool) {
        self.end(if is_killed { "KILL" } else { "TERM" });
        (self.child, self.port) = spawn(&self.directory, self.is_durable);
    }

    fn sees_a_close_within(&self) -> Duration {
        // It hears one connection at a time in turn, and a command may come first.
        Duration::from_millis(100)
    }

    fn sorts_tubes(&self) -> bool {
        true
    }
}

impl Drop for Beanstalkd {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Punctual with the door open on a free port. It was knocked at, as beanstalkd was: both count connections.
pub fn punctual() -> Server {
    punctual_with(&[])
}

/// The same with further arguments. It has one shard, since beanstalkd has one order.
pub fn punctual_with(args: &[&str]) -> Server {
    let server = Server::start_with(&[&["--beanstalk-listen", "127.0.0.1:0"], ONE_SHARD, args].concat());
    drop(Wire::open(&server.beanstalk_address()));
    server
}

impl Peer for Server {
    fn address(&self) -> String {
        self.beanstalk_address()
    }

    fn drain(&self) {
        self.signal("USR1");
    }

    fn start_again(&mut self, is_killed: bool) {
        if is_killed {
            self.kill()
        } else {
            _ = self.stop()
        }
        Server::start_again(self);
    }

    fn sees_a_close_within(&self) -> Duration {
        Duration::ZERO
    }

    fn sorts_tubes(&self) -> bool {
        false
    }
}
