//! Rates hold over all nodes: a home shard grants no more tokens than the rate of a queue allows, and nothing is handed out of
//! the queue that is watched for it without one.

use std::collections::BTreeMap;

use punctual_core::store::Fence;
use punctual_core::{Answer, Command, Name, Rate, Subject, Timestamp};

use super::{Auditor, Ledger, Promise, Verdict};
use crate::record::StepRecord;
use crate::workload::PACED;

/// What is known of rates.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// By queue, what its home shard may grant.
    buckets: BTreeMap<Name, Bucket>,
    /// How many tokens were granted for the queue that is watched.
    granted: u64,
    /// How many deliveries of it were handed out.
    handed: u64,
}

#[derive(Debug)]
struct Bucket {
    rate: Rate,
    /// In thousandths of a token.
    level: i64,
    at: Timestamp,
    /// Who counts, and by which clock.
    fence: Fence,
}

impl Bucket {
    /// Takes tokens; says whether there were so many.
    fn take(&mut self, tokens: u32, now: Timestamp, fence: Fence) -> bool {
        let (full, per_milli) = (i64::from(self.rate.burst.max(1)) * 1_000, i64::from(self.rate.per_second.max(1)));
        let passed = now.since(self.at).0 as i64;
        if now < self.at || fence != self.fence {
            // How much time has passed is not known, so the bucket may have filled meanwhile.
            self.level = full;
        }
        self.level = self.level.saturating_add(per_milli.saturating_mul(passed)).min(full) - i64::from(tokens) * 1_000;
        (self.at, self.fence) = (now, fence);
        // A millisecond is the clock's step.
        self.level >= -per_milli
    }
}

impl Auditor {
    /// A step grants tokens and hands things out; `ledger` is its shard's as it was before.
    pub(super) fn follow_rates(&mut self, ledger: &Ledger, record: &StepRecord) -> Verdict {
        for (tag, command) in &record.requests {
            let Command::Draw { from: Subject::Queue(queue), .. } = command else { continue };
            let Some(Ok(Answer::Drawn(drawn))) = record.answers.get(tag) else { continue };
            self.rates.granted += if &**queue == PACED { u64::from(drawn.tokens) } else { 0 };
            self.census.add("tokens drawn", drawn.tokens.into());
            let is_changed = record.requests.iter().any(|(_, command)| may_change(command, queue));
            let rate = ledger.settings.queue(queue).last().and_then(|settings| settings.rate).filter(|_| !is_changed);
            let Some(rate) = rate else {
                self.rates.buckets.remove(queue);
                continue;
            };
            let full =
                || Bucket { rate, level: i64::from(rate.burst.max(1)) * 1_000, at: record.now, fence: record.fence };
            let bucket = self.rates.buckets.entry(queue.clone()).or_insert_with(full);
            if bucket.rate != rate {
                *bucket = full();
            }
            if !bucket.take(drawn.tokens, record.now, record.fence) {
                let what =
                    format!("{} tokens were granted for {queue}, more than there can be: {bucket:?}", drawn.tokens);
                return Err((Promise::RatesHold, String::new(), what));
            }
        }
        Ok(())
    }

    /// What a step hands out of the queue that is watched, once all shards know its rate.
    pub(super) fn follow_paced(&mut self, ledger: &Ledger, record: &StepRecord) -> Verdict {
        let paces = |ledger: &Ledger| ledger.settings.queue(PACED).iter().all(|settings| settings.rate.is_some());
        if !self.ledgers.values().chain([ledger]).all(paces) {
            return Ok(());
        }
        self.rates.handed += paced(record);
        if self.shares_rates && self.rates.handed > self.rates.granted {
            let what = format!("{} were handed out of {PACED} with {} tokens", self.rates.handed, self.rates.granted);
            return Err((Promise::RatesHold, String::new(), what));
        }
        Ok(())
    }

    /// A step was lost, and may take effect once more with the same tokens.
    pub(super) fn unpace(&mut self, record: &StepRecord) {
        self.rates.handed = self.rates.handed.saturating_sub(paced(record));
    }
}

/// How many are handed out of the queue that is watched, to consumers that waited.
fn paced(record: &StepRecord) -> u64 {
    record.served().filter(|(_, delivery)| delivery.queue.as_str() == PACED).count() as u64
}

/// Whether a command may change the rate of a queue.
fn may_change(command: &Command, queue: &Name) -> bool {
    match command {
        Command::PutQueue { name, .. } | Command::DeleteQueue { name, .. } => name == queue,
        Command::Adopt(adopt) => adopt.adjustment.subject() == Subject::Queue(queue.clone()),
        _ => false,
    }
}
