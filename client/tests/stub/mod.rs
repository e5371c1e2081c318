//! A server that answers as a test tells it to: with JSON, with a problem, or by breaking the connection.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

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

/// A server on a free port. What is asked about the server itself is answered without the test's word, and not counted.
pub struct Stub {
    pub url: String,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct State {
    asked: Mutex<Vec<Asked>>,
    nodes: Mutex<Vec<String>>,
    hangs: AtomicBool,
}

impl Stub {
    /// Answers every request by this; the number is how many came before, over all connections.
    pub async fn start(reply: impl FnMut(usize, &Asked) -> Reply + Send + 'static) -> Stub {
        Stub::start_at("127.0.0.1:0", reply).await
    }

    /// The same at this address, which somebody may have just left.
    pub async fn start_at(address: &str, reply: impl FnMut(usize, &Asked) -> Reply + Send + 'static) -> Stub {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<State> = Arc::default();
        let reply = Arc::new(Mutex::new(reply));
        let kept = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            // With the server its connections go, too.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (state, reply) = (Arc::clone(&kept), Arc::clone(&reply));
                connections.spawn(async move {
                    let decide = |request: &Asked| state.decide(request, |n, asked| (reply.lock().unwrap())(n, asked));
                    // A client that goes away is part of the tests.
                    let _ = serve(stream, &state, decide).await;
                });
            }
        });
        Stub { url, state, accepting }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// How many requests came for this path.
    pub fn count(&self, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path == path).count()
    }

    /// From now on it says that there are these nodes.
    pub fn tell_nodes(&self, urls: &[&str]) {
        *self.state.nodes.lock().unwrap() = urls.iter().map(|url| (*url).to_owned()).collect();
    }

    /// From now on it hears nothing, and answers nothing; or it goes on.
    pub fn hang(&self, hangs: bool) {
        self.state.hangs.store(hangs, Ordering::SeqCst);
    }

    /// Ends it with all its connections, and gives its address to whoever comes next.
    pub async fn end(mut self) -> String {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        self.url.strip_prefix("http://").unwrap().to_owned()
    }
}

impl State {
    fn decide(&self, request: &Asked, reply: impl FnOnce(usize, &Asked) -> Reply) -> Reply {
        match request.path.as_str() {
            "/healthz" | "/readyz" => Reply::Raw(200, "", "ready"),
            "/v1/nodes" => {
                Reply::Json(200, json!({"nodes": self.nodes.lock().unwrap().iter().map(node).collect::<Value>()}))
            }
            _ => {
                let mut asked = self.asked.lock().unwrap();
                let before = asked.len();
                asked.push(request.clone());
                drop(asked);
                reply(before, request)
            }
        }
    }
}

fn node(url: &String) -> Value {
    json!({"name": url, "url": url, "is_this": false, "is_there": true, "until": 5, "is_draining": false, "shards": 1})
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, state: &State, mut decide: impl FnMut(&Asked) -> Reply) -> std::io::Result<()> {
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
        while state.hangs.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
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
