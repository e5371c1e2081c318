//! Single rows by their numbers, and commands of many kinds at once: for doors whose protocol names work by a number.

use punctual_core::store::{Bodies, ShardId, Store};
use punctual_core::view::{self, RowView};
use punctual_core::{Answer, Command, Delivery, Ending, First, Lease, Name, RowId, Scheduled, Standing, Take, Task};

use super::consume::{Settle, Settled};
use super::{Handle, UnderWay, answered};
use crate::caller::Outcome;
use crate::error::Error;
use crate::numbers::Number;
use crate::outgoing::Hold;
use crate::routing::shard_of_key;

/// One of many commands that are given together.
#[derive(Clone, Debug)]
pub enum Act {
    /// Take a task.
    Schedule(Box<Task>),
    /// Say what became of a delivery.
    Settle(Settle),
    /// End a row: done if it is held under the token, cancelled if it is free, purged if it is a dead letter.
    Remove {
        /// The row.
        row: RowId,
        /// The token of the lease under which the caller holds it, or held it.
        token: Option<u64>,
    },
    /// Make a row available now: replay a dead letter, or bring a due time forward.
    Hasten {
        /// The row.
        row: RowId,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The task is there.
    Scheduled(Scheduled),
    /// So it is with the delivery now.
    Settled(Settled),
    /// The row has ended so.
    Removed(Ending),
    /// The row stands here now: available, unless a full queue has pushed it out.
    Hastened(Standing),
}

/// Acts that are under way.
#[must_use = "what came of them is not known before it is asked for"]
pub struct Acting {
    sent: UnderWay,
    handle: Handle,
}

impl Acting {
    /// Waits for what came of each, in their order.
    pub async fn outcomes(self) -> Vec<Result<Done, Error>> {
        let Acting { sent, handle } = self;
        handle.collect_counted(sent).await.into_iter().map(done).collect()
    }
}

impl Handle {
    /// Does many things, each as if it came alone; each is answered by itself, in their order. What concerns one row
    /// happens in their order, too.
    pub async fn act_many(&self, acts: Vec<Act>) -> Vec<Result<Done, Error>> {
        self.begin_many(acts).outcomes().await
    }

    /// The same in two parts: whatever the caller asks of the node before it waits for the outcomes happens after
    /// these, and most likely together with them.
    pub fn begin_many(&self, acts: Vec<Act>) -> Acting {
        let commands = acts.into_iter().map(|act| self.command_of(act)).collect();
        Acting { sent: self.send(commands, true), handle: self.clone() }
    }

    /// Whether a batch will most likely get in: no inbox is more than half full. For callers who would rather be slow
    /// than be refused.
    pub fn has_room(&self) -> bool {
        self.shared.inboxes.iter().all(|inbox| inbox.len() <= self.shared.config.inbox / 2)
    }

    fn command_of(&self, act: Act) -> Result<(ShardId, Command), Error> {
        let shards = self.shared.config.shards;
        match act {
            Act::Schedule(task) => self.enter(*task),
            Act::Settle(settle) => Ok(settle.command(shards)),
            Act::Remove { row, token } => Ok((shard_of_key(&row.key, shards), Command::Remove { row, token })),
            Act::Hasten { row } => {
                self.shared.check_room()?;
                Ok((shard_of_key(&row.key, shards), Command::Hasten { row }))
            }
        }
    }

    /// Hands one row to a consumer, whatever it waits for.
    pub async fn take(&self, take: Take) -> Result<Delivery, Error> {
        self.counted(self.shared.check_growth())?;
        let shard = shard_of_key(&take.row.key, self.shared.config.shards);
        let outcome = self.ask(shard, Command::Take(Box::new(take))).await;
        let taken: Result<Vec<Delivery>, Error> = answered!(outcome, Answer::Reserved(deliveries) => deliveries);
        Ok(taken?.pop().expect("a row that was taken is handed over"))
    }

    /// The number of a row of a task, told from those of all shards.
    pub fn number(&self, topic: &Name, id: &Name, seq: u64) -> Number {
        Number::of(self.shard_of(topic, id), seq, self.shared.config.shards)
    }

    /// Looks at the rows with these numbers, in their order.
    pub async fn numbered(&self, numbers: Vec<Number>, bodies: Bodies) -> Result<Vec<Option<RowView>>, Error> {
        let (shards, now) = (self.shared.config.shards, self.now());
        let read = self.read(move |store| {
            let mut found: Vec<Option<RowView>> = vec![None; numbers.len()];
            for shard in 0..shards {
                let here = |(place, number): (usize, &Number)| {
                    let (of, seq) = number.parts(shards);
                    (of == ShardId(shard)).then_some((place, seq))
                };
                let (places, seqs): (Vec<usize>, Vec<u64>) = numbers.iter().enumerate().filter_map(here).unzip();
                if seqs.is_empty() {
                    continue;
                }
                for (place, view) in places.into_iter().zip(view::numbered(store, ShardId(shard), &seqs, bodies, now)?)
                {
                    found[place] = view;
                }
            }
            Ok(found)
        });
        self.counted(read.await)
    }

    /// Looks at the row with this number and its body, for who keeps them in memory for as long as somebody else takes to
    /// read them. A long one is refused as overload if there is no room for it among all answers under way.
    pub async fn numbered_held(&self, number: Number) -> Result<Option<(RowView, Hold)>, Error> {
        let ((shard, seq), now) = (number.parts(self.shared.config.shards), self.now());
        let look =
            move |store: &dyn Store| Ok(view::numbered(store, shard, &[seq], Bodies::With, now)?.pop().flatten());
        self.counted(self.read_held(look, |row| row.task.written()).await)
    }

    /// The number of the delivery that a queue hands out next, if one waits for a consumer there.
    pub async fn first(&self, queue: &Name) -> Result<Option<Number>, Error> {
        let shards = self.shared.config.shards;
        let mut firsts: Vec<(First, Number)> = Vec::new();
        let outcomes = self.ask_all(Command::First { queue: queue.clone() }).await;
        for (shard, outcome) in (0..).map(ShardId).zip(outcomes) {
            let first: Result<Option<First>, Error> = answered!(outcome, Answer::First(first) => first);
            let first = self.counted(first)?;
            firsts.extend(first.map(|first| (first, Number::of(shard, first.position.seq, shards))));
        }
        let foremost = firsts.into_iter().min_by_key(|(first, _)| (first.priority, first.position));
        Ok(foremost.map(|(_, number)| number))
    }

    /// Puts deliveries back whose consumer is gone, and waits until others can have them. It is done also while the node
    /// stops; leases that have ended are passed over.
    pub async fn abandon(&self, leases: Vec<Lease>) {
        let releases = leases.iter().map(|lease| self.shared.abandonment(lease.clone())).collect();
        let outcomes = self.ask_several(releases).await;
        let refused = |outcome: &Outcome| *outcome == Err(Error::Stopping);
        let left = leases.into_iter().zip(outcomes).filter(|(_, outcome)| refused(outcome));
        self.shared.abandon(left.map(|(lease, _)| lease));
    }
}

fn done(outcome: Outcome) -> Result<Done, Error> {
    match outcome? {
        Answer::Scheduled(scheduled) => Ok(Done::Scheduled(scheduled)),
        Answer::Removed(ending) => Ok(Done::Removed(ending)),
        Answer::Hastened(standing) => Ok(Done::Hastened(standing)),
        settled => Settled::of(Ok(settled)).map(Done::Settled),
    }
}
