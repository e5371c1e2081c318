//! Single rows by their numbers, for doors whose protocol names work by a number.

use std::collections::BTreeMap;

use punctual_core::store::{Bodies, ShardId, Store};
use punctual_core::view::{self, RowView};
use punctual_core::{Command, Delivery, Ending, First, Lease, Name, Refused, Ruling, Selected, Standing, Take};

use super::Handle;
use crate::error::Error;
use crate::numbers::Number;
use crate::outgoing::Hold;

/// How often a row is looked at anew that came to stand elsewhere before it was hastened or restored.
const TRIES: usize = 3;

impl Handle {
    /// Hands one row to a consumer, whatever it waits for.
    pub async fn take(&self, take: Take) -> Result<Delivery, Error> {
        let mut taken: Vec<Delivery> = self.ask(Command::Take(Box::new(take))).await?;
        Ok(taken.pop().expect("a row that was taken is handed over"))
    }

    /// Makes a dead letter, or what waits for its time, available now; says where it stands then. What is available
    /// already stays as it is.
    pub async fn hasten(&self, selected: Selected) -> Result<Ruling<Standing>, Error> {
        let (shard, key) = (self.shard_of(&selected.topic, &selected.id), selected.key());
        for _ in 0..TRIES {
            let (now, of) = (self.now(), key.clone());
            let Some(found) = self.counted(self.read(move |store| view::row(store, shard, &of, now)).await)? else {
                return Ok(Ruling::Unknown);
            };
            match found.task.delivery.standing {
                Standing::Scheduled { .. } | Standing::Dead { .. } => {}
                standing @ Standing::Ready { .. } => return Ok(Ruling::Done(standing)),
                standing => return Ok(Ruling::TooLate(standing)),
            }
            // Meanwhile it may have come to stand elsewhere, and then nothing is done.
            match self.ask(Command::Hasten { row: found.row }).await {
                Err(Error::Refused(Refused::NothingThere)) => {}
                hastened => return hastened.map(Ruling::Done),
            }
        }
        self.counted(Err(Error::Overloaded))
    }

    /// Takes back the cancellation of a task: it waits for its old due time again. What waits already stays as it is.
    pub async fn restore(&self, topic: &Name, id: &Name) -> Result<Ruling<Standing>, Error> {
        for _ in 0..TRIES {
            let Some(task) = self.get(topic, id).await? else { return Ok(Ruling::Unknown) };
            match task.delivery.standing {
                Standing::Finished { ending: Ending::Cancelled, .. } => {}
                standing @ (Standing::Scheduled { .. } | Standing::Ready { .. }) => return Ok(Ruling::Done(standing)),
                standing => return Ok(Ruling::TooLate(standing)),
            }
            match self.ask(Command::Restore { topic: topic.clone(), id: id.clone() }).await {
                Err(Error::Refused(Refused::NothingThere)) => {}
                restored => return restored.map(Ruling::Done),
            }
        }
        self.counted(Err(Error::Overloaded))
    }

    /// The number of a row of a task, told from those of all shards.
    pub fn number(&self, topic: &Name, id: &Name, seq: u64) -> Number {
        self.number_in(self.shard_of(topic, id), seq)
    }

    /// Looks at the rows with these numbers, in their order.
    pub async fn numbered(&self, numbers: Vec<Number>, bodies: Bodies) -> Result<Vec<Option<RowView>>, Error> {
        let (sought, now) = (self.places(&numbers), self.now());
        let read = self.read(move |store| {
            let mut found: Vec<Option<RowView>> = vec![None; numbers.len()];
            for (shard, wanted) in sought {
                let (indexes, seqs): (Vec<usize>, Vec<u64>) = wanted.into_iter().unzip();
                for (index, view) in indexes.into_iter().zip(view::numbered(store, shard, &seqs, bodies, now)?) {
                    // Of several shards that may have it, one has.
                    found[index] = found[index].take().or(view);
                }
            }
            Ok(found)
        });
        self.counted(read.await)
    }

    fn number_in(&self, shard: ShardId, seq: u64) -> Number {
        let config = &self.shared.config;
        Number(config.shard.eras.number(shard, seq, config.shards))
    }

    /// In which shards rows with these numbers may be: each by its index here and its number there.
    fn places(&self, numbers: &[Number]) -> BTreeMap<ShardId, Vec<(usize, u64)>> {
        let (config, mut sought) = (&self.shared.config, BTreeMap::<_, Vec<_>>::new());
        for (index, number) in numbers.iter().enumerate() {
            let (places, seq) = config.shard.eras.places(number.0, config.shards);
            for shard in places.map(ShardId) {
                sought.entry(shard).or_default().push((index, seq));
            }
        }
        sought
    }

    /// Looks at the row with this number and its body, for who keeps them in memory for as long as somebody else takes to
    /// read them. A long one is refused as overload if there is no room for it among all answers under way.
    pub async fn numbered_held(&self, number: Number) -> Result<Option<(RowView, Hold)>, Error> {
        let (config, now) = (&self.shared.config, self.now());
        let (places, seq) = config.shard.eras.places(number.0, config.shards);
        let look = move |store: &dyn Store| {
            for shard in places.map(ShardId) {
                let found = view::numbered(store, shard, &[seq], Bodies::With, now)?.pop().flatten();
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        };
        self.counted(self.read_held(look, |row| row.task.written()).await)
    }

    /// The number of the delivery that a queue hands out next, if one waits for a consumer there.
    pub async fn first(&self, queue: &Name) -> Result<Option<Number>, Error> {
        let firsts: Vec<Option<First>> = self.counted(self.look_all(Command::First { queue: queue.clone() }).await)?;
        let firsts = (0..).map(ShardId).zip(firsts).filter_map(|(shard, first)| Some((shard, first?)));
        let foremost = firsts.min_by_key(|(_, first)| (first.priority, first.position));
        Ok(foremost.map(|(shard, first)| self.number_in(shard, first.position.seq)))
    }

    /// Puts deliveries back whose consumer is gone, and waits until others can have them. It is done also while the node
    /// stops; leases that have ended are passed over. Gives those back that could not be reached, to be tried again.
    pub async fn abandon(&self, leases: Vec<Lease>) -> Vec<Lease> {
        let releases = leases.iter().map(|lease| self.shared.abandonment(lease.clone())).collect();
        let outcomes = self.ask_several(releases).await;
        let mut out_of_reach = Vec::new();
        for (lease, outcome) in leases.into_iter().zip(outcomes) {
            match outcome {
                Ok(_) | Err(Error::Refused(_)) => {}
                Err(Error::Stopping) => self.shared.abandon([lease]),
                Err(_) => out_of_reach.push(lease),
            }
        }
        out_of_reach
    }
}
