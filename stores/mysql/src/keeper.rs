//! What happens beside the calls, on a thread of its own: counts are brought together now and then, and the size of the
//! tables is looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::store::ShardId;

use crate::pool::{Line, Pool};
use crate::read::counted;
use crate::server::Product;
use crate::sql::{Sql, Tables};
use crate::trouble::Trouble;

/// After so many commits of a shard what they added to its counts is folded into one row.
pub(crate) const FOLDED: u64 = 512;

const BETWEEN_LOOKS: Duration = Duration::from_secs(60);

/// The way to the thread, which ends when this goes.
pub(crate) struct Keeper {
    shards: Sender<ShardId>,
    bytes: Arc<AtomicU64>,
}

impl Keeper {
    pub(crate) fn start(pool: Arc<Pool>, tables: Tables, product: Product) -> Result<Keeper, std::io::Error> {
        let (shards, to_fold) = mpsc::channel();
        let bytes = Arc::new(AtomicU64::new(0));
        let seen = bytes.clone();
        thread::Builder::new().name("punctual-mysql".to_owned()).spawn(move || {
            let mut look = Instant::now();
            loop {
                if look <= Instant::now() {
                    look = Instant::now() + BETWEEN_LOOKS;
                    if let Ok(size) = pool.retry(|line, deadline| size(line, &tables, product, deadline)) {
                        seen.store(size, Ordering::Relaxed);
                    }
                }
                match to_fold.recv_timeout(look.saturating_duration_since(Instant::now())) {
                    // What cannot be folded now is folded with the next ones; until then more deltas are read.
                    Ok(shard) => drop(pool.retry(|line, deadline| fold(line, &tables, shard, deadline))),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Keeper { shards, bytes })
    }

    /// Lets the deltas of a shard be folded.
    pub(crate) fn fold(&self, shard: ShardId) {
        let _ = self.shards.send(shard);
    }

    /// What the tables take, as of the last look.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Adds the deltas of a shard to its tallies. The row of the tallies is held meanwhile, so that no two do this at once;
/// commits go on, and since they are chained none of an earlier number comes later.
pub(crate) fn fold(line: &mut Line<'_>, tables: &Tables, shard: ShardId, deadline: Instant) -> Result<(), Trouble> {
    let (Tables { tallies, deltas, .. }, shard) = (tables, shard.0);
    let begin = format!(
        "INSERT IGNORE INTO {tallies} (shard,serial,counts) VALUES ({shard},0,x'');BEGIN;\
         SELECT serial,counts FROM {tallies} WHERE shard={shard} FOR UPDATE;\
         SELECT serial,counts FROM {deltas} WHERE shard={shard} ORDER BY serial"
    );
    let answers = line.ask(&Sql::from(begin), deadline).map_err(|stopped| stopped.why)?;
    let records: Vec<_> = answers.into_iter().flat_map(|answer| answer.rows()).collect();
    let latest = records.last().cloned().map_or(Ok(0), |mut record| record.number())?;
    let sum = match counted(records) {
        Ok(sum) => sum,
        Err(error) => {
            line.roll_back_and_ask(&Sql::default(), deadline)?;
            return Err(Trouble::Foreign(error.to_string()));
        }
    };
    let mut end = Sql::from(format!("UPDATE {tallies} SET serial={latest},counts="));
    end.bytes(&sum.to_bytes())
        .raw(&format!(" WHERE shard={shard};DELETE FROM {deltas} WHERE shard={shard} AND serial<={latest};COMMIT"));
    line.ask(&end, deadline).map_err(|stopped| stopped.why)?;
    Ok(())
}

/// The bytes that the tables take on the server's disk, by its own estimate.
fn size(line: &mut Line<'_>, tables: &Tables, product: Product, deadline: Instant) -> Result<u64, Trouble> {
    // MySQL would answer from a cache of up to a day.
    let fresh = if product == Product::MySql { "SET SESSION information_schema_stats_expiry=0" } else { "DO 0" };
    let mut sql = Sql::from(format!(
        "{fresh};SELECT CAST(COALESCE(SUM(DATA_LENGTH+INDEX_LENGTH),0) AS UNSIGNED) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME IN ("
    ));
    sql.list(tables.all(), |sql, table| sql.raw(&table.replace('`', "'"))).raw(")");
    let answers = line.ask(&sql, deadline).map_err(|stopped| stopped.why)?;
    let record = answers.into_iter().flat_map(|answer| answer.rows()).next();
    Ok(record.map_or(Ok(0), |mut record| record.number())?)
}
