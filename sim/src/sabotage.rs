//! Lies told on purpose, to show that the auditor notices: each breaks a promise in one way. Most are told where they
//! belong, in the store or the node; here are those that change what a step says.

use punctual_core::{Answer, Command, Ending, Millis, Refused, Reply, Ruling, ScheduleOutcome};

use crate::clock::Moment;
use crate::node::Item;
use crate::record::Tag;

/// A lie told on purpose, to show that the auditor notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// After so many commits of new tasks, the store says that one is durable, and forgets it when
    /// the node dies the moment after.
    ForgetCommit {
        /// How many are remembered first.
        after: u64,
    },
    /// The store keeps rows but no tallies.
    ForgetTallies,
    /// The shards are told that it is later than the clock shows.
    EarlyClock {
        /// By so much.
        by: Millis,
    },
    /// Nodes wake up too late.
    LateTimers {
        /// By so much.
        by: Moment,
    },
    /// Nodes tell a shard that commits are durable while it reads, so that what it has read may be older than what it
    /// has forgotten.
    Interrupts,
    /// Nodes believe whatever their clock shows.
    NoDoubt,
    /// Shards are never told that the clock went back.
    LatchedTime,
    /// A consumer that should get nothing gets what another one got.
    SecondHolder,
    /// Every cancel is answered with `Done`.
    UntrueCancel,
    /// Every row is said to be removed.
    UntrueRemove,
    /// Who takes a row is told that there is none.
    DeniedTake,
    /// Whoever removes a row with an old token is said to have done the work.
    StolenRemove,
    /// Every task is said to be new.
    AlwaysNew,
    /// Answers of steps that change nothing leave without a look at the fence, as they would if only
    /// changes were committed. A node that was deposed while it stood still then tells old news.
    UnfencedAnswers,
    /// Shards take everything into memory, however far it is.
    GreedyShards,
    /// The store does not look at the fence when it reads for an owner.
    UnfencedReads,
    /// The store does not look at the fence of commits.
    UnfencedCommits,
    /// The store does not look whether a commit is there already.
    CommitsTwice,
    /// Whoever tries a commit again takes the second answer for the whole truth.
    HastyRefusals,
    /// The store goes back to an older state and does not look whether commits are missing.
    UnnoticedLoss,
    /// The store goes back further than to where its copy was.
    DeeperLoss,
    /// Nodes that hear of commits that are missing tell nobody.
    SilentLoss,
    /// Fences count from the last one that the store knows, whatever the time.
    CountedFences,
    /// A claim is granted whatever the claimer has seen.
    BlindClaims,
    /// Nodes judge by their own clock whether a lease is over.
    OwnClock,
    /// A node takes what another one of the same name has.
    EagerTwin,
    /// Reads that stop early say that there is nothing after them.
    EndsEarly,
}

/// Changes what a step says.
pub(crate) fn tamper(sabotage: Sabotage, item: &mut Item) {
    match sabotage {
        Sabotage::SecondHolder => {
            let given = item.record.deliveries().next().map(|(tag, delivery)| (tag, delivery.clone()));
            if let Some((tag, delivery)) = given {
                item.record.answers.insert(Tag::MAX - tag, Ok(Answer::Reserved(vec![delivery])));
            }
        }
        Sabotage::UntrueCancel => {
            for reply in item.record.answers.values_mut() {
                if let Ok(Answer::Cancelled(ruling)) = reply {
                    *ruling = Ruling::Done(());
                }
            }
        }
        Sabotage::UntrueRemove => lie_about(item, |command, reply| {
            let refused = matches!(command, Command::Remove { .. }) && reply.is_err();
            refused.then_some(Ok(Answer::Removed(Ending::Cancelled)))
        }),
        Sabotage::StolenRemove => lie_about(item, |command, reply| {
            let lost = matches!(reply, Err(Refused::LeaseLost { .. }));
            let with_token = matches!(command, Command::Remove { token: Some(_), .. });
            (lost && with_token).then_some(Ok(Answer::Removed(Ending::Done)))
        }),
        Sabotage::DeniedTake => lie_about(item, |command, reply| {
            let taken = matches!(command, Command::Take(_)) && reply.is_ok();
            taken.then_some(Err(Refused::NothingThere))
        }),
        Sabotage::AlwaysNew => {
            let due = item.record.now;
            for reply in item.record.answers.values_mut() {
                if let Ok(Answer::Scheduled(scheduled)) = reply
                    && let ScheduleOutcome::Existed(_) = scheduled.outcome
                {
                    scheduled.outcome = ScheduleOutcome::Created { due };
                }
            }
        }
        _ => {}
    }
}

/// Gives some requests another answer.
fn lie_about(item: &mut Item, lie: impl Fn(&Command, &Reply) -> Option<Reply>) {
    for (tag, command) in &item.record.requests {
        if let Some(reply) = item.record.answers.get_mut(tag)
            && let Some(untrue) = lie(command, reply)
        {
            *reply = untrue;
        }
    }
}
