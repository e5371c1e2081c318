//! What happens beside the calls: what commits have added to the counts is folded into the snapshots, and the tables are
//! weighed once in a while.
//!
//! Folding needs no fence: it puts the same sum in another form, on the condition that nobody else has done so meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use punctual_core::store::{ShardId, Tallies};
use tokio::time::sleep;
use tokio_postgres::types::Type;
use tracing::warn;

use crate::column::Column;
use crate::error::Trouble;
use crate::link::{Link, Threads};
use crate::number::shard_number;
use crate::statement::{Query, Statement, value};

/// After how many commits, or how long after the first of them, the counts of a shard are folded.
const FOLD_COMMITS: u64 = 500;
const FOLD_AFTER: Duration = Duration::from_secs(10);
/// How often it is looked what is to be done.
const ROUND: Duration = Duration::from_millis(500);
/// How often the tables are weighed.
const WEIGH_EVERY: Duration = Duration::from_secs(60);

/// What is to be done, and what was found.
pub(crate) struct Background {
    notes: Arc<Notes>,
}

#[derive(Default)]
struct Notes {
    unfolded: Mutex<BTreeMap<ShardId, Unfolded>>,
    bytes: AtomicU64,
}

/// Commits of a shard whose counts are not in its snapshot.
struct Unfolded {
    commits: u64,
    since: Instant,
}

impl Background {
    pub(crate) fn start(threads: &Threads, link: &Arc<Link>) -> Background {
        let notes = Arc::new(Notes::default());
        threads.handle().spawn(work(Arc::downgrade(link), Arc::clone(&notes)));
        Background { notes }
    }

    /// Notes a commit.
    pub(crate) fn has_committed(&self, shard: ShardId) {
        let mut unfolded = self.notes.unfolded();
        unfolded.entry(shard).or_insert_with(|| Unfolded { commits: 0, since: Instant::now() }).commits += 1;
    }

    /// How many bytes the tables take, as far as is known.
    pub(crate) fn bytes(&self) -> u64 {
        self.notes.bytes.load(Ordering::Relaxed)
    }
}

impl Notes {
    fn unfolded(&self) -> MutexGuard<'_, BTreeMap<ShardId, Unfolded>> {
        self.unfolded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the shards whose counts are to be folded now.
    fn take_ripe(&self) -> Vec<ShardId> {
        let mut ripe = Vec::new();
        self.unfolded().retain(|shard, unfolded| {
            let is_ripe = unfolded.commits >= FOLD_COMMITS || unfolded.since.elapsed() >= FOLD_AFTER;
            if is_ripe {
                ripe.push(*shard);
            }
            !is_ripe
        });
        ripe
    }
}

async fn work(link: Weak<Link>, notes: Arc<Notes>) {
    let mut weighed: Option<Instant> = None;
    loop {
        let Some(link) = link.upgrade() else { return };
        for shard in notes.take_ripe() {
            // A shard that could not be folded comes again with its next commits.
            if let Err(trouble) = fold(&link, shard).await {
                warn!(shard = shard.0, reason = trouble.text(), "counts were not folded, and are later");
            }
        }
        if weighed.is_none_or(|at| at.elapsed() >= WEIGH_EVERY) {
            weighed = Some(Instant::now());
            if let Ok(bytes) = weigh(&link).await {
                notes.bytes.store(bytes, Ordering::Relaxed);
            }
        }
        drop(link);
        sleep(ROUND).await;
    }
}

/// Reads the snapshot and what came after it, and puts the sum in their place.
async fn fold(link: &Link, shard: ShardId) -> Result<(), Trouble> {
    let read = Query::new(Statement::Tallies, vec![value(shard_number(shard))]);
    let mut answer = link.ask(&[read]).await?;
    let rows = answer.results.remove(0)?;
    let mut tallies = Tallies::default();
    for row in &rows {
        tallies.add_bytes(row.get(1)).map_err(|error| Trouble::Refused(error.to_string()))?;
    }
    let Some(first) = rows.first() else { return Ok(()) };
    let serials = rows.iter().map(|row| row.get::<_, i64>(0));
    // Whether there is a snapshot among them is for the statement to see.
    let (from, to) = (first.get::<_, i64>(0), serials.max().unwrap_or_default());
    let write = Query::new(
        Statement::Fold,
        vec![value(shard_number(shard)), value(from), value(to), value(tallies.to_bytes())],
    );
    link.ask(&[write]).await?.results.remove(0).map(drop)
}

async fn weigh(link: &Link) -> Result<u64, Trouble> {
    let mut tables = Column::new(Type::TEXT);
    link.target().layout.tables().for_each(|table| tables.bytes(table.as_bytes()));
    let mut answer = link.ask(&[Query::new(Statement::Size, vec![value(tables)])]).await?;
    let rows = answer.results.remove(0)?;
    Ok(rows.first().map_or(0, |row| crate::number::stored_number(row.get(0))))
}
