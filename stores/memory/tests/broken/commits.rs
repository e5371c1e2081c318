//! What can be wrong with commits: fences, the chain, and what becomes of rows and tallies.

use std::thread;

use punctual_core::Name;
use punctual_core::store::{
    Batch, Claim, Fence, Incarnation, Look, Refusal, ShardId, Store, StoreError, Tally, TallyKind, Tenure,
};

use crate::cases::Breakage::*;
use crate::members::A_WHILE;
use crate::store::{Broken, SHARD};

type Answer = Result<(), Refusal>;

impl Broken {
    pub fn bend_commit(&self, batches: Vec<Batch>) -> Result<Vec<Answer>, StoreError> {
        if self.is(RefusesEmptyCommits) && batches.is_empty() {
            return Err(StoreError::Unavailable("there is nothing to do".to_owned()));
        }
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
            let is_other = done.first() != Some(&batch.shard);
            if self.is(CommitsOneBatchOfAShard) && is_second || self.is(CommitsOneShard) && is_other {
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
        if self.is(ClaimsByCommitting) && self.tenure(batch.shard) == Tenure::default() {
            let who = Incarnation { node: Name::stored("whoever"), number: 1 };
            let claims = self.bend_claim(&who, &[(batch.shard, Fence::default())])?;
            batch.fence = self.tenure(batch.shard).fence;
            assert!(matches!(claims[..], [Claim::Granted(_)]), "nobody else claims");
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
        let is_higher = batch.fence > tenure.fence;
        if self.is(AdmitsEveryFence) || self.is(AdmitsHigherFences) && is_higher && tenure.fence != Fence::default() {
            batch.fence = tenure.fence;
        }
        if self.is(AnswersEmptyBatchesUnseen) && is_empty {
            return Ok(Some(Ok(())));
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
}
