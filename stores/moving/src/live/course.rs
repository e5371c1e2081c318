//! The course of a move under a server: begun, taken up by the next server, given up, finished.
//!
//! The source is marked first: a target that says it receives belongs to a source that says its shards cross, or that they
//! stayed, and the id of the move tells the two from all others.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::Name;
use punctual_core::store::{Incarnation, Roll, ShardId, Store};

use super::Transit;
use super::crossing::Crossing;
use super::transit::{Way, lock};
use crate::error::MoveError;
use crate::marks::{Mark, Noted, Part};
use crate::patience::Patience;
use crate::presence::Guest;
use crate::writing::Writing;
use crate::{Side, entries};

/// How long a store is waited for when a move begins or ends.
const PATIENCE: Duration = Duration::from_secs(10);

impl Transit {
    /// Begins to move it into another one, for a node that works on it. The other one has to be empty, unless it may begin
    /// afresh and what is there is of no use to anybody.
    pub fn begin(&self, to: Arc<dyn Store>, name: &str, afresh: bool) -> Result<(), MoveError> {
        let word = lock(&self.word).clone().ok_or_else(|| self.not_whole("no server works on it"))?;
        let who = word.who.clone();
        let (target, roll) = Guest::enter(Side { store: &*to, name }, who.clone(), Patience(PATIENCE))?;
        let source = self.guest(who.clone());
        let (here, there) = (source.read_mark()?, target.read_mark()?);
        if !matches!(self.way(), Way::Home) || here.mark.as_ref().is_some_and(|mark| !mark.is_void()) {
            return Err(self.not_whole("another move of it is not finished"));
        }
        let has_leftovers = leftovers(here.mark.as_ref(), name, there.mark.as_ref(), afresh)?;
        if !has_leftovers {
            target.check_empty(&shards_of(&roll))?;
        }
        let id = format!("{:016x}", getrandom::u64().map_err(|error| MoveError::Chance(error.to_string()))?);
        let at = roll.now().as_millis();
        let mark = |part, other: &str| Mark { id: id.clone(), part, other: other.to_owned(), at, crossed: Vec::new() };
        let noted = source.write_mark(&here, Some(&mark(Part::Crossing, name)))?;
        if target.read_mark()?.mark.is_some_and(|mark| mark.id == id) {
            source.write_mark(&noted, here.mark.as_ref())?;
            return Err(MoveError::SameStore(name.to_owned()));
        }
        if let Err(error) = target.write_mark(&there, Some(&mark(Part::Receiving, &self.name))) {
            // If this is not heard either: nothing has crossed, so the mark keeps nobody from anything.
            _ = source.write_mark(&noted, Some(&mark(Part::Stayed, name)));
            return Err(error);
        }
        if has_leftovers {
            // Each shard of the source is emptied before it is copied; these would stay.
            let home = self.home.beat(&word).map_err(MoveError::of(&self.name))?;
            clear(&target, shards_of(&roll).into_iter().filter(|shard| !shards_of(&home).contains(shard)))?;
        }
        self.set_out(to, name, who, noted);
        Ok(())
    }

    /// Goes on with a move that a server before this one had begun. For a server that has not claimed anything yet.
    pub fn resume(&self, to: Arc<dyn Store>, name: &str) -> Result<(), MoveError> {
        // It says who it is when it beats, and nothing is claimed before.
        let who = Incarnation { node: Name::stored("moving"), number: 0 };
        let target = Guest { side: Side { store: &*to, name }, who: who.clone(), patience: Patience(PATIENCE) };
        let (here, there) = (self.guest(who.clone()).read_mark()?, target.read_mark()?);
        let id = here.mark.as_ref().filter(|mark| mark.part == Part::Crossing).map(|mark| &mark.id);
        let fits = |mark: &Mark| Some(&mark.id) == id && matches!(mark.part, Part::Receiving | Part::Arrived);
        if !there.mark.as_ref().is_some_and(fits) {
            let other = here.mark.map_or(String::new(), |mark| mark.other);
            return Err(self.not_whole(&format!("it was being moved to {other}, and {name} knows nothing of that")));
        }
        self.set_out(to, name, who, here);
        Ok(())
    }

    /// Gives up a move of which nothing has crossed yet: all stays where it is, and what was copied is of no use.
    pub fn give_up(&self) -> Result<(), MoveError> {
        let crossing = self.crossing()?;
        crossing.settle(PATIENCE)?;
        let crossed = crossing.crossed().len();
        if crossed > 0 {
            let (from, to) = (self.name.clone(), crossing.to_name.clone());
            return Err(MoveError::TooLate { from, to, crossed });
        }
        let (source, target) = (crossing.source(PATIENCE), crossing.target(PATIENCE));
        let mut noted = crossing.mark();
        *noted = source.write_mark(&noted, noted.mark.as_ref().map(|mark| in_part(mark, Part::Stayed)).as_ref())?;
        self.turn(Way::Home);
        // A target that does not hear of it says that it receives; by its id it is known to be of no use.
        if let Ok(there) = target.read_mark() {
            let abandoned = there.mark.as_ref().map(|mark| in_part(mark, Part::Abandoned));
            _ = target.write_mark(&there, abandoned.as_ref());
            target.leave();
        }
        Ok(())
    }

    /// Ends the move when all shards have crossed: from now on the source is not needed any more. What the source keeps
    /// elsewhere becomes entries of the cluster. Says how many there are.
    pub fn finish(&self, keep: &[(&str, &[u8])]) -> Result<usize, MoveError> {
        let crossing = self.crossing()?;
        crossing.settle(PATIENCE)?;
        let (source, target) = (crossing.source(PATIENCE), crossing.target(PATIENCE));
        let roll = source.beat().map_err(MoveError::of(&self.name))?;
        let crossed = crossing.crossed();
        if let Some(held) = roll.shards.iter().find(|held| !crossed.contains(&held.shard)) {
            return Err(self.not_whole(&format!("{} has not crossed yet", held.shard)));
        }
        // Nobody writes an entry until it is clear where to.
        let _entries = lock(&self.entries);
        let copied = entries::copy(&source, &roll, &target, keep)?;
        let (mut noted, there) = (crossing.mark(), target.read_mark()?);
        // The target first: if that is all that gets through, the next start says the rest.
        target.write_mark(&there, there.mark.as_ref().map(|mark| in_part(mark, Part::Arrived)).as_ref())?;
        *noted = source.write_mark(&noted, noted.mark.as_ref().map(|mark| in_part(mark, Part::Left)).as_ref())?;
        self.turn(Way::Over(Arc::clone(&crossing.to)));
        source.leave();
        Ok(copied)
    }

    fn set_out(&self, to: Arc<dyn Store>, name: &str, who: Incarnation, noted: Noted) {
        let home = (Arc::clone(&self.home), self.name.clone());
        self.turn(Way::Crossing(Arc::new(Crossing::new(home, (to, name.to_owned()), who, noted))));
    }

    fn guest(&self, who: Incarnation) -> Guest<'_> {
        Guest { side: Side { store: &*self.home, name: &self.name }, who, patience: Patience(PATIENCE) }
    }
}

/// Whether something is in the target that may be deleted; an error if there is something that may not.
fn leftovers(here: Option<&Mark>, name: &str, there: Option<&Mark>, afresh: bool) -> Result<bool, MoveError> {
    let Some(there) = there else { return Ok(false) };
    let other = &there.other;
    let is_known = here.is_some_and(|here| here.id == there.id);
    let what = match there.part {
        Part::Arrived | Part::Stayed | Part::Leaving => return Ok(false),
        // It was of the move that was given up in the source.
        Part::Receiving | Part::Abandoned if is_known => return Ok(true),
        Part::Receiving | Part::Crossing => {
            let why = format!("a server that is running, or was killed, has shards in it and in {other}");
            return Err(MoveError::NotWhole { place: name.to_owned(), why });
        }
        _ if afresh => return Ok(true),
        Part::Left => format!("what was moved away from there to {other}"),
        Part::Abandoned => format!("a copy of {other}, from a move that was taken back or given up"),
        Part::Emptying | Part::Arriving => format!("a part of {other}, from a move that was not finished"),
    };
    Err(MoveError::Leftovers { place: name.to_owned(), what })
}

fn clear(target: &Guest<'_>, shards: impl Iterator<Item = ShardId>) -> Result<(), MoveError> {
    for shard in shards {
        let tenure = target.claim(&[shard])?[0];
        Writing::new(target, target.held(shard, tenure)).clear()?;
    }
    Ok(())
}

/// The same move, in which the store is something else from now on.
fn in_part(mark: &Mark, part: Part) -> Mark {
    Mark { part, crossed: Vec::new(), ..mark.clone() }
}

/// The shards that a store knows.
fn shards_of(roll: &Roll) -> Vec<ShardId> {
    roll.shards.iter().map(|held| held.shard).collect()
}
