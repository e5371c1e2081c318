//! The handle: what doors, sinks and programs call.
//!
//! Every method sends commands to one shard or to all of them, or reads from the store, and comes
//! back with the answer. No rule about tasks is in here.

mod admin;
mod amend;
mod consume;
mod directory;
mod look;
mod rows;
mod tasks;

pub use consume::{Settle, Settled};
pub use directory::Names;
pub use look::Slots;
pub use rows::{Act, Acting, Done};

use std::fmt;
use std::sync::Arc;

use punctual_core::store::ShardId;
use punctual_core::{Command, Millis, Request, Timestamp};
use tokio::sync::oneshot;

use crate::caller::{Caller, Concern, Outcome, Outcomes, Share};
use crate::error::Error;
use crate::shared::Shared;
use crate::turn::Duty;

/// Gives commands to a node. Cheap to clone, and works on any async runtime;
/// [`block_on`](crate::block_on) does without one.
///
/// Dropping a future takes back nothing that was sent, except a
/// [`reserve`](Handle::reserve): what it would have got goes to others.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("node", &self.shared.config.name).finish_non_exhaustive()
    }
}

/// Takes the expected answer out of an outcome.
macro_rules! answered {
    ($outcome:expr, $pattern:pat => $value:expr) => {
        match $outcome? {
            $pattern => Ok($value),
            other => unreachable!("a shard answers a command with its own answer, not with {other:?}"),
        }
    };
}
use answered;

/// Commands that are on their way.
struct UnderWay {
    outcomes: oneshot::Receiver<Outcomes>,
    duty: Option<Duty>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Handle {
        Handle { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The time by the node's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The end of a length of time that begins now by the node's clock, never too soon. No time at all is over at once.
    pub fn after(&self, length: Millis) -> Timestamp {
        self.shared.clock.after(length)
    }

    /// How long it is until an instant, less than which it cannot be.
    pub fn until(&self, at: Timestamp) -> Millis {
        at.since(self.shared.clock.ceiling())
    }

    /// Sends a command to one shard and waits for the answer.
    async fn ask(&self, shard: ShardId, command: Command) -> Outcome {
        let answer = async {
            self.shared.check()?;
            let (sender, receiver) = oneshot::channel();
            let request = self.shared.request(command, Caller::One(sender));
            let next = self.shared.inbox(shard).push(request)?;
            if let Some(duty) = Duty::of(next, &self.shared, shard) {
                duty.keep().await;
            }
            receiver.await.unwrap_or_else(|_| Err(self.shared.lost()))
        };
        self.counted(answer.await)
    }

    /// Counts a refusal on its way to the caller. Each is counted once: in [`ask`](Handle::ask) and
    /// [`ask_many`](Handle::ask_many), and where a public method ends that does something else.
    fn counted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.inspect_err(|error| self.shared.meter.refuse(error))
    }

    /// Sends commands to their shards, each as if it came alone, and waits for all the answers; an
    /// error among the commands is its own answer.
    async fn ask_many(&self, commands: Vec<Result<(ShardId, Command), Error>>) -> Vec<Outcome> {
        let sent = self.send(commands, true);
        self.collect_counted(sent).await
    }

    /// Sends commands to several shards and waits for all the answers. They are not refused for want
    /// of room, so that they do not get through to some of the shards only.
    pub(crate) async fn ask_several(&self, commands: Vec<(ShardId, Command)>) -> Vec<Outcome> {
        let sent = self.send(commands.into_iter().map(Ok).collect(), false);
        self.collect(sent).await
    }

    /// Sends a command to all shards, and waits for nothing: their answers concern the node.
    async fn tell_all(&self, command: Command, concern: Concern) {
        let commands = self.shared.shards().map(|(shard, _)| Ok((shard, command.clone()))).collect();
        if let Some(duty) = self.send_then(commands, false, Some(concern)).duty {
            duty.keep().await;
        }
    }

    /// Sends a command to all shards and waits for all the answers, in the order of the shards.
    async fn ask_all(&self, command: Command) -> Vec<Outcome> {
        self.ask_several(self.shared.shards().map(|(shard, _)| (shard, command.clone())).collect()).await
    }

    fn send(&self, commands: Vec<Result<(ShardId, Command), Error>>, is_bounded: bool) -> UnderWay {
        self.send_then(commands, is_bounded, None)
    }

    fn send_then(
        &self,
        commands: Vec<Result<(ShardId, Command), Error>>,
        is_bounded: bool,
        concern: Option<Concern>,
    ) -> UnderWay {
        let (shares, receiver) = Share::bundle(commands.len(), concern);
        let mut by_shard: Vec<Vec<Request<Caller>>> = self.shared.inboxes.iter().map(|_| Vec::new()).collect();
        let healthy = self.shared.check();
        let read_at = self.shared.clock.ceiling();
        for (command, share) in commands.into_iter().zip(shares) {
            match healthy.clone().and(command) {
                Ok((shard, command)) => {
                    by_shard[usize::from(shard.0)].push(Request { command, reply: Caller::Share(share), read_at });
                }
                Err(error) => share.answer(Err(error)),
            }
        }
        let mut duty = None;
        for ((shard, inbox), requests) in
            self.shared.shards().zip(by_shard).filter(|(_, requests)| !requests.is_empty())
        {
            match inbox.push_all(requests, is_bounded) {
                Ok(next) => duty = Duty::of(next, &self.shared, shard),
                Err((requests, error)) => {
                    for request in requests {
                        self.shared.answer(request.reply, Err(error.clone()));
                    }
                }
            }
        }
        UnderWay { outcomes: receiver, duty }
    }

    async fn collect_counted(&self, sent: UnderWay) -> Vec<Outcome> {
        self.collect(sent).await.into_iter().map(|outcome| self.counted(outcome)).collect()
    }

    async fn collect(&self, sent: UnderWay) -> Vec<Outcome> {
        if let Some(duty) = sent.duty {
            duty.keep().await;
        }
        let outcomes = sent.outcomes.await.expect("a bundle ends when the last of its shares is answered or dropped");
        self.heard(outcomes)
    }

    /// What came of a bundle, with what is told where nothing was heard.
    fn heard(&self, outcomes: Outcomes) -> Vec<Outcome> {
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(self.shared.lost()))).collect()
    }
}
