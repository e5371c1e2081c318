//! Facts about who is there: beats, their leases, and what the roll tells of nodes.

use std::sync::Arc;

use punctual_core::Millis;
use punctual_core::store::{Beat, Fence, Incarnation, Roll, ShardId, Store, StoreError};

use crate::content::ALIKE;
use crate::stage::{Outcome, Stage, claim, granted, holds, life, same};

crate::listed![
    a_beat_puts_a_node_on_the_roll,
    a_lease_counts_from_its_beat_by_the_clock_of_the_store,
    a_later_beat_tells_another_address_and_another_end,
    a_node_stays_on_the_roll_when_its_lease_is_over,
    a_beat_of_another_life_does_not_count_while_the_first_lasts,
    another_life_of_a_node_comes_when_the_first_is_over,
    a_beat_without_a_lease_leaves,
    another_life_cannot_take_back_the_word_of_the_first,
    who_leaves_keeps_its_shards_until_they_are_claimed,
    nodes_whose_names_look_alike_are_different,
    lives_of_any_number_are_told_apart,
    an_address_of_any_text_is_kept,
    the_time_of_the_store_goes_on,
];

/// A lease short enough to wait for, long enough to do something within.
const SHORT: Millis = Millis(1_000);
/// Less than the short lease.
const MOST: Millis = Millis(600);
/// More than the short lease.
const OVER: Millis = Millis(1_100);
/// A lease that does not end while a check runs.
const LONG: Millis = Millis::from_hours(1);

fn beat(store: &Arc<dyn Store>, who: Incarnation, lease: Millis) -> Result<Roll, StoreError> {
    store.beat(&Beat { who, address: String::new(), lease })
}

/// The number of the life of node `a` that is on the roll.
fn life_of_a(roll: &Roll) -> Option<u64> {
    roll.node("a").map(|present| present.who.number)
}

fn a_beat_puts_a_node_on_the_roll(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = here.beat(&Beat { who: life("b", 7), address: "host:1".to_owned(), lease: LONG })?;
    let second = there.beat(&Beat { who: life("a", 8), address: "host:2".to_owned(), lease: LONG })?;
    let listed = |roll: &Roll| -> Vec<(Incarnation, String)> {
        roll.nodes.iter().map(|present| (present.who.clone(), present.address.clone())).collect()
    };
    let (a, b) = ((life("a", 8), "host:2".to_owned()), (life("b", 7), "host:1".to_owned()));
    same("the roll with one node", listed(&first), vec![b.clone()])?;
    same("the roll with two nodes, by their names", listed(&second), vec![a, b])
}

fn a_lease_counts_from_its_beat_by_the_clock_of_the_store(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let before = beat(store, life("b", 1), LONG)?.now();
    for lease in [SHORT, LONG] {
        let roll = beat(store, life("a", 1), lease)?;
        let after = beat(store, life("b", 1), LONG)?.now();
        let until = roll.node("a").map(|present| present.until);
        let range = before.plus(lease)..=after.plus(lease).plus(Millis(1));
        let fits = until.is_some_and(|until| range.contains(&until));
        holds(format_args!("a lease of {} ms ends within {range:?}, not at {until:?}", lease.0), fits)?;
    }
    Ok(())
}

fn a_later_beat_tells_another_address_and_another_end(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = store.beat(&Beat { who: life("a", 1), address: "host:1".to_owned(), lease: SHORT })?;
    stage.subject.pass(MOST);
    let second = store.beat(&Beat { who: life("a", 1), address: "host:2".to_owned(), lease: SHORT })?;
    let (Some(before), Some(after)) = (first.node("a"), second.node("a")) else {
        return holds("the node is on the roll", false);
    };
    same("the address", &*after.address, "host:2")?;
    holds(format_args!("{:?} is before {:?}", before.until, after.until), before.until < after.until)?;
    stage.subject.pass(MOST);
    let third = beat(store, life("b", 1), SHORT)?;
    let counts = third.node("a").is_some_and(|present| third.now() < present.until);
    holds("the second lease lasts when the first would be over", counts)
}

fn a_node_stays_on_the_roll_when_its_lease_is_over(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let first = beat(store, life("a", 1), SHORT)?;
    stage.subject.pass(OVER);
    let roll = beat(&stage.other(), life("b", 1), SHORT)?;
    same("the node", roll.node("a"), first.node("a"))?;
    holds("its lease is over", roll.node("a").is_some_and(|present| present.until <= roll.now()))?;
    let again = beat(store, life("a", 1), SHORT)?;
    holds("it comes back with a beat", again.node("a").is_some_and(|present| again.now() < present.until))
}

fn a_beat_of_another_life_does_not_count_while_the_first_lasts(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = beat(here, life("a", 5), LONG)?;
    for number in [6, 4] {
        let other = there.beat(&Beat { who: life("a", number), address: "elsewhere".to_owned(), lease: LONG })?;
        same("the life on the roll", life_of_a(&other), Some(5))?;
        same("all of it", other.node("a"), first.node("a"))?;
    }
    // It did not push the first one out either.
    same("the life on the roll, after its next beat", life_of_a(&beat(here, life("a", 5), LONG)?), Some(5))
}

fn another_life_of_a_node_comes_when_the_first_is_over(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    beat(here, life("a", 5), SHORT)?;
    stage.subject.pass(OVER);
    same("the life on the roll", life_of_a(&beat(&there, life("a", 4), LONG)?), Some(4))?;
    same("the first one comes too late", life_of_a(&beat(here, life("a", 5), LONG)?), Some(4))
}

fn a_beat_without_a_lease_leaves(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    beat(here, life("a", 1), LONG)?;
    let last = beat(here, life("a", 1), Millis::ZERO)?;
    same("the node on its own roll", last.node("a"), None)?;
    same("the node on another's", beat(&there, life("b", 1), LONG)?.node("a"), None)?;
    same("another life, at once", life_of_a(&beat(&there, life("a", 2), LONG)?), Some(2))?;
    let again = beat(here, life("never-there", 1), Millis::ZERO)?;
    same("one that leaves and never came", again.node("never-there"), None)
}

fn another_life_cannot_take_back_the_word_of_the_first(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    beat(here, life("a", 1), LONG)?;
    same("the life on the roll", life_of_a(&beat(&there, life("a", 2), Millis::ZERO)?), Some(1))
}

fn who_leaves_keeps_its_shards_until_they_are_claimed(stage: &mut Stage<'_>) -> Outcome {
    let (here, shard) = (stage.store(), ShardId(3));
    beat(here, life("a", 1), LONG)?;
    let fence = granted(claim(here, &life("a", 1), shard, Fence::default())?)?.fence;
    beat(here, life("a", 1), Millis::ZERO)?;
    let roll = beat(&stage.other(), life("b", 1), LONG)?;
    let held = roll.held(shard).map(|held| (held.fence, held.by.clone()));
    same("the shard on the roll", held, Some((fence, Some(life("a", 1)))))?;
    same("its keeper", roll.keeper(shard), None)
}

fn nodes_whose_names_look_alike_are_different(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let mut expected = Vec::new();
    for (number, name) in (1..).zip(ALIKE) {
        let store = if number % 2 == 0 { here } else { &there };
        let roll = beat(store, life(name, number), LONG)?;
        same(format_args!("the life of {name:?}"), roll.node(name).map(|node| node.who.number), Some(number))?;
        expected.push(life(name, number));
    }
    expected.sort();
    let roll = beat(here, expected[0].clone(), LONG)?;
    same("all nodes, by their names", roll.nodes.into_iter().map(|node| node.who).collect(), expected)
}

fn lives_of_any_number_are_told_apart(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    for (index, number) in [0, 1, 1 << 53, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, u64::MAX].into_iter().enumerate() {
        let node = format!("node-{index}");
        beat(store, life(&node, number), LONG)?;
        let roll = beat(store, life(&node, number ^ 1), LONG)?;
        same("the life", roll.node(&node).map(|node| node.who.number), Some(number))?;
        let shard = ShardId(100 + index as u16);
        granted(claim(store, &life(&node, number), shard, Fence::default())?)?;
        let by = beat(store, life("b", 1), LONG)?.held(shard).and_then(|held| held.by.clone());
        same("the owner", by, Some(life(&node, number)))?;
    }
    Ok(())
}

fn an_address_of_any_text_is_kept(stage: &mut Stage<'_>) -> Outcome {
    let long = "x".repeat(500);
    for address in ["", "[::1]:7070", "https://注文.example:1/?a='b\"&c=\\", &long] {
        let roll = stage.store().beat(&Beat { who: life("a", 1), address: address.to_owned(), lease: LONG })?;
        same("the address", roll.node("a").map(|node| &*node.address), Some(address))?;
    }
    Ok(())
}

fn the_time_of_the_store_goes_on(stage: &mut Stage<'_>) -> Outcome {
    let before = beat(stage.store(), life("a", 1), SHORT)?.micros;
    stage.subject.pass(MOST);
    let after = beat(&stage.other(), life("b", 1), SHORT)?.micros;
    let passed = after.saturating_sub(before);
    holds(format_args!("{} ms passed, by the store's clock {passed} µs", MOST.0), passed >= MOST.0 * 1_000)
}
