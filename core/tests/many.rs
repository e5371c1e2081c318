//! Facts about many topics and queues, and about floods: what concerns one costs by what it has itself.

use std::time::Duration;

use crate::center::{Center, name, task};
use punctual_core::store::{Bodies, Position};
use punctual_core::view::{self, Listing, Wanted};
use punctual_core::{
    Answer, Binding, Chosen, Command, Form, Pattern, QueueSettings, Scope, ShardConfig, Sieve, Task, TimeRange,
    TopicSettings,
};
use rustix::time::{ClockId, clock_gettime};

fn in_topic(topic: &str, id: &str, delay: u64) -> Task {
    Task { topic: name(topic), ..task(id, delay) }
}

/// How much of a processor this thread has had so far: the machine may be busy with something else.
fn worked() -> Duration {
    let worked = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(worked.tv_sec).unwrap(), u32::try_from(worked.tv_nsec).unwrap())
}

/// The work is done with few and with ten times as many: it may take ten times as much, but not a hundred times.
/// A busy machine may spoil a try, not all of them.
fn takes_no_longer_for_each(few: usize, work: impl Fn(usize) -> Duration) {
    let tries: Vec<(Duration, Duration)> = (0..4).map(|_| (work(few), work(10 * few))).collect();
    let is_fair = |(few, many): &(Duration, Duration)| *many < 40 * *few;
    assert!(tries.iter().any(is_fair), "{tries:?}");
}

/// What is due is read again before it fires, which has to find out whether it has fired before.
fn forgetful() -> ShardConfig {
    ShardConfig { cache: 0, ..ShardConfig::default() }
}

#[test]
fn a_task_that_falls_due_in_each_of_many_topics_costs_by_its_own_topic() {
    takes_no_longer_for_each(200, |topics| {
        let mut center = Center::with(forgetful());
        for topic in 0..topics {
            center.schedule(in_topic(&topic.to_string(), "1", 50));
        }
        center.tick(100);
        let begun = worked();
        center.settle();
        center.restart();
        assert_eq!(center.events.iter().filter(|event| event.what.as_str() == "fired").count(), 2 * topics);
        worked() - begun
    });
}

#[test]
fn a_consumer_of_each_of_many_queues_is_served_by_its_own_queue() {
    takes_no_longer_for_each(200, |queues| {
        let mut center = Center::new();
        for queue in 0..queues {
            center.schedule(in_topic(&queue.to_string(), "1", 50));
            // Those that nobody waits for do not count either.
            center.schedule(in_topic(&format!("idle-{queue}"), "1", 0));
        }
        let waiting: Vec<u64> =
            (0..queues).map(|queue| center.wait_for(&[&queue.to_string()], 1, 1_000, "consumer")).collect();
        center.tick(100);
        let begun = worked();
        center.settle();
        let time = worked() - begun;
        assert!(waiting.into_iter().all(|reply| center.given(reply).unwrap().len() == 1));
        time
    });
}

#[test]
fn a_topic_with_many_queues_costs_by_the_queue_its_task_goes_to() {
    takes_no_longer_for_each(100, |queues| {
        let mut center = Center::with(forgetful());
        let binding =
            |queue: usize| Binding { queue: name(&format!("q{queue}")), pattern: Pattern::Words(format!("r{queue}")) };
        let feeds = Some((0..queues).map(binding).collect());
        center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
        center.put_queue("another", QueueSettings::default());
        for number in 0..200 {
            let routing_key = Some(name(&format!("r{}", number % queues)));
            center.schedule(Task { routing_key, ..task(&number.to_string(), 50) });
        }
        center.tick(100);
        let begun = worked();
        center.settle();
        worked() - begun
    });
}

#[test]
fn a_ready_task_is_found_where_it_stands_though_its_topic_feeds_elsewhere_since() {
    let mut center = Center::with(forgetful());
    center.schedule(task("old", 0));
    let feeds = Some(vec![Binding::all(name("new"))]);
    center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
    center.put_queue("another", QueueSettings::default());
    center.schedule(task("young", 0));
    assert_eq!(center.cancel("old"), punctual_core::Ruling::Done(()));
    assert_eq!((center.queue_counts("t").0, center.queue_counts("new").0), (0, 1));
    let taken = center.take_from("new", 9);
    assert_eq!(taken.iter().map(|delivery| delivery.id.as_str()).collect::<Vec<_>>(), ["young"]);
}

#[test]
fn a_herd_of_one_topic_does_not_hold_up_the_task_of_another() {
    let config = ShardConfig { fires: 64, ..ShardConfig::default() };
    let mut center = Center::with(config);
    for number in 0..2_000 {
        center.schedule(in_topic("herd", &number.to_string(), 50));
    }
    center.schedule(in_topic("lone", "1", 51));
    let lone = center.wait_for(&["lone"], 1, 1_000, "consumer");
    center.tick(60);
    center.step_once();
    assert_eq!(center.given(lone).map(|given| given.len()), Some(1), "it fires in the first step");
    let fired = center.events.iter().filter(|event| event.what.as_str() == "fired").count();
    assert_eq!(fired, 64, "a step does not grow with the herd");
    center.settle();
    assert_eq!(center.queue_counts("herd").0, 2_000);
    let ids: Vec<u64> = center.take_from("herd", 9).iter().map(|given| given.id.parse().unwrap()).collect();
    assert_eq!(ids, (0..9).collect::<Vec<_>>());
}

#[test]
fn a_queue_from_which_much_is_taken_does_not_hold_up_another() {
    let config = ShardConfig { hand_outs: 64, ..ShardConfig::default() };
    let mut center = Center::with(config);
    for number in 0..1_000 {
        center.schedule(in_topic("herd", &number.to_string(), 50));
    }
    center.schedule(in_topic("lone", "1", 50));
    let greedy: Vec<u64> = (0..10).map(|_| center.wait_for(&["herd"], 100, 1_000, "greedy")).collect();
    let lone = center.wait_for(&["lone"], 1, 1_000, "consumer");
    center.tick(60);
    center.step_once();
    assert_eq!(center.given(lone).map(|given| given.len()), Some(1), "it is served in the first step");
    center.settle();
    let given: Vec<usize> = greedy.into_iter().map(|reply| center.given(reply).unwrap().len()).collect();
    assert!(given.iter().all(|given| (1..=64).contains(given)), "none goes away with nothing: {given:?}");
}

#[test]
fn who_asks_of_a_paused_queue_is_answered_also_while_another_gives() {
    let config = ShardConfig { hand_outs: 1, ..ShardConfig::default() };
    let mut center = Center::with(config);
    for number in 0..9 {
        center.schedule(in_topic("herd", &number.to_string(), 0));
    }
    center.schedule(in_topic("paused", "1", 0));
    center.ask(Command::PauseQueue { name: name("paused"), until: Some(punctual_core::Timestamp::NEVER) }).unwrap();
    for _ in 0..5 {
        center.post_only(&["herd"], 1, 1_000);
    }
    let asks = center.post_only(&["paused"], 1, 0);
    center.step_once();
    assert_eq!(center.given(asks), Some(vec![]));
}

#[test]
fn pages_of_topics_go_on_after_a_name() {
    let mut center = Center::new();
    for topic in ["a", "b", "c", "d"] {
        center.schedule(in_topic(topic, "1", 0));
    }
    let mut look = |name: Option<&str>, limit| {
        let chosen = Chosen::After { name: name.map(crate::center::name), limit };
        match center.ask(Command::Topics(chosen)) {
            Ok(Answer::Topics(topics)) => topics.iter().map(|topic| topic.counts.name.to_string()).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(look(None, 2), ["a", "b"]);
    assert_eq!(look(Some("b"), 2), ["c", "d"]);
    assert_eq!(look(Some("bb"), 9), ["c", "d"]);
    assert!(look(Some("d"), 9).is_empty());
}

fn with_body(id: &str, bytes: usize) -> Task {
    Task { body: vec![b'x'; bytes].into(), form: Form::Text, ..task(id, 0) }
}

#[test]
fn a_reservation_ends_at_its_bytes_and_gives_at_least_one() {
    let mut center = Center::with(ShardConfig { answer_bytes: 1_000, ..ShardConfig::default() });
    for (id, bytes) in [("1", 400), ("2", 400), ("3", 400), ("4", 5_000), ("5", 10)] {
        center.schedule(with_body(id, bytes));
    }
    let mut taken = || center.take(9).iter().map(|given| given.id.to_string()).collect::<Vec<_>>();
    assert_eq!(
        [taken(), taken(), taken(), taken(), taken()],
        [vec!["1", "2"], vec!["3"], vec!["4"], vec!["5"], vec![]]
    );
}

#[test]
fn a_reservation_ends_where_its_bodies_are_long_as_they_are_written() {
    for (form, fitting) in [(Form::Json, 10), (Form::Bytes, 7), (Form::Text, 1)] {
        let mut center = Center::with(ShardConfig { answer_bytes: 1_000, ..ShardConfig::default() });
        for id in 0..20 {
            center.schedule(Task { body: vec![1; 99].into(), form, ..task(&id.to_string(), 0) });
        }
        assert_eq!(center.take(20).len(), fitting, "{form:?}");
    }
}

#[test]
fn without_room_for_answers_a_consumer_gets_one_short_delivery() {
    let mut center = Center::new();
    for (id, bytes) in [("1", 10), ("2", 10), ("3", 100_000)] {
        center.schedule(with_body(id, bytes));
    }
    center.board.set_room(0);
    assert_eq!(center.take(9).len(), 1);
    assert_eq!(center.take(9).len(), 1);
    assert_eq!(center.take(9).len(), 0, "the next one is long");
    center.board.set_room(1);
    assert_eq!(center.take(9).len(), 1);
}

#[test]
fn long_bodies_are_read_a_few_at_a_time_and_all_of_them_are_handed_out() {
    let config = ShardConfig { read_bytes: 20_000, answer_bytes: 10_000, cache: 0, ..ShardConfig::default() };
    let mut center = Center::with(config);
    for number in 0..200 {
        center.schedule(Task { body: vec![b'x'; 4_900].into(), ..task(&number.to_string(), 50) });
    }
    center.pass(100);
    let mut ids: Vec<u64> = Vec::new();
    loop {
        let taken = center.take(50);
        if taken.is_empty() {
            break;
        }
        assert!(taken.len() <= 2, "{} of about 5,000 bytes", taken.len());
        assert!(taken.iter().all(|given| given.body.len() == 4_900));
        ids.extend(taken.iter().map(|given| given.id.parse::<u64>().unwrap()));
    }
    assert_eq!(ids, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_page_with_bodies_ends_at_its_bytes_and_the_next_one_goes_on() {
    let mut center = Center::new();
    let length = 1_000_000;
    for number in 0..12 {
        // Every other one is six times as long when it is written.
        let body = vec![if number % 2 == 0 { b'x' } else { 1 }; length];
        center.schedule(Task { body: body.into(), form: Form::Text, ..task(&number.to_string(), 50) });
    }
    let listing = Listing::Live { topic: None, state: None, wakes: TimeRange::ALL, latest_first: false };
    let wanted =
        Wanted { listing: &listing, within: &Scope::ALL, limit: 100, bodies: Bodies::With, sieve: &Sieve::ALL };
    let (mut seen, mut from) = (Vec::new(), Some(Position::START));
    while let Some(position) = from {
        let page = view::list(&*center.store, center.shard.id(), wanted, position, center.now()).unwrap();
        let bytes: usize = page.tasks.iter().map(|task| task.written()).sum();
        assert!((length..=view::PAGE_BYTES).contains(&bytes), "{bytes}");
        assert!(page.tasks.len() <= 3, "{}", page.tasks.len());
        seen.extend(page.tasks.iter().map(|task| task.id.parse::<u64>().unwrap()));
        from = page.next;
    }
    assert_eq!(seen, (0..12).collect::<Vec<_>>());
}

#[test]
fn who_waits_behind_a_topic_that_is_being_deleted_does_not_make_a_step_grow() {
    let mut center = Center::new();
    for number in 0..3_000 {
        center.schedule(task(&number.to_string(), 0));
    }
    let feeds = Some(vec![Binding::all(name("t"))]);
    center.put_topic("other", TopicSettings { feeds, ..TopicSettings::default() });
    center.pass(1);
    center.schedule(in_topic("other", "last", 0));
    let left = |center: &Center| center.shard.counts().topics.iter().map(|topic| topic.waiting).sum::<u64>();
    assert_eq!(left(&center), 3_001);
    let waiting = center.post_only(&["t"], 1, 1_000);
    center.begin(Command::DeleteTopic { name: name("t"), force: true });
    let (mut before, mut steps) = (3_001, 0);
    while center.shard.counts().topics.len() > 1 {
        let now = left(&center);
        assert!(before - now <= 2 * 256, "{} in one step", before - now);
        (before, steps) = (now, steps + 1);
        center.step_once();
    }
    assert!(steps > 3, "{steps}");
    center.settle();
    let given = center.given(waiting).expect("there is something");
    assert_eq!(given.iter().map(|given| given.id.as_str()).collect::<Vec<_>>(), ["last"]);
}
