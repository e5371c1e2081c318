//! Watching: events go to whoever wants to see them, after they are durable and after the answers.
//!
//! Who watches at one node sees what happens on all of them: the others tell it over their links.
//!
//! **Invariant**: watching never holds anything up. A watcher that does not keep up loses the oldest
//! rounds and hears how many. The latest rounds are kept for those who come back (`rounds.rs`), and soon not any more when nobody watches.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::PoisonError;

use punctual_center::{LinkId, Message};
use punctual_core::Event;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

use crate::rounds::{EventId, EventRound, News, Rounds};
use crate::shared::Shared;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, RwLock, lock};

/// How many rounds are kept for a watcher that is slow. A round is what the node makes durable at
/// once: a few events while little happens, some thousands under load.
const ROUNDS: usize = 1_024;

/// Sees what happens on all nodes, from when it was made; on others a moment later. At most 1,024 rounds are kept for it: who takes longer
/// than that loses the oldest ones, and is told.
pub struct Watch {
    start: EventId,
    /// What was kept for it.
    before: VecDeque<Watched>,
    rounds: Receiver<EventRound>,
}

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// What became durable in one round, in the order in which it happened in each shard.
    Events(EventRound),
    /// So many rounds were not seen: the watcher was too slow or away for too long, or the link to another node broke or had no room.
    Missed(u64),
}

impl From<EventRound> for Watched {
    fn from(round: EventRound) -> Watched {
        match round.told {
            News::Events(_) => Watched::Events(round),
            News::Missed(rounds) => Watched::Missed(rounds),
        }
    }
}

impl Watch {
    /// How far it had seen when it began, for who comes back before anything has happened.
    pub fn start(&self) -> EventId {
        self.start
    }

    /// Waits for the next thing to see; `None` when the node has stopped and all was seen.
    ///
    /// Dropping the future loses nothing: the next call sees it.
    pub async fn next(&mut self) -> Option<Watched> {
        if let Some(watched) = self.before.pop_front() {
            return Some(watched);
        }
        match self.rounds.recv().await {
            Ok(round) => Some(round.into()),
            Err(RecvError::Lagged(rounds)) => Some(Watched::Missed(rounds)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// All who watch.
pub(crate) struct Watchers {
    /// `None` once the node has stopped: handles outlive it, and watchers must not wait for ever.
    rounds: RwLock<Option<Sender<EventRound>>>,
    /// What was told. Held while a round is told and while a watch begins, so that neither misses the other.
    kept: Mutex<Rounds>,
    /// The links of nodes where somebody watches, and how many rounds these have missed since they were told something.
    afar: Mutex<BTreeMap<LinkId, u64>>,
    /// Whether other nodes were asked to tell what happens there.
    is_told: AtomicBool,
}

impl Watchers {
    /// None yet, in this life of the node.
    pub fn new(life: u64) -> Watchers {
        let rounds = RwLock::new(Some(broadcast::Sender::new(ROUNDS)));
        let kept = Mutex::new(Rounds::new(life));
        Watchers { rounds, kept, afar: Mutex::default(), is_told: AtomicBool::new(false) }
    }

    fn watch(&self, after: Option<EventId>) -> Watch {
        let mut kept = lock(&self.kept);
        let rounds = self.rounds.read().unwrap_or_else(PoisonError::into_inner);
        let rounds = match &*rounds {
            Some(rounds) => rounds.subscribe(),
            // Its sender goes at once, and so there is nothing to see.
            None => broadcast::channel(1).1,
        };
        let (missed, kept_rounds) = after.map_or((0, Vec::new()), |after| kept.after(after));
        let missed = (missed > 0).then_some(Watched::Missed(missed));
        let before = missed.into_iter().chain(kept_rounds.into_iter().map(Watched::from)).collect();
        Watch { start: kept.begin(), before, rounds }
    }

    /// Whether somebody watches at this node.
    fn is_watched(&self) -> bool {
        let rounds = self.rounds.read().unwrap_or_else(PoisonError::into_inner);
        rounds.as_ref().is_some_and(|rounds| rounds.receiver_count() > 0)
    }

    /// Whether somebody watches at this node, or may come back.
    fn is_kept(&self) -> bool {
        lock(&self.kept).is_on()
    }

    /// Tells those who watch at this node.
    fn tell_here(&self, told: News) {
        let mut kept = lock(&self.kept);
        let Some(round) = kept.add(told) else { return };
        let rounds = self.rounds.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(rounds) = &*rounds {
            // Who watched may have gone meanwhile.
            _ = rounds.send(round);
        }
    }

    /// Whether another node wants to be told on its link.
    fn tell_afar(&self, on: LinkId, is_on: bool) {
        let mut afar = lock(&self.afar);
        if is_on {
            afar.entry(on).or_default();
        } else {
            afar.remove(&on);
        }
    }

    /// Nothing more comes.
    pub fn close(&self) {
        *self.rounds.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Shared {
    /// Watches what happens on all nodes, from when somebody had watched before if that is said.
    pub fn watch(&self, after: Option<EventId>) -> Watch {
        let watch = self.watchers.watch(after);
        self.mind_watchers();
        watch
    }

    /// A beat has passed.
    pub fn watch_for_a_beat(&self) {
        let is_watched = self.watchers.is_watched();
        lock(&self.watchers.kept).beat(is_watched);
        self.mind_watchers();
    }

    /// Asks other nodes to tell what happens there while somebody watches here, and not for much longer.
    fn mind_watchers(&self) {
        let is_kept = self.watchers.is_kept();
        if self.watchers.is_told.swap(is_kept, Ordering::SeqCst) != is_kept {
            self.peers.say_to_all(&Message::Watch { is_on: is_kept });
        }
    }

    /// There is a link to another node.
    pub fn watch_over(&self, on: LinkId) {
        if self.watchers.is_told.load(Ordering::SeqCst) {
            _ = self.peers.say(on, Message::Watch { is_on: true });
        }
    }

    /// The link to another node is gone, and nobody knows what happened there.
    pub fn watch_lost(&self) {
        if self.watchers.is_told.load(Ordering::SeqCst) {
            self.watchers.tell_here(News::Missed(1));
        }
    }

    /// What another node tells of what happened there.
    pub fn saw(&self, message: Message) {
        match message {
            Message::Happened(events) => self.watchers.tell_here(News::Events(events.into())),
            Message::Missed(rounds) => self.watchers.tell_here(News::Missed(rounds)),
            _ => {}
        }
    }

    /// Another node wants to be told what happens here, or does not any more.
    pub fn watch_for(&self, on: LinkId, is_on: bool) {
        self.watchers.tell_afar(on, is_on);
    }

    /// Tells of a round what happened in each of its steps.
    pub fn tell_watchers(&self, steps: impl Iterator<Item = Vec<Event>>) {
        let mut afar = lock(&self.watchers.afar);
        if afar.is_empty() && !self.watchers.is_kept() {
            return;
        }
        let events: Vec<Event> = steps.flatten().collect();
        if events.is_empty() {
            return;
        }
        for (on, missed) in &mut *afar {
            // Requests of the other node are answered on the same link, and come first.
            if self.peers.is_congested(*on) {
                *missed += 1;
                continue;
            }
            if *missed > 0 {
                self.peers.reply(*on, Message::Missed(std::mem::take(missed)));
            }
            self.peers.reply(*on, Message::Happened(events.clone()));
        }
        drop(afar);
        self.watchers.tell_here(News::Events(events.into()));
    }
}
