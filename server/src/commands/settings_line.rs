//! The lines of an export that hold settings: of a topic or of a queue, before the tasks.
//!
//! What is there already keeps its settings, as a task that is there stays as it is. A topic that was paused is paused
//! again when its tasks are in.

use punctual_client::Client;
use punctual_wire::{Misread, PauseTopic, QueueSettings, Time, TopicSettings, read_json};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::failure::Failure;

/// Settings as a line of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SettingsLine {
    /// Of a topic.
    Topic {
        /// Its name.
        name: String,
        /// What it is told to do.
        settings: TopicSettings,
    },
    /// Of a queue.
    Queue {
        /// Its name.
        name: String,
        /// What it is told to do.
        settings: QueueSettings,
    },
}

/// All settings of a server, or those of one topic and the queues it feeds. Queues come first: topics name them.
pub async fn all(client: &Client, topic: Option<&str>) -> Result<Vec<SettingsLine>, Failure> {
    let mut topics = client.topics().await?;
    topics.retain(|info| topic.is_none_or(|name| *name == info.name));
    let fed = |queue: &str| {
        topics.iter().any(|info| match &info.settings.feeds {
            Some(feeds) => feeds.iter().any(|binding| binding.queue == queue),
            None => info.name == queue,
        })
    };
    let queues = client.queues().await?;
    let queues = queues.into_iter().filter(|info| topic.is_none() || fed(&info.name));
    let mut lines: Vec<SettingsLine> =
        queues.map(|info| SettingsLine::Queue { name: info.name, settings: info.settings }).collect();
    lines.extend(topics.into_iter().map(|info| SettingsLine::Topic { name: info.name, settings: info.settings }));
    Ok(lines)
}

impl SettingsLine {
    /// Whether a line holds settings, and which.
    pub fn read(text: &str) -> Option<Result<SettingsLine, Misread>> {
        #[derive(Deserialize)]
        struct Kind {
            kind: String,
        }
        // Each kind is read as a form of its own: of a choice between forms, serde cannot say which field is wrong.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Named<S> {
            #[serde(rename = "kind")]
            _kind: IgnoredAny,
            name: String,
            settings: S,
        }
        match serde_json::from_str::<Kind>(text).ok()?.kind.as_str() {
            "topic" => Some(
                read_json(text.as_bytes()).map(|Named { name, settings, .. }| SettingsLine::Topic { name, settings }),
            ),
            "queue" => Some(
                read_json(text.as_bytes()).map(|Named { name, settings, .. }| SettingsLine::Queue { name, settings }),
            ),
            _ => None,
        }
    }

    /// Puts the settings in place, unless there are some; says whether it did. A topic that is to be paused is so only
    /// when [`pause`](SettingsLine::pause) says so, or it would take no tasks.
    pub async fn put(&self, client: &Client) -> Result<bool, Failure> {
        match self {
            SettingsLine::Topic { name, .. } if client.topic(name).await?.is_some() => Ok(false),
            SettingsLine::Queue { name, .. } if client.queue(name).await?.is_some() => Ok(false),
            SettingsLine::Topic { name, settings } => {
                let settings = TopicSettings { paused: false, ..settings.clone() };
                client.put_topic(name, settings).await?;
                Ok(true)
            }
            SettingsLine::Queue { name, settings } => {
                let mut settings = settings.clone();
                // A pause may have ended since the export.
                if settings.paused_until.is_some_and(|until| until <= Time::now()) {
                    (settings.paused, settings.paused_until) = (false, None);
                }
                client.put_queue(name, settings).await?;
                Ok(true)
            }
        }
    }

    /// Pauses a topic that was paused.
    pub async fn pause(&self, client: &Client) -> Result<(), Failure> {
        if let SettingsLine::Topic { name, settings } = self
            && settings.paused
        {
            client.pause_topic(name, PauseTopic::default()).await?;
        }
        Ok(())
    }
}
