//! Which tubes connections use, watch and wait for, and what the door remembers of tubes.
//!
//! Jobs are not in here: a tube is a topic and its queue, and what they hold is the node's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_core::{Name, Timestamp};

/// A tube that a connection has to do with.
#[derive(Debug)]
pub(crate) struct Tube {
    pub name: Name,
    /// How many connections put into it, watch it, and wait for it.
    pub using: AtomicU64,
    pub watching: AtomicU64,
    pub waiting: AtomicU64,
    is_known: AtomicBool,
}

/// What a `pause-tube` has said: for how long, and until when that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub time: Duration,
    pub until: Timestamp,
}

#[derive(Default)]
pub(crate) struct Tubes {
    roster: Mutex<Roster>,
}

#[derive(Default)]
struct Roster {
    /// All tubes that a connection uses or watches.
    tubes: HashMap<Name, Arc<Tube>>,
    /// Of tubes that nobody may have to do with any more, too.
    memories: HashMap<Name, Memory>,
}

/// What is worth remembering of a tube. Forgetting it costs a look at the node, and counts from zero.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// The node has its queue.
    is_known: bool,
    /// How often it was told to pause.
    pub pauses: u64,
    /// What it was told last.
    pub pause: Option<Pause>,
}

/// How many tubes are remembered. Then all are forgotten: whoever makes up names does not make the door grow.
const MEMORIES: usize = 10_000;

/// How a connection has to do with a tube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    Uses,
    Watches,
}

/// A connection's tie to a tube, until it is dropped.
pub(crate) struct Tied<'a> {
    pub tube: Arc<Tube>,
    tie: Tie,
    tubes: &'a Tubes,
}

impl Tubes {
    pub fn tie(&self, name: &Name, tie: Tie) -> Tied<'_> {
        let mut roster = self.lock();
        let Roster { tubes, memories } = &mut *roster;
        let is_known = || memories.get(name).is_some_and(|memory| memory.is_known);
        let tube = tubes.entry(name.clone()).or_insert_with(|| Arc::new(Tube::new(name.clone(), is_known())));
        let tube = Arc::clone(tube);
        tube.count(tie).fetch_add(1, Ordering::Relaxed);
        Tied { tube, tie, tubes: self }
    }

    /// The tube, if a connection has to do with it.
    pub fn get(&self, name: &Name) -> Option<Arc<Tube>> {
        self.lock().tubes.get(name).cloned()
    }

    /// The names of all tubes that connections have to do with.
    pub fn names(&self) -> Vec<Name> {
        self.lock().tubes.keys().cloned().collect()
    }

    /// The node has the queue of this tube.
    pub fn become_known(&self, tube: &Tube) {
        tube.is_known.store(true, Ordering::Relaxed);
        self.lock().remember(&tube.name).is_known = true;
    }

    /// A tube was told to pause, or not to pause any more.
    pub fn paused(&self, name: &Name, pause: Option<Pause>) {
        let mut roster = self.lock();
        let memory = roster.remember(name);
        memory.pauses += 1;
        memory.pause = pause;
    }

    /// What is remembered of a tube.
    pub fn memory(&self, name: &Name) -> Memory {
        self.lock().memories.get(name).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Roster {
    fn remember(&mut self, name: &Name) -> &mut Memory {
        if self.memories.len() >= MEMORIES && !self.memories.contains_key(name) {
            self.memories.clear();
        }
        self.memories.entry(name.clone()).or_default()
    }
}

impl Tube {
    fn new(name: Name, is_known: bool) -> Tube {
        Tube {
            name,
            using: AtomicU64::new(0),
            watching: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            is_known: AtomicBool::new(is_known),
        }
    }

    /// Whether the node is known to have its queue.
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    fn count(&self, tie: Tie) -> &AtomicU64 {
        match tie {
            Tie::Uses => &self.using,
            Tie::Watches => &self.watching,
        }
    }
}

impl Drop for Tied<'_> {
    fn drop(&mut self) {
        let mut roster = self.tubes.lock();
        self.tube.count(self.tie).fetch_sub(1, Ordering::Relaxed);
        let is_free = [&self.tube.using, &self.tube.watching].iter().all(|count| count.load(Ordering::Relaxed) == 0);
        if is_free {
            roster.tubes.remove(&self.tube.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tube_is_there_as_long_as_somebody_has_to_do_with_it() {
        let (tubes, name) = (Tubes::default(), Name::new("emails").expect("a name"));
        let uses = tubes.tie(&name, Tie::Uses);
        let watches = tubes.tie(&name, Tie::Watches);
        let tube = tubes.get(&name).expect("it is used");
        assert_eq!((tube.using.load(Ordering::Relaxed), tube.watching.load(Ordering::Relaxed)), (1, 1));
        drop(uses);
        assert_eq!(tubes.names(), std::slice::from_ref(&name));
        drop(watches);
        assert!(tubes.names().is_empty());
    }

    #[test]
    fn what_is_known_of_a_tube_outlives_its_connections_and_made_up_names_do_not_pile_up() {
        let (tubes, name) = (Tubes::default(), Name::new("emails").expect("a name"));
        let uses = tubes.tie(&name, Tie::Uses);
        assert!(!uses.tube.is_known());
        tubes.become_known(&uses.tube);
        drop(uses);
        assert!(tubes.tie(&name, Tie::Uses).tube.is_known());
        for number in 0..2 * MEMORIES {
            tubes.paused(&Name::new(number.to_string()).expect("a name"), None);
        }
        assert!(tubes.lock().memories.len() <= MEMORIES);
    }
}
