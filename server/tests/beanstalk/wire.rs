//! One connection as a client has it. How many bytes an answer has is read from the answer: nothing here sleeps.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is listened for what should not come.
const MOMENT: Duration = Duration::from_millis(100);

/// How the bytes are cut into writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    /// A line, or a job with its body, at a time.
    Plain,
    ByteByByte,
    /// All that A ever says at once.
    Pipelined,
}

pub struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        // Closing alone would not tell the server while another test starts a process, which has a copy of the socket
        // until it is under way.
        _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Wire {
    pub fn open(address: &str) -> Wire {
        Wire::try_open(address).unwrap()
    }

    /// Connects, if somebody listens.
    pub fn try_open(address: &str) -> io::Result<Wire> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, unread: Vec::new() })
    }

    /// A server that has closed the connection is not listening, which the answers show.
    pub fn send(&mut self, bytes: &[u8], manner: Manner) {
        let size = if manner == Manner::ByteByByte { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(size) {
            _ = self.stream.write_all(piece);
        }
    }

    pub fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// The next answer; or, as an error, what came instead of one.
    pub fn answer(&mut self) -> Result<Vec<u8>, Vec<u8>> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(length) = length_of_answer(&self.unread).filter(|length| *length <= self.unread.len()) {
                return Ok(self.unread.drain(..length).collect());
            }
            if let Some(end) = self.read_more(until) {
                let mut came = std::mem::take(&mut self.unread);
                came.extend(end);
                return Err(came);
            }
        }
    }

    /// What comes in a moment.
    pub fn overhear(&mut self) -> Vec<u8> {
        let until = Instant::now() + MOMENT;
        while self.read_more(until).is_none() {}
        std::mem::take(&mut self.unread)
    }

    /// Reads something, or says why there is nothing.
    fn read_more(&mut self, until: Instant) -> Option<&'static [u8]> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left)).unwrap();
        let mut piece = [0; 16 * 1_024];
        match self.stream.read(&mut piece) {
            Ok(0) => Some(b"<closed>"),
            Ok(count) => {
                self.unread.extend(&piece[..count]);
                None
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Some(b"<silence>"),
            Err(error) if error.kind() == ErrorKind::Interrupted => None,
            Err(_) => Some(b"<closed>"),
        }
    }
}

/// How many bytes the answer has that begins here, as soon as its first line is there.
fn length_of_answer(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|two| two == b"\r\n")?;
    let text = String::from_utf8_lossy(&bytes[..line]);
    let mut words = text.split(' ');
    let has_body = matches!(words.next(), Some("RESERVED" | "FOUND" | "OK"));
    let body = words.next_back().filter(|_| has_body).and_then(|length| length.parse::<usize>().ok());
    Some(line + 2 + body.map_or(0, |body| body + 2))
}
