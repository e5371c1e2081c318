//! Links that break, in every way that a network has.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use punctual_center::Links;
use punctual_chance::Chance;
use punctual_engines::{Proxy, Way};

use crate::meddler::Meddler;
use crate::node::{Node, Word, brisk, id_of};

/// The requests that were given back with the end of a link.
fn unsent(node: &Node) -> BTreeSet<u64> {
    let words = node.log.words();
    let unsent = words.iter().filter_map(|word| if let Word::Unlinked(_, unsent) = word { Some(unsent) } else { None });
    unsent.flatten().map(id_of).collect()
}

fn is_rising(ids: &[u64]) -> bool {
    ids.windows(2).all(|pair| pair[0] < pair[1])
}

#[test]
fn whatever_is_cut_order_is_kept_and_what_is_given_back_was_never_heard() {
    let mut chance = Chance::new(3);
    let (a, b) = (Node::new("a"), Node::new("b"));
    let proxy = Proxy::to(b.port());
    a.links.keep(&[b.peer_at(proxy.port())]);
    let (mut id, mut words) = (0, 0);
    let (mut taken, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..30 {
        let on = a.linked_after(words, &b.who);
        words = a.log.words().len();
        let way = *chance.pick(&[Way::There, Way::Back]);
        proxy.cut_after(way, chance.magnitude(1, 300_000));
        loop {
            let was_taken = a.ask(on, id, chance.magnitude(1, 30_000) as usize).is_ok();
            if was_taken { &mut taken } else { &mut refused }.insert(id);
            id += 1;
            if !was_taken && a.log.words()[words..].iter().any(|word| matches!(word, Word::Unlinked(..))) {
                break;
            }
            if chance.percent(5) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        proxy.disarm();
    }
    let (heard, answered, back) = (b.log.asked(), a.log.told(), unsent(&a));
    assert!(is_rising(&heard) && is_rising(&answered), "in order, and nothing twice");
    let heard: BTreeSet<u64> = heard.into_iter().collect();
    assert!(heard.is_subset(&taken) && refused.is_disjoint(&heard) && back.is_disjoint(&heard));
    assert!(answered.iter().all(|id| heard.contains(id)));
    assert!(back.is_subset(&taken));
    assert_eq!(a.links.peers()[0].breaks, 30, "each cut was one");
}

#[test]
fn what_waits_when_a_link_breaks_is_given_back_in_order_and_was_never_heard() {
    let mut settings = brisk();
    settings.pace.silence = Duration::from_secs(1);
    let (a, b) = (Node::with("a", settings), Node::new("b"));
    let meddler = Meddler::to(b.port());
    let on = a.link_to(b.peer_at(meddler.port()));
    meddler.hold(Way::There);
    // More than the system takes by itself.
    let asked = (0..15).take_while(|id| a.ask(on, *id, 1 << 20).is_ok()).count() as u64;
    let back = a.log.wait_for(0, |word| if let Word::Unlinked(_, unsent) = word { Some(unsent.clone()) } else { None });
    meddler.pass();
    b.log.wait_for(0, |word| matches!(word, Word::Left(_)).then_some(()));
    let first_back = id_of(back.first().unwrap());
    assert_eq!(back.iter().map(id_of).collect::<Vec<u64>>(), (first_back..asked).collect::<Vec<u64>>());
    let heard = b.log.asked();
    assert!(heard.iter().all(|id| *id < first_back), "{heard:?} of {asked}, and from {first_back} on given back");
}

#[test]
fn a_byte_that_was_altered_ends_the_link_before_anything_is_believed() {
    for way in [Way::There, Way::Back] {
        let (a, b) = (Node::new("a"), Node::new("b"));
        let meddler = Meddler::to(b.port());
        let on = a.link_to(b.peer_at(meddler.port()));
        a.ask(on, 1, 100).unwrap();
        a.log.wait_for(0, |word| matches!(word, Word::Told(..)).then_some(()));
        // In the middle of the request or of its answer, pings aside.
        meddler.flip(way, 20);
        let until = Instant::now() + crate::node::PATIENCE;
        let mut id = 2;
        while a.ask(on, id, 100).is_ok() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(1));
            id += 1;
        }
        a.log.wait_for(0, |word| matches!(word, Word::Unlinked(..)).then_some(()));
        b.log.wait_for(0, |word| matches!(word, Word::Left(_)).then_some(()));
        assert!(is_rising(&b.log.asked()) && is_rising(&a.log.told()));
        let forged = if way == Way::There { &b } else { &a };
        assert_eq!(forged.links.traffic().links_lost, 1);
        // The next link is a good one.
        let on = a.log.wait_for(0, |word| match word {
            Word::Linked(next, _) if *next != on => Some(*next),
            _ => None,
        });
        a.ask(on, 1_000_000, 100).unwrap();
        a.log.wait_for(0, |word| matches!(word, Word::Told(_, message) if id_of(message) == 1_000_000).then_some(()));
    }
}

#[test]
fn a_link_on_which_nothing_comes_is_closed_in_either_direction() {
    for way in [Way::There, Way::Back] {
        let mut settings = brisk();
        settings.pace.silence = Duration::from_secs(1);
        let (a, b) = (Node::with("a", settings.clone()), Node::with("b", settings));
        let meddler = Meddler::to(b.port());
        let on = a.link_to(b.peer_at(meddler.port()));
        // A link at rest stays.
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(a.links.peers()[0].is_up);
        let held_at = Instant::now();
        meddler.hold(way);
        a.log.wait_for(0, |word| matches!(word, Word::Unlinked(gone, _) if *gone == on).then_some(()));
        b.log.wait_for(0, |word| matches!(word, Word::Left(_)).then_some(()));
        assert!(held_at.elapsed() > Duration::from_millis(700), "not before");
        meddler.pass();
        a.log.wait_for(0, |word| matches!(word, Word::Linked(next, _) if *next != on).then_some(()));
    }
}

#[test]
fn a_node_that_is_away_is_dialled_until_it_is_back() {
    let (a, b) = (Node::new("a"), Node::new("b"));
    let proxy = Proxy::to(b.port());
    let first = a.link_to(b.peer_at(proxy.port()));
    proxy.refuse();
    a.log.wait_for(0, |word| matches!(word, Word::Unlinked(gone, _) if *gone == first).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    assert!(a.links.peers()[0].trouble.is_some());
    let words = a.log.words().len();
    proxy.pass();
    let second = a.linked_after(words, &b.who);
    assert_ne!(first, second, "links do not share a number");
    a.ask(second, 1, 10).unwrap();
    a.log.wait_for(0, |word| matches!(word, Word::Told(on, _) if *on == second).then_some(()));
}

#[test]
fn a_node_that_links_anew_takes_the_place_of_its_old_link() {
    let mut patient = brisk();
    patient.pace.silence = Duration::from_secs(60);
    let (a, b) = (Node::new("a"), Node::with("b", patient));
    let meddler = Meddler::to(b.port());
    a.link_to(b.peer_at(meddler.port()));
    // The old one hangs, as far as the node that was dialled can see.
    meddler.hold(Way::There);
    a.log.wait_for(0, |word| matches!(word, Word::Unlinked(..)).then_some(()));
    let words = a.log.words().len();
    a.links.keep(&[b.peer()]);
    a.linked_after(words, &b.who);
    b.log.wait_for(0, |word| matches!(word, Word::Left(_)).then_some(()));
    assert_eq!(b.log.words().iter().filter(|word| matches!(word, Word::Joined(..))).count(), 2);
}
