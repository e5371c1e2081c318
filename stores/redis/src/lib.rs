//! Punctual's store on Redis 7 and Valkey: one server, Sentinel or Cluster.
//!
//! Each commit of a shard is one script, which looks at everything before its first write; a read is one, too. So a shard
//! is always seen at one moment, and nobody writes to it but who holds its fence. What is kept under which key is in
//! `keys.rs`, what a row looks like in `row.rs`, and what a confirmation is worth on which Redis in docs/stores/redis.md.
//!
//! ```no_run
//! use punctual_redis::{Config, Database, RedisStore};
//!
//! let store = RedisStore::open(Config::new("redis://127.0.0.1:6379"))?;
//! println!("{store}");
//! # Ok::<_, punctual_redis::OpenError>(())
//! ```

mod commit;
mod condition;
mod health;
mod keys;
mod members;
mod opening;
mod pack;
mod pool;
mod read;
mod routes;
mod row;
mod scripts;
mod servers;
mod slot;
mod survey;
mod tally;
mod target;
mod tls;
mod trouble;
mod url;
mod value;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Outdated, Refusal, Roll, Room, ShardId, Store,
    StoreError, Tenure, Terms, Want,
};
use punctual_database::WORTHWHILE;

pub use punctual_database::{Config, Contents, Database, Migrated, OpenError, ShardContents, Status};

use condition::Condition;
use health::Health;
use keys::Keys;
use read::Reading;
use servers::{Call, Servers};
use target::Target;

/// A beat does not wait long for what is only of use.
const GLANCE: Duration = Duration::from_millis(200);

/// A store whose rows are in Redis. Calls may come from any thread, and each ends within the patience.
pub struct RedisStore {
    target: Target,
    prefix: String,
    keys: Keys,
    servers: Servers,
    health: Health,
    /// As it was at the start.
    conditions: Vec<Condition>,
    replicas: usize,
}

impl RedisStore {
    /// Counts what came to nothing.
    fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Unavailable(_)) = &result {
            self.servers.counters.count_failure();
        }
        result
    }

    fn read_all(&self, readings: &mut [Reading<'_>]) -> Result<(), StoreError> {
        let by = self.servers.deadline();
        while readings.iter().any(|reading| !reading.is_done()) {
            let open = || readings.iter().filter(|reading| !reading.is_done());
            let calls: Vec<Call> = open().map(|reading| reading.call(&self.keys)).collect();
            let answers = self.servers.call(&calls, by)?;
            let open = readings.iter_mut().filter(|reading| !reading.is_done());
            for (reading, answer) in open.zip(answers) {
                reading.take(answer.value).map_err(|error| error.in_shard(reading.shard))?;
            }
        }
        Ok(())
    }

    fn commit_all(&self, batches: &[Batch]) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let calls: Vec<Call> =
            batches.iter().map(|batch| commit::call(batch, &self.keys, self.servers.waits())).collect();
        let answers =
            self.servers.call(&calls, self.servers.deadline()).inspect_err(|trouble| self.health.mark(trouble))?;
        let outcomes: Vec<Result<(), Refusal>> = batches
            .iter()
            .zip(answers)
            .map(|(batch, answer)| commit::outcome(batch, answer))
            .collect::<Result<_, StoreError>>()?;
        self.health.succeed();
        Ok(outcomes)
    }

    fn look_at_memory(&self) {
        if self.health.is_due()
            && let Ok(memory) = condition::memory(&self.servers, Instant::now() + GLANCE)
        {
            self.health.see(&memory);
        }
    }
}

impl Store for RedisStore {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        let by = self.servers.deadline().min(Instant::now() + beat.patience());
        let roll = self.noted(members::beat(&self.servers, &self.keys, beat, by))?;
        self.look_at_memory();
        Ok(roll)
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        self.noted(members::claim(&self.servers, &self.keys, who, wanted, self.servers.deadline()))
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        self.noted(members::release(&self.servers, &self.keys, shard, fence, to, self.servers.deadline()))
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.noted(members::entry(&self.servers, &self.keys, key, self.servers.deadline()))
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        self.noted(members::put(&self.servers, &self.keys, key, seen, value, self.servers.deadline()))
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        let mut reading = [Reading::new(shard, Some(tenure), wants.iter().copied())];
        self.noted(self.read_all(&mut reading))?;
        let [reading] = reading;
        Ok(reading.found())
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        let mut shards: Vec<ShardId> = wants.iter().map(|(shard, _)| *shard).collect();
        shards.sort();
        shards.dedup();
        let of = |shard: ShardId| wants.iter().filter(move |(of, _)| *of == shard).map(|(_, want)| *want);
        let mut readings: Vec<_> = shards.iter().map(|shard| Reading::new(*shard, None, of(*shard))).collect();
        self.noted(self.read_all(&mut readings))?;
        let mut found: BTreeMap<ShardId, _> =
            readings.into_iter().map(|reading| (reading.shard, reading.found().into_iter())).collect();
        let answers = wants.iter().map(|(shard, _)| found.get_mut(shard).and_then(Iterator::next));
        answers.collect::<Option<_>>().ok_or_else(|| value::odd("a look"))
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.noted(self.commit_all(&batches))
    }

    /// Redis does nothing else while a batch is carried out, so that one is small.
    fn terms(&self) -> Terms {
        Terms { batch_bytes: 1 << 20, batch_changes: 1_000, lanes: 2, worthwhile: WORTHWHILE }
    }

    fn hardship(&self) -> Option<Hardship> {
        self.health.hardship()
    }

    fn room(&self) -> Room {
        self.health.room()
    }
}

/// Where it is, and what a confirmation is worth there.
impl fmt::Display for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worst = self.conditions.iter().max_by_key(|condition| condition.durability as u8);
        let Some(worst) = worst else { return write!(f, "Redis at {}", self.target) };
        write!(
            f,
            "{} at {}, prefix {}: what is confirmed is {}",
            worst.product, self.target, self.prefix, worst.durability
        )?;
        match (self.replicas, worst.replicas) {
            (0, 0) => Ok(()),
            (0, there) => write!(f, ", and on its way to {there} replicas"),
            (waited, _) => write!(f, ", and at {waited} replicas"),
        }
    }
}
