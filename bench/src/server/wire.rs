//! A bare connection: bytes out, bytes in, no copies in between, so that the load costs about the same whichever
//! protocol is spoken. One asks, reads the whole answer, and asks again; the answer stays until then.

use std::io;
use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Wire {
    stream: TcpStream,
    /// What the next [`Wire::send`] sends.
    pub out: Vec<u8>,
    /// What has come since the last one.
    pub answer: Vec<u8>,
}

impl Wire {
    pub async fn connect(port: u16) -> io::Result<Wire> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, out: Vec::new(), answer: Vec::new() })
    }

    pub async fn send(&mut self) -> io::Result<()> {
        self.answer.clear();
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// Waits until more of the answer is there.
    pub async fn read_more(&mut self) -> io::Result<()> {
        const AT_LEAST: usize = 16 << 10;
        if self.answer.capacity() - self.answer.len() < AT_LEAST {
            self.answer.reserve(4 * AT_LEAST);
        }
        match self.stream.read_buf(&mut self.answer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
