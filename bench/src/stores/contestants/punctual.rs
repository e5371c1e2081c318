//! Punctual: a whole node in this process, of four shards, on the store of a database.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use punctual_core::store::Store;
use punctual_core::{Choice, Lease, Millis, Name, Reserve, Task, Timestamp, TopicSettings};
use punctual_database::{Config, Database};
use punctual_mysql::MysqlStore;
use punctual_node::{Handle, Node, NodeConfig, SystemClock, block_on};
use punctual_postgres::PostgresStore;
use punctual_redis::RedisStore;

use crate::arena::task::{Bodies, due_of};
use crate::stores::engine::Engine;

const TOPIC: &str = "orders";
const SHARDS: u16 = 4;
/// How long a consumer waits before it asks again.
const PATIENCE: Millis = Millis(1_000);

/// What becomes of tasks that are done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// They stay in the history for a day, as they do unless a topic says otherwise.
    History,
    /// They are removed at once.
    Nothing,
}

/// Opens the store, makes the tables if they are not there, and starts a node on it.
pub fn start(engine: &Engine, keeping: Keeping) -> io::Result<Node> {
    let config = NodeConfig::new(name("bench")).shards(SHARDS);
    let node = Node::start(config, store(engine)?, Arc::new(SystemClock)).map_err(io::Error::other)?;
    if keeping == Keeping::Nothing {
        let settings = TopicSettings { history: Millis::ZERO, ..TopicSettings::default() };
        block_on(node.handle().put_topic(&name(TOPIC), settings)).map_err(io::Error::other)?;
    }
    Ok(node)
}

fn store(engine: &Engine) -> io::Result<Arc<dyn Store>> {
    let config = Config::new(engine.url());
    Ok(match engine {
        Engine::Postgres(_) => Arc::new(PostgresStore::open(config).map_err(io::Error::other)?),
        Engine::Maria(_) => Arc::new(MysqlStore::open(config).map_err(io::Error::other)?),
        Engine::Redis(_) => Arc::new(RedisStore::open(config).map_err(io::Error::other)?),
    })
}

/// One caller.
pub struct Client {
    handle: Handle,
    bodies: Bodies,
    taken: Vec<Lease>,
}

impl Client {
    pub fn new(handle: Handle) -> Client {
        Client { handle, bodies: Bodies::new(), taken: Vec::new() }
    }

    pub async fn schedule(&mut self, due_ms: &[u64]) -> io::Result<()> {
        let mut task = |due_ms: &u64| {
            let body = Bytes::copy_from_slice(&self.bodies.next(*due_ms));
            Task::new(name(TOPIC), body).at(Timestamp::from_millis(*due_ms))
        };
        if let [due_ms] = due_ms {
            let task = task(due_ms);
            return self.handle.schedule(task).await.map(drop).map_err(io::Error::other);
        }
        let tasks = due_ms.iter().map(task).collect();
        let scheduled = self.handle.schedule_many(tasks).await;
        scheduled.into_iter().try_for_each(|scheduled| scheduled.map(drop).map_err(io::Error::other))
    }

    pub async fn take(&mut self, at_most: usize) -> io::Result<Vec<u64>> {
        let reserve = Reserve {
            queues: vec![name(TOPIC)],
            max: at_most,
            lease: None,
            until: self.handle.now().plus(PATIENCE),
            consumer: name("consumer"),
            choice: Choice::default(),
        };
        let deliveries = self.handle.reserve(reserve).await.map_err(io::Error::other)?;
        let due = deliveries.iter().map(|delivery| due_of(&delivery.body)).collect();
        self.taken.extend(deliveries.into_iter().map(|delivery| delivery.lease));
        due
    }

    pub async fn acknowledge(&mut self) -> io::Result<()> {
        let answers = self.handle.acknowledge_many(std::mem::take(&mut self.taken)).await;
        answers.into_iter().try_for_each(|answer| answer.map_err(io::Error::other))
    }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}
