//! A whole door on a store in memory: whatever comes in, every command gets its answer in the protocol.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use punctual_beanstalk::{Door, Limits, Machine, serve};
use punctual_core::Name;
use punctual_memory::MemoryStore;
use punctual_node::{Node, NodeConfig, SystemClock};
use tokio::sync::watch;

use crate::conversation::conversation;
use crate::talk::Talk;

const MAX_JOB: u32 = 20;

/// Long enough for a slow machine, short enough to notice that something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The words that answers begin with, and whether a body follows whose length is the last number.
const ANSWERS: [(&str, bool); 23] = [
    ("INSERTED", false),
    ("USING", false),
    ("RESERVED", true),
    ("FOUND", true),
    ("OK", true),
    ("WATCHING", false),
    ("KICKED", false),
    ("DELETED", false),
    ("RELEASED", false),
    ("BURIED", false),
    ("TOUCHED", false),
    ("PAUSED", false),
    ("NOT_FOUND", false),
    ("NOT_IGNORED", false),
    ("TIMED_OUT", false),
    ("DEADLINE_SOON", false),
    ("BAD_FORMAT", false),
    ("UNKNOWN_COMMAND", false),
    ("EXPECTED_CRLF", false),
    ("JOB_TOO_BIG", false),
    ("OUT_OF_MEMORY", false),
    ("DRAINING", false),
    ("INTERNAL_ERROR", false),
];

/// The door that all cases talk to, one after the other: what earlier ones have left is there for those after them.
static DOOR: LazyLock<SocketAddr> = LazyLock::new(|| {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = Arc::new(SystemClock);
            let store = Arc::new(MemoryStore::new(clock.clone()));
            let node = Node::start(NodeConfig::new(Name::new("node").unwrap()), store, clock).unwrap();
            let door = Arc::new(door(&node));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let (_never, stop) = watch::channel(false);
            serve(punctual_socket::Listener::Tcp(listener), door, stop).await.unwrap();
        });
    });
    told.recv().unwrap()
});

fn door(node: &Node) -> Door {
    let limits =
        Limits { connections: 10, batch: 8, max_job_size: MAX_JOB, unread_time: PATIENCE, creates_tubes: true };
    let machine = Machine {
        version: "1.12",
        hostname: "host".to_owned(),
        os: "os".to_owned(),
        platform: "platform".to_owned(),
        times: || (Duration::ZERO, Duration::ZERO),
    };
    Door::new(node.handle(), limits, machine, &Name::new("node").unwrap(), 7).unwrap()
}

/// All that the door says to these bytes, sent in pieces of these lengths, until it closes the connection.
fn answers(mut bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut stream = TcpStream::connect(*DOOR).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    for cut in cuts.iter().cycle() {
        let (piece, rest) = bytes.split_at((*cut).min(bytes.len()));
        // A client that has quit is not listened to any more.
        if piece.is_empty() || stream.write_all(piece).is_err() {
            break;
        }
        bytes = rest;
    }
    _ = stream.shutdown(Shutdown::Write);
    let mut said = Vec::new();
    // What comes behind a quit is thrown away, which the system tells as a reset: what was said before counts.
    _ = stream.read_to_end(&mut said);
    said
}

/// How many answers these are; an error if something is none.
fn count(mut said: &[u8]) -> Result<usize, String> {
    let mut count = 0;
    while !said.is_empty() {
        let end = said.windows(2).position(|window| window == b"\r\n").ok_or("a line without an end")?;
        let line = std::str::from_utf8(&said[..end]).map_err(|error| error.to_string())?;
        let word = line.split(' ').next().unwrap_or_default();
        let (_, has_body) = ANSWERS.iter().find(|(known, _)| *known == word).ok_or(format!("{line:?} is no answer"))?;
        said = &said[end + 2..];
        if *has_body {
            let length: usize = line.rsplit(' ').next().and_then(|length| length.parse().ok()).ok_or(line)?;
            if said.get(length..length + 2) != Some(b"\r\n") {
                return Err(format!("the body of {line:?} has another length"));
            }
            said = &said[length + 2..];
        }
        count += 1;
    }
    Ok(count)
}

/// How many answers there should be.
fn expected(bytes: &[u8]) -> (usize, bool) {
    // What begins as a TLS handshake is hung up on.
    if bytes.first() == Some(&0x16) {
        return (0, true);
    }
    let mut talk = Talk::new(MAX_JOB);
    let quits = !talk.hear(bytes);
    (talk.said.len() - usize::from(quits), quits)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    #[test]
    fn every_command_gets_one_answer(bytes in conversation(), cuts in vec(1_usize..400, 1..6)) {
        let (expected, quits) = expected(&bytes);
        let said = answers(&bytes, &cuts);
        let count = count(&said).map_err(TestCaseError::fail)?;
        // Of answers before a quit that is followed by more, the reset may take some.
        let right = count == expected || quits && count <= expected;
        prop_assert!(right, "{} answers instead of {}: {}", count, expected, said.escape_ascii());
    }
}
