//! What happens beside the calls: what commits have added to the counts is folded into the snapshots, and the tables are
//! weighed once in a while.
//!
//! Folding needs no fence: it puts the same sum in another form, on the condition that nobody else has done so meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use punctual_core::store::{ShardId, Tallies};
use punctual_database::Threads;
use tokio::time::sleep;
use tracing::warn;

use crate::courier::Courier;
use crate::error::Trouble;
use crate::number::shard_number;
use crate::statement::{Query, Statement, value};
use crate::vacuum::keep_tidy;

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
pub(crate) struct Notes {
    unfolded: Mutex<BTreeMap<ShardId, Unfolded>>,
    bytes: AtomicU64,
    /// Whether there ever was a commit: who only looks leaves the tables as they are.
    has_committed: AtomicBool,
}

/// Commits of a shard whose counts are not in its snapshot.
struct Unfolded {
    commits: u64,
    since: Instant,
}

impl Background {
    pub(crate) fn start(threads: &Threads, courier: &Arc<Courier>) -> Background {
        let notes = Arc::new(Notes::default());
        threads.handle().spawn(work(Arc::downgrade(courier), Arc::clone(&notes)));
        threads.handle().spawn(keep_tidy(Arc::downgrade(courier), Arc::clone(&notes)));
        Background { notes }
    }

    /// Notes a commit.
    pub(crate) fn has_committed(&self, shard: ShardId) {
        self.notes.has_committed.store(true, Ordering::Relaxed);
        let mut unfolded = self.notes.unfolded();
        unfolded.entry(shard).or_insert_with(|| Unfolded { commits: 0, since: Instant::now() }).commits += 1;
    }

    /// How many bytes the tables take, as far as is known.
    pub(crate) fn bytes(&self) -> u64 {
        self.notes.bytes.load(Ordering::Relaxed)
    }
}

impl Notes {
    pub(crate) fn has_committed(&self) -> bool {
        self.has_committed.load(Ordering::Relaxed)
    }

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

async fn work(courier: Weak<Courier>, notes: Arc<Notes>) {
    let mut weighed: Option<Instant> = None;
    loop {
        let Some(courier) = courier.upgrade() else { return };
        for shard in notes.take_ripe() {
            // A shard that could not be folded comes again with its next commits.
            if let Err(trouble) = fold(&courier, shard).await {
                warn!(shard = shard.0, reason = trouble.text(), "counts were not folded, and are later");
            }
        }
        if weighed.is_none_or(|at| at.elapsed() >= WEIGH_EVERY) {
            weighed = Some(Instant::now());
            if let Ok(bytes) = weigh(&courier).await {
                notes.bytes.store(bytes, Ordering::Relaxed);
            }
        }
        drop(courier);
        sleep(ROUND).await;
    }
}

/// Reads the snapshot and what came after it, and puts the sum in their place.
async fn fold(courier: &Courier, shard: ShardId) -> Result<(), Trouble> {
    let read = Query::new(Statement::Tallies, vec![value(shard_number(shard))]);
    let mut answer = courier.ask(&[read]).await?;
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
    courier.ask(&[write]).await?.results.remove(0).map(drop)
}

async fn weigh(courier: &Courier) -> Result<u64, Trouble> {
    let tables: Vec<String> = courier.target().layout.tables().collect();
    let mut answer = courier.ask(&[Query::new(Statement::Size, vec![value(tables)])]).await?;
    let rows = answer.results.remove(0)?;
    Ok(rows.first().map_or(0, |row| crate::number::stored_number(row.get(0))))
}
