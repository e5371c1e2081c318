//! Facts about what stands in a queue, and who holds what of it.

use crate::center::{Center, at, name, task};
use punctual_core::Timestamp;
use punctual_core::store::Position;
use punctual_core::{
    Answer, Command, Holder, Holders, InLine, Leases, Line, Lined, Order, QueueSettings, Scope, ShardConfig, Stage,
    Task, TimeRange,
};

fn line(center: &mut Center, stage: Stage, from: InLine, limit: usize) -> Lined {
    match center.ask(Command::Line(Box::new(Line { queue: name("t"), stage, from, limit }))) {
        Ok(Answer::Line(lined)) => lined,
        other => panic!("{other:?}"),
    }
}

fn numbers(lined: &Lined) -> Vec<u64> {
    lined.entries.iter().map(|entry| entry.position.seq).collect()
}

fn ready(center: &mut Center) -> Vec<u64> {
    numbers(&line(center, Stage::Ready, InLine::START, 99))
}

fn leased(center: &mut Center) -> Vec<u64> {
    numbers(&line(center, Stage::Leased, InLine::START, 99))
}

fn holders(center: &mut Center, within: Scope) -> Holders {
    match center.ask(Command::Holders { queue: None, within }) {
        Ok(Answer::Holders(holders)) => holders,
        other => panic!("{other:?}"),
    }
}

fn schedule(center: &mut Center, id: &str, delay: u64, priority: u32) -> u64 {
    center.schedule(task(id, delay).priority(priority)).number
}

#[test]
fn what_is_ready_stands_in_the_order_in_which_it_is_handed_out() {
    for order in [Order::Due, Order::Arrival] {
        let mut center = Center::new();
        center.put_queue("t", QueueSettings { order, ..QueueSettings::default() });
        let late = schedule(&mut center, "late", 20, 1);
        let early = schedule(&mut center, "early", 10, 1);
        let last = schedule(&mut center, "last", 0, 2);
        let far = schedule(&mut center, "far", 9_999, 0);
        center.pass(100);
        let expected = if order == Order::Due { [early, late, last] } else { [late, early, last] };
        assert_eq!(ready(&mut center), expected, "{far} has yet to come due");
        let first = line(&mut center, Stage::Ready, InLine::START, 2);
        assert_eq!((numbers(&first), first.order), (expected[..2].to_vec(), order));
        let rest = line(&mut center, Stage::Ready, first.entries[1], 9);
        assert_eq!(numbers(&rest), expected[1..], "a line goes on with the one that is named");
        let taken: Vec<u64> = center.take(9).into_iter().map(|delivery| delivery.number).collect();
        assert_eq!((taken, ready(&mut center)), (expected.to_vec(), vec![]));
    }
}

#[test]
fn what_is_with_a_consumer_stands_by_the_end_of_its_lease() {
    let mut center = Center::new();
    let [a, b, c] = ["a", "b", "c"].map(|id| schedule(&mut center, id, 0, 1));
    let first = center.take_one();
    center.pass(5);
    let others = center.take(2);
    assert_eq!(leased(&mut center), [a, b, c]);
    center.pass(5);
    center.ask(Command::Extend { lease: first.lease.clone(), by: None }).unwrap();
    assert_eq!(leased(&mut center)[0], b, "a lease that was extended ends later");
    center.acknowledge(&others[0].lease).unwrap();
    assert_eq!(leased(&mut center).len(), 2);
    center.pass(60_000);
    assert_eq!((leased(&mut center), line(&mut center, Stage::Leased, InLine::START, 9).unknown), (vec![], 0));
}

#[test]
fn who_holds_what_is_told_by_queue_and_since_when() {
    let mut center = Center::new();
    for (queue, id) in [("t", "1"), ("t", "2"), ("u", "3")] {
        center.schedule(Task { topic: name(queue), ..task(id, 0) });
    }
    for (queue, consumer) in [("t", "ann"), ("t", "bob"), ("u", "ann")] {
        let waits = center.wait_for(&[queue], 1, 0, consumer);
        assert_eq!(center.given(waits).unwrap().len(), 1);
        center.pass(10);
    }
    let held = |name_: &str, queue: &str, since: u64| Holder {
        name: name(name_),
        queue: name(queue),
        leases: 1,
        oldest: Some(at(since)),
        next_end: at(since + 30_000),
    };
    let all = vec![held("ann", "t", 0), held("bob", "t", 10), held("ann", "u", 20)];
    assert_eq!(holders(&mut center, Scope::ALL), Holders { holders: all.clone(), unknown: 0 });
    let own = holders(&mut center, Scope::of(["u".into()]));
    assert_eq!(own, Holders { holders: all[2..].to_vec(), unknown: 0 }, "others are not told of");
}

#[test]
fn leases_from_before_a_restart_are_counted_until_they_are_known() {
    let mut center = Center::with(ShardConfig::default());
    center.put_queue("t", QueueSettings { lease: punctual_core::Millis::from_mins(10), ..QueueSettings::default() });
    let number = schedule(&mut center, "long", 0, 1);
    let delivery = center.take_one();
    center.restart();
    let lined = line(&mut center, Stage::Leased, InLine::START, 9);
    assert_eq!((numbers(&lined), lined.unknown), (vec![], 1));
    assert_eq!(holders(&mut center, Scope::ALL), Holders { holders: vec![], unknown: 1 });
    center.ask(Command::Extend { lease: delivery.lease, by: None }).unwrap();
    let lined = line(&mut center, Stage::Leased, InLine::START, 9);
    assert_eq!((numbers(&lined), lined.unknown), (vec![number], 0), "who speaks of it makes it known");
    let held = holders(&mut center, Scope::ALL);
    assert_eq!((held.holders[0].leases, held.holders[0].oldest, held.unknown), (1, None, 0));
}

fn leases(center: &mut Center, wanted: Leases) -> Lined {
    match center.ask(Command::Leases(Box::new(wanted))) {
        Ok(Answer::Line(lined)) => lined,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_with_consumers_is_told_of_all_queues_together_in_either_direction() {
    let mut center = Center::new();
    let mut expected = Vec::new();
    for number in 0..9 {
        let queue = ["a", "b", "c"][number % 3];
        expected.push(center.schedule(Task { topic: name(queue), ..task(&number.to_string(), 0) }).number);
        let waits = center.wait_for(&[queue], 1, 0, "ann");
        assert_eq!(center.given(waits).unwrap().len(), 1);
        center.pass(10);
    }
    let all = |limit| Leases { from: Position::START, ends: TimeRange::ALL, latest_first: false, limit };
    let end = Position { at: Timestamp::NEVER, seq: u64::MAX };
    let back = |limit| Leases { from: end, latest_first: true, ..all(limit) };
    let backward: Vec<u64> = expected.iter().rev().copied().collect();
    let first = leases(&mut center, all(4));
    assert_eq!((numbers(&first), first.unknown), (expected[..4].to_vec(), 0));
    let from = first.entries[3].position;
    assert_eq!(
        numbers(&leases(&mut center, Leases { from, ..all(99) })),
        expected[3..],
        "it goes on with the one named"
    );
    assert_eq!(numbers(&leases(&mut center, back(99))), backward);
    assert_eq!(
        numbers(&leases(&mut center, Leases { from, ..back(2) })),
        backward[6..8],
        "it goes on before the one named"
    );
    // They end 30 s after they were given out, 10 ms apart.
    let ends = TimeRange { from: at(30_020), until: at(30_050) };
    assert_eq!(numbers(&leases(&mut center, Leases { ends, ..all(99) })), expected[2..5]);
    assert_eq!(numbers(&leases(&mut center, Leases { ends, ..back(99) })), backward[4..7]);
    center.restart();
    let lined = leases(&mut center, all(99));
    assert_eq!(lined.entries.len() as u64 + lined.unknown, 9, "what is not known yet is counted");
}
