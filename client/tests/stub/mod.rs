//! A server that answers as a test tells it to: with JSON, with a problem, or by breaking the connection.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub head: String,
    pub body: Value,
}

/// What to do with a request.
pub enum Reply {
    /// This status and this JSON.
    Json(u16, Value),
    /// The same after a while.
    Late(Duration, u16, Value),
    /// This status, these header lines, this text.
    Raw(u16, &'static str, &'static str),
    /// The connection breaks; the request was heard.
    Break,
}

/// A problem with this code.
pub fn problem(status: u16, code: &str) -> Value {
    let kind = format!("urn:punctual:problem:{code}");
    json!({"type": kind, "title": code, "status": status, "code": code, "detail": "as the test says"})
}

/// A server on a free port.
pub struct Stub {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Stub {
    /// Answers every request by this; the number is how many came before, over all connections.
    pub async fn start(reply: impl FnMut(usize, &Asked) -> Reply + Send + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let reply = Arc::new(Mutex::new(reply));
        let heard = Arc::clone(&asked);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (heard, reply) = (Arc::clone(&heard), Arc::clone(&reply));
                tokio::spawn(async move {
                    let decide = |request: &Asked| {
                        let mut heard = heard.lock().unwrap();
                        let before = heard.len();
                        heard.push(request.clone());
                        drop(heard);
                        (reply.lock().unwrap())(before, request)
                    };
                    // A client that goes away is part of the tests.
                    let _ = serve(stream, decide).await;
                });
            }
        });
        Stub { url, asked, accepting }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many requests came for this path.
    pub fn count(&self, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path == path).count()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, mut decide: impl FnMut(&Asked) -> Reply) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
        while buffer.len() < end + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let first = String::from_utf8_lossy(&buffer[..end]).lines().next().unwrap_or_default().to_owned();
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let body = serde_json::from_slice(&buffer[end..end + length]).unwrap_or(Value::Null);
        buffer.drain(..end + length);
        let (status, headers, text) = match decide(&Asked { method, path, head, body }) {
            Reply::Json(status, body) => (status, "", body.to_string()),
            Reply::Late(wait, status, body) => {
                tokio::time::sleep(wait).await;
                (status, "", body.to_string())
            }
            Reply::Raw(status, headers, text) => (status, headers, text.to_owned()),
            Reply::Break => return Ok(()),
        };
        let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", text.len());
        stream.write_all(format!("{head}{text}").as_bytes()).await?;
    }
}
