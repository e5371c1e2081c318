//! The archive: where finished tasks go when their topic has kept them for its time, or earlier, the oldest first and a
//! little at a time, while the store is short of room: what is archived gives its room back.
//!
//! **Invariant**: a task is removed from the history only after the archive has said that it has it. So if
//! the node dies between the two, or the removal fails, the archive gets the task again: once
//! at least, maybe more often. A topic that keeps no history leaves nothing to archive (but what it has
//! kept before is archived when it ceases to), and what is deleted with its topic is not wanted any more.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::{Bodies, Key, Look, Position, Room, Row, Scan, ShardId, StoreError, Table};
use punctual_core::view::TaskView;
use punctual_core::{Command, Millis, Name, Refused, Timestamp};

use crate::block_on::block_on;
use crate::error::Error;
use crate::handle::Handle;
use crate::shared::Shared;
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, lock};

/// A place for finished tasks.
pub trait Archive: Send + Sync {
    /// Takes finished tasks; when it returns `Ok` they are durable there, and the node removes them. It may
    /// get a task again that it has: by topic, id and the time at which it finished it is the same.
    /// On an error everything is kept, and tried again later. It may block, but the stop of the
    /// node waits for it.
    fn take(&self, tasks: &[TaskView]) -> Result<(), String>;
}

impl fmt::Debug for dyn Archive + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Archive")
    }
}

/// How an archive has done since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveStats {
    /// How many tasks it has taken.
    pub archived: u64,
    /// How often it has failed, or the history could not be read or removed.
    pub failures: u64,
    /// Why it failed the last time; `None` if it has gone well since.
    pub last_error: Option<String>,
}

/// What is known of the archive's work.
#[derive(Default)]
pub(crate) struct Archiving {
    stats: Mutex<ArchiveStats>,
}

impl Archiving {
    pub fn stats(&self) -> ArchiveStats {
        lock(&self.stats).clone()
    }
}

/// How many finished tasks are looked at, and handed over, at once.
const PORTION: usize = 512;

/// How many bytes of bodies are handed over at once, roughly.
const PORTION_BYTES: usize = 16 << 20;

/// The same while the store is short of room. The archive may be on the same disk, and what it has taken is
/// removed before it is given more.
const LITTLE: usize = 1 << 20;

/// How long it is waited between two portions while the store is short of room, so that it can notice that it is not any more.
const PACE: Duration = Duration::from_millis(100);

/// How many bodies are read at once.
const BODIES: usize = 32;

/// After how many passes one begins at the start again. A row may be slower to become durable than it is kept,
/// and then stands where a pass has been.
const PASSES: u32 = 256;

/// How much longer than usual the next pass is waited for, at most, while passes fail.
const BACKOFF: u32 = 32;

/// Archives until the node stops.
pub(crate) fn run(shared: &Arc<Shared>, archive: &dyn Archive) {
    let mut archivist = Archivist {
        shared,
        handle: Handle::new(Arc::clone(shared)),
        archive,
        periods: BTreeMap::new(),
        learned: None,
        cursors: BTreeMap::new(),
    };
    let every = shared.config.archive_every.max(Duration::from_millis(1));
    let (mut wait, mut passes) = (every, 0);
    while shared.closing.sleep(wait) {
        passes += 1;
        if passes % PASSES == 0 {
            archivist.cursors.clear();
        }
        let outcome = archivist.pass();
        let mut stats = lock(&shared.archiving.stats);
        match outcome {
            Ok(()) => {
                stats.last_error = None;
                wait = every;
            }
            Err(Trouble::Stopping) => return,
            Err(Trouble::Failed(why) | Trouble::Away(why)) => {
                stats.failures += 1;
                stats.last_error = Some(why);
                wait = (wait * 2).min(every * BACKOFF);
            }
        }
    }
}

/// Why a pass did not come to its end.
enum Trouble {
    /// The archive did not take what it was given.
    Failed(String),
    /// A shard or the store is not here for now.
    Away(String),
    Stopping,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        match error {
            Error::Stopping => Trouble::Stopping,
            other => Trouble::Away(other.to_string()),
        }
    }
}

struct Archivist<'a> {
    shared: &'a Shared,
    handle: Handle,
    archive: &'a dyn Archive,
    /// For how long the topics kept their history in the last pass.
    periods: BTreeMap<Name, Millis>,
    /// How often topics had changed by then.
    learned: Option<u64>,
    /// Up to where all is archived that is kept for a time, by shard. Others stand there too, and
    /// a history of months is not to be read again and again for the sake of one of minutes.
    cursors: BTreeMap<(ShardId, Millis), Position>,
}

/// What is archived of the history.
#[derive(Clone, Copy)]
enum Haste {
    /// What was kept for its time.
    InTime,
    /// All that is there.
    Now,
}

/// A portion of the history.
struct Portion {
    tasks: Vec<TaskView>,
    /// Where to go on.
    next: Position,
    is_last: bool,
}

impl Archivist<'_> {
    /// Archives all that has been kept for its time.
    fn pass(&mut self) -> Result<(), Trouble> {
        self.shared.check()?;
        self.learn_periods()?;
        let mut periods: Vec<Millis> = self.periods.values().copied().collect();
        periods.sort_unstable();
        periods.dedup();
        let mut outcome = Ok(());
        for (shard, inbox) in self.shared.shards() {
            if !inbox.is_here() {
                // Who has it archives it. What is behind the cursor may be otherwise when it is back.
                self.cursors.retain(|(of, _), _| *of != shard);
                continue;
            }
            let archived = periods.iter().try_for_each(|period| {
                self.archive_shard(shard, *period)?;
                self.make_room(shard, *period)
            });
            match archived {
                Ok(()) => {}
                // The others go on.
                Err(Trouble::Away(why)) => outcome = Err(Trouble::Away(why)),
                Err(trouble) => return Err(trouble),
            }
        }
        outcome
    }

    /// Looks for how long the topics keep their history. A topic that was not there in the last pass has nothing
    /// where that one has been; one that keeps its history for another time now may have.
    fn learn_periods(&mut self) -> Result<(), Trouble> {
        let changes = self.shared.topic_changes.load(Ordering::Relaxed);
        if self.learned == Some(changes) {
            return Ok(());
        }
        let settings = block_on(self.handle.all_settings())?;
        let periods: BTreeMap<Name, Millis> =
            settings.topics.into_iter().map(|(name, topic)| (name, topic.history)).collect();
        for (name, period) in &periods {
            if self.periods.get(name).is_some_and(|before| before != period) {
                self.cursors.retain(|(_, known), _| known != period);
            }
        }
        self.periods = periods;
        self.learned = Some(changes);
        Ok(())
    }

    fn archive_shard(&mut self, shard: ShardId, period: Millis) -> Result<(), Trouble> {
        loop {
            let from = self.cursor(shard, period);
            let portion = self.archive_portion(shard, period, from, Haste::InTime)?;
            self.cursors.insert((shard, period), portion.next);
            if portion.is_last {
                return Ok(());
            }
        }
    }

    /// Archives what could still be kept, as long as the store is short of room.
    fn make_room(&mut self, shard: ShardId, period: Millis) -> Result<(), Trouble> {
        // The cursor stays: it must not pass by what finishes before it and is durable later.
        let mut from = self.cursor(shard, period);
        while self.shared.store.room() != Room::Enough {
            let portion = self.archive_portion(shard, period, from, Haste::Now)?;
            if portion.is_last {
                return Ok(());
            }
            from = portion.next;
            if !portion.tasks.is_empty() && !self.shared.closing.sleep(PACE) {
                return Err(Trouble::Stopping);
            }
        }
        Ok(())
    }

    fn cursor(&self, shard: ShardId, period: Millis) -> Position {
        self.cursors.get(&(shard, period)).copied().unwrap_or(Position::START)
    }

    /// Archives one portion from a position on, and removes it.
    fn archive_portion(
        &self,
        shard: ShardId,
        period: Millis,
        from: Position,
        haste: Haste,
    ) -> Result<Portion, Trouble> {
        // What is archived from a shard that is not here could not be removed, and would be archived again.
        self.shared.inbox(shard).ready()?;
        let portion = self.read(shard, period, from, haste).map_err(|error| self.shared.read_failed(&error))?;
        if !portion.tasks.is_empty() {
            self.hand_over(&portion.tasks)?;
            self.remove(shard, &portion.tasks)?;
        }
        Ok(portion)
    }

    /// The next finished tasks of the topics that keep them for this time, if they are due.
    fn read(&self, shard: ShardId, period: Millis, from: Position, haste: Haste) -> Result<Portion, StoreError> {
        let now = self.handle.now();
        let (kept, most) = match haste {
            Haste::InTime => (period, PORTION_BYTES),
            Haste::Now => (Millis::ZERO, LITTLE),
        };
        let until = match now.as_millis().checked_sub(kept.0) {
            Some(until) => Timestamp::from_millis(until + 1),
            None => Timestamp::ZERO,
        };
        // The clock has gone back since it came so far: what finished since may stand before it.
        let from = if from.at > until { Position::START } else { from };
        let scan = Scan { table: Table::History, from, until, topic: None, limit: PORTION, bodies: Bodies::Without };
        let page = self.shared.store.scan(shard, &scan)?;
        let mut portion = Portion { tasks: Vec::new(), next: from, is_last: page.next.is_none() };
        let is_meant = |row: &&Row| self.periods.get(row.key.topic()) == Some(&period);
        let mut bytes = 0;
        for rows in page.rows.chunks(BODIES) {
            if bytes >= most {
                portion.is_last = false;
                break;
            }
            let meant: Vec<&Row> = rows.iter().filter(is_meant).collect();
            let keys: Vec<Key> = meant.iter().map(|row| row.key.clone()).collect();
            let found = if keys.is_empty() { Vec::new() } else { self.shared.store.get(shard, &keys, Bodies::With)? };
            for (seen, row) in meant.into_iter().zip(found) {
                // It may have been handed out again meanwhile.
                let unmoved = |row: &Row| row.table == Table::History && row.position() == seen.position();
                if let Some(row) = row.filter(unmoved) {
                    bytes += row.body.len();
                    portion.tasks.push(TaskView::of(&row, now));
                }
            }
            portion.next = rows.last().map_or(portion.next, |row| row.position().next());
        }
        Ok(portion)
    }

    fn hand_over(&self, tasks: &[TaskView]) -> Result<(), Trouble> {
        // A bug in an archive must not stop the node.
        let taken = catch_unwind(AssertUnwindSafe(|| self.archive.take(tasks)));
        taken
            .unwrap_or_else(|_| Err("the archive panicked; see the log for its message".into()))
            .map_err(Trouble::Failed)?;
        lock(&self.shared.archiving.stats).archived += tasks.len() as u64;
        Ok(())
    }

    /// Removes what is archived. What has been handed out again meanwhile stays, and is archived again some day.
    fn remove(&self, shard: ShardId, tasks: &[TaskView]) -> Result<(), Trouble> {
        let forget = |task: &TaskView| {
            let (topic, id) = (task.topic.clone(), task.id.clone());
            (shard, Command::Forget { topic, id, finished_at: task.position.at })
        };
        for outcome in block_on(self.handle.ask_several(tasks.iter().map(forget).collect())) {
            match outcome {
                Ok(_) | Err(Error::Refused(Refused::NothingThere)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
