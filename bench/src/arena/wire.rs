//! A bare connection: bytes out, bytes in, no copies in between, so that the load costs about the same whichever
//! protocol is spoken. Either one asks, reads the whole answer, and asks again ([`Wire::send`]), or one asks on while
//! answers are under way ([`Wire::exchange`]).

use std::io;
use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

pub struct Wire {
    stream: TcpStream,
    /// What is sent next.
    pub out: Vec<u8>,
    /// How much of it is sent already.
    sent: usize,
    /// What has come and was not forgotten.
    pub answer: Vec<u8>,
}

impl Wire {
    pub async fn connect(port: u16) -> io::Result<Wire> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, out: Vec::new(), sent: 0, answer: Vec::new() })
    }

    /// Sends all and forgets the answer before.
    pub async fn send(&mut self) -> io::Result<()> {
        self.answer.clear();
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// Waits until more of the answer is there.
    pub async fn read_more(&mut self) -> io::Result<()> {
        self.make_room();
        match self.stream.read_buf(&mut self.answer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Sends and reads at the same time; back when something has come, even if not all is sent: who would only send might
    /// wait for a server that waits until its answers are taken.
    pub async fn exchange(&mut self) -> io::Result<()> {
        while !self.send_some()? {
            let ready = self.stream.ready(Interest::READABLE | Interest::WRITABLE).await?;
            if ready.is_readable() && self.read_some()? {
                return Ok(());
            }
        }
        self.read_more().await
    }

    /// The same without waiting for anything.
    pub fn exchange_now(&mut self) -> io::Result<()> {
        self.send_some()?;
        self.read_some().map(drop)
    }

    /// Forgets what was read of the answers.
    pub fn forget(&mut self, read: usize) {
        self.answer.drain(..read);
    }

    /// Sends what can be sent now; says whether that was all.
    fn send_some(&mut self) -> io::Result<bool> {
        while self.sent < self.out.len() {
            match self.stream.try_write(&self.out[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Reads what is there now; says whether anything was.
    fn read_some(&mut self) -> io::Result<bool> {
        self.make_room();
        match self.stream.try_read_buf(&mut self.answer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn make_room(&mut self) {
        const AT_LEAST: usize = 16 << 10;
        if self.answer.capacity() - self.answer.len() < AT_LEAST {
            self.answer.reserve(4 * AT_LEAST);
        }
    }
}
