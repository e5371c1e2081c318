//! What goes on: of all nodes together, right now and by time, up to two days ago.

use std::collections::BTreeMap;

use punctual_center::{Account, Gauges, Grain, Inquiry, Pulse, Series};
use punctual_core::store::ShardId;
use punctual_core::{Chosen, Command, Name, QueueView, Subject, Timestamp, Told, TopicView, Total};

use super::Handle;
use super::work::together;
use crate::error::Error;

impl Handle {
    /// How the nodes are doing, with what has happened to these topics, and which nodes are there and said nothing.
    pub async fn pulse(&self, topics: Vec<Name>) -> (Pulse, Vec<Name>) {
        let inquiry = Inquiry::Pulse { topics };
        let (accounts, silent) = self.shared.inquire(inquiry, None).await;
        let pulse = |account| if let Account::Pulse(pulse) = account { Some(*pulse) } else { None };
        let sum = together(accounts, pulse, Pulse::add);
        (sum.expect("this node says its part"), silent)
    }

    /// What all nodes have counted in so many slots from the one of a time on: of a topic or queue, or of all together. Of
    /// those that have no series nothing is known.
    pub async fn series(
        &self,
        of: Option<Subject>,
        grain: Grain,
        from: Timestamp,
        slots: usize,
    ) -> (Series, Vec<Name>) {
        let (accounts, silent) = self.shared.inquire(Inquiry::Series { of, grain, from, slots }, None).await;
        let series = |account| if let Account::Series(series) = account { Some(series) } else { None };
        (together(accounts, series, Series::add).unwrap_or_default(), silent)
    }

    /// Looks how much there is in the shards of this node, for the series. Whoever runs the node does so every ten seconds;
    /// nothing is looked at if nothing happened since. A shard that moves meanwhile may be missed, or counted twice, once.
    pub async fn take_stock(&self) -> Result<(), Error> {
        let shared = &self.shared;
        let Some([topics, queues]) = shared.meter.wants_gauges(self.now()) else { return Ok(()) };
        let here: Vec<ShardId> = shared.shards().filter(|(_, inbox)| inbox.is_here()).map(|(shard, _)| shard).collect();
        let (mut all, mut some) = (Gauges::default(), BTreeMap::<Subject, Gauges>::new());
        for total in self.look_at::<Total>(&here, Command::Total).await? {
            let Total { waiting, ready, leased, dead, .. } = total;
            all.add(&Gauges { waiting, ready, leased, dead });
        }
        let mut note = |subject, gauges: Gauges| some.entry(subject).or_default().add(&gauges);
        let views: Vec<Vec<TopicView>> = self.look_at(&here, Command::Topics(Chosen::Named(topics))).await?;
        for counts in views.into_iter().flatten().map(|view| view.counts) {
            let (waiting, leased, dead) = (counts.waiting, counts.leased, counts.dead);
            note(Subject::Topic(counts.name), Gauges { waiting, ready: 0, leased, dead });
        }
        let views: Vec<Vec<QueueView>> = self.look_at(&here, Command::Queues(Chosen::Named(queues))).await?;
        for counts in views.into_iter().flatten().map(|view| view.counts) {
            let (ready, leased, dead) = (counts.ready, counts.leased, counts.dead);
            note(Subject::Queue(counts.name), Gauges { waiting: 0, ready, leased, dead });
        }
        shared.meter.gauge(&all, &some, self.now());
        Ok(())
    }

    async fn look_at<T: Told>(&self, shards: &[ShardId], command: Command) -> Result<Vec<T>, Error> {
        let commands = shards.iter().map(|shard| (*shard, command.clone())).collect();
        let outcomes = self.ask_several(commands).await.into_iter();
        outcomes.map(|outcome| outcome.map(T::by).map_err(Error::of_a_look)).collect()
    }
}
