//! Plain HTTP/1.1 over a socket: enough to talk to the server without the code that is tested.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long an answer may take; longer than any long poll of a test.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Its body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, self.text()))
    }

    /// Its body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The same if it has this status; otherwise the test fails and shows the answer.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A connection that can take several requests, one after the other.
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
    token: Option<String>,
}

impl Connection {
    /// Connects.
    pub fn open(address: &str, token: Option<String>) -> Connection {
        Connection::try_open(address, token).unwrap()
    }

    /// Connects, if somebody listens.
    pub fn try_open(address: &str, token: Option<String>) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufReader::new(stream), host: address.to_owned(), token })
    }

    /// Sends a request and reads the answer.
    pub fn request(&mut self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.send(method, path, body);
        self.receive()
    }

    /// Sends a request.
    pub fn send(&mut self, method: &str, path: &str, body: Option<&Value>) {
        self.try_send(method, path, body).unwrap();
    }

    /// Sends a request, if the connection holds.
    pub fn try_send(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.host);
        if let Some(token) = &self.token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        let body = body.map(|body| serde_json::to_vec(body).unwrap());
        if let Some(body) = &body {
            head += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        let request = [head.as_bytes(), b"\r\n", body.as_deref().unwrap_or_default()].concat();
        self.stream.get_mut().write_all(&request)
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Reads an answer.
    pub fn receive(&mut self) -> Answer {
        self.try_receive().expect("the server answers")
    }

    /// Reads an answer, if the connection holds.
    pub fn try_receive(&mut self) -> io::Result<Answer> {
        let (status, headers) = self.receive_head()?;
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let mut body = Vec::new();
        if let Some(length) = header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body)?;
        } else if header("transfer-encoding").is_some() {
            while let Some(chunk) = self.receive_chunk()? {
                body.extend(chunk);
            }
        }
        Ok(Answer { status, headers, body })
    }

    /// Reads the head of an answer; what comes after it is read by [`receive_chunk`](Connection::receive_chunk).
    pub fn receive_head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("not an answer: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        Ok((status, headers))
    }

    /// Reads a chunk of a long answer; `None` at its end.
    pub fn receive_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line()?;
        let length = usize::from_str_radix(&line, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length];
        self.stream.read_exact(&mut chunk)?;
        self.line()?;
        Ok((length > 0).then_some(chunk))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
