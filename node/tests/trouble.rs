//! What callers hear when the store, the clock or another node gets in the way.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::stage::{
    PATIENCE, Stage, config, eventually, finish, is_created, is_dry, name, next, schedule_until_back, take, task,
    wait_for,
};
use punctual_core::store::{Batch, Look, ShardId, Store, Tally, TallyKind, Tenure};
use punctual_core::{
    Certainty, Ending, Millis, QueueSettings, Rate, Refused, Reserve, Ruling, ScheduleOutcome, Standing, TopicSettings,
};
use punctual_memory::{Fate, MemoryStore};
use punctual_node::{Error, Node, NodeConfig, SystemClock};

#[tokio::test]
async fn a_full_inbox_is_answered_as_overload() {
    let stage = Stage::with(NodeConfig { inbox: 10, ..config(1) });
    let tasks = (0..100).map(|n| task("orders", &n.to_string())).collect();
    let answers = stage.handle.schedule_many(tasks).await;
    let overloaded = answers.iter().filter(|answer| **answer == Err(Error::Overloaded)).count();
    assert_eq!((answers.iter().filter(|answer| answer.is_ok()).count(), overloaded), (10, 90));

    let gate = stage.close_gate();
    let mut calls = Vec::new();
    eventually("the inbox is full", async || {
        for _ in 0..20 {
            let (handle, id) = (stage.handle.clone(), calls.len().to_string());
            calls.push(tokio::spawn(async move { handle.schedule(task("more", &id)).await }));
        }
        stage.handle.stats().inboxes == [10]
    })
    .await;
    assert_eq!(stage.handle.schedule(task("more", "last")).await, Err(Error::Overloaded));
    gate.open();
    for call in calls {
        let answer = call.await.unwrap();
        assert!(matches!(answer, Ok(_) | Err(Error::Overloaded)), "{answer:?}");
    }
    assert!(is_created(&stage.handle.schedule(task("more", "last")).await.unwrap()));
}

#[tokio::test]
async fn a_stored_count_that_is_wrong_is_put_right_and_counted() {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let shard = ShardId(0);
    let Tenure { fence, serial } = take(&store, shard, "before");
    let wrong = Tally::named(TallyKind::Waiting, &name("gone"));
    let batch = Batch { shard, fence, serial: serial + 1, changes: vec![], tallies: vec![(wrong, 3)] };
    assert_eq!(store.commit(vec![batch]).unwrap(), [Ok(())]);
    store.release(shard, fence, None).unwrap();
    let node = Node::start(config(1), store.clone(), clock).unwrap();
    let handle = node.handle();
    handle.schedule(task("orders", "1")).await.unwrap();
    eventually("it is counted", async || handle.stats().counts_mended == 1).await;
    assert!(store.tallies(shard).unwrap().iter().all(|(tally, _)| tally.name != Some(name("gone"))));
}

#[tokio::test]
async fn a_topic_over_its_rate_is_refused_with_a_time_to_wait() {
    let Stage { handle, node: _node, .. } = Stage::new(4);
    let rate = Some(Rate { per_second: 1, burst: 3 });
    handle.put_topic(&name("orders"), TopicSettings { rate, ..TopicSettings::default() }).await.unwrap();
    let tasks = (0..8).map(|n| task("orders", &n.to_string())).collect();
    let answers = handle.schedule_many(tasks).await;
    let taken = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!((3..8).contains(&taken), "{answers:?}");
    let refused = handle.schedule(task("orders", "x")).await;
    let Err(Error::Refused(Refused::RateLimited { retry_after, .. })) = refused else { panic!("{refused:?}") };
    assert!(retry_after > Millis::ZERO);
    assert!(handle.schedule(task("others", "x")).await.is_ok());
}

#[tokio::test]
async fn a_failed_commit_is_answered_as_unknown_and_a_retry_is_safe() {
    for (fate, existed) in [(Fate::Lost, false), (Fate::Kept, true)] {
        let Stage { handle, store, node: _node, .. } = Stage::new(1);
        handle.schedule(task("orders", "before").after(Millis(300))).await.unwrap();
        store.faults().fail_next_commit(fate);
        let answer = handle.schedule(task("orders", "7").after(Millis(300))).await;
        assert!(matches!(&answer, Err(error) if error.certainty() == Certainty::Unknown), "{answer:?}");
        let again = schedule_until_back(&handle, task("orders", "7").after(Millis(300))).await;
        assert_eq!(matches!(again.outcome, ScheduleOutcome::Existed(_)), existed, "{again:?}");
        let mut ids = [next(&handle, "orders").await.id, next(&handle, "orders").await.id];
        ids.sort();
        assert_eq!(ids, [name("7"), name("before")]);
        assert!(is_dry(&handle, "orders").await);
        assert_eq!(handle.stats().failed_commits, 1);
    }
}

#[tokio::test]
async fn other_shards_go_on_when_one_fails() {
    let Stage { handle, store, node: _node, .. } = Stage::new(4);
    let ids: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    store.faults().fail_next_commit(Fate::Lost);
    assert!(handle.schedule(task("orders", &ids[0])).await.is_err());
    let failed = punctual_node::shard_of("orders", &ids[0], 4);
    for id in ids.iter().filter(|id| punctual_node::shard_of("orders", id, 4) != failed) {
        assert!(handle.schedule(task("orders", id)).await.is_ok());
    }
    schedule_until_back(&handle, task("orders", &ids[0])).await;
}

#[tokio::test]
async fn a_waiting_consumer_survives_the_loss_of_a_shard() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { next(&handle, "orders").await }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    store.faults().fail_next_commit(Fate::Lost);
    assert!(handle.schedule(task("others", "x")).await.is_err());
    schedule_until_back(&handle, task("orders", "7")).await;
    assert_eq!(waiting.await.unwrap().id, name("7"));
}

#[tokio::test]
async fn a_store_that_is_cut_off_is_waited_for() {
    let Stage { handle, store, node: _node, .. } = Stage::new(2);
    handle.schedule(task("orders", "before")).await.unwrap();
    eventually("it is ready", async || handle.counts().await.unwrap().queues[0].ready == 1).await;
    store.faults().cut();
    for number in 0..10 {
        let answer = handle.schedule(task("orders", &number.to_string())).await;
        assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
        let look = handle.get(&name("orders"), &name("x")).await;
        assert_eq!(look.unwrap_err().certainty(), Certainty::NothingDone);
    }
    // A shard that is not here has nothing to give, and nobody waits for it to look.
    let nothing = tokio::time::timeout(crate::stage::PATIENCE / 4, is_dry(&handle, "orders")).await;
    assert!(nothing.expect("who does not want to wait does not wait for a lost shard"));
    assert_eq!(handle.ready().unwrap_err().code(), "unavailable");
    store.faults().heal();
    schedule_until_back(&handle, task("orders", "after")).await;
    eventually("all shards are up", async || handle.ready().is_ok()).await;
    next(&handle, "orders").await;
    next(&handle, "orders").await;
}

#[tokio::test]
async fn a_poisoned_store_stops_the_node_from_answering() {
    let Stage { handle, store, node, .. } = Stage::new(2);
    handle.schedule(task("orders", "7")).await.unwrap();
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.reserve(crate::stage::wait_for(&handle, "others", crate::stage::PATIENCE)).await }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    store.faults().poison("the disk did not sync");
    assert!(handle.schedule(task("orders", "8")).await.is_err());
    let refusal = |error: Error| {
        error.code() == "unavailable"
            && matches!(error, Error::Unavailable { why, .. } if why.contains("the disk did not sync"))
    };
    assert!(refusal(waiting.await.unwrap().unwrap_err()));
    store.faults().heal();
    // The store may be well again; what this node has in memory is not.
    assert!(refusal(handle.schedule(task("orders", "9")).await.unwrap_err()));
    assert!(refusal(handle.get(&name("orders"), &name("7")).await.unwrap_err()));
    assert!(refusal(handle.reserve(crate::stage::wait_for(&handle, "orders", Duration::ZERO)).await.unwrap_err()));
    assert!(refusal(handle.counts().await.unwrap_err()));
    assert!(refusal(handle.ready().unwrap_err()));
    node.stop();
}

#[tokio::test]
async fn a_bug_under_a_commit_stops_the_node_from_answering() {
    let Stage { handle, store, node, .. } = Stage::new(2);
    store.faults().slow_down(|| panic!("the test wants this"));
    let answer = handle.schedule(task("orders", "7")).await;
    assert!(matches!(&answer, Err(error) if error.certainty() == Certainty::Unknown), "{answer:?}");
    eventually("everything is refused", async || {
        let answers = handle.schedule_many((0..8).map(|n| task("orders", &n.to_string())).collect()).await;
        let refused = |error: &Error| error.code() == "unavailable" && error.to_string().contains("restarted");
        answers.iter().all(|answer| answer.as_ref().is_err_and(refused))
    })
    .await;
    node.stop();
}

#[tokio::test]
async fn what_waits_when_its_shard_is_lost_was_not_done() {
    // One step at a time, so that the second request waits for the first one's commit.
    let stage = Stage::with(NodeConfig { in_flight: 1, callers_step: false, ..config(1) });
    let gate = stage.close_gate();
    let schedule = |id: &'static str| {
        let handle = stage.handle.clone();
        tokio::spawn(async move { handle.schedule(task("orders", id)).await })
    };
    let taken = schedule("taken");
    tokio::task::yield_now().await;
    gate.wait_for_somebody();
    let waiting = schedule("waiting");
    eventually("the second one waits", async || stage.handle.stats().inboxes == [1]).await;
    stage.store.faults().fail_next_commit(Fate::Kept);
    gate.open();
    assert_eq!(taken.await.unwrap().unwrap_err().certainty(), Certainty::Unknown);
    assert_eq!(waiting.await.unwrap().unwrap_err().certainty(), Certainty::NothingDone);
    assert!(!is_created(&schedule_until_back(&stage.handle, task("orders", "taken")).await));
    assert!(is_created(&schedule_until_back(&stage.handle, task("orders", "waiting")).await));
}

#[tokio::test]
async fn what_a_step_could_not_read_for_was_not_done() {
    for callers_step in [true, false] {
        let stage = Stage::with(NodeConfig { callers_step, ..config(1) });
        assert!(is_created(&stage.handle.schedule(task("orders", "before")).await.unwrap()));
        stage.store.faults().cut();
        let refused = stage.handle.schedule(task("orders", "7")).await.unwrap_err();
        assert_eq!((refused.code(), refused.certainty()), ("unavailable", Certainty::NothingDone));
        assert!(refused.to_string().contains("cut off"), "{refused}");
        stage.store.faults().heal();
        assert!(is_created(&schedule_until_back(&stage.handle, task("orders", "7")).await));
    }
}

#[tokio::test]
async fn slow_commits_do_not_reorder_answers() {
    let Stage { handle, store, node: _node, .. } = Stage::with(NodeConfig { step: 3, ..config(1) });
    let commits = AtomicUsize::new(0);
    store.faults().slow_down(move || {
        let number = commits.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis([7, 0, 3][number % 3]));
    });
    let order = Arc::new(Mutex::new(Vec::new()));
    // One thread runs the calls, so they are sent, and woken, in their order.
    let mut calls = Vec::new();
    for number in 0..100 {
        let (handle, order) = (handle.clone(), order.clone());
        calls.push(tokio::spawn(async move {
            // Some change nothing, and still wait for what came before.
            let id = if number % 4 == 3 { number - 1 } else { number };
            handle.schedule(task("orders", &id.to_string()).after(Millis::from_hours(1))).await.unwrap();
            order.lock().unwrap().push(number);
        }));
    }
    for call in calls {
        call.await.unwrap();
    }
    assert!(order.lock().unwrap().is_sorted(), "{order:?}");
}

#[tokio::test]
async fn a_lease_counts_from_its_hand_over_however_long_the_commit_takes() {
    let Stage { handle, store, node: _node, .. } = Stage::new(1);
    handle.schedule(task("orders", "7")).await.unwrap();
    let is_slow = AtomicBool::new(true);
    store.faults().slow_down(move || {
        if is_slow.swap(false, Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let wish = Reserve { lease: Some(Millis(5_000)), ..wait_for(&handle, "orders", PATIENCE) };
    let asked_at = handle.now();
    let delivery = handle.reserve(wish).await.unwrap().remove(0);
    assert!(delivery.until >= asked_at.plus(Millis(5_299)), "{}, asked at {asked_at}", delivery.until);
    eventually("what was told is written down", async || {
        let view = handle.get(&name("orders"), &name("7")).await.unwrap().unwrap();
        let Standing::Leased { until, .. } = view.delivery.standing else { panic!("{view:?}") };
        until == delivery.until
    })
    .await;
    handle.acknowledge(delivery.lease).await.unwrap();
}

#[tokio::test]
async fn a_shard_remembers_what_is_not_durable_yet() {
    let stage = Stage::new(1);
    let handle = stage.handle.clone();
    handle.schedule(task("orders", "7")).await.unwrap();
    let delivery = next(&handle, "orders").await;
    handle.schedule(task("others", "8").after(Millis(50))).await.unwrap();
    let gate = stage.close_gate();
    let acknowledged = tokio::spawn({
        let handle = handle.clone();
        async move { handle.acknowledge(delivery.lease).await }
    });
    // One more poll of the call sends it.
    tokio::task::yield_now().await;
    gate.wait_for_somebody();
    // Meanwhile a task comes due that nobody waits for: a step without anything to write.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let cancelled = tokio::spawn({
        let handle = handle.clone();
        async move { handle.cancel(&name("orders"), &name("7")).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    gate.open();
    acknowledged.await.unwrap().unwrap();
    let ruling = cancelled.await.unwrap().unwrap();
    let Ruling::TooLate(Standing::Finished { ending, .. }) = ruling else { panic!("{ruling:?}") };
    assert_eq!(ending, Ending::Done);
}

#[tokio::test]
async fn a_clock_that_is_set_back_fires_nothing_early() {
    let Stage { handle, clock, node: _node, .. } = Stage::new(1);
    handle.schedule(task("orders", "7").after(Millis(100))).await.unwrap();
    clock.step(-3_600_000);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(is_dry(&handle, "orders").await);
    // What needs no time to pass goes on, at the latest time that was seen.
    handle.schedule(task("others", "8")).await.unwrap();
    let delivery = next(&handle, "others").await;
    finish(&handle, delivery.lease).await;
    clock.step(3_600_000);
    assert_eq!(next(&handle, "orders").await.id, name("7"));
}

#[tokio::test]
async fn a_clock_that_is_set_forward_is_noticed() {
    let Stage { handle, clock, node: _node, .. } = Stage::new(2);
    handle.schedule(task("orders", "7").after(Millis::from_hours(20))).await.unwrap();
    let waiting = tokio::spawn({
        let handle = handle.clone();
        let mut reserve = crate::stage::wait_for(&handle, "orders", Duration::from_secs(90_000));
        reserve.max = 2;
        async move { handle.reserve(reserve).await.unwrap() }
    });
    eventually("the consumer waits", async || handle.stats().waiting_consumers == 1).await;
    clock.step(20 * 3_600_000);
    assert_eq!(waiting.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_dead_letter_goes_on_once_even_if_word_of_its_arrival_is_lost() {
    // One step at a time, so that each has a commit of its own.
    let Stage { handle, store, clock, node: _node } = Stage::with(NodeConfig { in_flight: 1, ..config(1) });
    let to_graveyard = QueueSettings { dead_letter: Some(name("graveyard")), ..QueueSettings::default() };
    handle.put_queue(&name("orders"), to_graveyard).await.unwrap();
    handle.put_topic(&name("graveyard"), TopicSettings::default()).await.unwrap();
    handle.schedule(task("orders", "7")).await.unwrap();
    let delivery = next(&handle, "orders").await;
    // First the rejection is written, then that it is sent on, then that it has arrived.
    let (commits, faulty) = (AtomicUsize::new(0), Arc::downgrade(&store));
    store.faults().slow_down(move || {
        if commits.fetch_add(1, Ordering::SeqCst) == 2
            && let Some(store) = faulty.upgrade()
        {
            store.faults().fail_next_commit(Fate::Kept);
        }
    });
    handle.reject(delivery.lease, None).await.unwrap();
    eventually("the third commit fails", async || handle.stats().failed_commits == 1).await;
    store.faults().heal();
    let arrived = loop {
        // The shard may not be back yet; then a consumer only waits longer.
        let delivery = next(&handle, "graveyard").await;
        if delivery.headers.iter().any(|(header, value)| header == "punctual-dead-id" && value == "7") {
            break delivery;
        }
    };
    let sent_on = async || {
        let task = handle.get(&name("orders"), &name("7")).await.unwrap().unwrap();
        matches!(task.delivery.standing, Standing::Finished { ending: Ending::Forwarded, .. })
    };
    assert!(!sent_on().await, "word of the arrival was lost");
    finish(&handle, arrived.lease).await;
    clock.step(61_000);
    eventually("word of the arrival comes", sent_on).await;
    assert!(is_dry(&handle, "graveyard").await, "it arrived once");
}
