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
    /// Revisions of entries count from the last one that the store knows, whatever the time.
    CountedRevisions,
    /// A claim is granted whatever the claimer has seen.
    BlindClaims,
    /// Nodes judge by their own clock whether a lease is over.
    OwnClock,
    /// A node takes what another one of the same name has.
    EagerTwin,
    /// Reads that stop early say that there is nothing after them.
    EndsEarly,
    /// A link that breaks is said to have carried nothing.
    BrokenIsUnsent,
    /// Nodes say that what was asked was done, though they do not have the shard.
    DoneUnseen,
    /// Nodes carry out what was asked, and say that the shard is not there.
    DoneAndDenied,
    /// Nodes pass on what was passed on to them.
    SecondHop,
    /// Nodes that have denied a shard carry out what comes for it of the same round.
    IgnoresRounds,
    /// A consumer that is lent stays in line as well.
    ServedTwice,
    /// A consumer that is lent gets lost on the way.
    ForgottenLoans,
    /// Nodes claim whatever they do not run.
    GreedyPlan,
    /// Nodes go by their machines' clocks, and not by the store's.
    MachineTime,
    /// Nodes go by the latest that the store's clock can show.
    LatestTime,
    /// Lengths of time begin at the earliest that the store's clock can show.
    ShortLengths,
    /// A commit that does not reach the store is taken for done.
    DoneUnreached,
    /// A change is said to be made though one shard was not told.
    HalfChanges,
    /// Whatever is under way is taken for adopted by all shards.
    HastyChanges,
    /// Nobody finishes what others have left, or strikes off what is done.
    LeavesChanges,
    /// Who has decided what to change does not look again when somebody else was quicker.
    DecidesOnce,
    /// Numbers of changes are counted, whatever the time.
    CountedChanges,
    /// Nodes raise the level to what they can themselves.
    EagerLevels,
    /// Nodes that are too old for the level in force work on.
    OldReaders,
    /// Each node keeps rates by itself.
    OwnRates,
    /// Whoever draws tokens gets one more.
    GenerousHome,
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
        Sabotage::GenerousHome => {
            for reply in item.record.answers.values_mut() {
                if let Ok(Answer::Drawn(drawn)) = reply {
                    drawn.tokens += 1;
                }
            }
        }
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
