//! The whole HTTP door on a store in memory: whatever is asked, it answers what was asked for or a problem.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use punctual_core::Name;
use punctual_http::{App, Console, Hosts, Limits, MoveRefused, Mover, Pulses, serve};
use punctual_memory::MemoryStore;
use punctual_node::access::Access;
use punctual_node::{Node, NodeConfig, SystemClock};
use punctual_socket::listen_unix;
use punctual_wire::{MoveStore, Problem, StoreMove, StoreStats};
use tokio::sync::watch;

const SECRET: [u8; 32] = [7; 32];

/// Long enough for a slow machine, short enough to notice that something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// There is no other store.
struct Unmoved;

impl Mover for Unmoved {
    fn begin(&self, _: &MoveStore) -> Result<StoreMove, MoveRefused> {
        Err(MoveRefused::Invalid("there is no such store".to_owned()))
    }

    fn look(&self) -> Option<StoreMove> {
        None
    }

    fn cancel(&self) -> Result<StoreMove, MoveRefused> {
        Err(MoveRefused::NoMove)
    }
}

/// Where the door listens: as long as the process lives.
static DOOR: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("there is room for a socket").keep();
    let path = directory.join("door");
    let (opened, open) = std::sync::mpsc::channel();
    let there = path.clone();
    thread::spawn(move || {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let name = Name::new("fuzzed").expect("it is a name");
        let node = Node::start(NodeConfig::new(name), store, clock).expect("a node in memory starts");
        let app = App {
            handle: node.handle(),
            access: Arc::new(Access::open()),
            secret: SECRET,
            limits: Limits { wait: Duration::ZERO, request_bytes: 1 << 16, ..Limits::default() },
            hosts: Hosts::default(),
            version: "0",
            metrics: Arc::new(|_, _| Box::pin(async { String::new() })),
            store_stats: Arc::new(StoreStats::default),
            pulses: Pulses::default(),
            mover: Arc::new(Unmoved),
            console: Some(Console::new("fuzzed", None)),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("a runtime starts").block_on(async {
            let (_never, stop) = watch::channel(false);
            let listener = listen_unix(&there, 0o600, 128).expect("the socket is free");
            opened.send(()).expect("somebody waits for the door");
            serve(listener, None, app, stop).await.expect("the door stays open");
        });
    });
    open.recv().expect("the door opens");
    path
});

/// The first line is `METHOD PATH`, maybe with how the body is packed; the body follows.
pub fn http(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (line, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    // Other line ends and headers would be requests of another kind: those are hyper's to parse.
    let Ok(line) = std::str::from_utf8(line) else { return };
    let words: Vec<&str> = line.split(' ').collect();
    let is_plain = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    if !(2..=3).contains(&words.len()) || !words.iter().all(is_plain) || !words[1].starts_with('/') {
        return;
    }
    ask(words[0], words[1], words.get(2).copied(), body);
}

/// A lease that the door has vouched for and that says whatever the bytes say.
pub fn lease(bytes: &[u8]) {
    let mut vouched = blake3::keyed_hash(&SECRET, bytes).as_bytes()[..8].to_vec();
    vouched.extend_from_slice(bytes);
    let text = URL_SAFE_NO_PAD.encode(&vouched);
    for action in ["acknowledge", "release", "reject", "extend"] {
        let body = format!(r#"{{"actions":[{{"do":"{action}","lease":"{text}"}}]}}"#);
        assert_eq!(ask("POST", "/v1/leases", None, body.as_bytes()), 200, "each action is answered by itself");
    }
}

/// Asks once, and gives the status.
fn ask(method: &str, path: &str, packing: Option<&str>, body: &[u8]) -> u16 {
    let packing = packing.map(|packing| format!("content-encoding: {packing}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{packing}\r\n",
        body.len()
    );
    let mut stream = UnixStream::connect(&*DOOR).expect("the door is open");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
    // A door that has answered already may not read the rest.
    _ = stream.write_all(&[head.as_bytes(), body].concat());
    let answer = read(&mut stream);
    let said = String::from_utf8_lossy(&answer);
    let status = said.strip_prefix("HTTP/1.1 ").and_then(|said| said.get(..3)?.parse().ok());
    let status = status.unwrap_or_else(|| panic!("{method} {path} was answered {said:?}"));
    assert!((200..600).contains(&status) && status != 500, "{method} {path} was answered {said}");
    // What hyper refuses has no body, and neither has an answer to HEAD.
    if let Some((_, body)) = said.split_once("\r\n\r\n").filter(|(_, body)| status >= 400 && !body.is_empty()) {
        let problem: Problem = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(problem.status, status, "{said}");
        assert!(!problem.detail.is_empty(), "{said}");
    }
    status
}

/// Reads an answer to its end; of a stream, which has none, what comes first.
fn read(stream: &mut UnixStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return answer,
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
            // A door that did not read all of the request resets the connection after its answer.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return answer,
            Err(error) => panic!("no answer: {error}; {}", answer.escape_ascii()),
        }
        if answer.windows(17).any(|window| window == b"text/event-stream") {
            return answer;
        }
    }
}
