//! Several shards that look like one.

use std::collections::BTreeSet;

use crate::stage::{PATIENCE, Stage, config, eventually, finish, is_dry, name, next, task, wait_for};
use punctual_core::store::{Bodies, Table};
use punctual_core::view::{Kept, Listing, LiveState};
use punctual_core::{
    Binding, Ending, Millis, Name, QueueSettings, Refused, Scope, Sieve, Standing, TimeRange, Timestamp, TopicSettings,
    Unit,
};
use punctual_node::{Error, Handle, shard_of};

/// All ids of a list, read in small pages, with the cursor passed on as text.
async fn all_ids(handle: &Handle, listing: &Listing, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let page = handle.list(listing.clone(), cursor, limit, Bodies::Without).await.unwrap();
        assert!(page.tasks.len() <= limit);
        ids.extend(page.tasks.into_iter().map(|task| task.id.to_string()));
        match page.next {
            Some(next) => cursor = Some(next.to_string().parse().unwrap()),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn lists_are_in_order_across_shards() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let mut expected: Vec<(u64, String)> = (0..60).map(|n| (n * 37 % 60 * 1_000, format!("t{n}"))).collect();
    for (delay, id) in &expected {
        let task = task("orders", id).after(Millis(3_600_000 + delay)).key(name("ann"));
        handle.schedule(task).await.unwrap();
    }
    let by_key = Listing::Key { key: name("ann"), table: Table::Live };
    let in_schedule_order: BTreeSet<String> = expected.iter().map(|(_, id)| id.clone()).collect();
    assert_eq!(all_ids(&handle, &by_key, 7).await.into_iter().collect::<BTreeSet<_>>(), in_schedule_order);

    expected.sort();
    let expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
    let backward: Vec<String> = expected.iter().rev().cloned().collect();
    for (state, limit) in [(None, 7), (None, 100), (Some(LiveState::Scheduled), 7), (Some(LiveState::Scheduled), 1)] {
        for latest_first in [false, true] {
            let listing = Listing::Live { topic: Some(name("orders")), state, wakes: TimeRange::ALL, latest_first };
            let expected = if latest_first { &backward } else { &expected };
            assert_eq!(all_ids(&handle, &listing, limit).await, *expected);
        }
    }
    let middle = handle.get(&name("orders"), &name(&expected[30])).await.unwrap().unwrap().due;
    let wakes = TimeRange { from: middle, until: Timestamp::NEVER };
    let later = Listing::Live { topic: None, state: None, wakes, latest_first: true };
    assert_eq!(all_ids(&handle, &later, 7).await, backward[..30]);
    let wakes = TimeRange { from: Timestamp::ZERO, until: middle };
    let sooner = Listing::Live { topic: None, state: None, wakes, latest_first: true };
    assert_eq!(all_ids(&handle, &sooner, 7).await, backward[30..]);
    let leased =
        Listing::Live { topic: None, state: Some(LiveState::Leased), wakes: TimeRange::ALL, latest_first: false };
    assert!(all_ids(&handle, &leased, 7).await.is_empty());
}

#[tokio::test]
async fn a_list_that_fits_little_is_in_order_all_the_same() {
    let stage = Stage::new(2);
    let handle = stage.handle.clone();
    // Their leases end among the due times of thousands of others, more than one look at a shard
    // shows. All of those are in one shard, so that the other one shows more at a look.
    let mut expected: Vec<(u64, String)> = (0..8).map(|n| (30 + n * 41 % 90, format!("held{n}"))).collect();
    for (minutes, id) in &expected {
        handle.schedule(task("orders", id)).await.unwrap();
        let mut reserve = wait_for(&handle, "orders", PATIENCE);
        reserve.lease = Some(Millis::from_mins(*minutes));
        assert_eq!(handle.reserve(reserve).await.unwrap()[0].id.as_str(), id);
    }
    let crowded = (0..6_000).filter(|n: &u64| shard_of("others", &n.to_string(), 2).0 == 0);
    let others = crowded.map(|n| task("others", &n.to_string()).after(Millis(1_500_000 + n * 1_000)));
    assert!(handle.schedule_many(others.collect()).await.iter().all(Result::is_ok));
    expected.sort();
    let expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
    let backward: Vec<String> = expected.iter().rev().cloned().collect();
    let leased = |topic, latest_first| Listing::Live {
        topic,
        state: Some(LiveState::Leased),
        wakes: TimeRange::ALL,
        latest_first,
    };
    for limit in [1, 3, 100] {
        for topic in [None, Some(name("orders"))] {
            assert_eq!(all_ids(&handle, &leased(topic.clone(), false), limit).await, expected);
            assert_eq!(all_ids(&handle, &leased(topic, true), limit).await, backward);
        }
        assert!(all_ids(&handle, &leased(Some(name("others")), false), limit).await.is_empty());
    }
    // The shards know what they have handed out: the thousands in between are not looked at.
    let page = handle.list(leased(None, false), None, 100, Bodies::Without).await.unwrap();
    assert_eq!((page.tasks.len(), page.looked_at), (8, 8));
    let counted = handle.count(&Scope::ALL, leased(None, false), Sieve::ALL, 5).await.unwrap();
    assert_eq!((counted.count, counted.is_more), (5, true));
    // After a restart they do not, and it is searched for.
    let stage = stage.restart(config(2));
    let page = stage.handle.list(leased(None, false), None, 100, Bodies::Without).await.unwrap();
    assert!(page.looked_at > 1_000, "{}", page.looked_at);
    for limit in [1, 3, 100] {
        assert_eq!(all_ids(&stage.handle, &leased(None, false), limit).await, expected);
        assert_eq!(all_ids(&stage.handle, &leased(None, true), limit).await, backward);
    }
}

#[tokio::test]
async fn what_finished_last_comes_first_across_shards_also_by_key() {
    let Stage { handle, clock, node: _node, .. } = Stage::new(3);
    for number in 0..30 {
        let mut task = task("orders", &number.to_string());
        task.key = Some(name(if number % 3 == 0 { "ann" } else { "bob" }));
        handle.schedule(task).await.unwrap();
        clock.step(1);
    }
    for _ in 0..30 {
        let delivery = next(&handle, "orders").await;
        finish(&handle, delivery.lease).await;
        clock.step(1);
    }
    for key in [None, Some(name("ann"))] {
        let forward = Listing::Kept(Kept { key: key.clone(), ..Kept::history() });
        let backward = Listing::Kept(Kept { key, latest_first: true, ..Kept::history() });
        let mut expected = all_ids(&handle, &forward, 100).await;
        assert!(expected.len() == 30 || expected.len() == 10, "{expected:?}");
        expected.reverse();
        for limit in [1, 3, 7, 100] {
            assert_eq!(all_ids(&handle, &backward, limit).await, expected, "pages of {limit}");
        }
    }
}

#[tokio::test]
async fn a_cursor_of_another_node_is_refused() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let listing = Listing::Kept(Kept::dead());
    let answer = handle.list(listing, Some("0.0_0.0".parse().unwrap()), 10, Bodies::Without).await;
    assert!(matches!(answer, Err(Error::Refused(Refused::BadSettings(_)))), "{answer:?}");
}

#[tokio::test]
async fn a_broadcast_reaches_all_queues_from_all_shards() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let feeds = Some(vec![Binding::all(name("mail")), Binding::all(name("stock"))]);
    handle.put_topic(&name("orders"), TopicSettings { feeds, ..TopicSettings::default() }).await.unwrap();
    for number in 0..12 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
    for queue in ["mail", "stock"] {
        let mut ids = BTreeSet::new();
        for _ in 0..12 {
            let delivery = next(&handle, queue).await;
            ids.insert(delivery.id);
            finish(&handle, delivery.lease).await;
        }
        assert_eq!(ids.len(), 12);
        assert!(is_dry(&handle, queue).await);
    }
    let task = handle.get(&name("orders"), &name("3")).await.unwrap().unwrap();
    assert!(matches!(task.delivery.standing, Standing::Finished { ending: Ending::Done, .. }), "{task:?}");
}

#[tokio::test]
async fn a_dead_letter_waits_while_the_topic_that_takes_it_is_paused() {
    let Stage { handle, clock, node: _node, .. } = Stage::new(2);
    let to_graveyard = QueueSettings { dead_letter: Some(name("graveyard")), ..QueueSettings::default() };
    handle.put_queue(&name("orders"), to_graveyard).await.unwrap();
    handle.put_topic(&name("graveyard"), TopicSettings::default()).await.unwrap();
    handle.pause_topic(&name("graveyard"), None).await.unwrap();
    handle.schedule(task("orders", "7")).await.unwrap();
    let delivery = next(&handle, "orders").await;
    handle.reject(delivery.lease, None).await.unwrap();
    clock.step(61_000);
    assert!(is_dry(&handle, "graveyard").await);
    handle.resume_topic(&name("graveyard")).await.unwrap();
    clock.step(61_000);
    assert!(next(&handle, "graveyard").await.id.starts_with("7~"));
}

#[tokio::test]
async fn dead_letters_go_on_to_another_topic_in_another_shard() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let to_graveyard = QueueSettings { dead_letter: Some(name("graveyard")), ..QueueSettings::default() };
    handle.put_queue(&name("orders"), to_graveyard).await.unwrap();
    for number in 0..12 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
    for _ in 0..12 {
        let delivery = next(&handle, "orders").await;
        handle.reject(delivery.lease, Some("no".into())).await.unwrap();
    }
    let mut from = BTreeSet::new();
    for _ in 0..12 {
        let delivery = next(&handle, "graveyard").await;
        let header = |wanted: &str| {
            let found = delivery.headers.iter().find(|(header, _)| header == wanted);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        assert_eq!(
            (header("punctual-dead-topic").as_str(), header("punctual-dead-reason").as_str()),
            ("orders", "rejected")
        );
        from.insert(header("punctual-dead-id"));
        finish(&handle, delivery.lease.clone()).await;
    }
    assert_eq!(from.len(), 12);
    for number in 0..12 {
        eventually("the dead letter is gone from where it died", async || {
            let task = handle.get(&name("orders"), &name(&number.to_string())).await.unwrap().unwrap();
            matches!(task.delivery.standing, Standing::Finished { ending: Ending::Forwarded, .. })
        })
        .await;
    }
}

#[tokio::test]
async fn pausing_a_topic_holds_in_shards_that_have_not_seen_it() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let orders = name("orders");
    assert_eq!(handle.pause_topic(&orders, None).await, Err(Error::Refused(Refused::NoSuchTopic(orders.clone()))));
    handle.schedule(task("orders", "first")).await.unwrap();
    assert!(handle.pause_topic(&orders, None).await.unwrap().paused);
    for number in 0..16 {
        let answer = handle.schedule(task("orders", &number.to_string())).await;
        assert_eq!(answer, Err(Error::Refused(Refused::TopicPaused(orders.clone()))));
    }
    assert!(!handle.resume_topic(&orders).await.unwrap().paused);
    for number in 0..16 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
}

#[tokio::test]
async fn a_paused_queue_hands_nothing_out_until_it_is_resumed() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let orders = name("orders");
    handle.put_queue(&orders, QueueSettings::default()).await.unwrap();
    handle.pause_queue(&orders, None, None).await.unwrap();
    for number in 0..8 {
        handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
    eventually("all are ready", async || handle.counts().await.unwrap().queues[0].ready == 8).await;
    assert!(is_dry(&handle, "orders").await);
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { next(&handle, "orders").await }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    handle.resume_queue(&orders).await.unwrap();
    waiting.await.unwrap();

    let until = handle.now().plus(Millis(80));
    handle.pause_queue(&orders, Some(until), None).await.unwrap();
    next(&handle, "orders").await;
    assert!(handle.now() >= until);
}

#[tokio::test]
async fn settings_counts_and_forecasts_are_those_of_all_shards() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    for number in 0..20 {
        let topic = if number % 2 == 0 { "even" } else { "odd" };
        handle.schedule(task(topic, &number.to_string()).after(Millis::from_mins(90))).await.unwrap();
    }
    let owned = TopicSettings { owner: Some("ann".into()), ..TopicSettings::default() };
    handle.put_topic(&name("even"), owned.clone()).await.unwrap();
    let topics = handle.topics(None, 10, |_| true).await.unwrap();
    let names = topics.entries.iter().map(|topic| topic.counts.name.as_str());
    assert_eq!((names.collect::<Vec<_>>(), topics.next), (vec!["even", "odd"], None));
    assert_eq!(topics.entries[0].settings, owned);
    assert!(handle.queue(&name("odd")).await.unwrap().is_some());

    let counts = handle.counts().await.unwrap();
    let waiting: Vec<(&str, u64)> = counts.topics.iter().map(|topic| (topic.name.as_str(), topic.waiting)).collect();
    assert_eq!(waiting, [("even", 10), ("odd", 10)]);
    let forecast = handle.forecast(Unit::Hour, 4).await.unwrap();
    assert_eq!((forecast.len(), forecast.iter().map(|(_, count)| count).sum::<u64>()), (4, 20));
}

#[tokio::test]
async fn a_forecast_begins_at_any_time_near_or_far() {
    let Stage { handle, node: _node, .. } = Stage::new(3);
    let hours = [0, 30, 31, 24 * 61, 24 * 400];
    for (number, hour) in hours.into_iter().enumerate() {
        handle.schedule(task("orders", &number.to_string()).after(Millis::from_mins(60 * hour + 1))).await.unwrap();
    }
    let due = async |from: Timestamp, unit, slots| {
        let (slots, cut) = handle.forecast_within(&Scope::ALL, from, unit, slots).await.unwrap();
        assert!(cut.is_none() && slots[0].0 <= from.max(handle.now()));
        (slots.len(), slots.iter().map(|(_, count)| count).sum::<u64>())
    };
    let ahead = |hours: u64| handle.now().plus(Millis::from_mins(60 * hours));
    // What the shards have at hand, and what is counted on request, are told alike; nothing is told of the past.
    for (from, unit, slots, expected) in [
        (ahead(30), Unit::Hour, 3, 2),
        (ahead(24 * 61), Unit::Hour, 2, 1),
        (ahead(30), Unit::Minute, 5, 1),
        (ahead(24 * 400), Unit::Minute, 5, 1),
        (ahead(24 * 400), Unit::Day, 2, 1),
        (ahead(24 * 400), Unit::Week, 2, 1),
        (Timestamp::ZERO, Unit::Month, 15, 5),
        (Timestamp::ZERO, Unit::Hour, 40, 3),
    ] {
        assert_eq!(due(from, unit, slots).await, (slots, expected), "{from:?} {unit:?}");
    }
}

#[tokio::test]
async fn topics_and_queues_of_all_shards_come_in_pages() {
    let Stage { handle, node: _node, .. } = Stage::new(3);
    let names: Vec<String> = (0..40).map(|number| format!("topic-{number:02}")).collect();
    for (number, topic) in names.iter().enumerate() {
        // Some are in one shard only.
        for id in 0..number % 4 + 1 {
            handle.schedule(task(topic, &id.to_string())).await.unwrap();
        }
    }
    for limit in [1, 7, 40, 100] {
        let (mut seen, mut after): (Vec<String>, _) = (Vec::new(), None);
        loop {
            let page = handle.topics(after, limit, |_| true).await.unwrap();
            assert!(page.entries.len() == limit || page.next.is_none());
            seen.extend(page.entries.iter().map(|topic| topic.counts.name.to_string()));
            let Some(next) = page.next else { break };
            after = Some(next);
        }
        assert_eq!(seen, names, "{limit} on a page");
    }
    let odd = |name: &Name| name.ends_with(['1', '3', '5', '7', '9']);
    let page = handle.queues(Some(name("topic-09")), 3, odd).await.unwrap();
    let seen: Vec<_> = page.entries.iter().map(|queue| (queue.counts.name.as_str(), queue.counts.ready)).collect();
    assert_eq!(seen, [("topic-11", 4), ("topic-13", 2), ("topic-15", 4)]);
    assert_eq!(page.next, Some(name("topic-15")));
    assert!(page.entries.iter().all(|queue| queue.oldest.is_some()));
    let total = handle.total().await.unwrap();
    assert_eq!((total.waiting, total.ready, total.leased), (100, 100, 0));
}

#[tokio::test]
async fn a_topic_is_deleted_everywhere_or_nowhere() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let orders = name("orders");
    handle.put_topic(&orders, TopicSettings { priority: 7, ..TopicSettings::default() }).await.unwrap();
    handle.schedule(task("orders", "only").after(Millis::from_hours(1))).await.unwrap();
    let answer = handle.delete_topic(&orders, false).await;
    assert_eq!(answer, Err(Error::Refused(Refused::NotEmpty { name: orders.clone(), rows: 1 })));
    assert_eq!(handle.topic(&orders).await.unwrap().unwrap().settings.priority, 7);
    assert_eq!(handle.delete_topic(&orders, true).await, Ok(1));
    assert_eq!(handle.total().await.unwrap().topics, 0);
    assert_eq!(handle.delete_topic(&orders, true).await, Err(Error::Refused(Refused::NoSuchTopic(orders))));
}
