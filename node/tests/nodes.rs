//! Several nodes on one store: who has which shard, and that nothing is lost while shards change hands.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::stage::reach::Reach;
use crate::stage::wires::{Network, Shared};
use crate::stage::{PATIENCE, config, eventually, finish, name, next, task, wait_for};
use punctual_center::Sweeps;
use punctual_core::store::{ShardId, Store};
use punctual_core::{Among, Certainty, Matching, Millis, Name, Scope, Select, Sweep, SweepAction, TimeRange};
use punctual_memory::MemoryStore;
use punctual_node::{Card, Error, Handle, Node, NodeConfig, StartError, SystemClock, known_shards};
use tokio::task::JoinSet;

const SHARDS: u16 = 8;

/// A store and a network for nodes.
#[derive(Clone)]
struct Center {
    store: Arc<MemoryStore>,
    network: Arc<Network>,
    /// How long a node counts as there without a beat.
    ownership: Millis,
}

impl Center {
    /// Nodes that are soon missed.
    fn new() -> Center {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        Center { store, network: Arc::default(), ownership: Millis(600) }
    }

    /// Nodes as users have them: none is taken for dead because a busy machine lets its beats wait for a moment.
    fn usual() -> Center {
        Center { ownership: NodeConfig::new(name("a")).ownership, ..Center::new() }
    }

    fn config(&self, node: &str) -> NodeConfig {
        let card = Card { link: Some(node.to_owned()), ..Card::default() };
        let links = Some(Arc::new(Shared(self.network.join(node))) as Arc<_>);
        NodeConfig { name: name(node), ownership: self.ownership, card, links, ..config(SHARDS) }
    }

    fn try_start(&self, node: &str) -> Result<Node, StartError> {
        Node::start(self.config(node), self.store.clone(), Arc::new(SystemClock))
    }

    fn start(&self, node: &str) -> Node {
        self.try_start(node).unwrap()
    }

    /// Several nodes that have come to an agreement.
    async fn start_all<const NODES: usize>(&self, names: [&str; NODES]) -> [Node; NODES] {
        self.agree(names.map(|node| self.start(node))).await
    }

    /// The same where one of them reaches the store on a way of its own.
    async fn start_with<const NODES: usize>(&self, names: [&str; NODES]) -> ([Node; NODES], Arc<Reach>) {
        let reach = Reach::new(self.store.clone());
        let start = |node: &str| {
            let is_last = Some(&node) == names.last();
            let store: Arc<dyn Store> = if is_last { reach.clone() } else { self.store.clone() };
            Node::start(self.config(node), store, Arc::new(SystemClock)).unwrap()
        };
        (self.agree(names.map(start)).await, reach)
    }

    async fn agree<const NODES: usize>(&self, nodes: [Node; NODES]) -> [Node; NODES] {
        let even = usize::from(SHARDS) / NODES;
        for node in &nodes {
            eventually("each has its part", async || {
                (even..=even + 1).contains(&usize::from(part_of(&node.handle()).await))
            })
            .await;
        }
        nodes
    }
}

/// How many shards a node has, as it says itself.
async fn part_of(handle: &Handle) -> u16 {
    handle.nodes().await.unwrap().iter().find(|node| node.is_this).map_or(0, |node| node.shards)
}

/// Who has a shard, as a node sees it.
async fn owner(handle: &Handle, shard: u16) -> Option<String> {
    let shards = handle.shards().await.unwrap();
    shards[usize::from(shard)].owner.as_ref().map(ToString::to_string)
}

#[tokio::test]
async fn a_second_node_gets_its_part_and_both_see_the_same() {
    let center = Center::new();
    let first = center.start("a");
    assert_eq!(part_of(&first.handle()).await, SHARDS, "who is alone has all");
    let second = center.start("b");
    for node in [&first, &second] {
        eventually("both have half", async || part_of(&node.handle()).await == SHARDS / 2).await;
    }
    eventually("both see the same", async || {
        first.handle().shards().await.unwrap() == second.handle().shards().await.unwrap()
    })
    .await;
    let seen = second.handle().nodes().await.unwrap();
    let names: Vec<(&str, bool, bool)> =
        seen.iter().map(|node| (node.who.node.as_str(), node.is_this, node.is_there)).collect();
    assert_eq!(names, [("a", false, true), ("b", true, true)]);
}

#[tokio::test]
async fn two_processes_of_one_name_do_not_depose_each_other() {
    let center = Center::new();
    let _first = center.start("a");
    let refused = tokio::task::spawn_blocking({
        let center = center.clone();
        move || center.try_start("a").unwrap_err()
    });
    assert_eq!(refused.await.unwrap(), StartError::NameTaken { name: name("a") });
}

#[tokio::test]
async fn a_node_without_links_is_refused_where_another_one_works() {
    let center = Center::new();
    let _first = center.start("a");
    let alone = NodeConfig { links: None, ..center.config("b") };
    let refused = Node::start(alone, center.store.clone(), Arc::new(SystemClock)).unwrap_err();
    assert!(matches!(refused, StartError::Held { by, .. } if by == name("a")));
}

#[tokio::test]
async fn the_first_node_chooses_the_number_of_shards_for_all() {
    let center = Center::new();
    assert_eq!(known_shards(&*center.store).unwrap(), None);
    let first = center.start("a");
    assert_eq!(known_shards(&*center.store).unwrap(), Some(SHARDS));
    let other = NodeConfig { shards: SHARDS + 1, ..center.config("b") };
    let refused = Node::start(other, center.store.clone(), Arc::new(SystemClock)).unwrap_err();
    assert_eq!(refused, StartError::Shards { noted: SHARDS, configured: SHARDS + 1 });
    tokio::task::spawn_blocking(move || first.stop()).await.unwrap();
}

#[tokio::test]
async fn a_store_from_before_tells_the_number_of_its_shards() {
    let center = Center::new();
    let alone = NodeConfig { links: None, ..center.config("a") };
    Node::start(alone, center.store.clone(), Arc::new(SystemClock)).unwrap().stop();
    let other = NodeConfig { shards: 1, ..center.config("b") };
    let refused = Node::start(other, center.store.clone(), Arc::new(SystemClock)).unwrap_err();
    assert_eq!(refused, StartError::Shards { noted: SHARDS, configured: 1 });
    assert_eq!(part_of(&center.start("b").handle()).await, SHARDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_moved_in_moments_that_the_store_lost_is_found_where_it_was_before() {
    let center = Center::new();
    let nodes = center.start_all(["a", "b", "c"]).await;
    let handles = nodes.each_ref().map(Node::handle);
    let shards = handles[0].shards().await.unwrap();
    let moved = shards.iter().position(|shard| shard.owner.as_ref().is_some_and(|owner| owner.as_str() == "a"));
    let moved = u16::try_from(moved.unwrap()).unwrap();
    center.store.hold();
    handles[0].pin(ShardId(moved), &name("b")).await.unwrap();
    for handle in &handles {
        eventually("all know where it went", async || owner(handle, moved).await.as_deref() == Some("b")).await;
    }
    center.store.fail_over();
    for (number, handle) in handles.iter().enumerate() {
        // So many that each shard gets some.
        for id in (0..40).map(|id| format!("{number}-{id}")) {
            eventually("every node finds every shard", async || handle.schedule(task("orders", &id)).await.is_ok())
                .await;
        }
    }
    for handle in &handles {
        eventually("it is back", async || owner(handle, moved).await.as_deref() == Some("a")).await;
    }
}

/// A caller and a consumer at each node, until all tasks are done; each came once.
fn work(handles: Vec<Handle>, tasks: usize) -> JoinSet<()> {
    let seen: Arc<Mutex<BTreeSet<Name>>> = Arc::default();
    let (count, mut working) = (handles.len(), JoinSet::new());
    for (first, handle) in handles.into_iter().enumerate() {
        let (caller, seen) = (handle.clone(), Arc::clone(&seen));
        working.spawn(async move {
            for number in (first..tasks).step_by(count) {
                caller.schedule(task("orders", &number.to_string())).await.unwrap();
            }
        });
        working.spawn(async move {
            while seen.lock().unwrap().len() < tasks {
                for delivery in handle.reserve(wait_for(&handle, "orders", Duration::from_millis(50))).await.unwrap() {
                    assert!(seen.lock().unwrap().insert(delivery.id.clone()), "{} came twice", delivery.id);
                    finish(&handle, delivery.lease).await;
                }
            }
        });
    }
    working
}

/// Waits until all work is done. The first that fails is told at once: the others would wait for what it did not do.
async fn is_done(mut working: JoinSet<()>) {
    let all = async {
        while let Some(ended) = working.join_next().await {
            ended.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the work comes to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_change_hands_under_load_and_nothing_is_lost_refused_or_doubled() {
    let center = Center::usual();
    let [first, second] = center.start_all(["a", "b"]).await;
    let working = work(vec![first.handle(), second.handle()], 3_000);
    let third = center.start("c");
    for node in [&first, &second, &third] {
        eventually("each has its part", async || part_of(&node.handle()).await >= SHARDS / 3).await;
    }
    // And back, while the work goes on.
    tokio::task::spawn_blocking(move || third.stop()).await.unwrap();
    eventually("all are with two", async || part_of(&second.handle()).await == SHARDS / 2).await;
    is_done(working).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_while_shards_move_waits_and_is_answered() {
    let center = Center::new();
    let [first, second] = center.start_all(["a", "b"]).await;
    for round in 0..3 {
        let (from, to) = if round % 2 == 0 { ("a", "b") } else { ("b", "a") };
        first.handle().pin(ShardId(0), &name(to)).await.unwrap();
        let mut number = 0;
        let begun = Instant::now();
        while owner(&first.handle(), 0).await.as_deref() != Some(to) {
            for handle in [first.handle(), second.handle()] {
                handle
                    .schedule(task("orders", &format!("{round}-{number}")).after(Millis::from_hours(1)))
                    .await
                    .unwrap();
                number += 1;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "from {from} to {to}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shards_of_a_dead_node_are_taken_over() {
    let center = Center::new();
    let ([first, second, third], reach) = center.start_with(["a", "b", "c"]).await;
    for number in 0..60 {
        second.handle().schedule(task("orders", &number.to_string())).await.unwrap();
    }
    // It is gone without a word: its threads stay, cut off from the store and from the others.
    reach.cut();
    for (one, other) in [("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")] {
        center.network.cut(one, other);
    }
    std::mem::forget(third);
    let died_at = Instant::now();
    for node in [&first, &second] {
        eventually("both have half", async || part_of(&node.handle()).await == SHARDS / 2).await;
    }
    assert!(died_at.elapsed() < Duration::from_secs(5), "{:?}", died_at.elapsed());
    for number in 0..60 {
        let delivery = next(&[first.handle(), second.handle()][number % 2], "orders").await;
        finish(&first.handle(), delivery.lease).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_goes_on_when_the_node_that_began_it_dies() {
    let center = Center::new();
    let ([first, second, third], reach) = center.start_with(["a", "b", "c"]).await;
    for number in 0..2_000 {
        let later = task("orders", &number.to_string()).after(Millis::from_hours(1));
        first.handle().schedule(later).await.unwrap();
    }
    let select = Select {
        among: Among::Live,
        topic: Some(name("orders")),
        key: None,
        queue: None,
        time: TimeRange::ALL,
        ids: None,
    };
    let (matching, action) = (Matching::Tasks(Box::new(select)), SweepAction::Cancel);
    let sweep = Sweep { matching, within: Scope::ALL, action, dry_run: false };
    // Commits are slow, so that its node is gone before any shard has begun it.
    center.store.faults().slow_down(|| std::thread::sleep(Duration::from_millis(50)));
    let beginning = third.handle();
    let begun = tokio::spawn(async move { beginning.begin_sweep(sweep, None).await });
    let written = || {
        let entry = center.store.cluster_get(Sweeps::KEY).unwrap()?;
        Sweeps::read(&entry.value).unwrap().records().first().map(|record| record.number)
    };
    eventually("it is written down", async || written().is_some()).await;
    let number = written().unwrap();
    reach.cut();
    for (one, other) in [("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")] {
        center.network.cut(one, other);
    }
    std::mem::forget(third);
    let found = async || second.handle().find_sweep(number).await.ok().flatten().filter(|view| view.ended.is_some());
    begun.abort();
    eventually("it is over", async || found().await.is_some()).await;
    let swept = found().await.unwrap().swept;
    assert_eq!((swept.matched, swept.changed), (2_000, 2_000));
    let orders = first.handle().topic(&name("orders")).await.unwrap().unwrap();
    assert_eq!((orders.counts.waiting, orders.counts.history), (0, 2_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_too_long_comes_back_without_what_others_took() {
    let center = Center::new();
    let ([first, second], reach) = center.start_with(["a", "b"]).await;
    reach.cut();
    eventually("the other has all", async || part_of(&first.handle()).await == SHARDS).await;
    reach.mend();
    for node in [&first, &second] {
        eventually("both have half", async || part_of(&node.handle()).await == SHARDS / 2).await;
    }
    for number in 0..20 {
        second.handle().schedule(task("orders", &number.to_string())).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_is_empty_and_still_takes_requests() {
    let center = Center::new();
    let [first, second] = center.start_all(["a", "b"]).await;
    first.handle().drain(&name("b")).await.unwrap();
    eventually("it has nothing", async || part_of(&second.handle()).await == 0).await;
    assert_eq!(part_of(&first.handle()).await, SHARDS);
    let seen = first.handle().nodes().await.unwrap();
    assert_eq!(seen.iter().map(|node| node.is_draining).collect::<Vec<_>>(), [false, true]);
    second.handle().schedule(task("orders", "1")).await.unwrap();
    let delivery = next(&second.handle(), "orders").await;
    finish(&second.handle(), delivery.lease).await;
    second.handle().undrain(&name("b")).await.unwrap();
    eventually("it has its part again", async || part_of(&second.handle()).await == SHARDS / 2).await;
}

#[tokio::test]
async fn a_pinned_shard_goes_to_its_node_and_what_makes_no_sense_is_refused() {
    let center = Center::new();
    let [first, second] = center.start_all(["a", "b"]).await;
    for to in ["b", "a", "b"] {
        second.handle().pin(ShardId(7), &name(to)).await.unwrap();
        eventually("it is there", async || owner(&first.handle(), 7).await.as_deref() == Some(to)).await;
    }
    let pinned = second.handle().shards().await.unwrap();
    assert_eq!(pinned.iter().filter_map(|shard| shard.pinned_to.clone()).collect::<Vec<_>>(), [name("b")]);
    first.handle().unpin(ShardId(7)).await.unwrap();
    assert!(second.handle().shards().await.unwrap().iter().all(|shard| shard.pinned_to.is_none()));
    for refused in [
        first.handle().pin(ShardId(SHARDS), &name("a")).await,
        first.handle().pin(ShardId(0), &name("nobody")).await,
        first.handle().drain(&name("nobody")).await,
    ] {
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_hands_its_shards_over_at_once() {
    let center = Center::new();
    let [first, second] = center.start_all(["a", "b"]).await;
    let stopped = tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        second.stop();
        begun.elapsed()
    });
    let took = stopped.await.unwrap();
    eventually("the other one has all", async || part_of(&first.handle()).await == SHARDS).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    let seen = first.handle().nodes().await.unwrap();
    eventually("it has left", async || first.handle().nodes().await.unwrap().len() == 1).await;
    assert!(!seen.is_empty());
}

#[tokio::test]
async fn the_last_node_that_stops_leaves_its_shards_to_nobody() {
    let center = Center::new();
    let [first, second] = center.start_all(["a", "b"]).await;
    let stop = |node: Node| tokio::task::spawn_blocking(move || node.stop());
    stop(first).await.unwrap();
    let handle = second.handle();
    stop(second).await.unwrap();
    let refused = handle.schedule(task("orders", "1")).await.unwrap_err();
    assert_eq!(refused.certainty(), Certainty::NothingDone);
    let begun = Instant::now();
    let third = center.start("c");
    assert_eq!(part_of(&third.handle()).await, SHARDS);
    assert!(begun.elapsed() < Duration::from_millis(500), "nobody's lease is waited for: {:?}", begun.elapsed());
}
