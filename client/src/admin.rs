//! Topics, queues, dead letters, the history, the forecast and the numbers: what operators look at and do.

use bytes::Bytes;
use http::Method;
use punctual_wire::{
    Deleted, Forecast, List, ListNames, Me, Page, PauseQueue, QueueInfo, QueueList, QueueSettings, Selection, Stats,
    Swept, TopicInfo, TopicList, TopicSettings, Unit,
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

    /// The topic takes no tasks until it is resumed.
    pub async fn pause_topic(&self, name: &str) -> Result<TopicInfo, Error> {
        self.ask(Method::POST, topic_path(name).verb("pause"), Repeat::Safe).await
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

    /// Dead letters by the time they died, the latest first unless told otherwise.
    pub async fn dead(&self, list: &List) -> Result<Page, Error> {
        self.read(Path::new("dead").query(list)?).await
    }

    /// Hands out dead letters again; or only counts them.
    pub async fn replay_dead(&self, selection: Selection) -> Result<Swept, Error> {
        self.sweep(Path::new("dead").verb("replay"), selection).await
    }

    /// Removes dead letters; or only counts them.
    pub async fn purge_dead(&self, selection: Selection) -> Result<Swept, Error> {
        self.sweep(Path::new("dead").verb("purge"), selection).await
    }

    /// Finished tasks by the time they finished, the latest first unless told otherwise.
    pub async fn history(&self, list: &List) -> Result<Page, Error> {
        self.read(Path::new("history").query(list)?).await
    }

    /// Hands out finished tasks of a topic again; or only counts them.
    pub async fn replay_history(&self, selection: Selection) -> Result<Swept, Error> {
        self.sweep(Path::new("history").verb("replay"), selection).await
    }

    /// How many deliveries come due in each of the next minutes, hours or days.
    pub async fn forecast(&self, unit: Unit, slots: u32) -> Result<Forecast, Error> {
        #[derive(Serialize)]
        struct Query {
            unit: Unit,
            slots: u32,
        }
        self.read(Path::new("forecast").query(&Query { unit, slots })?).await
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

    /// How the server has been working since it started.
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.read(Path::new("stats")).await
    }

    async fn delete(&self, path: Path, force: bool) -> Result<u64, Error> {
        let query: Vec<(&str, &str)> = force.then_some(("force", "true")).into_iter().collect();
        // A second attempt would find nothing to delete and could not say how much there was.
        let answer = self.send(Method::DELETE, path.query(&query)?, Bytes::new(), Repeat::Undone).await?;
        Ok(parse::<Deleted>(&answer)?.rows)
    }

    /// What is swept twice is counted once, so the answer to a second attempt would be wrong, except about a dry run.
    async fn sweep(&self, path: Path, selection: Selection) -> Result<Swept, Error> {
        let repeat = if selection.dry_run { Repeat::Safe } else { Repeat::Undone };
        self.tell(Method::POST, path, &selection, repeat).await
    }
}

fn topic_path(name: &str) -> Path {
    Path::new("topics").name(name)
}

fn queue_path(name: &str) -> Path {
    Path::new("queues").name(name)
}
