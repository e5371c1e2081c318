//! Topics, queues, dead letters, the history, the forecast, the numbers and the store: what operators look at and do.

use bytes::Bytes;
use http::Method;
use punctual_wire::{
    ActList, ConsumerList, DeadGroups, DeadGroupsQuery, Deleted, Forecast, ForecastQuery, List, ListActs,
    ListConsumers, ListDeliveries, ListNames, Me, MoveStore, NodeList, Page, PauseQueue, PauseTopic, PinShard,
    QueueInfo, QueueList, QueueSettings, Selection, ShardList, Stats, StoreMove, Swept, TopicInfo, TopicList,
    TopicSettings, Unit,
};
use serde::Serialize;

use crate::address::Path;
use crate::client::{Client, found, parse};
use crate::error::Error;
use crate::transport::Repeat;

/// How many topics or queues a page has at most.
const LONGEST_PAGE: u32 = 1_000;

impl Client {
    /// A page of the topics, by name.
    pub async fn list_topics(&self, list: &ListNames) -> Result<TopicList, Error> {
        self.read(Path::new("topics").query(list)?).await
    }

    /// All topics, by name, page after page.
    pub async fn topics(&self) -> Result<Vec<TopicInfo>, Error> {
        let mut all = Vec::new();
        let mut list = ListNames { limit: Some(LONGEST_PAGE), cursor: None };
        loop {
            let page = self.list_topics(&list).await?;
            all.extend(page.topics);
            if page.next.is_none() {
                return Ok(all);
            }
            list.cursor = page.next;
        }
    }

    /// A topic, its settings and how much it holds.
    pub async fn topic(&self, name: &str) -> Result<Option<TopicInfo>, Error> {
        found(self.read(topic_path(name)).await, "no-such-topic")
    }

    /// Creates a topic or gives it these settings, all of them: what is left out has its default.
    pub async fn put_topic(&self, name: &str, settings: TopicSettings) -> Result<TopicInfo, Error> {
        self.tell(Method::PUT, topic_path(name), &settings, Repeat::Safe).await
    }

    /// Changes the settings that a merge patch (RFC 7396) names, and no others: `json!({ "history": "7d", "ttl": null })`.
    /// `None` if there is no such topic.
    pub async fn patch_topic(&self, name: &str, patch: &impl Serialize) -> Result<Option<TopicInfo>, Error> {
        found(self.tell(Method::PATCH, topic_path(name), patch, Repeat::Safe).await, "no-such-topic")
    }

    /// The same as [`put_topic`](Client::put_topic), if the settings still have this version (`TopicInfo::version`). If they have
    /// not, nothing is changed, and that is a problem with the code `settings-changed`.
    pub async fn put_topic_if(&self, name: &str, settings: TopicSettings, version: &str) -> Result<TopicInfo, Error> {
        self.tell_if(Method::PUT, topic_path(name), &settings, version).await
    }

    /// The same as [`patch_topic`](Client::patch_topic), if the settings still have this version.
    pub async fn patch_topic_if(
        &self,
        name: &str,
        patch: &impl Serialize,
        version: &str,
    ) -> Result<Option<TopicInfo>, Error> {
        found(self.tell_if(Method::PATCH, topic_path(name), patch, version).await, "no-such-topic")
    }

    /// The topic takes no tasks until it is resumed.
    pub async fn pause_topic(&self, name: &str, pause: PauseTopic) -> Result<TopicInfo, Error> {
        self.tell(Method::POST, topic_path(name).verb("pause"), &pause, Repeat::Safe).await
    }

    /// The topic takes tasks again.
    pub async fn resume_topic(&self, name: &str) -> Result<TopicInfo, Error> {
        self.ask(Method::POST, topic_path(name).verb("resume"), Repeat::Safe).await
    }

    /// Deletes a topic; with `force` also if it holds tasks. Answers how much went with it.
    pub async fn delete_topic(&self, name: &str, force: bool) -> Result<u64, Error> {
        self.delete(topic_path(name), force).await
    }

    /// A page of the queues, by name.
    pub async fn list_queues(&self, list: &ListNames) -> Result<QueueList, Error> {
        self.read(Path::new("queues").query(list)?).await
    }

    /// All queues, by name, page after page.
    pub async fn queues(&self) -> Result<Vec<QueueInfo>, Error> {
        let mut all = Vec::new();
        let mut list = ListNames { limit: Some(LONGEST_PAGE), cursor: None };
        loop {
            let page = self.list_queues(&list).await?;
            all.extend(page.queues);
            if page.next.is_none() {
                return Ok(all);
            }
            list.cursor = page.next;
        }
    }

    /// A queue, its settings and how much it holds.
    pub async fn queue(&self, name: &str) -> Result<Option<QueueInfo>, Error> {
        found(self.read(queue_path(name)).await, "no-such-queue")
    }

    /// Creates a queue or gives it these settings, all of them: what is left out has its default.
    pub async fn put_queue(&self, name: &str, settings: QueueSettings) -> Result<QueueInfo, Error> {
        self.tell(Method::PUT, queue_path(name), &settings, Repeat::Safe).await
    }

    /// Changes the settings that a merge patch (RFC 7396) names, and no others. `None` if there is no such queue.
    pub async fn patch_queue(&self, name: &str, patch: &impl Serialize) -> Result<Option<QueueInfo>, Error> {
        found(self.tell(Method::PATCH, queue_path(name), patch, Repeat::Safe).await, "no-such-queue")
    }

    /// The same as [`put_queue`](Client::put_queue), if the settings still have this version (`QueueInfo::version`). If they have
    /// not, nothing is changed, and that is a problem with the code `settings-changed`.
    pub async fn put_queue_if(&self, name: &str, settings: QueueSettings, version: &str) -> Result<QueueInfo, Error> {
        self.tell_if(Method::PUT, queue_path(name), &settings, version).await
    }

    /// The same as [`patch_queue`](Client::patch_queue), if the settings still have this version.
    pub async fn patch_queue_if(
        &self,
        name: &str,
        patch: &impl Serialize,
        version: &str,
    ) -> Result<Option<QueueInfo>, Error> {
        found(self.tell_if(Method::PATCH, queue_path(name), patch, version).await, "no-such-queue")
    }

    /// The queue hands out nothing, for a while or until it is resumed.
    pub async fn pause_queue(&self, name: &str, pause: PauseQueue) -> Result<QueueInfo, Error> {
        self.tell(Method::POST, queue_path(name).verb("pause"), &pause, Repeat::Safe).await
    }

    /// The queue hands out deliveries again.
    pub async fn resume_queue(&self, name: &str) -> Result<QueueInfo, Error> {
        self.ask(Method::POST, queue_path(name).verb("resume"), Repeat::Safe).await
    }

    /// Deletes a queue; with `force` also if it holds deliveries. Answers how much went with it.
    pub async fn delete_queue(&self, name: &str, force: bool) -> Result<u64, Error> {
        self.delete(queue_path(name), force).await
    }

    /// What stands in a queue: what is ready in the order in which it is handed out, or what is with a consumer by the end of
    /// its lease.
    pub async fn deliveries(&self, queue: &str, list: &ListDeliveries) -> Result<Page, Error> {
        self.read(queue_path(queue).verb("deliveries").query(list)?).await
    }

    /// What operators did, at all nodes, the latest first.
    pub async fn audit(&self, list: &ListActs) -> Result<ActList, Error> {
        self.read(Path::new("audit").query(list)?).await
    }

    /// The consumers that wait for deliveries right now, at all nodes, and those that hold some.
    pub async fn consumers(&self, list: &ListConsumers) -> Result<ConsumerList, Error> {
        self.read(Path::new("consumers").query(list)?).await
    }

    /// Dead letters by the time they died, the latest first unless told otherwise.
    pub async fn dead(&self, list: &List) -> Result<Page, Error> {
        self.read(Path::new("dead").query(list)?).await
    }

    /// Dead letters by what they have in common, the largest groups first.
    pub async fn dead_groups(&self, query: &DeadGroupsQuery) -> Result<DeadGroups, Error> {
        self.read(Path::new("dead").verb("groups").query(query)?).await
    }

    /// Hands out dead letters again; or only counts them.
    pub async fn replay_dead(&self, selection: Selection) -> Result<Swept, Error> {
        self.swept(Path::new("dead").verb("replay"), selection).await
    }

    /// Removes dead letters; or only counts them.
    pub async fn purge_dead(&self, selection: Selection) -> Result<Swept, Error> {
        self.swept(Path::new("dead").verb("purge"), selection).await
    }

    /// Finished tasks by the time they finished, the latest first unless told otherwise.
    pub async fn history(&self, list: &List) -> Result<Page, Error> {
        self.read(Path::new("history").query(list)?).await
    }

    /// Hands out finished tasks of a topic again; or only counts them.
    pub async fn replay_history(&self, selection: Selection) -> Result<Swept, Error> {
        self.swept(Path::new("history").verb("replay"), selection).await
    }

    /// How many deliveries come due in each of the next minutes, hours, days, weeks or months.
    pub async fn forecast(&self, unit: Unit, slots: u32) -> Result<Forecast, Error> {
        self.forecast_of(&ForecastQuery { unit, slots: Some(slots), ..ForecastQuery::default() }).await
    }

    /// The same of one topic, or told apart by topic.
    pub async fn forecast_of(&self, query: &ForecastQuery) -> Result<Forecast, Error> {
        self.read(Path::new("forecast").query(query)?).await
    }

    /// The nodes of the delay center that the server belongs to, by name.
    pub async fn nodes(&self) -> Result<NodeList, Error> {
        self.read(Path::new("nodes")).await
    }

    /// Has a node give its shards to the others, one after the other, and get none until this is taken back.
    pub async fn drain_node(&self, name: &str) -> Result<NodeList, Error> {
        self.ask(Method::POST, drain_path(name), Repeat::Safe).await
    }

    /// Lets a node that was drained have shards again.
    pub async fn undrain_node(&self, name: &str) -> Result<NodeList, Error> {
        self.ask(Method::DELETE, drain_path(name), Repeat::Safe).await
    }

    /// The shards of the store, and the nodes that have them.
    pub async fn shards(&self) -> Result<ShardList, Error> {
        self.read(Path::new("shards")).await
    }

    /// Has a shard be at a node, whenever that is there and not drained.
    pub async fn pin_shard(&self, shard: u16, node: &str) -> Result<ShardList, Error> {
        self.tell(Method::PUT, pin_path(shard), &PinShard { node: node.to_owned() }, Repeat::Safe).await
    }

    /// Lets a shard be at any node.
    pub async fn unpin_shard(&self, shard: u16) -> Result<ShardList, Error> {
        self.ask(Method::DELETE, pin_path(shard), Repeat::Safe).await
    }

    /// Begins to move everything into another store while the server goes on. The same again joins the move that is under way.
    pub async fn move_store(&self, to: &MoveStore) -> Result<StoreMove, Error> {
        self.tell(Method::POST, move_path(), to, Repeat::Safe).await
    }

    /// How far the move of the store is, or how the last one ended; `None` if there was none since the server started.
    pub async fn store_move(&self) -> Result<Option<StoreMove>, Error> {
        found(self.read(move_path()).await, "no-such-move")
    }

    /// Gives up the move of the store, if no shard has been moved yet.
    pub async fn cancel_move(&self) -> Result<StoreMove, Error> {
        self.ask(Method::DELETE, move_path(), Repeat::Safe).await
    }

    /// Whether the server takes commands: `ready`, or `degraded` with the reason if it takes all but new tasks. If it
    /// takes none, the problem says why. Needs no token.
    pub async fn ready(&self) -> Result<String, Error> {
        // It is asked about now: that the server is not ready is an answer, and not a failure to be tried again.
        let answered = self.send(Method::GET, Path::of_server("readyz"), Bytes::new(), Repeat::Never).await?;
        Ok(String::from_utf8_lossy(&answered.bytes).trim_end().to_owned())
    }

    /// Who the server takes this client for, what it may do there, and what time it is there.
    pub async fn me(&self) -> Result<Me, Error> {
        self.read(Path::new("me")).await
    }

    /// How all nodes have been working since each of them started.
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.read(Path::new("stats")).await
    }

    /// The same of one node.
    pub async fn stats_of(&self, node: &str) -> Result<Stats, Error> {
        self.read(Path::new("stats").query(&[("node", node)])?).await
    }

    async fn delete(&self, path: Path, force: bool) -> Result<u64, Error> {
        let query: Vec<(&str, &str)> = force.then_some(("force", "true")).into_iter().collect();
        // A second attempt would find nothing to delete and could not say how much there was.
        let answer = self.send(Method::DELETE, path.query(&query)?, Bytes::new(), Repeat::Undone).await?;
        Ok(parse::<Deleted>(&answer)?.rows)
    }

    /// What is swept twice is counted once, so the answer to a second attempt would be wrong, except about a dry run.
    async fn swept(&self, path: Path, selection: Selection) -> Result<Swept, Error> {
        let repeat = if selection.dry_run { Repeat::Safe } else { Repeat::Undone };
        self.tell(Method::POST, path, &selection, repeat).await
    }
}

fn topic_path(name: &str) -> Path {
    Path::new("topics").name(name)
}

fn drain_path(node: &str) -> Path {
    Path::new("nodes").name(node).verb("drain")
}

fn pin_path(shard: u16) -> Path {
    Path::new("shards").name(&shard.to_string()).verb("pin")
}

fn move_path() -> Path {
    Path::new("store").verb("move")
}

fn queue_path(name: &str) -> Path {
    Path::new("queues").name(name)
}
