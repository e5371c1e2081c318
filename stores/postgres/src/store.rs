//! The store as the node sees it.

use std::fmt;
use std::sync::Arc;

use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Outdated, Refusal, Roll, ShardId, Store,
    StoreError, Tenure, Terms, Want,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::background::Background;
use crate::check;
use crate::column::Column;
use crate::commit;
use crate::config::Config;
use crate::error::{OpenError, Trouble};
use crate::link::{Link, Threads};
use crate::membership;
use crate::migrate::{self, Migrated};
use crate::number::shard_number;
use crate::read;
use crate::server::Server;
use crate::show::{self, Contents};
use crate::statement::{Query, Statement, value};

/// How many changes a batch should have at most, so that it is through well within the patience.
const BATCH_CHANGES: usize = 16_384;
/// How many bytes a batch should have at most.
const BATCH_BYTES: usize = 8 << 20;
/// How many commits PostgreSQL carries out side by side with profit: each takes a processor of its own there.
const LANES: usize = 4;

/// A store in a PostgreSQL. Several of them, in one process or in many, may work with the same tables.
pub struct PostgresStore {
    link: Arc<Link>,
    background: Background,
    server: Server,
    // Dropped last: what is above may have work on them.
    threads: Threads,
}

/// What a store has done so far, and how it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How often the server was asked and has answered.
    pub round_trips: u64,
    /// How often something was tried once more.
    pub retries: u64,
    /// How many calls came to nothing, because the server was not there in time.
    pub failures: u64,
    /// How many connections there are.
    pub connections: usize,
    /// How many of them are in use.
    pub busy: usize,
    /// How many bytes the tables take on the server, as of the last minute.
    pub bytes: u64,
}

impl PostgresStore {
    /// Connects to a server, and creates the tables or brings them forward if need be.
    pub fn open(config: Config) -> Result<PostgresStore, OpenError> {
        if config.migrates {
            PostgresStore::migrate(&config)?;
        }
        PostgresStore::attach(config)
    }

    /// Connects to a server on which the tables are already, and of this version.
    pub fn attach(config: Config) -> Result<PostgresStore, OpenError> {
        let target = config.resolve()?;
        let threads = Threads::start()?;
        let asked = target.clone();
        let server = threads.within(config.patience, async move { Server::meet(&asked).await });
        let server = server.map_err(Trouble::opening)?;
        let link = Link::new(&config, target);
        let background = Background::start(&threads, &link);
        Ok(PostgresStore { link, background, server, threads })
    }

    /// Creates the tables, or brings them to the version of this code. Others that do so at the same time wait.
    pub fn migrate(config: &Config) -> Result<Migrated, OpenError> {
        let target = config.resolve()?;
        let threads = Threads::start()?;
        // As long as it takes: tables that are large need time.
        threads.run(async move { migrate::migrate(&target).await }).map_err(Trouble::opening)
    }

    /// Looks for what this store alone can see to be wrong: rows without names and names without rows, tables and shards
    /// that there are not, counts that cannot be read. Reads everything, and changes nothing.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        check::check(&self.link, &self.threads)
    }

    /// What is in the tables. Counts all rows.
    pub fn show(&self) -> Result<Contents, StoreError> {
        show::show(&self.link, &self.threads)
    }

    /// How it stands. Waits for nothing.
    pub fn status(&self) -> Status {
        let [round_trips, retries, failures] = self.link.counts();
        let (connections, busy) = self.link.usage();
        Status { round_trips, retries, failures, connections, busy, bytes: self.background.bytes() }
    }

    /// What somebody should know who trusts this server with tasks.
    pub fn warnings(&self) -> Vec<String> {
        self.server.warnings()
    }

    fn call(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, StoreError> {
        let answer = self.link.call(&self.threads, queries)?;
        all(answer.results)
    }
}

/// The rows of all queries, none of which rows can stand in the way of.
pub(crate) fn all(results: Vec<Result<Vec<Row>, Trouble>>) -> Result<Vec<Vec<Row>>, StoreError> {
    let unexpected = |trouble: Trouble| StoreError::Unavailable(trouble.text().to_owned());
    results.into_iter().map(|result| result.map_err(unexpected)).collect()
}

impl Store for PostgresStore {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        let answer = self.link.beat(&self.threads, membership::beat(beat))?;
        Ok(membership::roll(&all(answer.results)?))
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.call(membership::claim(who, wanted))?;
        Ok(membership::claims(wanted, &answer))
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        let answer = self.call(membership::release(shard, fence, to))?;
        Ok(membership::released(&answer)?)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let answer = self.call(vec![Query::new(Statement::ClusterGet, vec![value(key.to_owned())])])?;
        Ok(membership::entry(&answer[0]))
    }

    fn cluster_put(&self, key: &str, seen: u64, new: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        let answer = self.link.call(&self.threads, membership::put(key, seen, new))?;
        let is_repeated = answer.is_repeated;
        Ok(membership::was_put(seen, new, is_repeated, &all(answer.results)?))
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        let mut queries: Vec<Query> = wants.iter().map(|want| read::query(shard, want)).collect();
        let mut shards = Column::new(Type::INT4);
        shards.int4(shard_number(shard));
        // Looked at last: if the fence is in force then, nobody else has written what was read before.
        queries.push(Query::new(Statement::Standing, vec![value(shards)]));
        let answer = self.call(queries)?;
        let found = answer.last().and_then(|rows| rows.first()).map(|row| commit::tenure(row).1).unwrap_or_default();
        if found.fence != tenure.fence || tenure.fence == Fence::default() {
            return Err(commit::refusal(tenure.fence, tenure.serial, found).into());
        }
        if found.serial < tenure.serial {
            return Err(Refusal::Lost { expected: tenure.serial, found: found.serial }.into());
        }
        wants.iter().zip(&answer).map(|(want, rows)| read::found(want, rows)).collect()
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        let answer = self.call(wants.iter().map(|(shard, want)| read::query(*shard, want)).collect())?;
        wants.iter().zip(&answer).map(|((_, want), rows)| read::found(want, rows)).collect()
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let answers = commit::commit(&self.link, &self.threads, &batches)?;
        for (batch, _) in batches.iter().zip(&answers).filter(|(batch, answer)| !batch.is_empty() && answer.is_ok()) {
            self.background.has_committed(batch.shard);
        }
        Ok(answers)
    }

    fn terms(&self) -> Terms {
        Terms { batch_bytes: BATCH_BYTES, batch_changes: BATCH_CHANGES, lanes: LANES }
    }

    fn hardship(&self) -> Option<Hardship> {
        self.link.hardships.current()
    }
}

impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.link.target();
        write!(
            f,
            "{} at {}, schema {}; {}",
            self.server.product,
            target.place(),
            target.layout.place(),
            self.server.worth()
        )
    }
}
