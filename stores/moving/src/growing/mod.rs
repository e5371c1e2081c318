//! Dividing the shards of a store into more of them, while no server works on it.
//!
//! ```text
//! enter the roll ─► note that it grows ─► claim all shards ─► close the old ones ─► note where numbers go on
//!   ─► divide the old ones, the last one first ─► note that it has grown
//! ```
//! Shard `p` becomes those from `m·p` on, which are empty when it is its turn: none of them is an old one but those after it, and
//! itself if it is the first. A shard is closed by its own note before the first row moves: whoever wakes up and claims it
//! cannot open it, and no shard that was emptied is taken for a new one. How far it is stands in the entry of the cluster ([`Division`]), and whoever is killed leaves some rows of one
//! shard in two places: the next one finds them by their positions.

mod error;
mod outlook;
mod splitting;

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::Name;
use punctual_core::division::{Division, Era, Growth, Moving, division_of};
use punctual_core::shard::Note;
use punctual_core::store::{Incarnation, ShardId, Store, StoreError, Tenure};

use crate::Side;
use crate::copying::expected;
use crate::error::MoveError;
use crate::marks::{self, Barred};
use crate::patience::Patience;
use crate::presence::Guest;
use crate::progress::{Counting, Progress};
use crate::writing::Writing;
use splitting::Splitting;

pub use error::GrowError;
pub use outlook::Outlook;

/// The name under which it is on the roll.
const NAME: &str = "growing";

/// More shards than this are of no use: each has a thread in every server.
pub const MOST_SHARDS: u16 = 4_096;

/// A store that is to have more shards.
#[derive(Clone, Copy)]
pub struct Grow<'a> {
    /// The store.
    pub side: Side<'a>,
    /// How many it is to have.
    pub to: u16,
    /// How long the store may be away before this ends; the same goes on later.
    pub patience: Duration,
    /// Is told how far it is.
    pub watch: &'a (dyn Fn(Progress) + Sync),
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    /// How many shards there were.
    pub from: u16,
    /// How many there are.
    pub to: u16,
    /// Whether it went on with what had ended before its time.
    pub resumed: bool,
    /// How many rows went into another shard this time.
    pub moved: u64,
    /// How many rows were counted in the new shards this time.
    pub counted: u64,
    /// How long it took this time.
    pub took: Duration,
}

impl<'a> Grow<'a> {
    /// Nobody watches, with a minute of patience.
    pub fn new(side: Side<'a>, to: u16) -> Grow<'a> {
        Grow { side, to, patience: Duration::from_secs(60), watch: &|_| {} }
    }

    /// Divides all shards, or what is left if it was ended before its time.
    pub fn run(&self) -> Result<Grown, GrowError> {
        let begun = Instant::now();
        // What was called wrongly is said before anything is written, or waited for.
        self.standing()?;
        let present = Present::enter(self)?;
        thread::scope(|scope| {
            let _staying = present.guest.stay(scope);
            let grown = present.run(&Counting::new(self.watch))?;
            Ok(Grown { took: begun.elapsed(), ..grown })
        })
    }

    /// How the store is divided, if it can be grown to what is wanted.
    fn standing(&self) -> Result<Division, GrowError> {
        self.allowed(marks::check)?;
        let found = Patience(self.patience).retry(|| division_of(self.side.store));
        let found = found.map_err(MoveError::of(self.side.name))?;
        let division = found.ok_or_else(|| GrowError::Empty(self.side.name.to_owned()))?;
        error::check(&division, self.to)?;
        Ok(division)
    }

    /// Asks whether the store is one to work on, until it says so.
    fn allowed(&self, ask: fn(&dyn Store) -> Result<(), Barred>) -> Result<(), GrowError> {
        let mut waiting = Patience(self.patience).begin();
        loop {
            match ask(self.side.store) {
                Err(Barred::Store(error)) => waiting.bear(error).map_err(MoveError::of(self.side.name))?,
                answer => return answer.map_err(GrowError::Barred),
            }
        }
    }
}

/// Somebody who is on the roll to grow a store.
struct Present<'a> {
    plan: Grow<'a>,
    guest: Guest<'a>,
}

impl<'a> Present<'a> {
    fn enter(plan: &Grow<'a>) -> Result<Present<'a>, GrowError> {
        let number = getrandom::u64().map_err(|error| MoveError::Chance(error.to_string()))?;
        let who = Incarnation { node: Name::stored(NAME), number };
        let (guest, _) = Guest::enter(plan.side, who, Patience(plan.patience))?;
        Ok(Present { plan: *plan, guest })
    }

    fn run(&self, counting: &Counting<'_>) -> Result<Grown, GrowError> {
        let mut division = self.plan.standing()?;
        let (from, to, resumed) = (division.shards, self.plan.to, division.growth.is_some());
        if !resumed {
            self.check_room(from)?;
            division.growth = Some(Growth { to, moving: None });
            self.write(&division)?;
        }
        let all: Vec<ShardId> = (0..to).map(ShardId).collect();
        let mut tenures = self.guest.claim(&all)?;
        // A copy of the store that somebody had begun to make is none any more.
        self.plan.allowed(marks::take_up)?;
        let Moving { ending, left } = match division.growth.and_then(|growth| growth.moving) {
            Some(moving) => moving,
            None => Moving { ending: self.close(from, &mut tenures)?, left: from },
        };
        counting.expect(left.into(), expected(&self.guest, &all[..usize::from(left)])?);
        let (mut moved, mut counted) = (0, 0);
        for left in (0..=left).rev() {
            division.growth = Some(Growth { to, moving: Some(Moving { ending, left }) });
            self.write(&division)?;
            let Some(parent) = left.checked_sub(1) else { break };
            let splitting = Splitting { guest: &self.guest, to, ending, counting };
            let done = splitting.run(ShardId(parent), &mut tenures)?;
            (moved, counted) = (moved + done.moved, counted + done.counted);
            counting.done();
        }
        self.write(&division.grown(to, ending))?;
        Ok(Grown { from, to, resumed, moved, counted, took: Duration::ZERO })
    }

    /// Requires that nothing is where new shards will be.
    fn check_room(&self, from: u16) -> Result<(), GrowError> {
        let new: Vec<ShardId> = (from..self.plan.to).map(ShardId).collect();
        self.guest.check_empty(&new).map_err(|error| match error {
            MoveError::NotEmpty { shard, what, .. } => GrowError::InTheWay { shard, what },
            error => error.into(),
        })
    }

    /// Lets nobody open the old shards any more, and says where their numbers end.
    fn close(&self, from: u16, tenures: &mut [Tenure]) -> Result<Era, GrowError> {
        // Tokens go on above the fence under which they are given.
        let fence = tenures.iter().map(|tenure| tenure.fence.0).max().unwrap_or(0);
        let mut ending = Era { shards: from, rows: 1, tokens: fence };
        for shard in (0..from).map(ShardId) {
            let tenure = &mut tenures[usize::from(shard.0)];
            let mut writing = Writing::new(&self.guest, self.guest.held(shard, *tenure));
            let note = splitting::note(&writing)?;
            if let Some(noted) = note.map(Note::shards).filter(|noted| ![0, from].contains(noted)) {
                let why = format!("shard {} notes that it is one of {noted}, not of {from}", shard.0);
                return Err(MoveError::NotWhole { place: self.plan.side.name.to_owned(), why }.into());
            }
            let closed = note.unwrap_or(Note::fresh()).closed();
            writing.put_note(closed)?;
            *tenure = writing.tenure();
            let (rows, tokens) = closed.bounds();
            (ending.rows, ending.tokens) = (ending.rows.max(rows), ending.tokens.max(tokens));
        }
        Ok(ending)
    }

    /// Writes how the store is divided. Nobody else does while this is on the roll.
    fn write(&self, division: &Division) -> Result<(), GrowError> {
        let Side { store, name } = self.plan.side;
        let value = division.to_string();
        let written = self.guest.patience.retry(|| put(store, value.as_bytes())).map_err(MoveError::of(name))?;
        if written { Ok(()) } else { Err(MoveError::Overtaken { place: name.to_owned() }.into()) }
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.guest.leave();
    }
}

/// Lets the entry have a value, unless somebody else writes it at the same time.
fn put(store: &dyn Store, value: &[u8]) -> Result<bool, StoreError> {
    let there = store.cluster_get(Division::KEY)?;
    // An answer that got lost may have been one to this.
    if there.as_ref().is_some_and(|entry| entry.value == value) {
        return Ok(true);
    }
    Ok(store.cluster_put(Division::KEY, there.map_or(0, |entry| entry.revision), value)?.is_ok())
}

impl fmt::Display for Grown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grown { from, to, moved, counted, took, .. } = self;
        let seconds = took.as_secs_f64();
        write!(f, "{to} shards instead of {from}: {moved} rows moved, {counted} counted in {seconds:.1} s")
    }
}
