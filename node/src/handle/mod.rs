//! The handle: what doors, sinks and programs call.
//!
//! Every method sends commands to one shard or to all of them, or reads from the store, and comes
//! back with the answer. No rule about tasks is in here.

mod admin;
mod amend;
mod changes;
mod consume;
mod course;
mod directory;
mod find;
mod line;
mod live;
mod look;
mod many;
mod nodes;
mod rows;
mod sweeps;
mod tasks;
mod work;

pub use course::{Cause, Situation};
pub use directory::Names;
pub use find::Found;
pub use line::{AllHolders, LineCursor, LinePage};
pub use look::{Counted, Slots};
pub use many::Awaited;
pub use nodes::{NodeView, ShardView};
pub use sweeps::SweepView;
pub use work::AllWork;

use std::fmt;
use std::sync::Arc;

use punctual_core::store::ShardId;
use punctual_core::{Certainty, Command, Limits, Millis, Name, Refused, Request, Timestamp, Told};
use tokio::sync::oneshot;

use crate::caller::{Caller, Concern, Outcome, Outcomes, Share};
use crate::error::Error;
use crate::shared::Shared;
use crate::tracer::Tracer;
use crate::turn::Duty;

/// Gives commands to a node. Cheap to clone, and works on any async runtime;
/// [`block_on`](crate::block_on) does without one.
///
/// Dropping a future takes back nothing that was sent, except a
/// [`reserve`](Handle::reserve): what it would have got goes to others.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    /// Under which name it asks.
    by: Option<Name>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("node", &self.shared.config.name).finish_non_exhaustive()
    }
}

/// Commands that are on their way.
struct UnderWay {
    outcomes: oneshot::Receiver<Outcomes>,
    duty: Option<Duty>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Handle {
        Handle { shared, by: None }
    }

    /// The same handle for somebody of this name: events tell it with all that is done for them.
    pub fn on_behalf_of(&self, by: Option<Name>) -> Handle {
        Handle { shared: Arc::clone(&self.shared), by }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Who makes spans of what happens, if anybody does.
    pub fn tracer(&self) -> Option<&dyn Tracer> {
        self.shared.config.tracer.as_deref()
    }

    /// The name of the node.
    pub fn node_name(&self) -> &Name {
        &self.shared.config.name
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

    /// Sends a command about one task to its shard and waits for the answer.
    async fn ask<T: Told>(&self, command: Command) -> Result<T, Error> {
        let answer = async {
            let (shard, command) = self.admit(command)?;
            self.shared.check()?;
            self.enter(&command).await?;
            let (sender, receiver) = oneshot::channel();
            let request =
                self.shared.request(command, self.by.clone(), Caller::One { sender, span: self.shared.span() });
            let next = self.shared.bring(shard, request)?;
            if let Some(duty) = Duty::of(next, &self.shared, shard) {
                duty.keep().await;
            }
            receiver.await.unwrap_or_else(|_| Err(self.shared.lost()))
        };
        self.counted(answer.await).map(T::by)
    }

    /// Finds the shard of a command about one task. What makes the store grow needs room there, and a new task that its
    /// topic is not over its rate limit.
    fn admit(&self, command: Command) -> Result<(ShardId, Command), Error> {
        let Some((topic, id)) = command.task() else {
            let why = "this command concerns all shards and cannot be part of a batch about single tasks".into();
            return Err(Refused::Invalid { field: "command", why }.into());
        };
        let shard = self.shard_of(topic, id);
        match &command {
            Command::Schedule(schedule) => {
                Limits::check_names(&schedule.task.headers)?;
                self.shared.check_room()?;
                if !self.shared.peers.has_links() {
                    self.shared.entrances.admit(&schedule.task.topic)?;
                }
            }
            Command::Reschedule(change) if change.body.is_some() => self.shared.check_room()?,
            Command::Replay(_) | Command::Restore { .. } | Command::Hasten { .. } => self.shared.check_room()?,
            Command::Reschedule(_) | Command::Take(_) => self.shared.check_growth()?,
            _ => {}
        }
        Ok((shard, command))
    }

    /// Counts a refusal on its way to the caller. Each is counted once: in [`ask`](Handle::ask) and
    /// [`ask_many`](Handle::ask_many), and where a public method ends that does something else.
    fn counted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.inspect_err(|error| self.shared.meter.refuse(error))
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

    /// The same for a command that only looks.
    async fn look_all<T: Told>(&self, command: Command) -> Result<Vec<T>, Error> {
        let outcomes = self.ask_all(command).await.into_iter();
        outcomes.map(|outcome| outcome.map(T::by).map_err(Error::of_a_look)).collect()
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
        let span = self.shared.span();
        for (command, share) in commands.into_iter().zip(shares) {
            match healthy.clone().and(command) {
                Ok((shard, command)) => {
                    let reply = Caller::Share { share, span: span.clone() };
                    by_shard[usize::from(shard.0)].push(Request { command, by: self.by.clone(), reply, read_at });
                }
                Err(error) => share.answer(Err(error)),
            }
        }
        let mut duty = None;
        for ((shard, _), requests) in self.shared.shards().zip(by_shard).filter(|(_, requests)| !requests.is_empty()) {
            duty = Duty::of(self.shared.bring_all(shard, requests, is_bounded), &self.shared, shard);
        }
        UnderWay { outcomes: receiver, duty }
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

/// What a command to several shards came to. Unless none of them has done it, it may have been done.
fn together<T: Told>(outcomes: Vec<Outcome>) -> Result<Vec<T>, Error> {
    let is_undone =
        |outcome: &Outcome| outcome.as_ref().is_err_and(|error| error.certainty() == Certainty::NothingDone);
    let nothing_done = outcomes.iter().all(is_undone);
    let told = outcomes.into_iter().map(|outcome| outcome.map(T::by)).collect::<Result<_, Error>>();
    told.map_err(|error| if nothing_done { error } else { error.of_a_part() })
}
