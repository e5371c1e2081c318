//! Moving a store while no server works on it.
//!
//! ```text
//! enter both rolls ─► mark the source ─► claim it ─► mark the target ─► claim it ─► copy and compare each shard
//!                 ─► copy the entries ─► source: Leaving becomes Left ─► target: Arriving becomes Arrived
//! ```
//! Until the mark of the source turns, it is in charge; from then on the target is, and all of it is there. A move that is
//! killed between the two last words looks once more that all is there, and says the last one.

mod course;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::Name;
use punctual_core::division::{Growth, division_of};
use punctual_core::store::{Incarnation, Roll, ShardId, Tenure};

use crate::copying::{Copying, expected};
use crate::error::MoveError;
use crate::marks::{Mark, Noted, Part};
use crate::patience::Patience;
use crate::presence::Guest;
use crate::progress::{Counting, Progress};
use crate::report::{Report, ShardReport};
use crate::sum::Sum;
use crate::writing::Writing;
use crate::{Side, entries};
use course::{Course, Standing};

/// The names under which a mover is on the rolls. They differ, so that it is noticed if both are one store.
const OUT: &str = "moving-out";
const IN: &str = "moving-in";

/// A store that is to be moved into another one, while no server works on either.
#[derive(Clone, Copy)]
pub struct Move<'a> {
    /// Where from.
    pub from: Side<'a>,
    /// Where to.
    pub to: Side<'a>,
    /// Whether leftovers of another move in the target are deleted.
    pub afresh: bool,
    /// How long a store may be away before the move ends; the same move goes on later.
    pub patience: Duration,
    /// What the source keeps elsewhere and the target is to have as entries of the cluster.
    pub keep: &'a [(&'a str, &'a [u8])],
    /// Is told how far it is, from several threads.
    pub watch: &'a (dyn Fn(Progress) + Sync),
}

impl<'a> Move<'a> {
    /// A move that nobody watches, with a minute of patience.
    pub fn new(from: Side<'a>, to: Side<'a>) -> Move<'a> {
        Move { from, to, afresh: false, patience: Duration::from_secs(60), keep: &[], watch: &|_| {} }
    }

    /// Moves all there is, or what is left of a move that ended before its time.
    pub fn run(&self) -> Result<Report, MoveError> {
        let begun = Instant::now();
        let present = Present::enter(self)?;
        thread::scope(|scope| {
            let _staying = [present.source.stay(scope), present.target.stay(scope)];
            let report = present.run(&Counting::new(self.watch))?;
            Ok(Report { took: begun.elapsed(), ..report })
        })
    }

    /// Takes a move back that is done: the source is in charge again, and what happened in the target since is given up.
    /// No server may work on either.
    pub fn undo(&self) -> Result<(), MoveError> {
        let present = Present::enter(self)?;
        let (source, target) = (present.source.read_mark()?, present.target.read_mark()?);
        match (&source.mark, &target.mark) {
            (Some(left), Some(there)) if left.part == Part::Left && left.id == there.id => {
                let abandoned = Mark { part: Part::Abandoned, ..there.clone() };
                // The target first: between the two nobody is in charge, and never both are.
                present.target.write_mark(&target, Some(&abandoned))?;
                present.source.write_mark(&source, None)?;
                Ok(())
            }
            _ => {
                let why = format!("it was not moved to {}, so there is nothing to take back", self.to.name);
                Err(MoveError::NotWhole { place: self.from.name.to_owned(), why })
            }
        }
    }
}

/// A mover that is on both rolls.
struct Present<'a> {
    plan: Move<'a>,
    source: Guest<'a>,
    target: Guest<'a>,
    /// The shards of the source, in order.
    shards: Vec<ShardId>,
    /// All of them, and those that only the target knows.
    target_shards: Vec<ShardId>,
    roll: Roll,
}

/// A move that both stores know of, and that holds their shards.
struct Begun {
    id: String,
    resumed: bool,
    source: Noted,
    held: Tenures,
    target: Noted,
    there: Tenures,
}

/// The shards of one side, each as it is held.
type Tenures = Vec<(ShardId, Tenure)>;

impl<'a> Present<'a> {
    fn enter(plan: &Move<'a>) -> Result<Present<'a>, MoveError> {
        let number = getrandom::u64().map_err(|error| MoveError::Chance(error.to_string()))?;
        let patience = Patience(plan.patience);
        let life = |name| Incarnation { node: Name::stored(name), number };
        let (source, roll) = Guest::enter(plan.from, life(OUT), patience)?;
        let (target, target_roll) = Guest::enter(plan.to, life(IN), patience)?;
        let of = |roll: &Roll| roll.shards.iter().map(|held| held.shard).collect::<BTreeSet<ShardId>>();
        let (shards, there) = (of(&roll), of(&target_roll));
        let target_shards = shards.union(&there).copied().collect();
        Ok(Present { plan: *plan, source, target, shards: shards.into_iter().collect(), target_shards, roll })
    }

    fn run(&self, counting: &Counting<'_>) -> Result<Report, MoveError> {
        let mut begun = self.begin()?;
        self.make_room(&mut begun)?;
        counting.expect(self.shards.len(), expected(&self.source, &self.shards)?);
        let shards = self.copy_all(&begun, counting)?;
        let entries = entries::copy(&self.source, &self.roll, &self.target, self.plan.keep)?;
        let Begun { id, resumed, source, target, .. } = begun;
        if is_in(&source, Part::Leaving) {
            self.source.write_mark(&source, Some(&self.mark(&id, Part::Left)))?;
        }
        self.target.write_mark(&target, Some(&self.mark(&id, Part::Arrived)))?;
        let mut total = Sum::default();
        shards.iter().for_each(|shard| total += shard.tables.total());
        let copied = shards.iter().map(|shard| shard.copied).sum();
        let (from, to, took) = (self.plan.from.name.to_owned(), self.plan.to.name.to_owned(), Duration::ZERO);
        Ok(Report { id, from, to, resumed, total, copied, entries, took, shards })
    }

    /// Marks and claims both stores, if that is what their marks allow.
    fn begin(&self) -> Result<Begun, MoveError> {
        self.check_whole()?;
        let (mut source, mut target) = (self.source.read_mark()?, self.target.read_mark()?);
        let standing = Standing {
            from: self.plan.from.name,
            source: source.mark.as_ref(),
            to: self.plan.to.name,
            target: target.mark.as_ref(),
        };
        let course = standing.course(self.plan.afresh)?;
        let resumed = matches!(course, Course::Resume(_));
        let (id, empties) = match course {
            Course::Resume(id) => (id, false),
            Course::Begin { empties } => (new_id()?, empties),
        };
        if !resumed {
            if !empties {
                self.target.check_empty(&self.target_shards)?;
            }
            source = self.source.write_mark(&source, Some(&self.mark(&id, Part::Leaving)))?;
        }
        let held = claim(&self.source, &self.shards)?;
        if !resumed {
            let part = if empties { Part::Emptying } else { Part::Arriving };
            target = self.target.write_mark(&target, Some(&self.mark(&id, part)))?;
        }
        let there = claim(&self.target, &self.target_shards)?;
        Ok(Begun { id, resumed, source, held, target, there })
    }

    /// Requires that the source is not being divided into more shards.
    fn check_whole(&self) -> Result<(), MoveError> {
        let (store, place) = (self.plan.from.store, self.plan.from.name);
        let division = self.source.patience.retry(|| division_of(store)).map_err(MoveError::of(place))?;
        let Some(Growth { to, .. }) = division.and_then(|division| division.growth) else { return Ok(()) };
        let why = format!("it is being divided into {to} shards: let `punctual shards grow {to}` finish first");
        Err(MoveError::NotWhole { place: place.to_owned(), why })
    }

    /// What one of the stores notes.
    fn mark(&self, id: &str, part: Part) -> Mark {
        let other = if matches!(part, Part::Leaving | Part::Left) { self.plan.to } else { self.plan.from };
        Mark {
            id: id.to_owned(),
            part,
            other: other.name.to_owned(),
            at: self.roll.now().as_millis(),
            crossed: Vec::new(),
        }
    }

    /// Deletes leftovers, if it is noted that there are some.
    fn make_room(&self, begun: &mut Begun) -> Result<(), MoveError> {
        if !is_in(&begun.target, Part::Emptying) {
            return Ok(());
        }
        for (shard, tenure) in &mut begun.there {
            // What is written next comes after what was deleted.
            *tenure = Writing::new(&self.target, self.target.held(*shard, *tenure)).clear()?;
        }
        begun.target = self.target.write_mark(&begun.target, Some(&self.mark(&begun.id, Part::Arriving)))?;
        Ok(())
    }

    /// Copies all shards, as many side by side as the target likes.
    fn copy_all(&self, begun: &Begun, counting: &Counting<'_>) -> Result<Vec<ShardReport>, MoveError> {
        let Begun { held, there, .. } = begun;
        let lanes = self.plan.to.store.terms().lanes.clamp(1, held.len().max(1));
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let Some((shard, tenure)) = held.get(next.fetch_add(1, Ordering::Relaxed)) {
                let target = there.iter().find(|(other, _)| other == shard).expect("the target's shards include these");
                let copying = Copying {
                    from: &self.source,
                    source: self.source.held(*shard, *tenure),
                    to: &self.target,
                    target: self.target.held(*shard, target.1),
                    counting,
                };
                // One that fails lets the others end with the shard that they have.
                done.push(copying.run().inspect_err(|_| next.store(held.len(), Ordering::Relaxed))?);
            }
            Ok(done)
        };
        let mut done = thread::scope(|scope| {
            let workers: Vec<_> = (0..lanes).map(|_| scope.spawn(work)).collect();
            let parts = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            parts.collect::<Result<Vec<Vec<ShardReport>>, MoveError>>()
        })?
        .concat();
        done.sort_by_key(|report| report.shard);
        Ok(done)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.source.leave();
        self.target.leave();
    }
}

fn is_in(noted: &Noted, part: Part) -> bool {
    noted.mark.as_ref().is_some_and(|mark| mark.part == part)
}

fn new_id() -> Result<String, MoveError> {
    let drawn = getrandom::u64().map_err(|error| MoveError::Chance(error.to_string()))?;
    Ok(format!("{drawn:016x}"))
}

fn claim(guest: &Guest<'_>, shards: &[ShardId]) -> Result<Tenures, MoveError> {
    Ok(shards.iter().copied().zip(guest.claim(shards)?).collect())
}
