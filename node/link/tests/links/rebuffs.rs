//! Nodes that should not link, and say why.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use punctual_center::Links;
use punctual_link::{Credentials, Settings};

use crate::node::{Node, Word, brisk};

/// Two nodes with these settings do not link: each says why, nobody hears of it, and it is not tried again and again.
fn do_not_link(a: Settings, b: Settings, trouble: &str) {
    let (a, b) = (Node::with("a", a), Node::with("b", b));
    a.links.keep(&[b.peer()]);
    let found = a.trouble();
    assert!(found.contains(trouble), "{found}");
    sleep(Duration::from_millis(500));
    for node in [&a, &b] {
        assert_eq!(node.log.words(), []);
        assert_eq!(node.links.traffic().rebuffs, 1, "told once, and not tried again soon");
    }
}

fn credentials(center: u8, secret: u8) -> Credentials {
    let bytes = [[center; 16], [secret; 16], [secret; 16]].concat();
    Credentials::from_bytes(&bytes).unwrap()
}

#[test]
fn a_node_without_the_secret_is_refused() {
    let other = Settings { credentials: credentials(7, 8), ..brisk() };
    do_not_link(other.clone(), brisk(), "refused by the other node: it does not have the center's secret");
    do_not_link(brisk(), other, "it does not have the center's secret");
}

#[test]
fn a_node_of_another_center_is_refused() {
    let other = Settings { credentials: credentials(8, 7), ..brisk() };
    do_not_link(other, brisk(), "it belongs to another center");
}

#[test]
fn nodes_without_a_common_version_do_not_link() {
    do_not_link(Settings { versions: 2..=3, ..brisk() }, brisk(), "upgrade the older one");
    do_not_link(brisk(), Settings { versions: 2..=3, ..brisk() }, "upgrade the older one");
}

#[test]
fn a_node_that_also_speaks_a_newer_version_speaks_the_common_one() {
    for (a, b) in [(1..=2, 1..=1), (1..=1, 1..=2), (0..=1, 1..=9)] {
        let a = Node::with("a", Settings { versions: a, ..brisk() });
        let b = Node::with("b", Settings { versions: b, ..brisk() });
        let on = a.link_to(b.peer());
        a.ask(on, 1, 10).unwrap();
        a.log.wait_for(0, |word| matches!(word, Word::Told(..)).then_some(()));
    }
}

#[test]
fn somebody_else_at_the_address_is_not_spoken_to() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    let mut peer = b.peer();
    peer.who.number += 1;
    a.links.keep(&[peer]);
    assert!(a.trouble().contains("somebody else listens there"), "{}", a.trouble());
    assert_eq!(b.log.words(), []);
    // Once it is known who is there, the rebuff does not stand in the way.
    a.link_to(b.peer());
}

#[test]
fn a_stranger_hears_nothing_and_disturbs_nobody() {
    let mut settings = brisk();
    settings.pace.greeting = Duration::from_millis(300);
    let (a, b) = (Node::new("a"), Node::with("b", settings));
    let on = a.link_to(b.peer());
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PNCT\xff\xff", b"PNCT\x02\0\x0a\0", b""] {
        let mut stranger = TcpStream::connect(b.links.address()).unwrap();
        stranger.write_all(bytes).unwrap();
        let mut heard = Vec::new();
        // Hung up on, with bytes of its own unread or not.
        _ = stranger.read_to_end(&mut heard);
        assert_eq!(heard, b"", "{bytes:?}");
    }
    a.ask(on, 1, 10).unwrap();
    a.log.wait_for(0, |word| matches!(word, Word::Told(..)).then_some(()));
    assert_eq!(b.links.traffic().links_answered, 1);
}
