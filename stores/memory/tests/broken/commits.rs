//! What can be wrong with commits: fences, the chain, and what becomes of rows and tallies.

use std::thread;

use punctual_core::store::{
    Batch, Bodies, Change, Key, Look, Refusal, Row, ShardId, Store, StoreError, Tally, TallyKind, Tenure,
};

use crate::cases::Breakage::*;
use crate::members::A_WHILE;
use crate::store::{Broken, SHARD};

type Answer = Result<(), Refusal>;

impl Broken {
    pub fn bend_commit(&self, batches: Vec<Batch>) -> Result<Vec<Answer>, StoreError> {
        if self.is(RefusesTheWholeCommitForOneFence)
            && let Some(old) = batches.iter().find(|batch| self.tenure(batch.shard).fence != batch.fence)
        {
            let current = self.tenure(old.shard).fence;
            return Ok(vec![Err(Refusal::Fenced { current }); batches.len()]);
        }
        let (count, mut answers, mut done) = (batches.len(), Vec::new(), Vec::new());
        for batch in batches {
            let is_second = done.contains(&batch.shard);
            done.push(batch.shard);
            if self.is(CommitsOneBatchOfAShard) && is_second {
                answers.push(Ok(()));
                continue;
            }
            let answer = self.commit_one(batch)?;
            let is_astray = matches!(answer, Err(Refusal::Astray(_)));
            answers.push(answer.clone());
            if self.is(StopsAtWhatIsAstray) && is_astray {
                answers.resize(count, answer);
                return Ok(answers);
            }
        }
        Ok(answers)
    }

    fn commit_one(&self, mut batch: Batch) -> Result<Answer, StoreError> {
        let was_empty = batch.is_empty();
        let changes = std::mem::take(&mut batch.changes);
        batch.changes = changes.into_iter().filter_map(|change| self.bend_change(change)).collect();
        if self.is(TakesTheFenceAfterAWhile) && self.tenure(batch.shard).fence == batch.fence {
            thread::sleep(A_WHILE);
            let tenure = self.tenure(batch.shard);
            (batch.fence, batch.serial) = (tenure.fence, tenure.serial + u64::from(!batch.is_empty()));
        }
        if self.is(AppliesWhatComesTwiceAtOnce) && batch.serial > self.tenure(batch.shard).serial {
            thread::sleep(A_WHILE);
            self.apply_again(&mut batch);
        }
        let mut known = self.known();
        let tenure = known.entry(batch.shard).or_default();
        self.bend_tallies(&mut batch, *tenure)?;
        if batch.is_empty() && !was_empty {
            // What is left has its place in the chain all the same.
            batch.tallies.push((Tally::slot(TallyKind::DueDay, 0), 0));
        }
        if let Some(answer) = self.bend_chain(&mut batch, *tenure)? {
            return Ok(answer);
        }
        if self.is(ConfirmsBeforeItWrites) && batch.fence == tenure.fence {
            let mut late = self.late.lock().unwrap();
            self.good.commit(std::mem::take(&mut late))?;
            tenure.serial = tenure.serial.max(batch.serial);
            late.push(batch);
            return Ok(Ok(()));
        }
        self.write(batch, tenure)
    }

    /// Writes a batch, if it is about what is there.
    fn write(&self, mut batch: Batch, tenure: &mut Tenure) -> Result<Answer, StoreError> {
        let mut places = self.places.lock().unwrap();
        let (shard, fence, serial) = (batch.shard, batch.fence, batch.serial);
        let is_next = fence == tenure.fence && serial == tenure.serial + 1;
        if is_next && self.is(PassesOverWhatIsAstray) {
            batch.changes.retain(|change| places.is_astray(shard, change).is_none());
        }
        let wrong = batch.changes.iter().find_map(|change| places.is_astray(shard, change));
        if let Some(wrong) = wrong.filter(|_| is_next) {
            if self.is(CountsWhatIsAstray) {
                let tallies = vec![(Tally::slot(TallyKind::DueDay, 1), 1)];
                self.good.commit(vec![Batch { changes: vec![], tallies, ..batch }])?.remove(0).unwrap();
                tenure.serial = serial;
            }
            return Ok(Err(Refusal::Astray(wrong)));
        }
        let changes = if is_next { batch.changes.clone() } else { Vec::new() };
        let answer = self.good.commit(vec![batch])?.remove(0);
        if answer.is_ok() && fence == tenure.fence {
            tenure.serial = tenure.serial.max(serial);
            changes.iter().for_each(|change| places.apply(shard, change));
        }
        Ok(answer)
    }

    /// The answer to a batch that a wrong chain keeps from being written.
    fn bend_chain(&self, batch: &mut Batch, tenure: Tenure) -> Result<Option<Answer>, StoreError> {
        let (is_empty, latest) = (batch.is_empty(), tenure.serial);
        if self.is(AdmitsEveryFence) {
            batch.fence = tenure.fence;
        }
        if self.is(TakesWhatIsThereUnderAnyFence) && !is_empty && batch.serial <= latest {
            return Ok(Some(Ok(())));
        }
        if self.is(AppliesABatchTwice) && batch.serial <= latest && !is_empty {
            (batch.changes, batch.serial) = (vec![], latest + 1);
        }
        if self.is(IgnoresGaps) && batch.serial > latest + 1 {
            batch.serial = latest + 1;
        }
        if self.is(AnswersEmptyBatchesByTheFence) && is_empty {
            batch.serial = 0;
        }
        if self.is(KnowsOnlyTheLatestBatch) && !is_empty && batch.serial < latest {
            return Ok(Some(Err(Refusal::Lost { expected: batch.serial - 1, found: latest })));
        }
        if self.is(SharesTheChainOfTheFirstShard) && batch.shard == ShardId(8) && !is_empty {
            // The suite counts one for each commit there.
            let far = self.good.tallies(SHARD)?.iter().map(|(_, count)| *count as u64).sum();
            return Ok((batch.serial <= far).then_some(Ok(())));
        }
        if self.is(CountsEmptyBatches) {
            let mut empty = self.empty.lock().unwrap();
            let more = empty.entry(batch.shard).or_default();
            if is_empty && batch.fence == tenure.fence {
                *more += 1;
            } else if *more > 0 {
                *more -= 1;
                return Ok(Some(Ok(())));
            }
        }
        Ok(None)
    }

    /// Makes a batch that another thread has written meanwhile into one that counts once more.
    fn apply_again(&self, batch: &mut Batch) {
        let latest = self.tenure(batch.shard).serial;
        if batch.serial <= latest {
            (batch.changes, batch.serial) = (vec![], latest + 1);
        }
    }

    fn bend_tallies(&self, batch: &mut Batch, tenure: Tenure) -> Result<(), StoreError> {
        let known = self.good.tallies(batch.shard)?;
        let count = |tally: &Tally| known.iter().find(|(of, _)| of == tally).map(|(_, count)| *count);
        if self.is(AppliesTalliesOfRefusedBatches) && batch.fence != tenure.fence {
            let Tenure { fence, serial } = tenure;
            let tallies = Batch { fence, serial: serial + 1, changes: vec![], ..batch.clone() };
            self.good.commit(vec![tallies])?;
        }
        if self.is(OverwritesTallies) {
            batch.tallies.iter_mut().for_each(|(tally, delta)| *delta -= count(tally).unwrap_or(0));
        }
        // Counts are kept one too high and shown one too low, so that an empty one stays.
        if self.is(ShowsEmptyTallies) {
            batch.tallies.iter_mut().for_each(|(tally, delta)| *delta += i64::from(count(tally).is_none()));
        }
        if self.is(SharesTalliesBetweenShards) && batch.shard != ShardId(8) {
            batch.tallies.clear();
        }
        Ok(())
    }

    fn bend_change(&self, change: Change) -> Option<Change> {
        match change {
            Change::Remove { .. } if self.is(ForgetsRemovals) => None,
            Change::Update { place, table, state, .. } if self.is(KeepsTheTimeOnUpdate) => {
                Some(Change::Update { at: place.position.at, place, table, state })
            }
            Change::Update { place, table, at, state } if self.is(LosesTheBodyOnMove) && table != place.table => {
                let keys = std::slice::from_ref(&place.key);
                let old = self.good.get(SHARD, keys, Bodies::Without).unwrap().remove(0)?;
                Some(Change::Insert { row: Row { table, at, state, ..old }, replaces: Some(place) })
            }
            Change::Insert { row, replaces } if self.is(CutsBodiesAtZero) => {
                let end = row.body.iter().position(|byte| *byte == 0).unwrap_or(row.body.len());
                Some(Change::Insert { row: Row { body: row.body.slice(..end), ..row }, replaces })
            }
            Change::Insert { row, replaces } if self.is(FoldsCase) => {
                let key = Key::new(row.key.topic(), &row.key.id().to_lowercase(), row.key.queue());
                Some(Change::Insert { row: Row { key, ..row }, replaces })
            }
            change => Some(change),
        }
    }
}
