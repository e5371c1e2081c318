//! Sweeps that go on by themselves: written down in the store, begun by all shards, looked at, stopped and taken back.
//!
//! What is written down happens, also if this node does not live to tell the shards: another one does. Shards carry
//! sweeps out without anybody who drives them.

use std::collections::BTreeMap;

use punctual_center::{CannotUndo, SweepRecord, TooManySweeps};
use punctual_core::store::ShardId;
use punctual_core::view::{self, TaskView};
use punctual_core::{
    Command, Matching, Name, NumberedSweep, Preview, Scope, Shift, Sweep, SweepAction, SweepEnd, SweepProgress, Swept,
    Timestamp, shard_of_key,
};

use super::{Handle, together};
use crate::block_on;
use crate::caller::Outcome;
use crate::error::Error;
use crate::sweeps::SeenSweeps;

/// How often something is written anew because others were quicker.
const TRIES: usize = 64;

/// A sweep and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepView {
    /// What is written down of it.
    pub record: SweepRecord,
    /// What it has done so far.
    pub swept: Swept,
    /// How it ended, if it has.
    pub ended: Option<SweepEnd>,
}

/// What all shards together know of the sweeps.
#[derive(Default)]
struct AllProgress {
    shards: usize,
    /// By their numbers: how many shards know it, in how many it is over, when and how, and what they did.
    sweeps: BTreeMap<u64, (usize, usize, SweepEnd, Swept)>,
}

impl AllProgress {
    fn of(shards: Vec<Vec<SweepProgress>>) -> AllProgress {
        let mut all = AllProgress { shards: shards.len(), ..AllProgress::default() };
        for SweepProgress { number, swept, ended } in shards.into_iter().flatten() {
            let none = SweepEnd { at: Timestamp::ZERO, is_stopped: false };
            let (known, over, end, total) = all.sweeps.entry(number).or_insert((0, 0, none, Swept::default()));
            *known += 1;
            *total = total.plus(swept);
            if let Some(ended) = ended {
                *over += 1;
                *end = SweepEnd { at: end.at.max(ended.at), is_stopped: end.is_stopped || ended.is_stopped };
            }
        }
        all
    }

    /// Whether all shards know a sweep.
    fn is_known(&self, number: u64) -> bool {
        self.sweeps.get(&number).is_some_and(|(known, ..)| *known == self.shards)
    }

    /// How a sweep ended, if it is over in all shards.
    fn end(&self, number: u64) -> Option<SweepEnd> {
        self.sweeps.get(&number).filter(|(_, over, ..)| *over == self.shards).map(|(_, _, end, _)| *end)
    }

    fn swept(&self, number: u64) -> Swept {
        self.sweeps.get(&number).map_or(Swept::default(), |(.., swept)| *swept)
    }
}

impl Handle {
    /// Counts what a sweep would change, and looks at some of that.
    pub async fn preview(&self, sweep: Sweep) -> Result<(Preview, Vec<TaskView>), Error> {
        self.counted(self.preview_all(self.resolved(sweep)).await)
    }

    async fn preview_all(&self, sweep: Sweep) -> Result<(Preview, Vec<TaskView>), Error> {
        let previews: Vec<Preview> = self.look_all(Command::Preview(Box::new(sweep))).await?;
        let preview = previews.into_iter().fold(Preview::default(), Preview::plus);
        let (keys, shards, now) = (preview.samples.clone(), self.shared.config.shards, self.now());
        let samples = self.read(move |store| {
            let mut tasks = Vec::new();
            for key in keys {
                tasks.extend(view::tasks(store, shard_of_key(&key, shards), &[key], now)?);
            }
            Ok(tasks)
        });
        Ok((preview, samples.await?))
    }

    /// Writes a sweep down and has all shards begin it. It goes on whoever lives, and is not waited for.
    pub async fn begin_sweep(&self, sweep: Sweep, who: Option<String>) -> Result<SweepView, Error> {
        let sweep = self.resolved(sweep);
        let begun = async {
            sweep.check()?;
            match sweep.action {
                SweepAction::Replay | SweepAction::Hasten => self.shared.check_room()?,
                // A mark makes a row a little longer.
                _ => self.shared.check_growth()?,
            }
            self.in_turn(move |handle| handle.write_sweep(sweep, who)).await
        };
        self.counted(begun.await)
    }

    /// Takes a sweep back, as far as it changed tasks of these topics.
    pub async fn undo_sweep(
        &self,
        number: u64,
        within: &Scope,
        who: Option<String>,
    ) -> Result<Result<SweepView, CannotUndo>, Error> {
        let within = within.clone();
        self.counted(self.in_turn(move |handle| handle.write_undo(number, &within, who)).await)
    }

    /// Ends a sweep; what it has changed stays changed. `None` if there is no such sweep.
    pub async fn stop_sweep(&self, number: u64) -> Result<Option<SweepView>, Error> {
        let stopped = self.in_turn(move |handle| {
            for _ in 0..TRIES {
                let seen = handle.shared.read_sweeps()?;
                let Some(next) = seen.sweeps.stop(number) else { return Ok(()) };
                if handle.shared.write_sweeps(&seen, next)?.is_some() {
                    // It is written down: if it cannot be told now, it is told later.
                    _ = handle.tend_sweeps();
                    return Ok(());
                }
            }
            Err(Error::Overloaded)
        });
        self.counted(stopped.await)?;
        self.find_sweep(number).await
    }

    /// Looks at the sweeps that run, and at the latest that did; the newest first.
    pub async fn sweeps(&self) -> Result<Vec<SweepView>, Error> {
        self.counted(self.look_at_sweeps().await)
    }

    /// Looks at one of them.
    pub async fn find_sweep(&self, number: u64) -> Result<Option<SweepView>, Error> {
        Ok(self.sweeps().await?.into_iter().find(|view| view.record.number == number))
    }

    async fn look_at_sweeps(&self) -> Result<Vec<SweepView>, Error> {
        let shared = std::sync::Arc::clone(&self.shared);
        let seen = self.read(move |_| Ok(shared.read_sweeps())).await??;
        let progress = match seen.sweeps.running().next() {
            Some(_) => AllProgress::of(self.look_all(Command::Sweeps).await?),
            None => AllProgress::default(),
        };
        let view = |record: &SweepRecord| {
            let (number, record) = (record.number, record.clone());
            let (swept, ended) = match record.over {
                Some((ended, swept)) => (swept, Some(ended)),
                None => {
                    let ended = progress.end(number);
                    (seen.sweeps.outcome(&record, ended, progress.swept(number)), ended)
                }
            };
            SweepView { record, swept, ended }
        };
        Ok(seen.sweeps.records().iter().rev().map(view).collect())
    }

    /// The same sweep with instants in place of lengths of time, which begin now.
    fn resolved(&self, mut sweep: Sweep) -> Sweep {
        if let SweepAction::Shift(shift @ Shift::In(_)) = &mut sweep.action {
            let Shift::In(delay) = *shift else { return sweep };
            *shift = Shift::To(self.after(delay));
        }
        sweep
    }

    fn write_sweep(&self, sweep: Sweep, who: Option<String>) -> Result<SweepView, Error> {
        let begin =
            |seen: &SeenSweeps| seen.sweeps.begin(sweep.clone(), who.clone(), self.now(), self.shared.clock.micros());
        self.write_begun(begin)?.map_err(|TooManySweeps| Error::Overloaded)
    }

    fn write_undo(
        &self,
        number: u64,
        within: &Scope,
        who: Option<String>,
    ) -> Result<Result<SweepView, CannotUndo>, Error> {
        self.write_begun(|seen| seen.sweeps.undo(number, within, who.clone(), self.now(), self.shared.clock.micros()))
    }

    /// Writes down what is to begin, and tells the shards.
    fn write_begun<E>(
        &self,
        begin: impl Fn(&SeenSweeps) -> Result<(punctual_center::Sweeps, u64), E>,
    ) -> Result<Result<SweepView, E>, Error> {
        for _ in 0..TRIES {
            // What is over makes room for others, and can be taken back.
            let seen = self.tend_sweeps()?;
            let (next, number) = match begin(&seen) {
                Ok(begun) => begun,
                Err(refused) => return Ok(Err(refused)),
            };
            if let Some(written) = self.shared.write_sweeps(&seen, next)? {
                // It is written down: if it cannot be told now, it is told later.
                let tended = self.tend_sweeps().unwrap_or(written);
                let record = tended.sweeps.record(number).cloned();
                let record = record.ok_or_else(|| Error::unknown_outcome("the sweep is over and forgotten"))?;
                let (ended, swept) = record.over.map_or((None, Swept::default()), |(end, swept)| (Some(end), swept));
                return Ok(Ok(SweepView { record, swept, ended }));
            }
        }
        Err(Error::Overloaded)
    }

    /// Tells the shards of what they do not know, and writes down what is over. Says how things stand then.
    pub(crate) fn tend_sweeps(&self) -> Result<SeenSweeps, Error> {
        for _ in 0..TRIES {
            let seen = self.shared.read_sweeps()?;
            if seen.sweeps.running().next().is_none() {
                return Ok(seen);
            }
            let next = self.tended(&seen)?;
            if next == seen.sweeps {
                return Ok(seen);
            }
            if let Some(written) = self.shared.write_sweeps(&seen, next)? {
                return Ok(written);
            }
        }
        Err(Error::Overloaded)
    }

    fn tended(&self, seen: &SeenSweeps) -> Result<punctual_center::Sweeps, Error> {
        let mut next = seen.sweeps.clone();
        for record in seen.sweeps.running() {
            if !record.is_told && self.tell_sweep(record).is_ok() {
                next = next.told(record.number, true).unwrap_or(next);
            }
            if record.is_stopped {
                // Shards that cannot hear it now are told again.
                _ = block_on(self.ask_all(Command::StopSweep { number: record.number }));
            }
        }
        let progress = AllProgress::of(block_on(self.look_all(Command::Sweeps))?);
        for record in seen.sweeps.running() {
            let number = record.number;
            if record.is_told && !progress.is_known(number) {
                // A store that went back to an older state has lost it in some shards.
                next = next.told(number, false).unwrap_or(next);
            } else if let Some(end) = progress.end(number) {
                next = next.over(number, end, progress.swept(number)).unwrap_or(next);
            }
        }
        Ok(next)
    }

    /// Has all shards begin a sweep, each with those of its tasks that it names.
    fn tell_sweep(&self, record: &SweepRecord) -> Result<(), Error> {
        let numbered = &record.numbered();
        let by = record.who.as_deref().and_then(|who| Name::read_back(who).ok());
        let shards = self.shared.shards().map(|(shard, _)| shard);
        let commands = shards.map(|shard| (shard, Command::BeginSweep(Box::new(self.part_of(numbered, shard)))));
        let outcomes: Vec<Outcome> = block_on(self.on_behalf_of(by).ask_several(commands.collect()));
        together::<()>(outcomes).map(|_| ())
    }

    fn part_of(&self, numbered: &NumberedSweep, shard: ShardId) -> NumberedSweep {
        let mut part = numbered.clone();
        if let Matching::Tasks(select) = &mut part.sweep.matching
            && let (Some(topic), Some(ids)) = (select.topic.clone(), &mut select.ids)
        {
            ids.retain(|id| self.shard_of(&topic, id) == shard);
        }
        part
    }
}
