//! Facts about dead letters and history: kept, listed, replayed, purged, sent on.

use crate::center::{Center, SHARD, at, name, task};
use punctual_core::store::{Bodies, Key, Position};
use punctual_core::view::{self, Kept, Listing, Wanted};
use punctual_core::{
    Answer, Binding, Command, Ending, Form, Matching, Millis, Overflow, Pattern, QueueSettings, Reason, Refused,
    Reschedule, RowId, Schedule, Scope, Selected, ShardConfig, Shift, Sieve, Standing, Sweep, SweepAction, Swept, Task,
    TimeRange, TopicSettings,
};

fn bury(center: &mut Center, id: &str) {
    center.schedule(task(id, 0));
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: Some("no".into()), priority: None }).unwrap();
}

fn selected(id: &str) -> Selected {
    Selected { topic: name("t"), id: name(id), queue: None }
}

fn all_dead(action: SweepAction, dry_run: bool) -> Command {
    let matching = Matching::Dead { topic: None, queue: Some(name("t")), died: TimeRange::ALL };
    Command::Sweep(Box::new(Sweep { matching, within: Scope::ALL, action, dry_run }))
}

#[test]
fn a_dead_letter_is_kept_until_it_is_replayed() {
    let mut center = Center::new();
    bury(&mut center, "a");
    center.pass(400 * 24 * 3_600_000);
    assert_eq!(center.queue_counts("t"), (0, 0, 1));
    assert_eq!(
        center.ask(Command::Replay(selected("a"))),
        Ok(Answer::Replayed(Standing::Ready { since: center.now() }))
    );
    let delivery = center.take_one();
    assert_eq!((delivery.attempt, delivery.due), (1, center.now()));
}

#[test]
fn a_purged_dead_letter_is_gone() {
    let mut center = Center::new();
    bury(&mut center, "a");
    assert_eq!(center.ask(Command::Purge(selected("a"))), Ok(Answer::Purged));
    assert_eq!(center.standing("a"), None);
    assert_eq!(center.ask(Command::Purge(selected("a"))), Err(Refused::NothingThere));
}

#[test]
fn a_queues_retention_removes_its_dead_letters() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_retention: Some(Millis(1_000)), ..QueueSettings::default() });
    bury(&mut center, "a");
    center.pass(999);
    assert!(center.standing("a").is_some());
    center.pass(1);
    assert_eq!(center.standing("a"), None);
    assert_eq!(center.queue_counts("t"), (0, 0, 0));
}

#[test]
fn all_dead_letters_that_match_are_replayed_or_purged_and_a_dry_run_only_counts() {
    let mut center = Center::new();
    for number in 0..600 {
        bury(&mut center, &number.to_string());
    }
    let all = Swept { matched: 600, changed: 600, too_late: 0, no_room: 0 };
    assert_eq!(center.ask(all_dead(SweepAction::Purge, true)), Ok(Answer::Swept(all)));
    assert_eq!(center.queue_counts("t"), (0, 0, 600));
    assert_eq!(center.ask(all_dead(SweepAction::Replay, false)), Ok(Answer::Swept(all)));
    assert_eq!(center.queue_counts("t"), (600, 0, 0));
}

#[test]
fn dead_letters_are_listed_in_pages_in_the_order_of_their_deaths() {
    let mut center = Center::new();
    for id in ["a", "b", "c"] {
        bury(&mut center, id);
        center.pass(10);
    }
    let listing = Listing::Kept(Kept { topic: Some(name("t")), queue: Some(name("t")), ..Kept::dead() });
    let mut ids = Vec::new();
    let mut from = Some(Position::START);
    while let Some(position) = from {
        let page = view::list(
            &*center.store,
            SHARD,
            Wanted { listing: &listing, within: &Scope::ALL, limit: 2, bodies: Bodies::With, sieve: &Sieve::ALL },
            position,
            center.now(),
        )
        .unwrap();
        assert!(page.tasks.len() <= 2);
        ids.extend(page.tasks.iter().map(|task| task.id.to_string()));
        from = page.next;
    }
    assert_eq!(ids, ["a", "b", "c"]);
}

#[test]
fn a_dead_letter_goes_on_to_another_topic_with_headers_that_say_why() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_letter: Some(name("graveyard")), ..QueueSettings::default() });
    center.schedule(task("a", 0).form(Form::Json));
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: Some("no".into()), priority: None }).unwrap();
    let forward = center.forwards.pop().expect("it is sent");
    assert_eq!((&forward.task.topic, forward.task.form), (&name("graveyard"), Form::Json));
    let header = |wanted: &str| {
        let found = forward.task.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(header("punctual-dead-id"), "a");
    assert_eq!(header("punctual-dead-queue"), "t");
    assert_eq!(header("punctual-dead-reason"), "rejected");
    assert_eq!(header("punctual-dead-note"), "no");
    let schedule = Schedule { task: forward.task.clone(), id: forward.id.clone(), id_is_new: false };
    center.ask(Command::Schedule(Box::new(schedule))).unwrap();
    center.ask(Command::Forwarded { key: forward.key, journey: forward.journey, refused: None }).unwrap();
    assert_eq!(center.standing("a"), Some(Standing::Finished { ending: Ending::Forwarded, at: at(0) }));
    assert_eq!(center.take_from("graveyard", 9)[0].body, "a");
}

#[test]
fn a_dead_letter_without_word_is_sent_again_under_the_same_id() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_letter: Some(name("graveyard")), ..QueueSettings::default() });
    bury(&mut center, "a");
    let first = center.forwards.pop().expect("it is sent");
    center.restart();
    center.pass(60_000);
    let second = center.forwards.pop().expect("it is sent again");
    assert_eq!((first.id, first.key), (second.id.clone(), second.key.clone()));
    center
        .ask(Command::Forwarded { key: second.key, journey: second.journey, refused: Some("it is paused".into()) })
        .unwrap();
    assert!(matches!(center.standing("a"), Some(Standing::Dead { reason: Reason::Rejected, .. })));
}

#[test]
fn a_dead_letter_that_nobody_took_keeps_its_own_note() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_letter: Some(name("nowhere")), ..QueueSettings::default() });
    bury(&mut center, "a");
    let forward = center.forwards.pop().expect("it is sent");
    let refused = Some("there is none".into());
    center.ask(Command::Forwarded { key: forward.key, journey: forward.journey, refused }).unwrap();
    let found = view::get(&*center.store, SHARD, &name("t"), &name("a"), center.now()).unwrap().unwrap();
    let note = found.delivery.death.and_then(|death| death.note);
    assert_eq!(note.as_deref(), Some("no; topic nowhere did not accept it: there is none"));
}

#[test]
fn a_full_queue_gives_up_the_newcomer_or_the_oldest_of_the_least_urgent() {
    let mut center = Center::new();
    let full = |overflow| QueueSettings { max_length: Some(2), overflow, ..QueueSettings::default() };
    center.put_queue("t", full(Overflow::Refuse));
    for (id, delay) in [("a", 1), ("b", 2), ("c", 3)] {
        center.schedule(task(id, delay));
    }
    center.pass(5);
    assert_eq!(center.standing("c"), Some(Standing::Dead { reason: Reason::PushedOut, at: at(5) }));
    assert_eq!(center.try_schedule(task("d", 0)), Err(Refused::QueueFull(name("t"))));
    center.put_queue("t", full(Overflow::DropOldest));
    center.schedule(task("urgent", 0).priority(1));
    assert!(matches!(center.standing("a"), Some(Standing::Dead { reason: Reason::PushedOut, .. })));
    assert_eq!(center.take_ids(), ["urgent", "b"]);
}

#[test]
fn a_task_that_a_full_queue_refuses_makes_no_topic_and_no_queue() {
    let mut center = Center::new();
    center
        .put_queue("t", QueueSettings { max_length: Some(1), overflow: Overflow::Refuse, ..QueueSettings::default() });
    let binding = |queue: &str| Binding { queue: name(queue), pattern: Pattern::Words("#".into()) };
    center.put_topic("other", TopicSettings { feeds: Some(vec![binding("t")]), ..TopicSettings::default() });
    center.schedule(Task { topic: name("other"), ..task("before", 0) });
    assert_eq!(center.try_schedule(task("a", 0)), Err(Refused::QueueFull(name("t"))));
    let topics: Vec<_> = center.shard.counts().topics.into_iter().map(|topic| topic.name).collect();
    assert_eq!(topics, [name("other")]);
    let feeds = Some(vec![binding("new"), binding("t")]);
    center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
    center.ask(Command::DeleteQueue { name: name("new"), force: false }).unwrap();
    assert_eq!(center.try_schedule(task("a", 0)), Err(Refused::QueueFull(name("t"))));
    assert_eq!(center.shard.counts().queues.len(), 1);
    center.schedule(task("a", 1));
}

#[test]
fn history_is_kept_for_its_time_and_can_be_replayed() {
    let mut center = Center::new();
    center.put_topic("t", TopicSettings { history: Millis(1_000), ..TopicSettings::default() });
    for id in ["a", "b"] {
        center.schedule(task(id, 0));
        let lease = center.take_one().lease;
        center.acknowledge(&lease).unwrap();
        center.pass(500);
    }
    let finished = TimeRange { from: at(500), until: at(501) };
    let matching = Matching::History { topic: name("t"), finished, ending: None };
    let sweep = Sweep { matching, within: Scope::ALL, action: SweepAction::Replay, dry_run: false };
    let replayed = Swept { matched: 1, changed: 1, too_late: 0, no_room: 0 };
    assert_eq!(center.ask(Command::Sweep(Box::new(sweep))), Ok(Answer::Swept(replayed)));
    assert_eq!(center.standing("a"), None, "it was kept for its time");
    assert_eq!(center.take_ids(), ["b"]);
}

#[test]
fn kept_history_goes_when_it_is_said_and_only_if_it_is_still_the_same() {
    let mut center = Center::with(ShardConfig { keeps_history: true, ..ShardConfig::default() });
    center.put_topic("t", TopicSettings { history: Millis(1_000), ..TopicSettings::default() });
    for id in ["a", "b"] {
        center.schedule(task(id, 0));
        let lease = center.take_one().lease;
        center.acknowledge(&lease).unwrap();
    }
    center.restart();
    center.pass(400 * 24 * 3_600_000);
    assert!(center.standing("a").is_some(), "its time is over, but nobody said so");
    let forget = |id: &str, finished_at| Command::Forget { topic: name("t"), id: name(id), finished_at };
    assert_eq!(center.ask(forget("a", at(1))), Err(Refused::NothingThere), "it did not finish then");
    center.ask(Command::Replay(selected("b"))).unwrap();
    assert_eq!(center.ask(forget("b", at(0))), Err(Refused::NothingThere), "it was handed out again");
    center.events.clear();
    assert_eq!(center.ask(forget("a", at(0))), Ok(Answer::Purged));
    assert_eq!((center.standing("a"), center.events.len()), (None, 0));
    assert_eq!(center.ask(forget("a", at(0))), Err(Refused::NothingThere));
}

#[test]
fn without_history_a_finished_task_is_gone_and_its_id_is_free() {
    let mut center = Center::new();
    center.put_topic("t", TopicSettings { history: Millis::ZERO, ..TopicSettings::default() });
    center.schedule(task("a", 0));
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    assert_eq!(center.standing("a"), None);
    assert_eq!(center.acknowledge(&lease), Err(Refused::LeaseLost { now: None }));
}

/// A queue `t` that holds one delivery and refuses or pushes out what is more.
fn small(center: &mut Center, overflow: Overflow) {
    center.put_queue("t", QueueSettings { max_length: Some(1), overflow, ..QueueSettings::default() });
}

#[test]
fn replaying_into_a_full_queue_is_refused_and_changes_nothing() {
    let mut center = Center::new();
    small(&mut center, Overflow::Refuse);
    center.schedule(task("a", 1));
    center.schedule(task("b", 1));
    center.pass(1);
    let dead = Standing::Dead { reason: Reason::PushedOut, at: at(1) };
    assert_eq!(center.standing("b"), Some(dead.clone()));
    center.pass(1);
    assert_eq!(center.ask(Command::Replay(selected("b"))), Err(Refused::QueueFull(name("t"))));
    let matching = Matching::Dead { topic: None, queue: None, died: TimeRange::ALL };
    for dry_run in [true, false] {
        let sweep = Sweep { matching: matching.clone(), within: Scope::ALL, action: SweepAction::Replay, dry_run };
        let none = Swept { matched: 1, changed: 0, too_late: 0, no_room: 1 };
        assert_eq!(center.ask(Command::Sweep(Box::new(sweep))), Ok(Answer::Swept(none)));
    }
    assert_eq!((center.standing("b"), center.past("b").replays), (Some(dead), 0));
    center.take_one();
    center.replay("b");
}

#[test]
fn a_dead_letter_that_is_brought_back_pushes_out_nothing() {
    let mut center = Center::new();
    small(&mut center, Overflow::DropOldest);
    center.schedule(task("b", 0).priority(100_000));
    let early = center.schedule(task("early", 1_000)).number;
    center.schedule(task("a", 0));
    let dead = center.standing("b");
    assert!(matches!(dead, Some(Standing::Dead { reason: Reason::PushedOut, .. })));
    center.pass(5);
    let full = Refused::QueueFull(name("t"));
    assert_eq!(center.ask(Command::Replay(selected("b"))), Err(full.clone()));
    let row = RowId { key: Key::task(&name("t"), &name("early")), number: early };
    assert_eq!(center.ask(Command::Hasten { row }), Err(full));
    assert_eq!((center.standing("b"), center.queue_counts("t")), (dead, (1, 0, 1)));
    center.take_one();
    center.replay("b");
}

#[test]
fn a_sweep_that_replays_more_than_fits_says_how_many_stand() {
    for overflow in [Overflow::Refuse, Overflow::DropOldest] {
        let mut center = Center::new();
        for number in 0..100 {
            bury(&mut center, &number.to_string());
        }
        center.put_queue("t", QueueSettings { max_length: Some(5), overflow, ..QueueSettings::default() });
        center.schedule(task("new", 0));
        let matching = Matching::Dead { topic: None, queue: None, died: TimeRange::ALL };
        for dry_run in [true, false] {
            let sweep = Sweep { matching: matching.clone(), within: Scope::ALL, action: SweepAction::Replay, dry_run };
            let some = Swept { matched: 100, changed: 4, too_late: 0, no_room: 96 };
            assert_eq!(center.ask(Command::Sweep(Box::new(sweep))), Ok(Answer::Swept(some)), "{overflow:?} {dry_run}");
        }
        assert_eq!(center.queue_counts("t"), (5, 0, 96));
        assert_eq!(center.take_ids(), ["0", "1", "2", "3", "new"]);
    }
}

#[test]
fn what_is_moved_to_now_is_refused_by_a_full_queue_and_stays() {
    let mut center = Center::new();
    small(&mut center, Overflow::Refuse);
    center.schedule(task("a", 0));
    center.schedule(Task { key: Some(name("k")), ..task("b", 1_000) });
    let shift = Some(Shift::In(Millis::ZERO));
    let change = Reschedule { topic: name("t"), id: name("b"), shift, priority: None, body: None };
    assert_eq!(center.ask(Command::Reschedule(Box::new(change))), Err(Refused::QueueFull(name("t"))));
    let matching = Matching::Key { key: name("k"), topic: None };
    let action = SweepAction::Shift(Shift::In(Millis::ZERO));
    let sweep = Sweep { matching, within: Scope::ALL, action, dry_run: false };
    let none = Swept { matched: 1, changed: 0, too_late: 0, no_room: 1 };
    assert_eq!(center.ask(Command::Sweep(Box::new(sweep))), Ok(Answer::Swept(none)));
    assert_eq!(center.standing("b"), Some(Standing::Scheduled { at: at(1_000) }));
}

/// Three deliveries of one instant that die in an order that is not that of their numbers.
#[test]
fn dead_letters_that_are_kept_for_no_time_all_go() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_retention: Some(Millis::ZERO), ..QueueSettings::default() });
    for id in ["a", "b", "c"] {
        center.schedule(task(id, 0));
    }
    for delivery in center.take(3).into_iter().rev() {
        let reject = Command::Reject { lease: delivery.lease, note: None, priority: None };
        center.ask(reject).unwrap();
    }
    center.pass(1_000);
    assert_eq!(center.queue_counts("t"), (0, 0, 0));
}

#[test]
fn what_is_too_old_when_it_fires_goes_where_its_queues_dead_letters_go() {
    let mut center = Center::new();
    let queue = QueueSettings { dead_letter: Some(name("graves")), ..QueueSettings::default() };
    center.put_queue("t", queue.clone());
    center.schedule(Task { ttl: Some(Millis(5)), ..task("a", 10) });
    center.tick(100);
    center.settle();
    assert_eq!((center.forwards.len(), center.queue_counts("t").2), (1, 1));
    assert_eq!(center.forwards[0].task.topic, name("graves"));
    // The same for each delivery of one that is broadcast.
    center.put_queue("u", queue);
    let feeds = Some(["t", "u"].map(|queue| Binding::all(name(queue))).to_vec());
    center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
    center.schedule(Task { ttl: Some(Millis(5)), ..task("b", 10) });
    center.tick(100);
    center.settle();
    assert_eq!((center.forwards.len(), center.queue_counts("u").2), (3, 1));
}

#[test]
fn word_of_an_earlier_journey_does_not_end_a_later_one() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_letter: Some(name("graves")), ..QueueSettings::default() });
    center.schedule(task("a", 0));
    let mut journeys = Vec::new();
    for _ in 0..2 {
        let lease = center.take_one().lease;
        center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
        let forward = center.forwards.pop().unwrap();
        journeys.push(forward.journey);
        if journeys.len() == 1 {
            let refused = Some("not now".into());
            center.ask(Command::Forwarded { key: forward.key, journey: forward.journey, refused }).unwrap();
            center.replay("a");
        }
    }
    let word = |journey| Command::Forwarded { key: Key::task(&name("t"), &name("a")), journey, refused: None };
    assert_eq!(center.ask(word(journeys[0])), Err(Refused::NothingThere));
    assert!(matches!(center.standing("a"), Some(Standing::Dead { .. })));
    assert_eq!(center.ask(word(journeys[1])), Ok(Answer::Noted));
}

#[test]
fn a_number_of_hops_that_no_dead_letter_has_is_the_last_one() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { dead_letter: Some(name("graves")), ..QueueSettings::default() });
    let headers = vec![("punctual-dead-hops".to_owned(), u32::MAX.to_string())];
    center.schedule(Task { headers, ..task("a", 0) });
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
    assert!(center.forwards.is_empty());
    assert_eq!(center.queue_counts("t"), (0, 0, 1));
}
