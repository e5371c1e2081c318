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
use punctual_core::store::{Found, Page, Position, Scan, ScanBack, ShardId};

use super::way::{Ahead, Asked, Back, Way};
use super::{BODIES, Errand, Hand, Hit};
use crate::holdings::{Holdings, Stand};
use crate::recent::{Rows, SlotId};
use crate::run::Block;
use crate::shelf::Shelved;

/// How many blocks a scan takes in before it gives what it has and goes on from there.
const MOST_BLOCKS: usize = 1_024;

pub(super) struct Span<'w, W> {
    shard: ShardId,
    asked: Asked<'w>,
    hits: Vec<Hit>,
    next: Option<Position>,
    way: PhantomData<W>,
}

impl<'w> Span<'w, Ahead> {
    pub fn ahead(shard: ShardId, scan: &'w Scan) -> Span<'w, Ahead> {
        let Scan { table, from, until, ref topic, limit, bodies } = *scan;
        let topic = topic.as_ref().map(|topic| topic.as_bytes());
        Span::new(shard, Asked { table, topic, limit, bodies, begin: from, end: until })
    }
}

impl<'w> Span<'w, Back> {
    pub fn back(shard: ShardId, back: &'w ScanBack) -> Span<'w, Back> {
        let ScanBack { table, before, from, ref topic, limit, bodies } = *back;
        let topic = topic.as_ref().map(|topic| topic.as_bytes());
        // Rows without a time are left out.
        let begin = before.min(Position::start_of(Timestamp::NEVER));
        Span::new(shard, Asked { table, topic, limit, bodies, begin, end: from })
    }
}

impl<'w, W> Span<'w, W> {
    fn new(shard: ShardId, asked: Asked<'w>) -> Span<'w, W> {
        Span { shard, asked, hits: Vec::new(), next: None, way: PhantomData }
    }
}

impl<W: Way> Errand for Span<'_, W> {
    fn attempt(&mut self, holdings: &mut Holdings, hand: &mut Hand<'_>) -> bool {
        let Span { shard, asked, .. } = self;
        if W::is_past(asked.begin, asked.end) {
            return true;
        }
        if asked.limit == 0 {
            self.next = Some(asked.begin);
            return true;
        }
        let (found, is_done) = hand.lacking_none(|hand| scan::<W>(holdings, hand, *shard, asked));
        (self.hits, self.next) = found;
        is_done
    }

    fn bring(self: Box<Self>) -> Found {
        let bodies = self.asked.bodies;
        let rows = self.hits.into_iter().map(|hit| hit.read(bodies)).collect();
        Found::Span(Page { rows, next: self.next })
    }
}

/// Where a row is that a scan has come by.
#[derive(Clone, Copy)]
enum Passed {
    Recent(Stand),
    /// In which of the blocks that the scan has taken, and which row there.
    InBlock(u32, u32),
}

/// The rows that a scan finds, and where to go on if there may be more.
fn scan<W: Way>(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    asked: &Asked<'_>,
) -> (Vec<Hit>, Option<Position>) {
    let mut pass =
        Pass::<W> { asked, rows: Vec::new(), taken: Vec::new(), looked: 0, bound: None, stop: None, way: PhantomData };
    pass.take_recent(holdings, shard);
    if !pass.take_blocks(BlocksAhead::new(holdings, shard, asked), hand) {
        // This attempt is made again with the blocks that it lacked.
        return (Vec::new(), None);
    }
    let Pass { mut rows, taken, stop, .. } = pass;
    if let Some(stop) = stop {
        // What was not looked at may be among those after it.
        rows.retain(|(position, _)| W::is_before(*position, stop));
    }
    if rows.len() > asked.limit {
        // Choosing comes first, since far more may have been passed than are to be sorted.
        rows.select_nth_unstable_by_key(asked.limit - 1, |(position, _)| W::rank(*position));
        rows.truncate(asked.limit);
    }
    rows.sort_unstable_by_key(|(position, _)| W::rank(*position));
    let (mut hits, mut bytes) = (Vec::with_capacity(rows.len()), 0);
    for (position, passed) in rows {
        let hit = match passed {
            Passed::Recent(stand) => hand.recent(holdings, stand, asked.bodies),
            Passed::InBlock(block, row) => Some(Hit::InBlock(Arc::clone(&taken[block as usize]), row as usize)),
        };
        // One that lacks its body is looked for again in the next attempt.
        let Some(hit) = hit else { continue };
        bytes += hit.body(asked.bodies);
        hits.push(hit);
        if hits.len() == asked.limit || bytes >= BODIES {
            return (hits, Some(W::after(position)));
        }
    }
    (hits, stop)
}

/// What a scan has taken in.
struct Pass<'a, W> {
    asked: &'a Asked<'a>,
    rows: Vec<(Position, Passed)>,
    taken: Vec<Arc<Block>>,
    /// How many rows of blocks were looked at.
    looked: usize,
    /// A position up to which there are enough rows; none after it is needed.
    bound: Option<Position>,
    /// Where it stopped, having looked at as much as it may: not all that comes after it is known.
    stop: Option<Position>,
    way: PhantomData<W>,
}

impl<W: Way> Pass<'_, W> {
    /// Takes in recent rows, as many as it can need.
    fn take_recent(&mut self, holdings: &mut Holdings, shard: ShardId) {
        let Holdings { active, frozen, .. } = holdings;
        let rows = Arc::clone(active.rows());
        if let Some(index) = active.table(shard, self.asked.table) {
            self.take_layer(W::recent(self.asked, index), &rows, Stand::Active);
        }
        let Some(frozen) = frozen else { return };
        let rows = Arc::clone(frozen.layer().rows());
        if let Some((index, gone)) = frozen.table(shard, self.asked.table) {
            let still_here = W::recent(self.asked, index).filter(|(_, slot)| !gone.contains(*slot));
            self.take_layer(still_here, &rows, Stand::Frozen);
        }
    }

    fn take_layer(
        &mut self,
        in_order: impl Iterator<Item = (Position, SlotId)>,
        rows: &Rows,
        stand: impl Fn(SlotId) -> Stand,
    ) {
        let (topic, mut found) = (self.asked.topic, 0);
        for ((position, slot), looked) in in_order.zip(1..) {
            if topic.is_none_or(|topic| rows.row(slot).0.topic() == topic) {
                self.rows.push((position, Passed::Recent(stand(slot))));
                found += 1;
            }
            if found == self.asked.limit {
                return;
            }
            if looked == self.asked.most() {
                return self.stop_at(W::after(position));
            }
        }
    }

    /// Takes in blocks until there are enough rows, or it has looked at as much as it may; says whether it had all of
    /// these blocks.
    fn take_blocks(&mut self, mut ahead: BlocksAhead<'_, W>, hand: &mut Hand<'_>) -> bool {
        let mut missed = 0;
        while let Some(edge) = ahead.next_edge() {
            let is_beyond = self.stop.is_some_and(|stop| W::rank(edge) >= W::rank(stop));
            if W::is_past(edge, self.asked.end) || is_beyond || self.has_enough(edge) {
                break;
            }
            // Blocks that reach back to the beginning are needed in any case.
            if W::rank(edge) > W::rank(self.asked.begin) {
                if self.taken.len() >= MOST_BLOCKS || self.looked >= self.asked.most() {
                    self.stop_at(edge);
                    break;
                }
                // While blocks are missing, those are named that will be needed too, to be loaded together. Their rows
                // are as good as found, so it ends where they would be enough.
                if missed >= self.asked.limit {
                    break;
                }
            }
            let (shelved, number) = ahead.take();
            match hand.block(&shelved.run, number) {
                Some(block) => self.take(shelved, number, block),
                None => missed += shelved.run.ordinals(number).len(),
            }
        }
        missed == 0
    }

    fn stop_at(&mut self, position: Position) {
        self.stop = self.stop.into_iter().chain([position]).min_by_key(|stop| W::rank(*stop));
    }

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
        if topic.is_some() {
            self.looked += block.rows();
        }
        self.taken.push(block);
    }
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
