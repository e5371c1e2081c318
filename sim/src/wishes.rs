//! What somebody who wants other settings makes of those that there are, when an administrator asks for it.

use punctual_center::Error;
use punctual_center::changes::Next;
use punctual_core::shard::settings_of;
use punctual_core::store::{Look, ShardId, Tally, TallyKind};
use punctual_core::{Adjustment, Clock, Name, QueueSettings, Refused, Subject, TopicSettings};

use crate::Sabotage;
use crate::demand::Wish;
use crate::node::{Cause, Doing};
use crate::world::World;

/// What is to be changed, what is done if a shard refuses it, and what it amends; or what whoever wants it is told instead.
type Decided = Result<(Adjustment, Option<Adjustment>, Option<Adjustment>), Error>;

impl World {
    /// Decides what is to be changed, by what there is.
    pub(crate) fn decide(&mut self, index: usize, doing: &mut Doing) -> Result<Next, Error> {
        let Cause::Change { wish, number, amends, .. } = &mut doing.cause else {
            unreachable!("only who wants something decides")
        };
        // Who has decided once and does not look again undoes what others did meanwhile.
        if self.sabotage != Some(Sabotage::DecidesOnce) || amends.is_none() {
            *amends = None;
        }
        let (mut adjustment, otherwise, as_it_was) = self.wanted(index, wish)?;
        if let Some(old) = amends.as_ref() {
            adjustment = wish.amended(old).unwrap_or(adjustment);
        }
        *amends = amends.take().or(as_it_was);
        let micros = self.number_for(index);
        let step = doing.undertaking.decided(adjustment, otherwise, micros);
        if let Next::Write(_, next) = &step {
            *number = next.under_way().map(|change| change.number);
        }
        Ok(step)
    }

    /// The time at a node, in microseconds, by which changes are numbered: nodes that share a store go by its clock, whatever
    /// else runs by their own here.
    pub(crate) fn number_for(&mut self, index: usize) -> u64 {
        if self.sabotage == Some(Sabotage::CountedChanges) {
            return 0;
        }
        let known = self.nodes[index].by_store.as_ref().and_then(|by_store| by_store.now(self.moment));
        known.unwrap_or_else(|| self.truth.now()).as_millis() * 1_000 + self.rng.below(1_000)
    }

    /// What makes a wish come true, what is done if a shard refuses it, and what it amends.
    fn wanted(&self, index: usize, wish: &Wish) -> Decided {
        let subject = wish.subject();
        let as_it_is = |present: Option<Adjustment>| present.ok_or_else(|| Error::from(missing(&subject)));
        match wish {
            Wish::Put(adjustment) => Ok((adjustment.clone(), None, None)),
            Wish::PauseTopic { .. } | Wish::PauseQueue { .. } => {
                let present = as_it_is(self.present(index, &subject)?)?;
                let amended = wish.amended(&present).expect("it amends what it is about");
                Ok((amended, None, Some(present)))
            }
            Wish::Delete { force: true, .. } => Ok((Adjustment::Delete { subject, force: true }, None, None)),
            Wish::Delete { .. } => {
                let present = as_it_is(self.present(index, &subject)?)?;
                let rows = self.rows_of(index, &subject)?;
                if rows > 0 {
                    return Err(Refused::NotEmpty { name: subject.name().clone(), rows }.into());
                }
                Ok((Adjustment::Delete { subject, force: false }, Some(present), None))
            }
        }
    }

    /// The settings of a topic or queue, as the first shard has them that has any.
    fn present(&self, index: usize, subject: &Subject) -> Result<Option<Adjustment>, Error> {
        for shard in (0..self.profile.shards).map(ShardId) {
            let stored = settings_of(&self.reached(index), shard);
            let mut stored = stored.map_err(|error| Error::nothing_done(error.to_string()))?;
            let found = match subject {
                Subject::Topic(name) => stored.topics.remove(name).map(|settings| put_topic(name, settings)),
                Subject::Queue(name) => stored.queues.remove(name).map(|settings| put_queue(name, settings)),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// How much a topic or queue holds that keeps it from being deleted. Each shard looks for itself too.
    fn rows_of(&self, index: usize, subject: &Subject) -> Result<u64, Error> {
        let kinds = match subject {
            Subject::Topic(_) => vec![TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead],
            Subject::Queue(_) => vec![TallyKind::QueueLeased, TallyKind::QueueDead],
        };
        let meant: Vec<Tally> = kinds.into_iter().map(|kind| Tally::named(kind, subject.name())).collect();
        let mut rows = 0;
        for shard in (0..self.profile.shards).map(ShardId) {
            let tallies = self.reached(index).tallies(shard);
            let tallies = tallies.map_err(|error| Error::nothing_done(error.to_string()))?;
            rows +=
                tallies.iter().filter(|(tally, _)| meant.contains(tally)).map(|(_, count)| *count as u64).sum::<u64>();
        }
        Ok(rows)
    }
}

fn put_topic(name: &Name, settings: TopicSettings) -> Adjustment {
    Adjustment::PutTopic { name: name.clone(), settings: Box::new(settings) }
}

fn put_queue(name: &Name, settings: QueueSettings) -> Adjustment {
    Adjustment::PutQueue { name: name.clone(), settings: Box::new(settings) }
}

fn missing(subject: &Subject) -> Refused {
    match subject {
        Subject::Topic(name) => Refused::NoSuchTopic(name.clone()),
        Subject::Queue(name) => Refused::NoSuchQueue(name.clone()),
    }
}
