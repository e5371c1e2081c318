//! Scanning a table, whichever way: recent rows and blocks of runs brought together in order.
//!
//! Blocks are taken in the order of their edges (`way.rs`). All rows before the edge of the next block are known
//! then: once these are enough, the scan is done, and no block is read in vain but for those that overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use punctual_core::Timestamp;
use punctual_core::store::{Position, Row, Scan, ScanBack, ShardId, StoreError};

use super::way::{Ahead, Asked, Back, Way};
use super::{Found, Hand, Reader};
use crate::holdings::{Holdings, Stand};
use crate::recent::{Rows, SlotId};
use crate::run::Block;
use crate::shelf::Shelved;

/// How many blocks a scan takes in before it gives what it has and goes on from there.
const MOST_BLOCKS: usize = 1_024;

impl Reader<'_> {
    pub fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        let Scan { table, from, until, ref topic, limit, bodies } = *scan;
        let topic = topic.as_ref().map(|topic| topic.as_bytes());
        self.go::<Ahead>(shard, Asked { table, topic, limit, bodies, begin: from, end: until })
    }

    pub fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        let ScanBack { table, before, from, ref topic, limit, bodies } = *back;
        let topic = topic.as_ref().map(|topic| topic.as_bytes());
        // Rows without a time are left out.
        let begin = before.min(Position::start_of(Timestamp::NEVER));
        self.go::<Back>(shard, Asked { table, topic, limit, bodies, begin, end: from })
    }

    /// A scan for one topic may pass over very many rows of others; then it goes on in pieces, and each piece is what
    /// there was at one moment.
    fn go<W: Way>(&self, shard: ShardId, mut asked: Asked<'_>) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        while asked.limit > 0 && !W::is_past(asked.begin, asked.end) {
            let (found, next) = self.attempt(|holdings, hand| scan::<W>(holdings, hand, shard, &asked))?;
            asked.limit -= found.len();
            rows.extend(found.into_iter().map(|found| found.read(asked.bodies)));
            match next {
                Some(edge) => asked.begin = edge,
                None => break,
            }
        }
        Ok(rows)
    }
}

/// Where a row is that a scan has come by.
#[derive(Clone, Copy)]
enum Passed {
    Recent(Stand),
    /// In which of the blocks that the scan has taken, and which row there.
    InBlock(u32, u32),
}

/// The rows that a scan finds, and the edge to go on from if it took in as much as it may.
fn scan<W: Way>(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    asked: &Asked<'_>,
) -> (Vec<Found>, Option<Position>) {
    let rows = scan_recent::<W>(holdings, shard, asked);
    let mut pass = Pass::<W> { asked, rows, taken: Vec::new(), bound: None, way: PhantomData };
    let mut ahead = BlocksAhead::<W>::new(holdings, shard, asked);
    let mut missed = 0;
    let next = loop {
        let Some(edge) = ahead.next_edge().filter(|edge| !W::is_past(*edge, asked.end) && !pass.has_enough(*edge))
        else {
            break None;
        };
        if pass.taken.len() >= MOST_BLOCKS {
            break Some(edge);
        }
        // While blocks are missing, those are named that will be needed too, to be loaded together. Their rows are as
        // good as found, so it stops where they would be enough; but those that reach back to the beginning are needed
        // in any case.
        if missed >= asked.limit && W::rank(edge) > W::rank(asked.begin) {
            break None;
        }
        let (shelved, number) = ahead.take();
        match hand.block(&shelved.run, number) {
            Some(block) => pass.take(shelved, number, block),
            None => missed += shelved.run.ordinals(number).len(),
        }
    };
    // This attempt is made again with the blocks that it lacked.
    if !hand.missing.is_empty() {
        return (Vec::new(), None);
    }
    let Pass { mut rows, taken, .. } = pass;
    if let Some(edge) = next {
        // The blocks that were not taken may hold rows among those after the edge.
        rows.retain(|(position, _)| W::is_before(*position, edge));
    }
    if rows.len() > asked.limit {
        // Choosing comes first, since far more may have been passed than are to be sorted.
        rows.select_nth_unstable_by_key(asked.limit - 1, |(position, _)| W::rank(*position));
        rows.truncate(asked.limit);
    }
    rows.sort_unstable_by_key(|(position, _)| W::rank(*position));
    let done = rows.len() == asked.limit;
    let found = rows.into_iter().filter_map(|(_, passed)| match passed {
        Passed::Recent(stand) => hand.recent(holdings, stand, asked.bodies),
        Passed::InBlock(block, row) => Some(Found::InBlock(Arc::clone(&taken[block as usize]), row as usize)),
    });
    (found.collect(), next.filter(|_| !done))
}

/// What a scan has taken in.
struct Pass<'a, W> {
    asked: &'a Asked<'a>,
    rows: Vec<(Position, Passed)>,
    taken: Vec<Arc<Block>>,
    /// A position up to which there are enough rows; none after it is needed.
    bound: Option<Position>,
    way: PhantomData<W>,
}

impl<W: Way> Pass<'_, W> {
    /// Whether there are enough rows before this edge.
    fn has_enough(&mut self, edge: Position) -> bool {
        let limit = self.asked.limit;
        if self.rows.len() < limit {
            return false;
        }
        // More rows only bring the bound nearer, so an old one is right; it is looked for anew when
        // enough has been added to make that worth while.
        let worth = |bound: Position| !W::is_before(bound, edge) && self.rows.len() > limit + limit / 4;
        if self.bound.is_none_or(worth) {
            let nth = self.rows.select_nth_unstable_by_key(limit - 1, |(position, _)| W::rank(*position));
            self.bound = Some(nth.1.0);
            self.rows.truncate(limit);
        }
        self.bound.is_some_and(|bound| W::is_before(bound, edge))
    }

    /// Takes in the living rows of a block that the scan wants.
    fn take(&mut self, shelved: &Shelved, number: usize, block: Arc<Block>) {
        let first = shelved.run.ordinals(number).start;
        let all_alive = shelved.deaths.is_empty();
        let topic = self.asked.topic;
        let begin = block.search(self.asked.begin).unwrap_or_else(|index| index);
        let own = self.taken.len() as u32;
        for index in W::rows(begin, block.rows()) {
            let row = block.row(index);
            let position = row.position();
            if W::is_past(position, self.asked.end)
                || self.bound.is_some_and(|bound| W::rank(position) > W::rank(bound))
            {
                break;
            }
            let is_alive = all_alive || !shelved.deaths.contains(first + index as u32);
            if is_alive && topic.is_none_or(|topic| row.topic() == topic) {
                self.rows.push((position, Passed::InBlock(own, index as u32)));
            }
        }
        self.taken.push(block);
    }
}

/// The recent rows of a scan, as many as it can need.
fn scan_recent<W: Way>(holdings: &mut Holdings, shard: ShardId, asked: &Asked<'_>) -> Vec<(Position, Passed)> {
    let Holdings { active, frozen, .. } = holdings;
    let mut passed = Vec::new();
    let rows = Arc::clone(active.rows());
    if let Some(index) = active.table(shard, asked.table) {
        let found = wanted(W::recent(asked, index), &rows, asked);
        passed.extend(found.map(|(at, slot)| (at, Passed::Recent(Stand::Active(slot)))));
    }
    let Some(frozen) = frozen else { return passed };
    let rows = Arc::clone(frozen.layer().rows());
    if let Some((index, gone)) = frozen.table(shard, asked.table) {
        let still_here = W::recent(asked, index).filter(|(_, slot)| !gone.contains(*slot));
        let found = wanted(still_here, &rows, asked);
        passed.extend(found.map(|(at, slot)| (at, Passed::Recent(Stand::Frozen(slot)))));
    }
    passed
}

/// Those of a layer's rows that a scan wants, as many as it can need.
fn wanted(
    in_order: impl Iterator<Item = (Position, SlotId)>,
    rows: &Rows,
    asked: &Asked<'_>,
) -> impl Iterator<Item = (Position, SlotId)> {
    let topic = asked.topic;
    in_order.filter(move |(_, slot)| topic.is_none_or(|topic| rows.row(*slot).0.topic() == topic)).take(asked.limit)
}

/// The blocks of all runs that a scan has still to look at, by their edges.
struct BlocksAhead<'a, W: Way> {
    asked: &'a Asked<'a>,
    runs: Vec<Rest<'a>>,
    heap: BinaryHeap<Reverse<(W::Rank, usize)>>,
}

/// The blocks of one run that are still to be looked at.
struct Rest<'a> {
    shelved: &'a Shelved,
    blocks: Range<usize>,
    /// Where they ended at first.
    end: usize,
    /// That of the nearest of them.
    edge: Position,
}

impl<'a, W: Way> BlocksAhead<'a, W> {
    fn new(holdings: &'a Holdings, shard: ShardId, asked: &'a Asked<'a>) -> BlocksAhead<'a, W> {
        let mut ahead = BlocksAhead { asked, runs: Vec::new(), heap: BinaryHeap::new() };
        for (_, shelved) in holdings.shelf.runs() {
            let blocks = W::blocks(asked, &shelved.run, shard);
            ahead.runs.push(Rest { shelved, end: blocks.end, blocks, edge: asked.begin });
            ahead.push(ahead.runs.len() - 1);
        }
        ahead
    }

    fn next_edge(&self) -> Option<Position> {
        self.heap.peek().map(|Reverse((_, index))| self.runs[*index].edge)
    }

    /// Takes the next block.
    fn take(&mut self) -> (&'a Shelved, usize) {
        let Reverse((_, index)) = self.heap.pop().expect("the caller has looked");
        let rest = &mut self.runs[index];
        let taken = (rest.shelved, W::take(&mut rest.blocks));
        self.push(index);
        taken
    }

    /// Enters a run's next block that has a living row.
    fn push(&mut self, index: usize) {
        let rest = &mut self.runs[index];
        W::skip_dead(&mut rest.blocks, rest.shelved);
        if !rest.blocks.is_empty() {
            rest.edge = W::edge(self.asked, &rest.shelved.run, &rest.blocks, rest.end);
            self.heap.push(Reverse((W::rank(rest.edge), index)));
        }
    }
}
