//! A shard's turn: one step, from what waits in its inbox to the answers.
//!
//! Turns are taken by the shard's runner. A runner that rests leaves the shard in the inbox, and a
//! caller who brings the next request may borrow it and take the turn in its own thread, up to the
//! answer: on an idle machine waking the runner, the committer and the caller again would take
//! longer than the step itself.

use std::future::poll_fn;
use std::mem::replace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use punctual_core::store::{Fence, ShardId, StoreError, Terms};
use punctual_core::{Answer, Output, Request, Shard, Timestamp};

use crate::board;
use crate::caller::Caller;
use crate::committer::Sent;
use crate::config::NodeConfig;
use crate::error::Error;
use crate::inbox::{News, Next};
use crate::runner::share_of;
use crate::shared::Shared;
use crate::sync::Instant;

/// A shard that is running, and how far it is.
pub(crate) struct Running {
    pub shard: Shard<Caller>,
    pub fence: Fence,
    pub plan: Plan,
}

/// What is known before the next turn.
pub(crate) struct Plan {
    /// When the shard wants to be woken; [`Timestamp::ZERO`] means that it has more to do at once.
    pub wake: Timestamp,
    /// The latest step that was handed to the committer.
    pub sent: u64,
    /// The latest step that is known to be settled.
    pub settled: u64,
    /// How many steps may be unsettled.
    pub in_flight: u64,
    /// How many requests have to wait for a step to be taken while others are unsettled.
    pub worthwhile: usize,
    /// How many requests a turn takes.
    pub step: usize,
    /// How many bytes they may have together, unless it is one.
    pub step_bytes: usize,
    /// How soon a step of the wall clock has to be noticed.
    pub recheck: Duration,
}

impl Running {
    pub fn new(shard: Shard<Caller>, fence: Fence, config: &NodeConfig, terms: &Terms) -> Box<Running> {
        let plan = Plan {
            wake: Timestamp::ZERO,
            sent: 0,
            settled: 0,
            in_flight: config.in_flight as u64,
            worthwhile: terms.worthwhile,
            step: config.step.min(share_of(terms.batch_changes)),
            step_bytes: terms.batch_bytes,
            recheck: config.recheck,
        };
        Box::new(Running { shard, fence, plan })
    }

    /// Takes a step with these requests, knowing how far commits are, and hands on what comes of it.
    /// On an error the shard's memory cannot be trusted any more.
    pub fn turn(&mut self, shared: &Shared, requests: Vec<Request<Caller>>, news: News) -> Result<(), StoreError> {
        let Running { shard, fence, plan } = self;
        for (step, late) in news.late {
            shard.handed_over(step, late);
        }
        if news.settled > plan.settled {
            shard.committed(news.settled);
            plan.settled = news.settled;
        }
        let Stepped { output, at, hand_over_at } = step(shard, shared, requests).inspect_err(|error| {
            // It failed as it read, so nothing of it has happened.
            let error = Error::nothing_done(error.to_string());
            shard.call_off().for_each(|caller| shared.answer(caller, Err(error.clone())));
        })?;
        plan.wake = if output.wake <= shard.now() { Timestamp::ZERO } else { output.wake };
        let step = output.step;
        if plan.sent == plan.settled && says_nothing(&output) {
            shard.committed(step);
            plan.settled = step;
        } else {
            let micros = shared.clock.micros();
            shared.commit(Sent { shard: shard.id(), fence: *fence, micros, at, hand_over_at, output });
        }
        plan.sent = step;
        Ok(())
    }
}

/// What comes of a step, when it happened, and when what it hands out was thought to reach its consumers.
struct Stepped {
    output: Output<Caller>,
    at: Instant,
    hand_over_at: Timestamp,
}

fn step(shard: &mut Shard<Caller>, shared: &Shared, requests: Vec<Request<Caller>>) -> Result<Stepped, StoreError> {
    let Shared { store, clock, board, .. } = shared;
    shard.make_room(store.room());
    let now = clock.now();
    let mut needs = shard.prepare(now, requests, &board.lock().waiting);
    while !needs.is_empty() {
        needs = shard.supply(needs.read(&**store, shard.id(), shard.tenure())?);
    }
    let at = Instant::now();
    let hand_over_at = shared.pace.hand_over_at(&**clock);
    shard.apply(hand_over_at);
    let mut over = Vec::new();
    let mut posted = board.lock();
    posted.waiting.set_room(shared.outgoing.left());
    let time = board::time(&**clock);
    shard.serve(&mut posted.waiting, time);
    let after = posted.see_to_lending(shared, time);
    if !posted.waiting.is_empty() {
        // While this step was under way the board's thread may have passed over a consumer that waited
        // for this shard to look.
        over = posted.waiting.expire(board::time(&**clock));
    }
    let draws = posted.waiting.draws(now);
    drop(posted);
    shared.clear_up(after);
    shared.draw(draws);
    let mut output = shard.finish();
    for (caller, reply) in &mut output.answers {
        if let Ok(Answer::Reserved(deliveries)) = reply {
            shared.make_room(caller, deliveries);
        }
    }
    output.answers.extend(over.into_iter().map(|caller| (caller, Ok(Answer::Reserved(Vec::new())))));
    Ok(Stepped { output, at, hand_over_at })
}

/// Whether nobody has to hear of a step, and nothing is to be written.
fn says_nothing(output: &Output<Caller>) -> bool {
    output.batch.is_none()
        && output.answers.is_empty()
        && output.forwards.is_empty()
        && output.rates.is_empty()
        && output.events.is_empty()
}

/// The promise of a caller to take the next turn. If it is not kept, the runner takes it.
#[must_use]
pub(crate) struct Duty {
    shared: Arc<Shared>,
    shard: ShardId,
    has_company: bool,
}

impl Duty {
    /// What a caller has to do who has brought something to a shard.
    pub fn of(next: Next, shared: &Arc<Shared>, shard: ShardId) -> Option<Duty> {
        match next {
            Next::Runner => None,
            Next::Caller { has_company } => Some(Duty { shared: Arc::clone(shared), shard, has_company }),
        }
    }

    /// Takes the turn. If others have come lately, those that the runtime has ready are let in first.
    pub async fn keep(self) {
        if self.has_company {
            let mut has_let_in = false;
            poll_fn(|context| {
                if replace(&mut has_let_in, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        let Some((mut borrowed, requests, news)) = self.shared.inbox(self.shard).borrow() else { return };
        let turn = catch_unwind(AssertUnwindSafe(|| borrowed.running().turn(&self.shared, requests, news)));
        match turn {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.shared.heed(&error);
                borrowed.fail(&error.to_string());
            }
            Err(_) => {
                self.shared.poison(&format!("{} panicked because of a bug; see the log for its message", self.shard))
            }
        }
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        self.shared.inbox(self.shard).release_from_duty();
    }
}
