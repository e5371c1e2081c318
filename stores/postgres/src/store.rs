//! The store as the node sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Outdated, Refusal, Roll, ShardId, Store,
    StoreError, Tenure, Terms, Want,
};
use punctual_database::{Config, Contents, Database, Kind, Migrated, OpenError, Status, Threads, WORTHWHILE};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::background::Background;
use crate::check;
use crate::column::Column;
use crate::commit;
use crate::contents;
use crate::courier::Courier;
use crate::error::Trouble;
use crate::membership;
use crate::migrate;
use crate::number::shard_number;
use crate::read;
use crate::server::Server;
use crate::statement::{Query, Statement, value};
use crate::target::Target;

/// How many changes a batch should have at most, so that it is through well within the patience.
const BATCH_CHANGES: usize = 16_384;
/// How many bytes a batch should have at most.
const BATCH_BYTES: usize = 8 << 20;
/// How many commits PostgreSQL carries out side by side with profit: each takes a processor of its own there.
const LANES: usize = 4;

/// What its threads are called.
const THREADS: &str = "postgres";

/// A store in a PostgreSQL. Several of them, in one process or in many, may work with the same tables.
pub struct PostgresStore {
    courier: Arc<Courier>,
    background: Background,
    server: Server,
    // Dropped last: what is above may have work on them.
    threads: Threads,
}

impl Database for PostgresStore {
    const KIND: Kind = Kind {
        name: "PostgreSQL",
        word: "postgres",
        schemes: &["postgres", "postgresql"],
        form: "postgres://USER@HOST/DATABASE",
        settings: &["schema"],
        backup: "pg_dump --schema=punctual, or a base backup",
    };

    fn open(config: Config) -> Result<PostgresStore, OpenError> {
        PostgresStore::migrate(&config)?;
        PostgresStore::attach(config)
    }

    fn attach(config: Config) -> Result<PostgresStore, OpenError> {
        PostgresStore::reach(&config, Target::of(&config)?)
    }

    fn freeze(config: Config) -> Result<Option<PostgresStore>, OpenError> {
        let config = Config { connections: 1, ..config };
        let target = Target { moment: Some(Arc::default()), ..Target::of(&config)? };
        PostgresStore::reach(&config, target).map(Some)
    }

    /// Takes as long as it takes: tables that are large need time.
    fn migrate(config: &Config) -> Result<Migrated, OpenError> {
        let target = Target::of(config)?;
        let threads = Threads::start(THREADS)?;
        let migrated = threads.begin(async move { migrate::migrate(&target).await }).wait();
        migrated.unwrap_or_else(|| Err(Trouble::broken_off())).map_err(Trouble::opening)
    }

    fn status(&self) -> Status {
        Status { disk_bytes: self.background.bytes(), ..self.courier.status() }
    }

    fn warnings(&self) -> Vec<String> {
        self.server.warnings()
    }

    /// Rows without names and names without rows, tables and shards that there are not, counts that cannot be read.
    fn check(&self) -> Result<Vec<String>, StoreError> {
        check::check(&self.courier, &self.threads)
    }

    fn contents(&self) -> Result<Contents, StoreError> {
        contents::contents(&self.courier, &self.threads)
    }
}

impl PostgresStore {
    /// Meets the server.
    fn reach(config: &Config, target: Target) -> Result<PostgresStore, OpenError> {
        let threads = Threads::start(THREADS)?;
        let asked = target.clone();
        let meeting = threads.begin(async move { Server::meet(&asked).await });
        let server = meeting.wait_until(Instant::now() + config.patience);
        let server = server.unwrap_or_else(|| Err(Trouble::late(config.patience))).map_err(Trouble::opening)?;
        let courier = Courier::new(config.connections, target);
        let background = Background::start(&threads, &courier);
        Ok(PostgresStore { courier, background, server, threads })
    }

    fn call(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, StoreError> {
        let answer = self.courier.call(&self.threads, queries)?;
        all(answer.results)
    }
}

/// The rows of all queries, none of which rows can stand in the way of.
pub(crate) fn all(results: Vec<Result<Vec<Row>, Trouble>>) -> Result<Vec<Vec<Row>>, StoreError> {
    let unexpected = |trouble: Trouble| StoreError::Unavailable(trouble.text().to_owned());
    results.into_iter().map(|result| result.map_err(unexpected)).collect()
}

fn read_back(shard: ShardId, want: &Want<'_>, rows: &[Row]) -> Result<Found, StoreError> {
    read::found(want, rows).map_err(|error| error.in_shard(shard))
}

impl Store for PostgresStore {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        let answer = self.courier.beat(&self.threads, membership::beat(beat), beat.patience())?;
        membership::roll(&all(answer.results)?)
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
        let answer = self.courier.call(&self.threads, membership::put(key, seen, new))?;
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
        wants.iter().zip(&answer).map(|(want, rows)| read_back(shard, want, rows)).collect()
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        let answer = self.call(wants.iter().map(|(shard, want)| read::query(*shard, want)).collect())?;
        wants.iter().zip(&answer).map(|((shard, want), rows)| read_back(*shard, want, rows)).collect()
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        let answers = commit::commit(&self.courier, &self.threads, &batches)?;
        for (batch, _) in batches.iter().zip(&answers).filter(|(batch, answer)| !batch.is_empty() && answer.is_ok()) {
            self.background.has_committed(batch.shard);
        }
        Ok(answers)
    }

    fn terms(&self) -> Terms {
        Terms { batch_bytes: BATCH_BYTES, batch_changes: BATCH_CHANGES, lanes: LANES, worthwhile: WORTHWHILE }
    }

    fn hardship(&self) -> Option<Hardship> {
        self.courier.hardships.current()
    }
}

impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.courier.target();
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
