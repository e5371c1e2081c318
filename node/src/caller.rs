//! Those who wait for an answer.
//!
//! **Invariant**: every caller hears something. A caller that is dropped without an answer, because
//! its shard's memory was lost, hears that the outcome is unknown.

use std::sync::Arc;

use punctual_core::Name;
use punctual_core::store::{Key, ShardId};
use tokio::sync::oneshot;
use tracing::Span;

pub(crate) use crate::error::Outcome;
use crate::lending::Guest;
use crate::outgoing::Hold;
use crate::peers::Foreign;
use crate::sync::{Mutex, lock};

/// What a consumer gets: the room that its deliveries take goes along.
pub(crate) type Served = (Outcome, Option<Hold>);

/// Who gets the answer to a request.
pub(crate) enum Caller {
    /// Somebody with one request.
    One {
        /// Where it waits.
        sender: oneshot::Sender<Outcome>,
        /// The span in which it does, if somebody makes spans.
        span: Option<Arc<Span>>,
    },
    /// Somebody with several requests.
    Share {
        /// One of them.
        share: Share,
        /// As above.
        span: Option<Arc<Span>>,
    },
    /// A consumer; what it does not take must go back.
    Consumer {
        /// Where it waits.
        sender: oneshot::Sender<Served>,
        /// Room for what it gets.
        hold: Option<Hold>,
        /// As above.
        span: Option<Arc<Span>>,
    },
    /// A shard that has sent on a dead letter, its row there and the number of its journey.
    Forwarder(ShardId, Key, u64),
    /// The board, for a queue whose rate several nodes keep.
    Drawer(Name),
    /// Somebody at another node.
    Foreign(Foreign),
    /// A consumer of another node, which waits there.
    Guest(Guest),
    /// The node itself, which only tells.
    Nobody,
}

/// One of several requests that are answered together.
pub(crate) struct Share {
    bundle: Arc<Mutex<Bundle>>,
    index: usize,
    is_answered: bool,
}

/// The answers of a bundle in the order of the requests; `None` where the outcome is unknown.
pub(crate) type Outcomes = Vec<Option<Outcome>>;

/// What the node itself makes of the answers of a bundle.
pub(crate) type Concern = Box<dyn FnOnce(&Outcomes) + Send>;

struct Bundle {
    outcomes: Outcomes,
    open: usize,
    done: Option<oneshot::Sender<Outcomes>>,
    /// Heeded before anybody hears the answers, and also if nobody listens any more.
    concern: Option<Concern>,
}

impl Share {
    /// So many shares, and where all the answers come when the last one is there.
    pub fn bundle(
        count: usize,
        concern: Option<Concern>,
    ) -> (impl Iterator<Item = Share>, oneshot::Receiver<Outcomes>) {
        let (done, receiver) = oneshot::channel();
        let outcomes = (0..count).map(|_| None).collect();
        let mut bundle = Bundle { outcomes, open: count, done: Some(done), concern };
        bundle.end_if_done();
        let bundle = Arc::new(Mutex::new(bundle));
        let shares = (0..count).map(move |index| Share { bundle: Arc::clone(&bundle), index, is_answered: false });
        (shares, receiver)
    }

    /// Gives the answer to this request.
    pub fn answer(mut self, outcome: Outcome) {
        self.note(Some(outcome));
    }

    fn note(&mut self, outcome: Option<Outcome>) {
        self.is_answered = true;
        let mut bundle = lock(&self.bundle);
        bundle.outcomes[self.index] = outcome;
        bundle.open -= 1;
        bundle.end_if_done();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if !self.is_answered {
            self.note(None);
        }
    }
}

impl Bundle {
    fn end_if_done(&mut self) {
        if self.open == 0
            && let Some(done) = self.done.take()
        {
            if let Some(concern) = self.concern.take() {
                concern(&self.outcomes);
            }
            // If nobody listens any more, nobody misses the answers.
            _ = done.send(std::mem::take(&mut self.outcomes));
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Answer;

    use super::*;
    use crate::error::Error;

    #[test]
    fn a_bundle_ends_with_its_last_answer_and_keeps_the_order() {
        let (shares, mut receiver) = Share::bundle(3, None);
        let mut shares: Vec<Share> = shares.collect();
        shares.pop().unwrap().answer(Err(Error::Overloaded));
        drop(shares.pop());
        assert!(receiver.try_recv().is_err());
        shares.pop().unwrap().answer(Ok(Answer::Noted));
        let outcomes = receiver.try_recv().unwrap();
        assert_eq!(outcomes, [Some(Ok(Answer::Noted)), None, Some(Err(Error::Overloaded))]);
    }

    #[test]
    fn what_concerns_the_node_is_heeded_although_nobody_listens() {
        let (sender, heeded) = std::sync::mpsc::channel();
        let concern: Concern = Box::new(move |outcomes| _ = sender.send(outcomes.clone()));
        let (mut shares, receiver) = Share::bundle(1, Some(concern));
        drop(receiver);
        shares.next().unwrap().answer(Ok(Answer::Noted));
        assert_eq!(heeded.try_recv().unwrap(), [Some(Ok(Answer::Noted))]);
    }

    #[test]
    fn an_empty_bundle_is_over_at_once() {
        let (_, mut receiver) = Share::bundle(0, None);
        assert_eq!(receiver.try_recv().unwrap(), []);
    }
}
