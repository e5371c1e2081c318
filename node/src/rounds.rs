//! The latest rounds of events, kept for a while for those who watched and come back.
//!
//! Rounds are numbered as they are told at this node. **Invariant**: the numbers of those that are kept follow each other up to
//! the latest, so whoever names one either gets all that came after it, or is told that some is missing.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use punctual_core::Event;

/// How many rounds are kept.
const ROUNDS: usize = 1_024;
/// How many events they have together.
const EVENTS: usize = 16_384;
/// For how many beats they are kept when nobody watches: about a minute.
const IDLE_BEATS: u32 = 120;

/// How far somebody has watched. As text it can travel through a door and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The life of the node that told it.
    life: u64,
    /// The round.
    round: u64,
    /// The last event of the round that was seen; `None` if all of it was.
    index: Option<u32>,
}

/// A text that is not an [`EventId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the id of an event: send the one that came with the last event, or none")]
pub struct BadEventId;

impl fmt::Display for EventId {
    /// `life-round`, or `life-round-index`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EventId { life, round, index } = self;
        write!(f, "{life:x}-{round}")?;
        index.map_or(Ok(()), |index| write!(f, "-{index}"))
    }
}

impl FromStr for EventId {
    type Err = BadEventId;

    fn from_str(text: &str) -> Result<EventId, BadEventId> {
        let parts: Vec<&str> = text.split('-').collect();
        let (life, round, index) = match parts[..] {
            [life, round] => (life, round, None),
            [life, round, index] => (life, round, Some(index.parse().map_err(|_| BadEventId)?)),
            _ => return Err(BadEventId),
        };
        let life = u64::from_str_radix(life, 16).map_err(|_| BadEventId)?;
        Ok(EventId { life, round: round.parse().map_err(|_| BadEventId)?, index })
    }
}

/// What happened in one round, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRound {
    life: u64,
    number: u64,
    /// So many of its events were seen before.
    seen: usize,
    pub(crate) told: News,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Events(Arc<[Event]>),
    /// So many rounds of another node are not known.
    Missed(u64),
}

impl News {
    fn len(&self) -> usize {
        match self {
            News::Events(events) => events.len(),
            News::Missed(_) => 0,
        }
    }
}

impl EventRound {
    /// Its events in their order, without those that were seen before.
    pub fn events(&self) -> &[Event] {
        match &self.told {
            News::Events(events) => events.get(self.seen..).unwrap_or_default(),
            News::Missed(_) => &[],
        }
    }

    /// How far somebody has watched who has seen this one of its [`events`](EventRound::events).
    pub fn id_of(&self, event: usize) -> EventId {
        EventId { index: u32::try_from(self.seen + event).ok(), ..self.id() }
    }

    /// How far somebody has watched who has seen all of it.
    pub fn id(&self) -> EventId {
        EventId { life: self.life, round: self.number, index: None }
    }

    /// Its number among all rounds that were told.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The latest rounds.
#[derive(Debug)]
pub(crate) struct Rounds {
    life: u64,
    /// The number of the next one.
    next: u64,
    kept: VecDeque<EventRound>,
    /// How many events they have together.
    events: usize,
    /// Whether rounds are kept, and for how many beats nobody has watched.
    is_on: bool,
    idle: u32,
}

impl Rounds {
    /// None yet, in this life of the node.
    pub fn new(life: u64) -> Rounds {
        Rounds { life, next: 1, kept: VecDeque::new(), events: 0, is_on: false, idle: 0 }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Somebody watches from now on. Says how far they have seen.
    pub fn begin(&mut self) -> EventId {
        (self.is_on, self.idle) = (true, 0);
        EventId { life: self.life, round: self.next - 1, index: None }
    }

    /// A beat has passed, and somebody watches or nobody does.
    pub fn beat(&mut self, is_watched: bool) {
        self.idle = if is_watched { 0 } else { self.idle.saturating_add(1) };
        if self.is_on && self.idle > IDLE_BEATS {
            // What happens from now on is not seen: who comes back later has missed a round at least.
            self.next += 1;
            (self.is_on, self.events) = (false, 0);
            self.kept = VecDeque::new();
        }
    }

    /// Takes a round in; `None` if nobody wants to know.
    pub fn add(&mut self, told: News) -> Option<EventRound> {
        if !self.is_on {
            return None;
        }
        let round = EventRound { life: self.life, number: self.next, seen: 0, told };
        self.next += 1;
        self.events += round.told.len();
        self.kept.push_back(round.clone());
        while self.kept.len() > ROUNDS || self.events > EVENTS {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.events -= oldest.told.len();
        }
        Some(round)
    }

    /// What came after this, as far as it is kept, and how many rounds are missing before that.
    pub fn after(&self, id: EventId) -> (u64, Vec<EventRound>) {
        if id.life != self.life || id.round >= self.next {
            // Another node told it, or this one in an earlier life: nobody knows what came then.
            return (1, Vec::new());
        }
        let first = self.next - self.kept.len() as u64;
        // Of a round that was seen in part, the rest is needed, too.
        let wanted = if id.index.is_some() { id.round } else { id.round + 1 };
        let since = self.kept.iter().skip(usize::try_from(wanted.saturating_sub(first)).unwrap_or(usize::MAX));
        let rounds = since.map(|round| match id.index {
            Some(index) if round.number == id.round => EventRound { seen: index as usize + 1, ..round.clone() },
            _ => round.clone(),
        });
        (first.saturating_sub(wanted), rounds.collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use punctual_core::store::Key;
    use punctual_core::{Timestamp, What};

    use super::*;

    fn round(events: usize) -> News {
        let event = Event {
            at: Timestamp::ZERO,
            task: Key::new("t", "1", ""),
            number: 1,
            queue: None,
            key: None,
            by: None,
            what: What::Done,
        };
        News::Events(vec![event; events].into())
    }

    fn numbers(rounds: &[EventRound]) -> Vec<u64> {
        rounds.iter().map(|round| round.number).collect()
    }

    #[test]
    fn an_id_comes_back_from_its_text() {
        let whole = EventId { life: 0xabc, round: 7, index: None };
        let part = EventId { index: Some(3), ..whole };
        assert_eq!((whole.to_string().as_str(), part.to_string().as_str()), ("abc-7", "abc-7-3"));
        assert_eq!((whole.to_string().parse(), part.to_string().parse()), (Ok(whole), Ok(part)));
        for bad in ["", "7", "x-7", "a-", "a-7-", "a-7-x", "a-7-1-1", "a--7"] {
            assert_eq!(bad.parse::<EventId>(), Err(BadEventId), "{bad}");
        }
    }

    #[test]
    fn who_comes_back_gets_the_rest_of_a_round_and_all_after_it() {
        let mut rounds = Rounds::new(5);
        assert_eq!(rounds.add(round(1)), None, "nobody watches");
        let start = rounds.begin();
        let first = rounds.add(round(3)).unwrap();
        let second = rounds.add(News::Missed(2)).unwrap();
        assert_eq!(rounds.after(start), (0, vec![first.clone(), second.clone()]));
        let (missing, rest) = rounds.after(first.id_of(1));
        assert_eq!((missing, numbers(&rest), rest[0].events().len()), (0, vec![1, 2], 1));
        assert_eq!(rest[0].id_of(0), first.id_of(2));
        assert_eq!(rounds.after(first.id()), (0, vec![second.clone()]));
        assert_eq!(rounds.after(second.id()), (0, vec![]));
        for strange in [EventId { life: 4, ..start }, EventId { round: 9, ..start }] {
            assert_eq!(rounds.after(strange), (1, vec![]));
        }
    }

    #[test]
    fn what_is_not_kept_any_more_is_told_as_missing() {
        let mut rounds = Rounds::new(5);
        let start = rounds.begin();
        let first = rounds.add(round(1)).unwrap();
        (0..ROUNDS).for_each(|_| _ = rounds.add(round(1)));
        let (missing, kept) = rounds.after(start);
        assert_eq!((missing, kept.len()), (1, ROUNDS));
        assert_eq!(rounds.after(first.id()).0, 0, "all of it was seen");
        assert_eq!(rounds.after(first.id_of(0)).0, 1, "nobody knows whether there was more of it");
        rounds.add(round(EVENTS + 1));
        assert_eq!((rounds.kept.len(), rounds.events), (0, 0), "a round that is too long is not kept");
        assert_eq!(rounds.after(start), (ROUNDS as u64 + 2, vec![]));
        for events in [EVENTS / 2, EVENTS / 2, EVENTS / 4] {
            rounds.add(round(events));
        }
        assert_eq!((rounds.kept.len(), rounds.events), (2, EVENTS / 2 + EVENTS / 4));
    }

    #[test]
    fn rounds_are_kept_for_a_while_when_nobody_watches() {
        let mut rounds = Rounds::new(5);
        let start = rounds.begin();
        (0..IDLE_BEATS).for_each(|_| rounds.beat(false));
        rounds.add(round(1)).unwrap();
        assert_eq!(rounds.after(start).0, 0);
        rounds.beat(true);
        (0..IDLE_BEATS).for_each(|_| rounds.beat(false));
        let last = rounds.add(round(1)).unwrap();
        rounds.beat(false);
        assert!(!rounds.is_on() && rounds.kept.is_empty());
        assert_eq!(rounds.add(round(1)), None);
        rounds.begin();
        assert_eq!(rounds.after(last.id()), (1, vec![]), "what happened in between is missing");
    }
}
