//! Single rows by their numbers, for doors whose protocol names work by a number.

use punctual_core::store::{Bodies, ShardId, Store};
use punctual_core::view::{self, RowView};
use punctual_core::{Command, Delivery, First, Lease, Name, Take};

use super::Handle;
use crate::caller::Outcome;
use crate::error::Error;
use crate::numbers::Number;
use crate::outgoing::Hold;

impl Handle {
    /// Hands one row to a consumer, whatever it waits for.
    pub async fn take(&self, take: Take) -> Result<Delivery, Error> {
        let mut taken: Vec<Delivery> = self.ask(Command::Take(Box::new(take))).await?;
        Ok(taken.pop().expect("a row that was taken is handed over"))
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
        let firsts: Vec<Option<First>> = self.counted(self.look_all(Command::First { queue: queue.clone() }).await)?;
        let firsts = (0..).map(ShardId).zip(firsts).filter_map(|(shard, first)| Some((shard, first?)));
        let foremost = firsts.min_by_key(|(_, first)| (first.priority, first.position));
        Ok(foremost.map(|(shard, first)| Number::of(shard, first.position.seq, shards)))
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
