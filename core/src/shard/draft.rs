//! The output of a step while it takes shape: what it says to the outside as everything happens.

use super::desk::Slot;
use super::forward::Forward;
use super::mend::Mended;
use super::{Output, Shard};
use crate::answer::{Answer, Reply};
use crate::event::{Event, What};
use crate::name::Name;
use crate::settings::Rate;
use crate::store::Batch;
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Draft<R> {
    answers: Vec<(R, Reply)>,
    forwards: Vec<Forward>,
    rates: Vec<(Name, Option<Rate>)>,
    events: Vec<Event>,
    /// For whom is done what happens now.
    by: Option<Name>,
    gone: Vec<Name>,
    gone_queues: Vec<Name>,
    offers: Vec<(Name, Timestamp)>,
    takes: Vec<(Name, Timestamp)>,
    /// Counts that turned out to be wrong since the shard was opened, and how many of them were told.
    mended: Vec<Mended>,
    told_mended: usize,
}

impl<R> Draft<R> {
    pub fn new() -> Draft<R> {
        Draft {
            answers: Vec::new(),
            forwards: Vec::new(),
            rates: Vec::new(),
            events: Vec::new(),
            by: None,
            gone: Vec::new(),
            gone_queues: Vec::new(),
            offers: Vec::new(),
            takes: Vec::new(),
            mended: Vec::new(),
            told_mended: 0,
        }
    }

    /// So many answers will come.
    pub fn expect_answers(&mut self, more: usize) {
        self.answers.reserve(more);
    }

    pub fn answer(&mut self, to: R, reply: Reply) {
        self.answers.push((to, reply));
    }

    /// What happens from now on is done for whoever asked for it under this name, or because its time has come.
    pub fn act_for(&mut self, by: Option<Name>) {
        self.by = by;
    }

    /// For whom is done what happens now.
    pub fn acts_for(&self) -> Option<&Name> {
        self.by.as_ref()
    }

    pub fn forward(&mut self, forward: Forward) {
        self.forwards.push(forward);
    }

    /// A topic's entrance is limited to this rate from now on.
    pub fn limit_topic(&mut self, topic: &Name, rate: Option<Rate>) {
        self.rates.push((topic.clone(), rate));
    }

    /// A topic is gone, and the limit of its entrance with it.
    pub fn topic_gone(&mut self, topic: Name) {
        self.rates.push((topic.clone(), None));
        self.gone.push(topic);
    }

    pub fn queue_gone(&mut self, queue: Name) {
        self.gone_queues.push(queue);
    }

    /// A delivery became available in a queue, and should have been since this time.
    pub fn offered(&mut self, queue: &Name, since: Timestamp) {
        self.offers.push((queue.clone(), since));
    }

    /// A delivery was handed out that was available since this time.
    pub fn taken(&mut self, queue: &Name, since: Timestamp) {
        self.takes.push((queue.clone(), since));
    }

    /// Counts were wrong and are right now.
    pub fn mended(&mut self, mended: impl IntoIterator<Item = Mended>) {
        self.mended.extend(mended);
    }

    /// Whether there is an answer that is more than "nothing there".
    pub fn says_something(&self) -> bool {
        let nothing = |reply: &Reply| matches!(reply, Ok(Answer::Reserved(deliveries)) if deliveries.is_empty());
        self.answers.iter().any(|(_, reply)| !nothing(reply))
    }

    /// Ends the step: all that was said since the last one.
    pub fn take(&mut self, step: u64, batch: Option<Batch>, wake: Timestamp) -> Output<R> {
        // The next step will have about as much to tell, and then need not move it while it grows.
        let room = Vec::with_capacity(self.events.len());
        let told = std::mem::replace(&mut self.told_mended, self.mended.len());
        Output {
            step,
            batch,
            answers: std::mem::take(&mut self.answers),
            forwards: std::mem::take(&mut self.forwards),
            rates: std::mem::take(&mut self.rates),
            events: std::mem::replace(&mut self.events, room),
            gone: std::mem::take(&mut self.gone),
            gone_queues: std::mem::take(&mut self.gone_queues),
            offers: std::mem::take(&mut self.offers),
            takes: std::mem::take(&mut self.takes),
            mended: self.mended[told..].to_vec(),
            wake,
        }
    }
}

impl<R> Shard<R> {
    /// Tells what happens to a row. It is called before the row leaves its ready set, or when its state
    /// says which queue it is in.
    pub(super) fn happens(&mut self, slot: Slot, what: What) {
        let row = &self.desk[slot];
        let queue = match row.ready_in() {
            Some(index) => Some(&self.directory.queue(index).name),
            None => row.state.queue.as_ref(),
        };
        let (queue, task, number, key) = (queue.cloned(), row.key().clone(), row.seq(), row.group().cloned());
        let by = self.draft.by.clone();
        self.draft.events.push(Event { at: self.now, task, number, queue, key, by, what });
    }

    /// The counts that turned out to be wrong since the shard was opened.
    pub fn mended(&self) -> &[Mended] {
        &self.draft.mended
    }
}
