//! Nodes that can hear each other.

use punctual_center::{Links, Why};

use crate::node::{Node, Word, ask, brisk};

#[test]
fn what_is_asked_is_heard_and_answered_in_order_and_once() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    let on = a.link_to(b.peer());
    for id in 0..10_000 {
        a.ask(on, id, 200).unwrap();
    }
    let expected: Vec<u64> = (0..10_000).collect();
    a.log.wait(|words| (words.len() > 10_000).then_some(()));
    assert_eq!(b.log.asked(), expected);
    assert_eq!(a.log.told(), expected);
}

#[test]
fn what_waits_together_goes_together() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    let on = a.link_to(b.peer());
    for id in 0..5_000 {
        a.ask(on, id, 200).unwrap();
    }
    a.log.wait(|words| (words.len() > 5_000).then_some(()));
    let traffic = a.links.traffic();
    assert_eq!(traffic.messages_out, 5_000);
    assert_eq!(traffic.messages_in, 5_000);
    // How many depends on who is quicker; that each goes alone does not happen.
    assert!(traffic.frames_out < 2_500, "{traffic:?}");
    assert!(traffic.bytes_out > 5_000 * 200 && traffic.bytes_in > 0, "{traffic:?}");
}

#[test]
fn both_ends_say_who_they_are() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    a.link_to(b.peer());
    let [Word::Linked(_, to)] = &a.log.words()[..] else { panic!("{:?}", a.log.words()) };
    assert_eq!((&to.who, to.software.as_str(), &to.levels), (&b.who, "1.2.3", &(1..=4)));
    let by = b.log.wait_for(0, |word| if let Word::Joined(_, by) = word { Some(by.clone()) } else { None });
    assert_eq!(by.who, a.who);
}

#[test]
fn three_nodes_link_with_each_other_and_not_with_themselves() {
    let nodes = [Node::new("a"), Node::new("b"), Node::new("c")];
    let peers: Vec<_> = nodes.iter().map(Node::peer).collect();
    nodes.iter().for_each(|node| node.links.keep(&peers));
    for node in &nodes {
        for other in nodes.iter().filter(|other| other.who != node.who) {
            let on = node.linked_after(0, &other.who);
            node.ask(on, on.0, 10).unwrap();
            node.log.wait_for(0, |word| matches!(word, Word::Told(from, _) if *from == on).then_some(()));
        }
        assert_eq!(node.links.peers().len(), 2);
    }
}

#[test]
fn a_node_that_is_not_to_be_kept_is_hung_up_on() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    let on = a.link_to(b.peer());
    a.links.keep(&[]);
    a.log.wait_for(0, |word| (*word == Word::Unlinked(on, Vec::new())).then_some(()));
    b.log.wait_for(0, |word| matches!(word, Word::Left(_)).then_some(()));
    assert_eq!(a.ask(on, 1, 0).unwrap_err().why, Why::Gone);
    assert_eq!(a.links.traffic().links_lost, 0, "it was wanted");
}

#[test]
fn a_node_that_moves_is_dialled_where_it_is() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    a.links.keep(&[b.peer_at(1)]);
    a.trouble();
    let words = a.log.words().len();
    a.links.keep(&[b.peer()]);
    a.linked_after(words, &b.who);
}

#[test]
fn closing_writes_what_waits() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    let on = a.link_to(b.peer());
    for id in 0..3_000 {
        a.ask(on, id, 1_000).unwrap();
    }
    a.links.close();
    a.log.wait_for(0, |word| (*word == Word::Unlinked(on, Vec::new())).then_some(()));
    b.log.wait_for(0, |word| matches!(word, Word::Left(_)).then_some(()));
    assert_eq!(b.log.asked(), (0..3_000).collect::<Vec<u64>>());
    let refused = a.links.ask(on, ask(1, 0)).unwrap_err();
    assert_eq!((*refused.message, refused.why), (ask(1, 0), Why::Gone));
}

#[test]
fn closing_comes_to_an_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (a, b) = (Node::new("a"), Node::new("b"));
    a.link_to(b.peer());
    b.links.close();
    runtime.block_on(b.links.closed());
    assert!(matches!(b.log.words()[..], [Word::Joined(..), Word::Left(_)]), "{:?}", b.log.words());
    assert!(std::net::TcpStream::connect(b.links.address()).is_err(), "nobody is let in any more");
}

#[test]
fn pings_measure_the_way_there_and_back() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    a.link_to(b.peer());
    let until = std::time::Instant::now() + crate::node::PATIENCE;
    let measured = loop {
        let peers = a.links.peers();
        if let Some(round_trip) = peers[0].round_trip {
            break round_trip;
        }
        assert!(std::time::Instant::now() < until);
        std::thread::sleep(brisk().pace.ping);
    };
    assert!(measured.last > std::time::Duration::ZERO);
    assert!(a.links.peers()[0].is_up);
}
