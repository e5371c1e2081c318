//! Being there: a mover enters the roll of a store as a node of its own, and claims shards as every node does. So a
//! server that is started meanwhile is told who has them, and a mover finds out whether a server is running.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use punctual_core::Millis;
use punctual_core::store::{Beat, Claim, Fence, Incarnation, Present, Roll, ShardId, StoreError, Tenure};

use crate::Side;
use crate::error::MoveError;
use crate::marks::{self, Mark, Noted, Unread};
use crate::patience::Patience;
use crate::reading::Held;

/// For how long a beat counts. Who was killed is waited for so long.
const LEASE: Duration = Duration::from_secs(3);
/// How soon it is looked again whether somebody has gone.
const LOOK: Duration = Duration::from_millis(50);
/// How long at most it is waited for the end of a lease that nobody renews.
const LONGEST: Duration = Duration::from_secs(20);
/// How often shards are claimed again that somebody claims at the same time.
const TRIES: usize = 5;

/// A mover on the roll of one of the stores.
pub(crate) struct Guest<'a> {
    pub side: Side<'a>,
    pub who: Incarnation,
    pub patience: Patience,
}

impl<'a> Guest<'a> {
    /// Enters the roll, when nobody else is there. One that was killed is there until its lease is over; one that renews its lease is running.
    pub fn enter(side: Side<'a>, who: Incarnation, patience: Patience) -> Result<(Guest<'a>, Roll), MoveError> {
        let guest = Guest { side, who, patience };
        let (begun, mut seen): (Instant, Option<Present>) = (Instant::now(), None);
        loop {
            let roll = guest.beat().map_err(MoveError::of(side.name))?;
            let Some(other) = guest.other(&roll) else { return Ok((guest, roll)) };
            // The number was drawn by this very mover.
            if other.who.number == guest.who.number {
                return Err(MoveError::SameStore(side.name.to_owned()));
            }
            let is_running = seen.as_ref().is_some_and(|seen| seen.who == other.who && seen.until < other.until);
            if is_running || begun.elapsed() > LONGEST {
                return Err(guest.busy(other, &roll));
            }
            seen = seen.filter(|seen| seen.who == other.who).or_else(|| Some(other.clone()));
            thread::sleep(LOOK);
        }
    }

    /// Somebody else whose word counts.
    fn other<'r>(&self, roll: &'r Roll) -> Option<&'r Present> {
        roll.there().find(|present| present.who != self.who)
    }

    fn busy(&self, other: &Present, roll: &Roll) -> MoveError {
        let others = roll.there().filter(|present| present.who != self.who).map(|present| present.who.node.as_str());
        MoveError::Busy {
            place: self.side.name.to_owned(),
            node: others.collect::<Vec<_>>().join(", "),
            left: other.until.since(roll.now()),
        }
    }

    /// Claims shards, in their order.
    pub fn claim(&self, shards: &[ShardId]) -> Result<Vec<Tenure>, MoveError> {
        for _ in 0..TRIES {
            let roll = self.beat().map_err(MoveError::of(self.side.name))?;
            if let Some(other) = self.other(&roll) {
                return Err(self.busy(other, &roll));
            }
            let wanted: Vec<(ShardId, Fence)> = shards.iter().map(|shard| (*shard, roll.fence(*shard))).collect();
            let claims = match self.side.store.claim(&self.who, &wanted) {
                Ok(claims) => claims,
                // It may have been granted: the next beat tells.
                Err(StoreError::Unavailable(_)) => continue,
                Err(error) => return Err(MoveError::of(self.side.name)(error)),
            };
            let granted: Vec<Tenure> = claims.into_iter().filter_map(tenure).collect();
            if granted.len() == shards.len() {
                return Ok(granted);
            }
        }
        Err(MoveError::Overtaken { place: self.side.name.to_owned() })
    }

    /// A shard that was claimed.
    pub fn held(&self, shard: ShardId, tenure: Tenure) -> Held<'a> {
        Held { store: self.side.store, shard, tenure: Some(tenure) }
    }

    /// Says that the mover is there.
    pub fn beat(&self) -> Result<Roll, StoreError> {
        self.patience.retry(|| self.side.store.beat(&self.word(LEASE.into())))
    }

    /// Says that the mover is gone. If it is not heard, the lease ends by itself.
    pub fn leave(&self) {
        _ = self.side.store.beat(&self.word(Millis::ZERO));
    }

    fn word(&self, lease: Millis) -> Beat {
        Beat { who: self.who.clone(), address: String::new(), lease }
    }

    /// Reads what the store notes of a move.
    pub fn read_mark(&self) -> Result<Noted, MoveError> {
        self.patiently(|| marks::read(self.side.store))
    }

    /// Notes something of a move, if nobody has noted anything else since.
    pub fn write_mark(&self, seen: &Noted, mark: Option<&Mark>) -> Result<Noted, MoveError> {
        let written = self.patiently(|| marks::write(self.side.store, seen, mark))?;
        written.ok_or_else(|| MoveError::Overtaken { place: self.side.name.to_owned() })
    }

    fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, Unread>) -> Result<T, MoveError> {
        let place = self.side.name;
        let mut waiting = self.patience.begin();
        loop {
            match attempt() {
                Ok(answer) => return Ok(answer),
                Err(Unread::Store(error)) => waiting.bear(error).map_err(MoveError::of(place))?,
                Err(Unread::Unreadable(why)) => return Err(MoveError::Unreadable { place: place.to_owned(), why }),
            }
        }
    }

    /// Beats in a thread until the end that comes back is dropped.
    pub fn stay<'s>(&'s self, scope: &'s Scope<'s, '_>) -> Sender<()> {
        let (end, ended) = channel();
        scope.spawn(move || self.beat_until(&ended));
        end
    }

    fn beat_until(&self, ended: &Receiver<()>) {
        while ended.recv_timeout(LEASE / 6) == Err(RecvTimeoutError::Timeout) {
            // Whether the shards are still ours is said by the fences; this is only about being seen.
            _ = self.side.store.beat(&self.word(LEASE.into()));
        }
    }
}

fn tenure(claim: Claim) -> Option<Tenure> {
    match claim {
        Claim::Granted(tenure) => Some(tenure),
        Claim::Outrun(_) => None,
    }
}
