//! What waits is bounded, at both ends.

use punctual_center::{Message, Why};
use punctual_engines::Way;
use punctual_link::{Room, Settings};
use std::time::Duration;

use crate::meddler::Meddler;
use crate::node::{Node, Word, ask, brisk, id_of};

/// What the system and the proxy take before anything waits: a few megabytes at most.
const ON_THE_WAY: usize = 32 << 20;

fn patient() -> Settings {
    let mut settings = brisk();
    settings.pace.silence = Duration::from_secs(60);
    settings
}

#[test]
fn a_link_that_cannot_take_more_gives_messages_back() {
    let room = Room { bytes: 1 << 20, messages: 100 };
    let (a, b) = (Node::with("a", Settings { ask_room: room, ..patient() }), Node::with("b", patient()));
    let meddler = Meddler::to(b.port());
    let on = a.link_to(b.peer_at(meddler.port()));
    meddler.hold(Way::There);
    let first_back = (0..).find_map(|id| a.ask(on, id, 50_000).err()).unwrap();
    assert_eq!(first_back.why, Why::Full);
    let taken = id_of(&first_back.message);
    assert_eq!(*first_back.message, ask(taken, 50_000));
    assert!((taken as usize * 50_000) < room.bytes + ON_THE_WAY, "{taken}");
    // When the other node reads again, everything that was taken is heard, and nothing else.
    meddler.pass();
    a.log.wait(|words| {
        (words.iter().filter(|word| matches!(word, Word::Told(..))).count() as u64 == taken).then_some(())
    });
    assert_eq!(b.log.asked(), (0..taken).collect::<Vec<u64>>());
}

#[test]
fn messages_are_counted_however_short_they_are() {
    let room = Room { bytes: 64 << 20, messages: 100 };
    let (a, b) = (Node::with("a", Settings { ask_room: room, ..patient() }), Node::with("b", patient()));
    let meddler = Meddler::to(b.port());
    let on = a.link_to(b.peer_at(meddler.port()));
    meddler.hold(Way::There);
    // One message so long that the system cannot take it all: whatever comes behind it waits.
    a.ask(on, 0, ON_THE_WAY).unwrap();
    let taken = (1..1_000).take_while(|id| a.ask(on, *id, 0).is_ok()).count();
    assert!((99..=101).contains(&taken), "{taken}");
}

#[test]
fn a_node_that_does_not_read_its_answers_loses_its_link() {
    let room = Room { bytes: 1 << 20, messages: 1_000 };
    let a = Node::with("a", patient());
    let b = Node::answering("b", Settings { answer_room: room, ..patient() }, 100_000);
    let meddler = Meddler::to(b.port());
    let on = a.link_to(b.peer_at(meddler.port()));
    meddler.hold(Way::Back);
    for id in 0.. {
        if a.ask(on, id, 10).is_err() || matches!(b.log.words().last(), Some(Word::Left(_))) {
            break;
        }
        assert!((id as usize * 100_000) < room.bytes + 10 * ON_THE_WAY, "answers pile up");
        std::thread::sleep(Duration::from_micros(200));
    }
    b.log.wait_for(0, |word| matches!(word, Word::Left(_)).then_some(()));
    assert_eq!(b.links.traffic().links_lost, 1);
}

#[test]
fn one_message_may_be_longer_than_all_that_may_wait() {
    let a = Node::with("a", Settings { ask_room: Room { bytes: 1_000, messages: 10 }, ..brisk() });
    let b = Node::new("b");
    let on = a.link_to(b.peer());
    a.ask(on, 1, 5 << 20).unwrap();
    a.log.wait_for(0, |word| matches!(word, Word::Told(_, message) if id_of(message) == 1).then_some(()));
    // But no frame holds this one, ever.
    assert_eq!(a.ask(on, 2, 65 << 20).unwrap_err().why, Why::Full);
}

#[test]
fn an_answer_that_no_frame_holds_is_said_to_be_too_large() {
    let (a, b) = (Node::new("a"), Node::answering("b", brisk(), 65 << 20));
    let on = a.link_to(b.peer());
    a.ask(on, 1, 10).unwrap();
    let outcome = a.log.wait_for(0, |word| match word {
        Word::Told(_, Message::Answered { id: 1, outcome }) => Some(outcome.clone()),
        _ => None,
    });
    let error = outcome.unwrap_err();
    assert!(error.code() == "outcome-unknown" && error.to_string().contains("too large"), "{error}");
}
