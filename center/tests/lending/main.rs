//! Consumers of one node and deliveries of another: facts, and random worlds.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod world;

use punctual_center::{Lending, LinkId, Message};
use punctual_core::{Board, Choice, QueueSettings, Rate, Reserve, Timestamp};

use world::{LEASE, World};

const QUEUES: [&str; 3] = ["a", "b", "c"];

fn got(world: &World, consumer: usize) -> Option<usize> {
    world.consumers[consumer].answer.as_ref().map(Vec::len)
}

#[test]
fn what_fires_on_one_node_reaches_who_waits_on_another() {
    let mut world = World::new(2, 1);
    let consumer = world.come(0, &["a"], 1, 60_000);
    world.pass(100);
    world.schedule(1, "a", 10);
    world.pass(30);
    assert_eq!((got(&world, consumer), world.surplus), (Some(1), 0));
}

#[test]
fn one_delivery_costs_one_round_trip_and_calls_one_consumer() {
    let mut world = World::new(4, 2);
    for node in [1, 2, 3, 1, 2, 3] {
        world.come(node, &["a"], 1, 60_000);
    }
    world.pass(100);
    world.said.clear();
    world.slowness = 1;
    world.schedule(0, "a", 0);
    world.pass(100);
    assert_eq!(world.waiting(), 5);
    let said = world.said.into_iter().collect::<Vec<_>>();
    assert_eq!(said, [("Lend", 1), ("Served", 1), ("Stocked", 1)]);
}

#[test]
fn who_has_waited_longest_is_served_first() {
    let mut world = World::new(2, 3);
    let consumers: Vec<usize> = (0..8).map(|_| world.come(0, &["a"], 1, 60_000)).collect();
    world.pass(50);
    for _ in 0..8 {
        world.schedule(1, "a", 0);
        world.pass(50);
    }
    assert_eq!(world.order, consumers);
}

#[test]
fn a_herd_on_another_node_uses_all_who_wait_in_a_few_round_trips() {
    let mut world = World::new(2, 4);
    (world.slowness, world.commit) = (0, 0);
    for _ in 0..100 {
        world.come(0, &["a"], 1, 60_000);
    }
    world.pass(50);
    (0..200).for_each(|_| world.schedule(1, "a", 0));
    world.pass(10);
    assert_eq!((world.waiting(), world.surplus), (0, 0));
}

#[test]
fn who_does_not_wait_gets_what_another_node_has_and_else_is_sent_away_without_delay() {
    let mut world = World::new(3, 5);
    world.schedule(2, "a", 0);
    world.pass(20);
    let lucky = world.come(0, &["b", "a"], 1, 0);
    world.pass(30);
    assert_eq!(got(&world, lucky), Some(1));
    let unlucky = world.come(0, &["b", "a"], 1, 0);
    world.pass(0);
    assert_eq!(got(&world, unlucky), Some(0), "it is known by now that nobody has anything");
    // Somebody who asks again and again costs no words.
    world.said.clear();
    for _ in 0..1_000 {
        let number = world.come(0, &["b", "a"], 1, 0);
        world.pass(5);
        assert_eq!(got(&world, number), Some(0));
    }
    assert_eq!(world.said.get("Want"), None);
    assert_eq!(world.said.get("Lend"), None);
}

#[test]
fn who_does_not_wait_is_kept_for_a_second_at_most_by_a_node_that_does_not_answer() {
    let mut world = World::new(2, 6);
    world.slowness = 0;
    world.cut(1, 0);
    world.cut(0, 1);
    world.pass(100);
    world.slowness = 100_000;
    world.link_all();
    let number = world.come(0, &["a"], 1, 0);
    world.pass(990);
    assert_eq!(got(&world, number), None);
    world.pass(20);
    assert_eq!(got(&world, number), Some(0));
    // From then on nobody waits for it.
    let number = world.come(0, &["a", "b"], 1, 0);
    world.pass(0);
    assert_eq!(got(&world, number), Some(0));
}

#[test]
fn who_is_lent_to_a_node_that_does_not_answer_comes_back_after_a_while() {
    let mut world = World::new(2, 12);
    let number = world.come(0, &["a"], 1, 60_000);
    world.pass(100);
    world.schedule(1, "a", 0);
    while !world.said.contains_key("Lend") {
        world.pass(1);
    }
    world.slowness = 100_000;
    world.pass(5_010);
    world.schedule(0, "a", 0);
    world.pass(10);
    assert_eq!(got(&world, number), Some(1), "it stands at its own node again");
}

#[test]
fn a_queue_that_nobody_wants_any_more_is_taken_back() {
    let mut world = World::new(2, 7);
    let number = world.come(0, &["a"], 1, 100);
    world.pass(25_000);
    assert_eq!((got(&world, number), world.said["Unwant"]), (Some(0), 1));
    world.said.clear();
    world.schedule(1, "a", 0);
    world.pass(1_000);
    assert!(world.said.is_empty(), "{:?}", world.said);
}

#[test]
fn neither_this_node_nor_another_starves_while_there_is_plenty_on_both() {
    let mut world = World::new(3, 8);
    for node in 0..3 {
        (0..60).for_each(|_| world.schedule(node, "a", 0));
    }
    world.pass(20);
    let mut from = [0; 3];
    for _ in 0..60 {
        let number = world.come(0, &["a"], 1, 60_000);
        world.pass(20);
        let delivery = &world.consumers[number].answer.as_ref().unwrap()[0];
        from[delivery.id.split('-').next().unwrap().parse::<usize>().unwrap()] += 1;
    }
    assert!(from.iter().all(|count| *count >= 15), "{from:?}");
}

#[test]
fn a_queue_with_a_rate_gives_to_other_nodes_as_fast_as_it_may() {
    let mut world = World::new(2, 9);
    let rate = Some(Rate { per_second: 10, burst: 1 });
    world.put_queue(1, "a", QueueSettings { rate, ..QueueSettings::default() });
    (0..50).for_each(|_| world.schedule(1, "a", 0));
    (0..50).for_each(|_| _ = world.come(0, &["a"], 1, 60_000));
    world.pass(2_000);
    assert!((17..=21).contains(&world.order.len()), "{}", world.order.len());
    assert!(world.said["Lend"] <= 3 * world.order.len(), "few go in vain: {:?}", world.said);
}

#[test]
fn who_leaves_while_it_is_lent_leaves_nothing_leased() {
    let mut world = World::new(2, 10);
    world.slowness = 20;
    let first = world.come(0, &["a"], 1, 60_000);
    world.pass(100);
    world.schedule(1, "a", 0);
    while !world.said.contains_key("Lend") {
        world.pass(1);
    }
    world.leave(first);
    let second = world.come(0, &["a"], 1, 60_000);
    world.pass(300);
    assert_eq!(got(&world, second), Some(1), "it came well before a lease would have ended");
}

#[test]
fn what_is_being_written_for_somebody_who_leaves_is_given_back_where_it_is() {
    let mut surplus = 0;
    for seed in 0..10 {
        let mut world = World::new(2, seed);
        world.slowness = 0;
        let first = world.come(0, &["a"], 1, 60_000);
        world.pass(100);
        world.commit = 200;
        world.schedule(1, "a", 0);
        while !world.said.contains_key("Lend") {
            world.pass(1);
        }
        world.leave(first);
        let second = world.come(0, &["a"], 1, 60_000);
        world.pass(LEASE.0 / 2);
        assert_eq!(got(&world, second), Some(1), "its lease has not ended yet");
        surplus += world.surplus;
    }
    assert!(surplus > 5, "most of them were served when they left");
}

#[test]
fn who_is_lent_comes_back_when_the_link_breaks() {
    let mut world = World::new(3, 11);
    world.slowness = 50;
    let number = world.come(0, &["a"], 1, 60_000);
    world.pass(200);
    world.schedule(1, "a", 0);
    while !world.said.contains_key("Lend") {
        world.pass(1);
    }
    world.cut(0, 1);
    world.pass(100);
    assert_eq!(got(&world, number), None);
    world.schedule(2, "a", 0);
    world.pass(300);
    assert_eq!(got(&world, number), Some(1));
}

#[test]
fn a_loan_that_was_not_understood_is_made_again_later() {
    let (mut lending, mut board, on) = (Lending::default(), Board::default(), LinkId(1));
    let (queue, at) = (world::name("a"), |millis: u64| Timestamp::from_millis(1_000 + millis));
    lending.linked(on, &mut board, at(0));
    let queues = vec![queue.clone()];
    let (consumer, choice) = (world::name("c"), Choice::InTurn);
    board.post(Reserve { queues, max: 1, lease: None, until: Timestamp::NEVER, consumer, choice }, ());
    lending.look(&mut board, at(0));
    let stocked = || Message::Stocked { queues: vec![queue.clone()], is_stocked: true };
    lending.told(on, stocked(), &mut board, at(1));
    let said = lending.take_consequences().say;
    let [(_, Message::Want { .. }), (_, Message::Lend { id: 0, .. })] = &said[..] else { panic!("{said:?}") };
    lending.told(on, Message::Served { id: 0, deliveries: vec![], empty: vec![] }, &mut board, at(2));
    assert!(lending.take_consequences().say.is_empty() && board.candidate("a").is_some(), "it is back, and stays");
    lending.look(&mut board, lending.wakes_at());
    let said = lending.take_consequences().say;
    let [(_, Message::Want { .. })] = &said[..] else { panic!("{said:?}") };
    lending.told(on, stocked(), &mut board, at(6_000));
    assert!(matches!(&lending.take_consequences().say[..], [(_, Message::Lend { id: 1, .. })]));
}

/// Random comings and goings; says how the world was left.
fn live(seed: u64, may_break: bool) -> World {
    let mut world = World::new(2 + seed as usize % 3, seed);
    let nodes = 2 + seed as usize % 3;
    world.slowness = *world.chance.pick(&[0, 2, 10, 100]);
    world.commit = *world.chance.pick(&[0, 3, 20]);
    for _ in 0..150 {
        let node = world.chance.index(nodes);
        match world.chance.below(100) {
            0..35 => {
                let (queue, delay) = (QUEUES[world.chance.index(3)], *world.chance.pick(&[0, 0, 5, 50]));
                world.schedule(node, queue, delay);
            }
            35..70 => {
                let queues = match world.chance.below(3) {
                    0 => &QUEUES[..],
                    1 => &QUEUES[..1],
                    _ => &QUEUES[1..],
                };
                let max = *world.chance.pick(&[1, 1, 1, 4]);
                let wait = *world.chance.pick(&[0, 0, 30, 1_000, 60_000]);
                world.come(node, queues, max, wait);
            }
            70..75 if may_break => {
                let waiting = world.who_waits();
                if !waiting.is_empty() {
                    let number = *world.chance.pick(&waiting);
                    world.leave(number);
                }
            }
            75..79 if may_break => {
                let other = world.chance.index(nodes);
                world.cut(node, other);
            }
            79..83 => world.link_all(),
            _ => {
                let millis = world.chance.below(30);
                world.pass(millis);
            }
        }
    }
    world
}

#[test]
fn everything_is_given_to_somebody_who_waits_and_everybody_is_answered_once() {
    for seed in 0..1_000 {
        let mut world = live(seed, true);
        world.pass(200);
        world.link_all();
        // Enough who wait, on one node or on all of them, until what was lost has come out again.
        let nodes = 2 + seed as usize % 3;
        let crowd = world.tasks() + 5;
        let everywhere = world.chance.percent(50);
        for number in 0..crowd {
            world.come(if everywhere { number % nodes } else { 0 }, &QUEUES, 1, 20_000);
        }
        world.pass(LEASE.0 * 2 + 1_000);
        assert_eq!(world.done.len(), world.tasks(), "seed {seed}");
        world.pass(60_000);
        assert_eq!(world.waiting(), 0, "seed {seed}");
    }
}

#[test]
fn without_faults_nothing_is_leased_to_nobody_and_who_does_not_wait_gets_what_is_left_anywhere() {
    for seed in 1_000..1_400 {
        let mut world = live(seed, false);
        world.pass(2_000);
        for queue in QUEUES {
            loop {
                let number = world.come(0, &[queue], 1_000, 0);
                world.pass(1_500);
                if got(&world, number) == Some(0) {
                    break;
                }
            }
        }
        assert_eq!((world.done.len(), world.surplus), (world.tasks(), 0), "seed {seed}");
    }
}
