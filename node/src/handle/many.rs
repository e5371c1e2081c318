//! Commands about many single tasks at once, of one kind or of several.

use punctual_core::{Answer, Command, Told};

use super::{Handle, UnderWay};
use crate::error::Error;
use crate::rates::Held;

/// Commands that are under way, and whose outcomes are yet to be heard.
#[must_use = "what came of them is not known before it is asked for"]
pub struct Awaited {
    sent: UnderWay,
    held: Held,
    handle: Handle,
}

impl Awaited {
    /// Waits for what came of each, in their order.
    pub async fn outcomes(self) -> Vec<Result<Answer, Error>> {
        self.told().await
    }

    async fn told<T: Told>(self) -> Vec<Result<T, Error>> {
        let mut outcomes = self.handle.collect(self.sent).await;
        if !self.held.is_empty() {
            for (place, outcome) in self.handle.let_in(self.held).await {
                outcomes[place] = outcome;
            }
        }
        let outcomes = outcomes.into_iter();
        outcomes.map(|outcome| self.handle.counted(outcome).map(T::by)).collect()
    }
}

impl Handle {
    /// Carries out commands about single tasks, each as if it came alone; each is answered by itself, in their order. What
    /// concerns one task happens in their order, too. Commands for all shards are refused here.
    pub async fn carry_out(&self, commands: Vec<Command>) -> Vec<Result<Answer, Error>> {
        self.begin(commands).outcomes().await
    }

    /// The same in two parts: whatever the caller asks of the node before it waits for the outcomes happens after
    /// these, and most likely together with them; except for tasks of topics with a rate that several nodes keep.
    pub fn begin(&self, commands: Vec<Command>) -> Awaited {
        let mut commands: Vec<_> = commands.into_iter().map(|command| self.admit(command)).collect();
        let held = self.hold_back(&mut commands);
        Awaited { sent: self.send(commands, true), held, handle: self.clone() }
    }

    /// The same for commands of one kind.
    pub(super) async fn ask_many<T: Told>(&self, commands: Vec<Command>) -> Vec<Result<T, Error>> {
        self.begin(commands).told().await
    }

    /// Whether a batch will most likely get in: no inbox is more than half full. For callers who would rather be slow
    /// than be refused.
    pub fn has_room(&self) -> bool {
        self.shared.inboxes.iter().all(|inbox| inbox.len() <= self.shared.config.inbox / 2)
    }
}
