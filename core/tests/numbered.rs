//! Facts about one row by its number: removing, hastening and taking it, whatever it waits for.

use crate::center::{Center, SHARD, at, name, task};
use punctual_core::store::{Bodies, Key, Position};
use punctual_core::view::{self, Kept, Listing, Wanted};
use punctual_core::{
    Answer, Binding, Command, Delivery, Ending, Millis, Past, QueueSettings, Reason, Refused, Reply, RowId, Scope,
    Sieve, Standing, Take, Task, TimeRange, Timestamp, TopicSettings, What,
};

/// The row of a task of topic `t`.
fn row(id: &str, number: u64) -> RowId {
    RowId { key: Key::task(&name("t"), &name(id)), number }
}

fn row_of(delivery: &Delivery) -> RowId {
    RowId { key: delivery.lease.key.clone(), number: delivery.number }
}

fn remove(center: &mut Center, row: &RowId, token: Option<u64>) -> Reply {
    center.ask(Command::Remove { row: row.clone(), token })
}

fn hasten(center: &mut Center, row: &RowId) -> Reply {
    center.ask(Command::Hasten { row: row.clone() })
}

fn take(center: &mut Center, row: &RowId) -> Result<Delivery, Refused> {
    let take = Take { row: row.clone(), consumer: name("taker"), lease: None };
    match center.ask(Command::Take(Box::new(take)))? {
        Answer::Reserved(mut deliveries) => Ok(deliveries.remove(0)),
        other => panic!("{other:?}"),
    }
}

fn leased_until(until: Timestamp) -> Refused {
    Refused::LeaseLost { now: Some(Standing::Leased { queue: name("t"), holder: name("consumer"), until }) }
}

/// Where a row can stand.
const PHASES: [&str; 8] = ["early", "ready", "leased", "retry", "dead", "forwarding", "finished", "gone"];

/// A task that stands so, after a while, and its row.
fn standing(phase: &str) -> (Center, RowId) {
    let mut center = Center::new();
    if phase == "forwarding" {
        center.put_queue("t", QueueSettings { dead_letter: Some(name("graves")), ..QueueSettings::default() });
    }
    if phase == "gone" {
        center.put_topic("t", TopicSettings { history: Millis::ZERO, ..TopicSettings::default() });
    }
    let delay = if phase == "early" { 1_000 } else { 0 };
    let row = row("a", center.schedule(task("a", delay)).number);
    center.pass(7);
    if !["early", "ready"].contains(&phase) {
        let lease = center.take_one().lease;
        match phase {
            "retry" => {
                let back = punctual_core::Back::After(Millis(500));
                center.ask(Command::Release { lease, back, priority: None, note: None }).unwrap();
            }
            "dead" | "forwarding" => {
                center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
            }
            "finished" | "gone" => {
                center.acknowledge(&lease).unwrap();
            }
            _ => {}
        }
    }
    (center, row)
}

#[test]
fn removing_ends_what_is_free_or_dead() {
    for phase in PHASES {
        let (mut center, row) = standing(phase);
        let removed = remove(&mut center, &row, None);
        match phase {
            "early" | "ready" | "retry" => {
                assert_eq!(removed, Ok(Answer::Removed(Ending::Cancelled)), "{phase}");
                let ended = Standing::Finished { ending: Ending::Cancelled, at: at(7) };
                assert_eq!(center.standing("a"), Some(ended), "{phase}");
            }
            "dead" => {
                assert_eq!(removed, Ok(Answer::Removed(Ending::Purged)));
                assert_eq!(center.standing("a"), None);
            }
            "forwarding" => {
                assert_eq!(removed, Ok(Answer::Removed(Ending::Purged)));
                let ended = Standing::Finished { ending: Ending::Purged, at: at(7) };
                assert_eq!(center.standing("a"), Some(ended), "it may have arrived: who looks finds it");
                let journey = center.forwards[0].journey;
                let word = Command::Forwarded { key: row.key.clone(), journey, refused: None };
                assert_eq!(center.ask(word), Err(Refused::NothingThere));
            }
            "leased" => assert_eq!(removed, Err(leased_until(at(30_007)))),
            _ => assert_eq!(removed, Err(Refused::NothingThere), "{phase}"),
        }
        let again = remove(&mut center, &row, None);
        let expected = if phase == "leased" { leased_until(at(30_007)) } else { Refused::NothingThere };
        assert_eq!(again, Err(expected), "{phase}");
        center.pass(100_000);
        center.pass(100_000);
        let left = center.take_ids().len();
        assert_eq!(left, usize::from(phase == "leased"), "{phase}: what was removed is not handed out");
    }
}

#[test]
fn hastening_brings_what_is_early_or_dead() {
    for phase in PHASES {
        let (mut center, row) = standing(phase);
        let before = center.standing("a");
        let hastened = hasten(&mut center, &row);
        match phase {
            "early" | "retry" | "dead" => {
                assert_eq!(hastened, Ok(Answer::Hastened(Standing::Ready { since: center.now() })), "{phase}");
                assert_eq!(center.standing("a"), Some(Standing::Ready { since: at(7) }), "{phase}");
                assert_eq!(center.past("a").replays, 1, "{phase}");
                let delay = Millis(
                    [("early", 1_000), ("retry", 500), ("dead", 0)]
                        .into_iter()
                        .find(|(name, _)| *name == phase)
                        .unwrap()
                        .1,
                );
                assert_eq!(center.delay("a"), delay, "{phase}: the delay it was given is not forgotten");
                let delivery = center.take_one();
                assert_eq!((delivery.number, delivery.due), (row.number, at(7)), "{phase}: it is due now");
            }
            _ => {
                assert_eq!(hastened, Err(Refused::NothingThere), "{phase}");
                assert_eq!(center.standing("a"), before, "{phase}");
            }
        }
    }
}

#[test]
fn taking_gets_what_is_free_or_dead() {
    for phase in PHASES {
        let (mut center, row) = standing(phase);
        center.events.clear();
        let before = center.standing("a");
        let taken = take(&mut center, &row);
        match phase {
            "early" | "ready" | "retry" | "dead" => {
                let delivery = taken.unwrap();
                assert_eq!((delivery.number, &delivery.body[..]), (row.number, &b"a"[..]), "{phase}");
                assert_eq!(delivery.until, at(30_007), "{phase}");
                let due = if phase == "ready" { at(0) } else { at(7) };
                assert_eq!((delivery.due, delivery.fired_at), (due, due), "{phase}: never before it is due");
                let held = Standing::Leased { queue: name("t"), holder: name("taker"), until: at(30_007) };
                assert_eq!(center.standing("a"), Some(held), "{phase}");
                assert_eq!(center.past("a").replays, 0, "{phase}: nobody called it back for others");
                let words: Vec<&str> = center.events.iter().map(|event| event.what.as_str()).collect();
                let expected: &[&str] = match phase {
                    "ready" => &["leased"],
                    "dead" => &["replayed", "fired", "leased"],
                    _ => &["rescheduled", "fired", "leased"],
                };
                assert_eq!(words, expected, "{phase}");
                assert_eq!(center.queue_counts("t"), (0, 1, 0), "{phase}");
                assert_eq!(center.acknowledge(&delivery.lease), Ok(Answer::Acknowledged), "{phase}");
            }
            _ => {
                assert_eq!(taken, Err(Refused::NothingThere), "{phase}");
                assert_eq!(center.standing("a"), before, "{phase}");
            }
        }
    }
}

#[test]
fn another_number_is_another_row() {
    for phase in PHASES {
        let (mut center, mut row) = standing(phase);
        row.number += 1_000;
        let before = center.standing("a");
        assert_eq!(remove(&mut center, &row, None), Err(Refused::NothingThere), "{phase}");
        assert_eq!(hasten(&mut center, &row), Err(Refused::NothingThere), "{phase}");
        assert_eq!(take(&mut center, &row), Err(Refused::NothingThere), "{phase}");
        assert_eq!(center.standing("a"), before, "{phase}");
    }
}

#[test]
fn a_number_stays_with_its_row_and_goes_with_it() {
    let mut center = Center::new();
    let scheduled = center.schedule(task("a", 50));
    assert_eq!(center.schedule(task("a", 50)).number, scheduled.number, "the same id is the same row");
    let other = center.schedule(Task { replace: true, ..task("a", 60) });
    assert_ne!(other.number, scheduled.number);
    assert_eq!(remove(&mut center, &row("a", scheduled.number), None), Err(Refused::NothingThere));
    center.restart();
    center.pass(60);
    let delivery = center.take_one();
    assert_eq!(delivery.number, other.number);
    center.ask(Command::Reject { lease: delivery.lease, note: None, priority: None }).unwrap();
    center.replay("a");
    let delivery = center.take_one();
    assert_eq!(delivery.number, other.number, "also as a dead letter and after its replay");
    let view = view::get(&*center.store, SHARD, &name("t"), &name("a"), center.now()).unwrap().unwrap();
    assert_eq!((view.number, view.delivery.number), (other.number, other.number));
    assert_eq!(view.delivery.lease, Some(delivery.lease));
}

#[test]
fn removing_under_a_lease_in_force_is_acknowledging() {
    let (mut center, row) = standing("ready");
    let lease = center.take_one().lease;
    assert_eq!(remove(&mut center, &row, Some(lease.token + 1)), Err(leased_until(at(30_007))));
    assert_eq!(remove(&mut center, &row, Some(lease.token)), Ok(Answer::Removed(Ending::Done)));
    assert_eq!(center.standing("a"), Some(Standing::Finished { ending: Ending::Done, at: at(7) }));
    assert_eq!(center.events.last().unwrap().what, What::Done);
}

#[test]
fn an_old_token_removes_what_is_free_and_never_what_another_one_holds() {
    let (mut center, row) = standing("ready");
    let old = center.take_one().lease.token;
    center.pass(30_000);
    center.pass(5_000);
    let reply = center.wait_for(&["t"], 1, 0, "other");
    let other = center.given(reply).unwrap().remove(0);
    let held = Standing::Leased { queue: name("t"), holder: name("other"), until: other.until };
    assert_eq!(remove(&mut center, &row, Some(old)), Err(Refused::LeaseLost { now: Some(held) }));
    center.pass(30_000);
    assert_eq!(remove(&mut center, &row, Some(old)), Ok(Answer::Removed(Ending::Cancelled)), "nobody holds it");
    assert!(matches!(center.acknowledge(&other.lease), Err(Refused::LeaseLost { .. })));
}

#[test]
fn a_lease_that_ends_in_this_millisecond_is_over() {
    let (mut center, row) = standing("ready");
    let lease = center.take_one().lease;
    center.tick(30_000);
    assert_eq!(remove(&mut center, &row, Some(lease.token)), Ok(Answer::Removed(Ending::Cancelled)));
}

#[test]
fn nothing_is_taken_twice() {
    let (mut center, row) = standing("ready");
    take(&mut center, &row).unwrap();
    assert_eq!(take(&mut center, &row), Err(Refused::NothingThere));
    assert_eq!(hasten(&mut center, &row), Err(Refused::NothingThere));
    assert!(center.take_ids().is_empty());
}

#[test]
fn a_row_is_taken_from_a_paused_or_full_queue_and_with_the_leases_time_that_was_asked_for() {
    let mut center = Center::new();
    let paused_until = Some(Timestamp::NEVER);
    center.put_queue("t", QueueSettings { max_length: Some(1), paused_until, ..QueueSettings::default() });
    let early = row("early", center.schedule(task("early", 1_000)).number);
    center.schedule(task("ready", 0));
    let asked = Take { row: early, consumer: name("c"), lease: Some(Millis(5)) };
    let Ok(Answer::Reserved(taken)) = center.ask(Command::Take(Box::new(asked))) else { panic!("it is free") };
    assert_eq!((taken[0].until, taken[0].queue.clone()), (at(5), name("t")));
    assert_eq!(center.queue_counts("t"), (1, 1, 0), "nothing was pushed out");
}

#[test]
fn a_dead_letter_that_is_taken_begins_anew_and_remembers() {
    let (mut center, row) = standing("dead");
    let delivery = take(&mut center, &row).unwrap();
    assert_eq!(delivery.attempt, 1);
    let past = Past { attempts: 1, rejections: 1, delay: Some(Millis::ZERO), ..Past::default() };
    assert_eq!(center.past("a"), past);
}

#[test]
fn what_has_expired_is_not_taken() {
    let mut center = Center::new();
    let expired = row("a", center.schedule(Task { ttl: Some(Millis(5)), ..task("a", 0) }).number);
    center.tick(6);
    let dead = take(&mut center, &expired).unwrap();
    assert_eq!(dead.attempt, 1, "it was a dead letter by then");
    let died = center.events.iter().find(|event| event.what == What::Died(Reason::Expired));
    assert!(died.is_some());
}

fn broadcast() -> (Center, RowId, Vec<RowId>) {
    let mut center = Center::new();
    let feeds = ["p", "q"].map(|queue| Binding::all(name(queue)));
    center.put_topic("t", TopicSettings { feeds: Some(feeds.to_vec()), ..TopicSettings::default() });
    let task = row("a", center.schedule(task("a", 0)).number);
    let parts = Listing::Live { topic: None, state: None, wakes: TimeRange::ALL, latest_first: false };
    let listed = view::list(
        &*center.store,
        SHARD,
        Wanted { listing: &parts, within: &Scope::ALL, limit: 9, bodies: Bodies::Without, sieve: &Sieve::ALL },
        Position::START,
        center.now(),
    )
    .unwrap();
    let numbers = listed.tasks.iter().map(|task| task.number).filter(|number| *number != task.number);
    let keys = ["p", "q"].map(|queue| task.key.in_queue(&name(queue)));
    let parts: Vec<RowId> = keys.into_iter().zip(numbers).map(|(key, number)| RowId { key, number }).collect();
    assert_eq!(parts.len(), 2);
    (center, task, parts)
}

#[test]
fn a_broadcast_is_removed_as_a_whole_or_delivery_by_delivery() {
    let (mut center, task, _) = broadcast();
    assert_eq!(take(&mut center, &task), Err(Refused::NothingThere), "its deliveries have numbers of their own");
    assert_eq!(hasten(&mut center, &task), Err(Refused::NothingThere));
    assert_eq!(remove(&mut center, &task, None), Ok(Answer::Removed(Ending::Cancelled)));
    assert!(center.take_from("p", 1).is_empty() && center.take_from("q", 1).is_empty());

    let (mut center, task, parts) = broadcast();
    assert_eq!(remove(&mut center, &parts[0], None), Ok(Answer::Removed(Ending::Cancelled)));
    assert!(center.take_from("p", 1).is_empty());
    let held = take(&mut center, &parts[1]).unwrap();
    assert_eq!((row_of(&held), &held.body[..]), (parts[1].clone(), &b"a"[..]));
    assert!(matches!(remove(&mut center, &task, None), Err(Refused::LeaseLost { .. })), "one is with a consumer");
    assert_eq!(remove(&mut center, &parts[1], Some(held.lease.token)), Ok(Answer::Removed(Ending::Done)));
    assert_eq!(center.standing("a"), Some(Standing::Finished { ending: Ending::Done, at: at(0) }));
    assert_eq!(remove(&mut center, &task, None), Err(Refused::NothingThere));
}

#[test]
fn a_task_that_goes_to_several_queues_or_to_none_cannot_be_taken_before_its_time() {
    for feeds in [vec![], vec![Binding::all(name("p")), Binding::all(name("q"))]] {
        let mut center = Center::new();
        center.put_topic("t", TopicSettings { feeds: Some(feeds), ..TopicSettings::default() });
        let early = row("a", center.schedule(task("a", 1_000)).number);
        assert_eq!(take(&mut center, &early), Err(Refused::NothingThere));
        assert_eq!(center.standing("a"), Some(Standing::Scheduled { at: at(1_000) }), "and is left alone");
    }
}

#[test]
fn rows_that_are_only_in_the_store_are_found() {
    let config = punctual_core::ShardConfig { window: Millis(10), cache: 0, ..Default::default() };
    let mut center = Center::with(config);
    let far = |id: &str| task(id, 100_000_000);
    let rows: Vec<RowId> = ["a", "b", "c"].map(|id| row(id, center.schedule(far(id)).number)).into();
    center.restart();
    assert_eq!(take(&mut center, &rows[0]).unwrap().body, "a");
    assert_eq!(hasten(&mut center, &rows[1]), Ok(Answer::Hastened(Standing::Ready { since: center.now() })));
    assert_eq!(remove(&mut center, &rows[2], None), Ok(Answer::Removed(Ending::Cancelled)));
    assert_eq!(center.take_ids(), ["b"]);
    let dead = Listing::Kept(Kept::dead());
    let listed = view::list(
        &*center.store,
        SHARD,
        Wanted { listing: &dead, within: &Scope::ALL, limit: 9, bodies: Bodies::Without, sieve: &Sieve::ALL },
        Position::START,
        center.now(),
    )
    .unwrap();
    assert!(listed.tasks.is_empty());
    assert_eq!(center.shard.counts().topics[0].history, 1);
}

#[test]
fn consecutive_tasks_have_consecutive_numbers_from_1_whatever_happens_between() {
    let mut center = Center::new();
    let mut numbers = Vec::new();
    for round in 0..3 {
        numbers.push(center.schedule(task(&format!("a{round}"), 0)).number);
        let topic = name(&format!("t{round}"));
        numbers.push(center.schedule(Task { topic: topic.clone(), ..task("b", 0) }).number);
        center.put_queue(&format!("q{round}"), QueueSettings::default());
        let delivery = center.take_one();
        center.acknowledge(&delivery.lease).unwrap();
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    center.restart();
    let [first, second] = ["x", "y"].map(|id| center.schedule(task(id, 0)).number);
    assert!(first > 6, "no number is given twice");
    assert_eq!(second, first + 1);
}
