//! The two ways through a table: with the order of time and against it.
//!
//! A scan goes from where it begins to where it ends and takes blocks by their edges: the position on its way
//! that none of a block's rows comes before. With time that is the block's first row, which the index names. Against
//! it, a block's last row is not named, but all its rows stand before the first one of the block behind it.

use std::cmp::Reverse;
use std::ops::Range;

use punctual_core::Timestamp;
use punctual_core::store::{Bodies, Index, Position, ShardId, Table};

use super::LOOKED;
use crate::recent::SlotId;
use crate::run::Run;
use crate::shelf::Shelved;

/// What a scan is asked for, whichever way it goes.
pub(super) struct Asked<'a> {
    pub table: Table,
    pub topic: Option<&'a [u8]>,
    pub limit: usize,
    pub bodies: Bodies,
    pub begin: Position,
    pub end: Timestamp,
}

impl Asked<'_> {
    /// How many rows it looks at in each place before it stops.
    pub fn most(&self) -> usize {
        self.limit.saturating_add(LOOKED)
    }
}

pub(super) trait Way {
    /// What rises along the way.
    type Rank: Ord + Copy;

    fn rank(position: Position) -> Self::Rank;

    /// Whether a row here, and each one after it, is not wanted any more.
    fn is_past(position: Position, end: Timestamp) -> bool;

    /// Whether a row comes before an edge, so that it stands in no block with this edge or a later one.
    fn is_before(position: Position, edge: Position) -> bool;

    /// Where to go on after a row.
    fn after(position: Position) -> Position;

    fn recent(asked: &Asked<'_>, index: &mut Index<SlotId>) -> impl Iterator<Item = (Position, SlotId)>;

    /// The rows of a block to look at, given where in it the scan would begin.
    fn rows(begin: usize, rows: usize) -> impl Iterator<Item = usize>;

    /// The blocks of a run that may hold something.
    fn blocks(asked: &Asked<'_>, run: &Run, shard: ShardId) -> Range<usize>;

    fn skip_dead(blocks: &mut Range<usize>, shelved: &Shelved);

    /// Takes the nearest of these blocks.
    fn take(blocks: &mut Range<usize>) -> usize;

    /// The edge of the nearest of these blocks, given the end of all that there were at first.
    fn edge(asked: &Asked<'_>, run: &Run, blocks: &Range<usize>, end: usize) -> Position;
}

/// With the order of time.
pub(super) struct Ahead;

impl Way for Ahead {
    type Rank = Position;

    fn rank(position: Position) -> Position {
        position
    }

    fn is_past(position: Position, end: Timestamp) -> bool {
        position.at >= end
    }

    fn is_before(position: Position, edge: Position) -> bool {
        position < edge
    }

    fn after(position: Position) -> Position {
        position.next()
    }

    fn recent(asked: &Asked<'_>, index: &mut Index<SlotId>) -> impl Iterator<Item = (Position, SlotId)> {
        index.range(asked.begin, asked.end)
    }

    fn rows(begin: usize, rows: usize) -> impl Iterator<Item = usize> {
        begin..rows
    }

    fn blocks(asked: &Asked<'_>, run: &Run, shard: ShardId) -> Range<usize> {
        run.blocks_from(shard, asked.table, asked.begin)
    }

    fn skip_dead(blocks: &mut Range<usize>, shelved: &Shelved) {
        blocks.start = shelved.first_living(blocks.clone());
    }

    fn take(blocks: &mut Range<usize>) -> usize {
        blocks.start += 1;
        blocks.start - 1
    }

    fn edge(_: &Asked<'_>, run: &Run, blocks: &Range<usize>, _: usize) -> Position {
        run.first_position(blocks.start)
    }
}

/// Against it, the latest rows first.
pub(super) struct Back;

impl Way for Back {
    type Rank = Reverse<Position>;

    fn rank(position: Position) -> Reverse<Position> {
        Reverse(position)
    }

    fn is_past(position: Position, end: Timestamp) -> bool {
        position.at < end
    }

    fn is_before(position: Position, edge: Position) -> bool {
        position >= edge
    }

    fn after(position: Position) -> Position {
        position
    }

    fn recent(asked: &Asked<'_>, index: &mut Index<SlotId>) -> impl Iterator<Item = (Position, SlotId)> {
        index.range_back(asked.end, asked.begin)
    }

    fn rows(begin: usize, _: usize) -> impl Iterator<Item = usize> {
        (0..begin).rev()
    }

    fn blocks(asked: &Asked<'_>, run: &Run, shard: ShardId) -> Range<usize> {
        run.blocks_before(shard, asked.table, Position::start_of(asked.end), asked.begin)
    }

    fn skip_dead(blocks: &mut Range<usize>, shelved: &Shelved) {
        blocks.end = shelved.living_end(blocks.clone());
    }

    fn take(blocks: &mut Range<usize>) -> usize {
        blocks.end -= 1;
        blocks.end
    }

    fn edge(asked: &Asked<'_>, run: &Run, blocks: &Range<usize>, end: usize) -> Position {
        // Behind the last of all that fit nothing is known but where the scan began.
        if blocks.end == end { asked.begin } else { run.first_position(blocks.end).min(asked.begin) }
    }
}
