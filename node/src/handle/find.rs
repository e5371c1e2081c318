//! Looking for something of which only a word is known: by point look-ups, never by going through tasks.
//!
//! An id is looked for in each topic that is meant, which costs by their number; so that is bounded.

use std::collections::BTreeMap;

use punctual_core::store::{Bodies, Key, ShardId, Store, Table};
use punctual_core::view::{self, Listing, TaskView};
use punctual_core::{Name, Scope};

use super::Handle;
use crate::error::Error;
use crate::numbers::Number;

/// In how many topics an id is looked for, and among how many topics and queues a name.
const SEARCHED: usize = 10_000;
/// How many tasks are told, and how many topics and queues each.
const TOLD: usize = 20;
/// How many ways there are to read a text as a topic and an id.
const WAYS: usize = 8;

/// What a word led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Tasks with this id or number, and deliveries with this number.
    pub tasks: Vec<TaskView>,
    /// Whether it is the key of a task.
    pub is_key: bool,
    /// Topics whose names hold it, that of exactly this name first.
    pub topics: Vec<Name>,
    /// Queues likewise.
    pub queues: Vec<Name>,
    /// Whether there is nothing else.
    pub is_complete: bool,
}

impl Handle {
    /// Looks for tasks, keys, topics and queues within a scope.
    pub async fn find(&self, within: &Scope, text: &str) -> Result<Found, Error> {
        let fits = |name: &Name| within.fits(name);
        let topics = self.topics(None, SEARCHED, fits).await?;
        let queues = self.queues(None, SEARCHED, fits).await?;
        let is_all = topics.next.is_none() && queues.next.is_none();
        let topics: Vec<Name> = topics.entries.into_iter().map(|topic| topic.counts.name).collect();
        let queues: Vec<Name> = queues.entries.into_iter().map(|queue| queue.counts.name).collect();
        let mut tasks = self.task_numbered(within, text).await?;
        for task in self.tasks_called(places(text, &topics, within)).await? {
            if !tasks
                .iter()
                .any(|known| (&known.topic, &known.id, known.number) == (&task.topic, &task.id, task.number))
            {
                tasks.push(task);
            }
        }
        let (topics, queues) = (naming(text, topics), naming(text, queues));
        let is_complete = is_all && [tasks.len(), topics.len(), queues.len()].into_iter().all(|told| told <= TOLD);
        let told = |mut names: Vec<Name>| {
            names.truncate(TOLD);
            names
        };
        tasks.truncate(TOLD);
        let is_key = self.is_key(within, text).await?;
        Ok(Found { tasks, is_key, topics: told(topics), queues: told(queues), is_complete })
    }

    async fn task_numbered(&self, within: &Scope, text: &str) -> Result<Vec<TaskView>, Error> {
        let Ok(number) = text.parse() else { return Ok(Vec::new()) };
        let rows = self.numbered(vec![Number(number)], Bodies::Without).await?;
        let tasks = rows.into_iter().flatten().map(|row| row.task);
        Ok(tasks.filter(|task| within.fits(&task.topic)).collect())
    }

    /// The tasks at these places, up to one more than are told.
    async fn tasks_called(&self, places: Vec<(Name, Name)>) -> Result<Vec<TaskView>, Error> {
        let mut shards: BTreeMap<ShardId, Vec<Key>> = BTreeMap::new();
        for (topic, id) in places {
            shards.entry(self.shard_of(&topic, &id)).or_default().push(Key::task(&topic, &id));
        }
        let now = self.now();
        let look = move |store: &dyn Store| {
            let mut found = Vec::new();
            for (shard, keys) in &shards {
                found.extend(view::tasks(store, *shard, keys, now)?);
                if found.len() > TOLD {
                    break;
                }
            }
            Ok(found)
        };
        self.counted(self.read(look).await)
    }

    async fn is_key(&self, within: &Scope, text: &str) -> Result<bool, Error> {
        let Ok(key) = Name::new(text) else { return Ok(false) };
        for table in [Table::Live, Table::Dead, Table::History] {
            let listing = Listing::Key { key: key.clone(), table };
            if !self.list_within(within, listing, None, 1, Bodies::Without).await?.tasks.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where a task may be that somebody means by this text: under this id in any topic, or as `topic/id`.
fn places(text: &str, topics: &[Name], within: &Scope) -> Vec<(Name, Name)> {
    let mut places = Vec::new();
    for (slash, _) in text.match_indices('/').take(WAYS) {
        let (Ok(topic), Ok(id)) = (Name::new(&text[..slash]), Name::new(&text[slash + 1..])) else { continue };
        if within.fits(&topic) {
            places.push((topic, id));
        }
    }
    if let Ok(id) = Name::new(text) {
        places.extend(topics.iter().map(|topic| (topic.clone(), id.clone())));
    }
    places
}

/// The names that hold a text, whatever its case; the very same first.
fn naming(text: &str, names: Vec<Name>) -> Vec<Name> {
    let wanted = text.to_lowercase();
    let mut names: Vec<Name> = names.into_iter().filter(|name| name.to_lowercase().contains(&wanted)).collect();
    names.sort_by_key(|name| **name != *text);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    #[test]
    fn a_text_may_be_an_id_or_a_topic_and_an_id() {
        let topics = [name("a"), name("b/c")];
        let found = places("b/c/7", &topics, &Scope::ALL);
        for (topic, id) in [("b", "c/7"), ("b/c", "7"), ("a", "b/c/7")] {
            assert!(found.contains(&(name(topic), name(id))), "{topic} {id}: {found:?}");
        }
        assert_eq!(places("/", &topics, &Scope::ALL).len(), 2, "neither part is a name");
        let some = Scope::of(["b/*".to_owned()]);
        assert_eq!(places("b/c/7", &[], &some), [(name("b/c"), name("7"))], "others are not looked at");
    }

    #[test]
    fn the_very_name_comes_before_those_that_hold_it() {
        let names = ["Orders-eu", "coupons", "my-orders", "orders"].map(name).to_vec();
        assert_eq!(naming("orders", names), ["orders", "Orders-eu", "my-orders"].map(name));
    }
}
