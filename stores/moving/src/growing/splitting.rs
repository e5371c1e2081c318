//! One old shard: its rows go into the new ones that take its place, some at a time.
//!
//! Rows are written into a new shard in the order in which they are read, and removed here after that: what is in both
//! when somebody is killed are those up to the last position there.

use std::collections::BTreeMap;

use punctual_core::division::Era;
use punctual_core::shard::{Note, uncounted};
use punctual_core::shard_of_key;
use punctual_core::store::{Position, Row, ShardId, Table, Tally, Tenure};

use crate::error::MoveError;
use crate::presence::Guest;
use crate::progress::Counting;
use crate::reading::Reading;
use crate::sum::weight;
use crate::writing::Writing;

/// The tables whose rows belong into the shard of their key.
const TASKS: [Table; 3] = [Table::Live, Table::Dead, Table::History];

/// How many rows and bytes are written before they are removed where they were.
const AT_ONCE: (usize, usize) = (4_096, 4 << 20);

/// What it takes to divide a shard.
pub(super) struct Splitting<'a> {
    pub guest: &'a Guest<'a>,
    /// How many shards there will be.
    pub to: u16,
    pub ending: Era,
    pub counting: &'a Counting<'a>,
}

/// What was done.
pub(super) struct Split {
    pub moved: u64,
    pub counted: u64,
}

/// A new shard, and how far each table of it is.
struct Child<'a> {
    writing: Writing<'a>,
    arrived: Vec<Option<Position>>,
}

impl Child<'_> {
    /// Takes a row that belongs here, if it is not here yet.
    fn push(&mut self, row: Row) -> Result<(), MoveError> {
        let is_here = self.arrived[row.table as usize - 1].is_some_and(|last| row.position() <= last);
        if is_here { Ok(()) } else { self.writing.push(row) }
    }
}

/// The new shards that take the place of an old one, but for itself.
type Children<'a> = BTreeMap<ShardId, Child<'a>>;

impl Splitting<'_> {
    /// Divides a shard, and leaves nothing but a closed note in it unless it is one of its own children. All are held by
    /// these tenures.
    pub fn run(&self, shard: ShardId, tenures: &mut [Tenure]) -> Result<Split, MoveError> {
        let times = self.to / self.ending.shards;
        let writing = |id: u16| Writing::new(self.guest, self.guest.held(ShardId(id), tenures[usize::from(id)]));
        let mut parent = writing(shard.0);
        let note = note(&parent)?.unwrap_or(Note::fresh()).divided(self.to, &self.ending);
        let mut children = Children::new();
        // The first shard is its own first child, and what belongs there stays.
        for id in (shard.0 * times..(shard.0 + 1) * times).filter(|id| *id != shard.0) {
            let writing = writing(id);
            let arrived = writing.arrived().map_err(MoveError::of(self.guest.side.name))?;
            children.insert(ShardId(id), Child { writing, arrived });
        }
        self.copy_settings(&parent, &mut children)?;
        let moved = self.move_rows(&mut parent, &mut children)?;
        if shard.0 != 0 {
            parent.clear_but_note()?;
        }
        let own = (shard.0 == 0).then_some(&mut parent);
        let mut counted = 0;
        for writing in children.values_mut().map(|child| &mut child.writing).chain(own) {
            counted += self.recount(writing, note)?;
            writing.put_note(note)?;
        }
        for writing in children.values().map(|child| &child.writing).chain([&parent]) {
            tenures[usize::from(writing.held.shard.0)] = writing.tenure();
        }
        Ok(Split { moved, counted })
    }

    /// Every new shard has all settings. Its note comes last. What sweeps have counted is told by one of them.
    fn copy_settings(&self, parent: &Writing<'_>, children: &mut Children<'_>) -> Result<(), MoveError> {
        for page in Reading::new(parent.held, self.guest.patience, &[Table::Settings]) {
            for row in page.map_err(MoveError::of(self.guest.side.name))? {
                // The first shard stays, and has its counts.
                let mut is_told = parent.held.shard.0 == 0;
                for child in children.values_mut().filter(|_| Note::read(&row).is_none()) {
                    let was_told = std::mem::replace(&mut is_told, true);
                    child.push(if was_told { uncounted(&row).unwrap_or_else(|| row.clone()) } else { row.clone() })?;
                }
            }
        }
        children.values_mut().try_for_each(|child| child.writing.flush())
    }

    /// Moves the rows that belong into other shards; says how many.
    fn move_rows(&self, parent: &mut Writing<'_>, children: &mut Children<'_>) -> Result<u64, MoveError> {
        let (mut moved, mut moving, mut bytes) = (0, Vec::new(), 0);
        let mut reading = Reading::new(parent.held, self.guest.patience, &TASKS);
        while let Some(page) = reading.next() {
            let page = page.map_err(MoveError::of(self.guest.side.name))?;
            self.counting.copied(page.len(), page.iter().map(weight).sum())?;
            for row in page {
                let home = shard_of_key(&row.key, self.to);
                if home == parent.held.shard {
                    continue;
                }
                let child = children.get_mut(&home).ok_or_else(|| self.astray(&row, parent.held.shard))?;
                bytes += weight(&row);
                moving.push(row.clone().without_body());
                child.push(row)?;
            }
            if moving.len() >= AT_ONCE.0 || bytes >= AT_ONCE.1 {
                moved += hand_over(&mut moving, parent, children)?;
                bytes = 0;
                // It is held otherwise if an answer got lost.
                reading.held = parent.held;
            }
        }
        Ok(moved + hand_over(&mut moving, parent, children)?)
    }

    fn astray(&self, row: &Row, shard: ShardId) -> MoveError {
        let why =
            format!("{:?} is in shard {}, where it does not belong: run `punctual store check`", row.key, shard.0);
        MoveError::NotWhole { place: self.guest.side.name.to_owned(), why }
    }

    /// Counts all rows of a shard, and makes its counts say so; says how many rows there are.
    fn recount(&self, writing: &mut Writing<'_>, note: Note) -> Result<u64, MoveError> {
        let place = self.guest.side.name;
        let (mut counts, mut rows) = (BTreeMap::<Tally, i64>::new(), 0);
        for page in Reading::new(writing.held, self.guest.patience, &TASKS).without_bodies() {
            for row in page.map_err(MoveError::of(place))? {
                let counted = note.count(&row, &mut counts);
                counted.map_err(|why| {
                    let why = format!("{:?}: {why}; `punctual store check` says more", row.key);
                    MoveError::NotWhole { place: place.to_owned(), why }
                })?;
                rows += 1;
            }
        }
        writing.count(&counts.into_iter().collect::<Vec<_>>())?;
        Ok(rows)
    }
}

/// Lets rows be in the new shards, and then not here any more.
fn hand_over(moving: &mut Vec<Row>, parent: &mut Writing<'_>, children: &mut Children<'_>) -> Result<u64, MoveError> {
    children.values_mut().try_for_each(|child| child.writing.flush())?;
    parent.remove(moving)?;
    let moved = moving.len() as u64;
    moving.clear();
    Ok(moved)
}

/// The note of a shard, if it was ever opened.
pub(super) fn note(writing: &Writing<'_>) -> Result<Option<Note>, MoveError> {
    Ok(writing.note()?.as_ref().and_then(Note::read))
}
