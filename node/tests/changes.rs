//! Changes of settings through several nodes: in one order, whole or not at all, whoever dies meanwhile.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::stage::reach::Reach;
use crate::stage::wires::{Network, Shared};
use crate::stage::{Gate, config, eventually, name, task, wait_for};
use punctual_center::Changes;
use punctual_core::shard::StoredSettings;
use punctual_core::store::{ShardId, Store};
use punctual_core::view::settings_of;
use punctual_core::{Adjustment, Certainty, Millis, Name, QueueSettings, Refused, Subject, TopicSettings};
use punctual_memory::MemoryStore;
use punctual_node::{Card, Error, Handle, Node, NodeConfig, SystemClock};

const SHARDS: u16 = 4;

/// Two nodes on one store, each with a part of the shards.
struct Pair {
    store: Arc<MemoryStore>,
    /// The second node's way to the store.
    reach: Arc<Reach>,
    handles: [Handle; 2],
    /// In the order in which they stop.
    _nodes: [Node; 2],
}

impl Pair {
    async fn start() -> Pair {
        Pair::start_with(true).await
    }

    async fn start_with(create_on_use: bool) -> Pair {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let reach = Reach::new(store.clone());
        let network: Arc<Network> = Arc::default();
        let ways: [(&str, Arc<dyn Store>); 2] = [("a", store.clone()), ("b", reach.clone())];
        let nodes = ways.map(|(node, way)| {
            let card = Card { link: Some(node.to_owned()), ..Card::default() };
            let links = Some(Arc::new(Shared(network.join(node))) as Arc<_>);
            let mut config = NodeConfig { name: name(node), ownership: Millis(600), card, links, ..config(SHARDS) };
            config.shard.create_on_use = create_on_use;
            Node::start(config, way, Arc::new(SystemClock)).unwrap()
        });
        let handles = [nodes[0].handle(), nodes[1].handle()];
        let pair = Pair { store, reach, handles, _nodes: nodes };
        eventually("each has its part", async || {
            let nodes = pair.handles[0].nodes().await.unwrap();
            nodes.len() == 2 && nodes.iter().all(|node| node.shards == SHARDS / 2)
        })
        .await;
        pair
    }

    fn settings(&self) -> Vec<StoredSettings> {
        (0..SHARDS).map(|shard| settings_of(&*self.store, ShardId(shard)).unwrap()).collect()
    }

    fn agree(&self) -> bool {
        let settings = self.settings();
        settings.iter().all(|shard| *shard == settings[0])
    }

    /// What is written down, and at which revision.
    fn written(&self) -> (u64, Changes) {
        let entry = self.store.cluster_get(Changes::KEY).unwrap();
        entry.map_or((0, Changes::default()), |entry| (entry.revision, Changes::read(&entry.value).unwrap()))
    }

    /// Writes a change down, as a node does that dies right then.
    fn leave_behind(&self, adjustment: Adjustment) {
        let (revision, changes) = self.written();
        let next = changes.followed_by(adjustment, None, 0).unwrap();
        self.store.cluster_put(Changes::KEY, revision, &next.lay()).unwrap().unwrap();
    }

    async fn is_settled(&self) {
        let is_idle = |changes: &Changes| changes.under_way().is_none() && changes.deletions().next().is_none();
        eventually("nothing is under way", async || is_idle(&self.written().1)).await;
    }
}

fn with_lease(millis: u64) -> QueueSettings {
    QueueSettings { lease: Millis(millis), ..QueueSettings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_through_two_nodes_at_once_end_alike_in_all_shards() {
    let pair = Pair::start().await;
    let work = |number: u64| {
        let handle = pair.handles[usize::from(number > 0)].clone();
        async move {
            for round in 0..30 {
                let queue = name(["x", "y"][usize::from(round % 2 == 0)]);
                match round % 5 {
                    4 => match handle.delete_queue(&queue, round % 2 == 0).await {
                        Ok(_) | Err(Error::Refused(Refused::NoSuchQueue(_))) => {}
                        // Without force: the other node saw to it, and may have taken it back.
                        Err(error) if round % 2 != 0 && error.certainty() == Certainty::Unknown => {}
                        other => panic!("{other:?}"),
                    },
                    _ => match handle.put_queue(&queue, with_lease(number * 1_000 + round + 1)).await {
                        Ok(_) | Err(Error::Refused(Refused::BeingDeleted(_))) => {}
                        other => panic!("{other:?}"),
                    },
                }
            }
        }
    };
    let ends = tokio::join!(tokio::spawn(work(0)), tokio::spawn(work(1)));
    ends.0.unwrap();
    ends.1.unwrap();
    assert!(pair.agree(), "{:#?}", pair.settings());
    pair.is_settled().await;
    assert!(pair.agree(), "{:#?}", pair.settings());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_nodes_amend_at_the_same_time_is_changed_by_both() {
    let pair = Pair::start().await;
    pair.handles[0].put_queue(&name("x"), QueueSettings::default()).await.unwrap();
    let amend = |handle: Handle, is_lease: bool| async move {
        for _ in 0..20 {
            let more = move |present: QueueSettings| {
                Ok::<_, ()>(match is_lease {
                    true => QueueSettings { lease: Millis(present.lease.0 + 1), ..present },
                    false => QueueSettings { max_length: Some(present.max_length.unwrap_or(0) + 1), ..present },
                })
            };
            handle.amend_queue(&name("x"), more).await.unwrap().unwrap();
        }
    };
    let [a, b] = pair.handles.clone();
    let ends = tokio::join!(tokio::spawn(amend(a, true)), tokio::spawn(amend(b, false)));
    ends.0.unwrap();
    ends.1.unwrap();
    for shard in pair.settings() {
        let settings = &shard.queues[&name("x")];
        assert_eq!((settings.lease, settings.max_length), (Millis(30_020), Some(20)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_joined_through_another_node_and_spares_what_comes_after() {
    let pair = Pair::start().await;
    let (orders, [a, b]) = (name("orders"), &pair.handles);
    let later = |id: &str| task("orders", id).after(Millis::from_hours(1));
    for number in 0..1_500 {
        a.schedule(later(&number.to_string())).await.unwrap();
    }
    let gate = Gate::default();
    pair.store.faults().slow_down(gate.pass());
    let mut context = Context::from_waker(Waker::noop());
    let mut first = Box::pin(a.delete_topic(&orders, true));
    assert!(first.as_mut().poll(&mut context).is_pending());
    let subject = Subject::Topic(orders.clone());
    eventually("it is written down", async || pair.written().1.deletion_of(&subject).is_some()).await;
    let being_deleted = Error::Refused(Refused::BeingDeleted(orders.clone()));
    assert_eq!(b.pause_topic(&orders, None).await, Err(being_deleted.clone()));
    let mut second = Box::pin(b.delete_topic(&orders, true));
    assert!(second.as_mut().poll(&mut context).is_pending());
    gate.open();
    let by_first = first.await.unwrap();
    // Whoever has heard that it is over can go on at any node.
    b.put_topic(&orders, TopicSettings::default()).await.unwrap();
    b.schedule(later("anew")).await.unwrap();
    // What a shard clears away is told to whoever was there in time, which is one of them or both.
    let by_second = second.await.unwrap();
    assert!(by_first <= 1_500 && by_second <= 1_500 && by_first + by_second >= 1_500, "{by_first}, {by_second}");
    assert!(a.get(&orders, &name("anew")).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_wrote_down_and_left_is_finished_by_another() {
    let pair = Pair::start().await;
    for number in 0..20 {
        pair.handles[0].schedule(task("orders", &number.to_string()).after(Millis::from_hours(1))).await.unwrap();
    }
    pair.is_settled().await;
    let settings = with_lease(7);
    pair.leave_behind(Adjustment::PutQueue { name: name("x"), settings: Box::new(settings.clone()) });
    pair.is_settled().await;
    assert!(pair.settings().iter().all(|shard| shard.queues[&name("x")] == settings));
    pair.leave_behind(Adjustment::Delete { subject: Subject::Topic(name("orders")), force: true });
    pair.is_settled().await;
    assert!(pair.settings().iter().all(|shard| !shard.topics.contains_key(&name("orders"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_left_comes_before_the_own_change_and_is_not_undone_by_it() {
    let pair = Pair::start().await;
    pair.leave_behind(Adjustment::PutQueue { name: name("x"), settings: Box::new(with_lease(7)) });
    let longer = |present: QueueSettings| Ok::<_, ()>(QueueSettings { max_length: Some(3), ..present });
    let amended = pair.handles[1].amend_queue(&name("x"), longer).await.unwrap().unwrap();
    assert_eq!(amended, QueueSettings { max_length: Some(3), ..with_lease(7) });
    assert!(pair.settings().iter().all(|shard| shard.queues[&name("x")] == amended));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_in_the_middle_leaves_nothing_half_made() {
    let pair = Pair::start().await;
    let [a, b] = pair.handles.clone();
    for round in 1..=4 {
        let changing = tokio::spawn({
            let b = b.clone();
            async move {
                let mut last = Ok(QueueSettings::default());
                for number in 0..1_000 {
                    last = b.put_queue(&name("x"), with_lease(round * 10_000 + number)).await;
                    if last.is_err() {
                        break;
                    }
                }
                last
            }
        });
        tokio::time::sleep(Duration::from_millis(round * 7)).await;
        pair.reach.cut();
        let heard = changing.await.unwrap();
        eventually("the other one has all", async || a.put_queue(&name("y"), with_lease(round)).await.is_ok()).await;
        assert!(pair.agree(), "round {round}, {heard:?}: {:#?}", pair.settings());
        pair.reach.mend();
        eventually("it is back", async || b.put_queue(&name("z"), with_lease(round)).await.is_ok()).await;
        assert!(pair.agree(), "round {round}: {:#?}", pair.settings());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_not_all_shards_have_adopted_is_not_told_as_made() {
    let pair = Pair::start().await;
    let [a, b] = &pair.handles;
    a.put_queue(&name("x"), QueueSettings::default()).await.unwrap();
    pair.reach.cut();
    match a.put_queue(&name("x"), with_lease(7)).await {
        // The other node's shards came over in time, or the change waits for them.
        Ok(_) => assert!(pair.agree()),
        Err(error) => assert_eq!(error.certainty(), Certainty::Unknown),
    }
    assert_eq!(b.put_queue(&name("x"), with_lease(8)).await.unwrap_err().certainty(), Certainty::NothingDone);
    let is_made = || pair.settings().iter().all(|shard| shard.queues[&name("x")] == with_lease(7));
    eventually("it is made all the same", async || is_made()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_that_another_node_made_or_deleted_are_known_as_such() {
    let pair = Pair::start_with(false).await;
    let [a, b] = &pair.handles;
    let missing = |queue: &str| Err(Error::Refused(Refused::NoSuchQueue(Name::new(queue).unwrap())));
    assert_eq!(b.reserve(wait_for(b, "x", Duration::ZERO)).await, missing("x"));
    a.put_queue(&name("x"), QueueSettings::default()).await.unwrap();
    assert_eq!(b.reserve(wait_for(b, "x", Duration::ZERO)).await, Ok(Vec::new()));
    a.put_topic(&name("x"), TopicSettings::default()).await.unwrap();
    assert_eq!(b.put_topic(&name("y"), TopicSettings::default()).await.unwrap_err(), missing("y").unwrap_err());
    a.delete_queue(&name("x"), true).await.unwrap();
    eventually("it is not waited for any more", async || {
        b.reserve(wait_for(b, "x", Duration::ZERO)).await == missing("x")
    })
    .await;
}
