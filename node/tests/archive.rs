//! Finished tasks go to the archive before they are removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::stage::{Stage, config, eventually, finish, name, next, task};
use punctual_core::store::Bodies;
use punctual_core::view::{Kept, Listing, TaskView};
use punctual_core::{Ending, Form, Millis, Selected, Standing, Task, TopicSettings};
use punctual_node::{Archive, Handle, Node, NodeConfig};

/// Keeps what it gets in memory, and does as it is told.
#[derive(Default)]
struct Shelf {
    tasks: Mutex<Vec<TaskView>>,
    is_broken: AtomicBool,
    panics: AtomicBool,
    /// Called while a page is taken.
    meanwhile: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Archive for Shelf {
    fn take(&self, tasks: &[TaskView]) -> Result<(), String> {
        assert!(tasks.len() <= 512 && !tasks.is_empty());
        assert!(!self.panics.load(Ordering::SeqCst), "the test wants this");
        if self.is_broken.load(Ordering::SeqCst) {
            return Err("the shelf is broken".into());
        }
        self.tasks.lock().unwrap().extend(tasks.iter().cloned());
        if let Some(meanwhile) = &mut *self.meanwhile.lock().unwrap() {
            meanwhile();
        }
        Ok(())
    }
}

impl Shelf {
    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.tasks.lock().unwrap().iter().map(|task| task.id.to_string()).collect();
        ids.sort();
        ids
    }
}

fn archiving(shards: u16) -> (NodeConfig, Arc<Shelf>) {
    let shelf = Arc::new(Shelf::default());
    let archive: Arc<dyn Archive> = shelf.clone();
    let every = Duration::from_millis(5);
    (NodeConfig { archive: Some(archive), archive_every: every, ..config(shards) }, shelf)
}

async fn keep(handle: &Handle, topic: &str, history: Millis) {
    handle.put_topic(&name(topic), TopicSettings { history, ..TopicSettings::default() }).await.unwrap();
}

async fn complete(handle: &Handle, topic: &str, id: &str) {
    handle.schedule(task(topic, id).form(Form::Text)).await.unwrap();
    let delivery = next(handle, topic).await;
    finish(handle, delivery.lease).await;
}

async fn history(handle: &Handle) -> Vec<String> {
    let listing = Listing::Kept(Kept::history());
    let page = handle.list(listing, None, 1_000, Bodies::Without).await.unwrap();
    page.tasks.into_iter().map(|task| task.id.to_string()).collect()
}

/// Gives the archive time to look a few times more; nothing is to go wrong with that.
async fn let_it_pass(handle: &Handle) {
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(handle.stats().archive.unwrap().last_error, None);
}

#[tokio::test]
async fn what_was_kept_for_its_time_is_archived_and_then_removed() {
    let (config, shelf) = archiving(3);
    let Stage { handle, clock, node: _node, .. } = Stage::with(config);
    keep(&handle, "brief", Millis::from_mins(1)).await;
    keep(&handle, "long", Millis::from_hours(1)).await;
    keep(&handle, "none", Millis::ZERO).await;
    for (topic, id) in [("brief", "b1"), ("long", "l1"), ("none", "n1"), ("brief", "b2")] {
        complete(&handle, topic, id).await;
    }
    let_it_pass(&handle).await;
    assert_eq!((shelf.ids().len(), history(&handle).await.len()), (0, 3), "nothing goes before its time");
    clock.step(60_001);
    eventually("the brief ones are archived", async || shelf.ids() == ["b1", "b2"]).await;
    eventually("and removed", async || history(&handle).await == ["l1"]).await;
    {
        let tasks = shelf.tasks.lock().unwrap();
        let task = tasks.iter().find(|task| task.id == name("b1")).unwrap();
        assert_eq!((task.body.as_ref(), task.form, task.topic.as_str()), (&b"b1"[..], Form::Text, "brief"));
        assert!(matches!(task.delivery.standing, Standing::Finished { ending: Ending::Done, .. }));
    }
    complete(&handle, "brief", "b3").await;
    clock.step(3_600_001);
    eventually("all are archived", async || shelf.ids() == ["b1", "b2", "b3", "l1"]).await;
    eventually("none is left", async || history(&handle).await.is_empty()).await;
    let stats = handle.stats().archive.unwrap();
    assert_eq!((stats.archived, stats.failures, stats.last_error), (4, 0, None));
    let counts = handle.counts().await.unwrap();
    assert!(counts.topics.iter().all(|topic| topic.history == 0), "{counts:?}");
}

#[tokio::test]
async fn many_tasks_are_archived_in_pages_each_once() {
    let (config, shelf) = archiving(2);
    let Stage { handle, clock, node: _node, .. } = Stage::with(config);
    keep(&handle, "orders", Millis::from_mins(1)).await;
    let later = |n: u32| task("orders", &format!("{n:04}")).after(Millis::from_hours(1)).key(name("ann"));
    assert!(handle.schedule_many((0..3_000).map(later).collect()).await.iter().all(Result::is_ok));
    assert_eq!(handle.cancel_key(&name("ann"), None, false).await.unwrap().changed, 3_000);
    clock.step(60_001);
    eventually("all are archived", async || handle.stats().archive.unwrap().archived == 3_000).await;
    assert!(shelf.ids().into_iter().eq((0..3_000).map(|n| format!("{n:04}"))));
    eventually("none is left", async || history(&handle).await.is_empty()).await;
}

#[tokio::test]
async fn another_time_to_keep_history_holds_for_what_is_there() {
    let (config, shelf) = archiving(1);
    let Stage { handle, node: _node, .. } = Stage::with(config);
    keep(&handle, "orders", Millis::from_hours(1)).await;
    keep(&handle, "others", Millis(1)).await;
    complete(&handle, "orders", "1").await;
    complete(&handle, "others", "2").await;
    eventually("the brief one is archived", async || shelf.ids() == ["2"]).await;
    keep(&handle, "orders", Millis(1)).await;
    eventually("so is the other", async || shelf.ids() == ["1", "2"]).await;
    keep(&handle, "orders", Millis::from_hours(1)).await;
    complete(&handle, "orders", "3").await;
    keep(&handle, "orders", Millis::ZERO).await;
    eventually("what was kept is archived", async || shelf.ids() == ["1", "2", "3"]).await;
}

#[tokio::test]
async fn nothing_is_removed_while_the_archive_fails() {
    let (config, shelf) = archiving(2);
    let Stage { handle, node: _node, .. } = Stage::with(config);
    shelf.is_broken.store(true, Ordering::SeqCst);
    keep(&handle, "orders", Millis(1)).await;
    for id in ["1", "2", "3"] {
        complete(&handle, "orders", id).await;
    }
    eventually("it has failed a few times", async || handle.stats().archive.unwrap().failures >= 3).await;
    assert_eq!(handle.stats().archive.unwrap().last_error.unwrap(), "the shelf is broken");
    assert_eq!((shelf.ids().len(), history(&handle).await.len()), (0, 3));
    shelf.panics.store(true, Ordering::SeqCst);
    eventually("it has panicked", async || {
        handle.stats().archive.unwrap().last_error.is_some_and(|why| why.contains("panicked"))
    })
    .await;
    assert_eq!((handle.ready(), history(&handle).await.len()), (Ok(()), 3));
    shelf.is_broken.store(false, Ordering::SeqCst);
    shelf.panics.store(false, Ordering::SeqCst);
    eventually("all are archived", async || shelf.ids() == ["1", "2", "3"]).await;
    eventually("and removed", async || history(&handle).await.is_empty()).await;
    eventually("the failure is over", async || handle.stats().archive.unwrap().last_error.is_none()).await;
}

#[tokio::test]
async fn as_long_as_the_store_has_no_room_tasks_are_archived_before_their_time() {
    let (config, shelf) = archiving(1);
    let Stage { handle, store, node: _node, .. } = Stage::with(config);
    let large = "x".repeat(600 << 10);
    for id in ["1", "2", "3", "4"] {
        handle.schedule(Task::new(name("orders"), large.clone()).id(name(id))).await.unwrap();
    }
    for _ in 0..3 {
        finish(&handle, next(&handle, "orders").await.lease).await;
    }
    let_it_pass(&handle).await;
    assert_eq!((shelf.ids().len(), history(&handle).await.len()), (0, 3), "nothing goes before its time");
    shelf.is_broken.store(true, Ordering::SeqCst);
    store.faults().fill("the disk is full");
    eventually("it was tried", async || handle.stats().archive.unwrap().failures > 0).await;
    assert_eq!(history(&handle).await.len(), 3, "nothing is removed that is not archived");
    shelf.is_broken.store(false, Ordering::SeqCst);
    eventually("all are archived", async || shelf.ids() == ["1", "2", "3"]).await;
    eventually("and removed", async || history(&handle).await.is_empty()).await;
    // What finishes meanwhile is not lost either.
    finish(&handle, next(&handle, "orders").await.lease).await;
    eventually("it is archived", async || shelf.ids() == ["1", "2", "3", "4"]).await;

    eventually("and removed", async || history(&handle).await.is_empty()).await;
    store.faults().heal();
    complete(&handle, "orders", "5").await;
    let_it_pass(&handle).await;
    assert_eq!((shelf.ids().len(), history(&handle).await), (4, vec!["5".to_owned()]), "there is room again");
}

#[tokio::test]
async fn a_crash_between_archiving_and_removing_archives_twice_but_loses_nothing() {
    let (config, shelf) = archiving(1);
    let Stage { handle, node, store, clock } = Stage::with(config.clone());
    keep(&handle, "orders", Millis::from_mins(1)).await;
    for id in ["1", "2"] {
        complete(&handle, "orders", id).await;
    }
    // From the moment the archive has them, the store takes nothing any more: so ends a process that dies.
    let cut = store.clone();
    *shelf.meanwhile.lock().unwrap() = Some(Box::new(move || cut.faults().cut()));
    clock.step(60_001);
    eventually("they are archived", async || shelf.ids() == ["1", "2"]).await;
    eventually("they cannot be removed", async || handle.stats().archive.unwrap().failures > 0).await;
    drop(node);
    *shelf.meanwhile.lock().unwrap() = None;
    store.faults().heal();
    let node = Node::start(config, store, clock).unwrap();
    let handle = node.handle();
    eventually("they are removed", async || history(&handle).await.is_empty()).await;
    assert_eq!(shelf.ids(), ["1", "1", "2", "2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_replayed_while_it_is_archived_stays() {
    let (config, shelf) = archiving(1);
    let Stage { handle, clock, node: _node, .. } = Stage::with(config);
    keep(&handle, "orders", Millis::from_mins(1)).await;
    complete(&handle, "orders", "1").await;
    let replay = handle.clone();
    let mut once = true;
    *shelf.meanwhile.lock().unwrap() = Some(Box::new(move || {
        if std::mem::take(&mut once) {
            let selected = Selected { topic: name("orders"), id: name("1"), queue: None };
            punctual_node::block_on(replay.replay(selected)).unwrap();
        }
    }));
    clock.step(60_001);
    eventually("it is archived", async || shelf.ids() == ["1"]).await;
    let delivery = next(&handle, "orders").await;
    assert_eq!(delivery.id, name("1"));
    finish(&handle, delivery.lease).await;
    clock.step(60_001);
    eventually("it is archived again, as it finished then", async || shelf.ids() == ["1", "1"]).await;
    eventually("and removed", async || history(&handle).await.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_for_one_page_at_most() {
    let (config, shelf) = archiving(1);
    let Stage { handle, clock, node, .. } = Stage::with(config);
    keep(&handle, "orders", Millis::from_mins(1)).await;
    let later = |n: u32| task("orders", &n.to_string()).after(Millis::from_hours(1)).key(name("ann"));
    assert!(handle.schedule_many((0..5_000).map(later).collect()).await.iter().all(Result::is_ok));
    handle.cancel_key(&name("ann"), None, false).await.unwrap();
    *shelf.meanwhile.lock().unwrap() = Some(Box::new(|| std::thread::sleep(Duration::from_millis(200))));
    clock.step(60_001);
    eventually("it has begun", async || !shelf.tasks.lock().unwrap().is_empty()).await;
    let begun = Instant::now();
    tokio::task::spawn_blocking(move || node.stop()).await.unwrap();
    assert!(shelf.tasks.lock().unwrap().len() <= 2 * 512, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_is_deleted_with_its_topic_is_not_archived_and_without_an_archive_there_are_no_stats() {
    let (config, shelf) = archiving(1);
    let Stage { handle, clock, node: _node, .. } = Stage::with(config);
    keep(&handle, "orders", Millis::from_mins(1)).await;
    complete(&handle, "orders", "1").await;
    handle.delete_topic(&name("orders"), false).await.unwrap();
    clock.step(60_001);
    let_it_pass(&handle).await;
    assert_eq!((shelf.ids().len(), history(&handle).await.len()), (0, 0));
    assert_eq!(Stage::new(1).handle.stats().archive, None);
}
