//! Looking for something of which only a word is known.

use serde::{Deserialize, Serialize};

use crate::standing::Standing;
use crate::time::Time;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Found {
    /// What the text leads to: tasks first, then keys, topics, and queues.
    pub hits: Vec<Hit>,
    /// Whether everything was looked at. If not, there are more topics or queues than are searched, or more hits than are shown.
    pub is_complete: bool,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Hit {
    /// A task, or one delivery of a broadcast task: the text is its id, its topic and id as `topic/id`, or its number.
    Task {
        /// Its topic.
        topic: String,
        /// Its id.
        id: String,
        /// Its number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
        /// Its queue, once it was handed out or given up there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<String>,
        /// When it is or was due.
        due: Time,
        /// Where it stands.
        standing: Standing,
    },
    /// A key that some task has.
    Key {
        /// The key.
        key: String,
    },
    /// A topic whose name contains the text.
    Topic {
        /// Its name.
        name: String,
    },
    /// A queue whose name contains the text.
    Queue {
        /// Its name.
        name: String,
    },
}
