//! Reading against the order of time, the latest rows first: the mirror of what goes with it.
//!
//! A block's rows stand before the first row of the next block, so blocks are taken in the order of these bounds, the
//! latest first. All rows behind the bound of the next block are known then: once these are enough, the scan is done.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

use punctual_core::Timestamp;
use punctual_core::store::{FindBack, Position, Row, ScanBack, ShardId, StoreError};

use super::{Found, Hand, MOST_BLOCKS, Passed, Reader};
use crate::address::Address;
use crate::holdings::{Holdings, Stand};
use crate::lock::lock;
use crate::recent::{Rows, SlotId};
use crate::row::group_hash;
use crate::run::{Block, Run};
use crate::shelf::Shelved;

impl Reader<'_> {
    /// Reads against time order, in pieces where a topic's rows are few among very many.
    pub fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let mut back = back.clone();
        // Rows without a time are left out.
        back.before = back.before.min(Position::start_of(Timestamp::NEVER));
        while back.limit > 0 && back.before > Position::start_of(back.from) {
            let (found, next) = self.attempt(|holdings, hand| scan(holdings, hand, shard, &back))?;
            back.limit -= found.len();
            rows.extend(found.into_iter().map(|found| found.read(back.bodies)));
            match next {
                Some(next) => back.before = next,
                None => break,
            }
        }
        Ok(rows)
    }

    /// Reads a group against the order of its numbers, in pieces if a run holds more of it than is wanted.
    pub fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let mut back = back.clone();
        while back.limit > 0 && back.before_seq > 0 {
            let (found, next) = self.find_back_piece(shard, &back)?;
            back.limit -= found.len();
            rows.extend(found.into_iter().map(|found| found.read(back.bodies)));
            match next {
                Some(next) => back.before_seq = next,
                None => break,
            }
        }
        Ok(rows)
    }

    fn find_back_piece(&self, shard: ShardId, back: &FindBack) -> Result<(Vec<Found>, Option<u64>), StoreError> {
        let hash = group_hash(shard, &back.group);
        let mut members: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
        loop {
            // What a run says of a group never changes, so it is asked without the lock.
            let runs: Vec<Arc<Run>> =
                lock(self.holdings).shelf.runs().map(|(_, shelved)| Arc::clone(&shelved.run)).collect();
            for run in runs {
                if let Entry::Vacant(unasked) = members.entry(run.number()) {
                    unasked.insert(run.group_back(hash, back.before_seq, back.limit)?);
                }
            }
            let found = self.attempt(|holdings, hand| {
                let known = holdings.shelf.runs().all(|(_, shelved)| members.contains_key(&shelved.run.number()));
                known.then(|| find(holdings, hand, shard, back, &members))
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }
}

/// The rows that a scan finds, the latest first, and before what to go on if it took in as much as it may.
fn scan(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    back: &ScanBack,
) -> (Vec<Found>, Option<Position>) {
    let mut pass = Pass { back, rows: scan_recent(holdings, shard, back), taken: Vec::new(), bound: None };
    let mut behind = BlocksBehind::new(holdings, shard, back);
    let mut missed = 0;
    let next = loop {
        let Some(end) = behind.next_end().filter(|end| !pass.has_enough(*end)) else { break None };
        if pass.taken.len() >= MOST_BLOCKS {
            break Some(end);
        }
        // While blocks are missing, those are named that will be needed too, to be loaded together.
        if missed >= back.limit && end < back.before {
            break None;
        }
        let (shelved, number) = behind.take();
        match hand.block(&shelved.run, number) {
            Some(block) => pass.take(shelved, number, block),
            None => missed += shelved.run.ordinals(number).len(),
        }
    };
    if !hand.missing.is_empty() {
        return (Vec::new(), None);
    }
    let Pass { mut rows, taken, .. } = pass;
    if let Some(next) = next {
        rows.retain(|(position, _)| *position >= next);
    }
    if rows.len() > back.limit {
        rows.select_nth_unstable_by_key(back.limit - 1, |(position, _)| Reverse(*position));
        rows.truncate(back.limit);
    }
    rows.sort_unstable_by_key(|(position, _)| Reverse(*position));
    let done = rows.len() == back.limit;
    let found = rows.into_iter().filter_map(|(_, passed)| match passed {
        Passed::Recent(stand) => hand.recent(holdings, stand, back.bodies),
        Passed::InBlock(block, row) => Some(Found::InBlock(Arc::clone(&taken[block as usize]), row as usize)),
    });
    (found.collect(), next.filter(|_| !done))
}

/// What a scan has taken in.
struct Pass<'a> {
    back: &'a ScanBack,
    rows: Vec<(Position, Passed)>,
    taken: Vec<Arc<Block>>,
    /// A position from which on there are enough rows; none before it is needed.
    bound: Option<Position>,
}

impl Pass<'_> {
    /// Whether there are enough rows from this position on.
    fn has_enough(&mut self, end: Position) -> bool {
        let limit = self.back.limit;
        if self.rows.len() < limit {
            return false;
        }
        // More rows only bring the bound nearer, so an old one is right; it is looked for anew when enough has been
        // added to make that worth while.
        let worth = |bound: Position| bound < end && self.rows.len() > limit + limit / 4;
        if self.bound.is_none_or(worth) {
            let nth = self.rows.select_nth_unstable_by_key(limit - 1, |(position, _)| Reverse(*position));
            self.bound = Some(nth.1.0);
            self.rows.truncate(limit);
        }
        self.bound.is_some_and(|bound| bound >= end)
    }

    /// Takes in the living rows of a block that the scan wants.
    fn take(&mut self, shelved: &Shelved, number: usize, block: Arc<Block>) {
        let first = shelved.run.ordinals(number).start;
        let all_alive = shelved.deaths.is_empty();
        let topic = self.back.topic.as_ref().map(|topic| topic.as_bytes());
        let stop = block.search(self.back.before).unwrap_or_else(|index| index);
        let own = self.taken.len() as u32;
        for index in (0..stop).rev() {
            let row = block.row(index);
            let position = row.position();
            if position.at < self.back.from || self.bound.is_some_and(|bound| position < bound) {
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
fn scan_recent(holdings: &mut Holdings, shard: ShardId, back: &ScanBack) -> Vec<(Position, Passed)> {
    let Holdings { active, frozen, .. } = holdings;
    let mut passed = Vec::new();
    let rows = Arc::clone(active.rows());
    if let Some(index) = active.table(shard, back.table) {
        let in_time = index.range_back(back.from, back.before);
        passed.extend(wanted(in_time, &rows, back).map(|(at, slot)| (at, Passed::Recent(Stand::Active(slot)))));
    }
    if let Some(frozen) = frozen {
        let rows = Arc::clone(frozen.layer().rows());
        let in_time = frozen.range_back(shard, back.table, back.from, back.before);
        passed.extend(wanted(in_time, &rows, back).map(|(at, slot)| (at, Passed::Recent(Stand::Frozen(slot)))));
    }
    passed
}

/// Those of a layer's rows that a scan wants, as many as it can need.
fn wanted(
    in_time: impl Iterator<Item = (Position, SlotId)>,
    rows: &Rows,
    back: &ScanBack,
) -> impl Iterator<Item = (Position, SlotId)> {
    let topic = back.topic.as_ref().map(|topic| topic.as_bytes());
    in_time.filter(move |(_, slot)| topic.is_none_or(|topic| rows.row(*slot).0.topic() == topic)).take(back.limit)
}

/// The blocks of all runs that a scan has still to look at, by the bounds before which their rows stand.
struct BlocksBehind<'a> {
    before: Position,
    runs: Vec<(&'a Shelved, Range<usize>)>,
    heap: BinaryHeap<(Position, usize)>,
}

impl<'a> BlocksBehind<'a> {
    fn new(holdings: &'a Holdings, shard: ShardId, back: &ScanBack) -> BlocksBehind<'a> {
        let mut behind = BlocksBehind { before: back.before, runs: Vec::new(), heap: BinaryHeap::new() };
        let from = Position::start_of(back.from);
        for (_, shelved) in holdings.shelf.runs() {
            let blocks = shelved.run.blocks_before(shard, back.table, from, back.before);
            let last = blocks.end;
            behind.runs.push((shelved, blocks));
            behind.push(behind.runs.len() - 1, last);
        }
        behind
    }

    fn next_end(&self) -> Option<Position> {
        self.heap.peek().map(|(end, _)| *end)
    }

    /// Takes the next block.
    fn take(&mut self) -> (&'a Shelved, usize) {
        let (_, index) = self.heap.pop().expect("the caller has looked");
        let (shelved, blocks) = &mut self.runs[index];
        let last = blocks.end;
        blocks.end -= 1;
        let (shelved, number) = (*shelved, blocks.end);
        self.push(index, last);
        (shelved, number)
    }

    /// Enters a run's next block that has a living row; `taken` is the end of its blocks a moment ago.
    fn push(&mut self, index: usize, taken: usize) {
        let (shelved, blocks) = &mut self.runs[index];
        blocks.end = shelved.living_end(blocks.clone());
        if blocks.start < blocks.end {
            // Behind the last of all that fit nothing is known but where the scan began.
            let end = if blocks.end < taken { shelved.run.first_position(blocks.end) } else { self.before };
            self.heap.push((end.min(self.before), index));
        }
    }
}

/// The rows of a group, the greatest number first, and before what to go on if a run has more of it than was asked.
fn find(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    back: &FindBack,
    members: &BTreeMap<u64, Vec<(u64, u32)>>,
) -> (Vec<Found>, Option<u64>) {
    let mut passed: Vec<(u64, Stand)> = Vec::new();
    if let Some(index) = holdings.active.table(shard, back.table) {
        let active = index.group_back(&back.group, back.before_seq).take(back.limit);
        passed.extend(active.map(|(seq, slot)| (seq, Stand::Active(slot))));
    }
    if let Some(frozen) = &holdings.frozen {
        let frozen = frozen.group_back(shard, back.table, &back.group, back.before_seq).take(back.limit);
        passed.extend(frozen.map(|(seq, slot)| (seq, Stand::Frozen(slot))));
    }
    // Below this number a run may have more rows of the group than it has told.
    let mut horizon = 0;
    for (run, shelved) in holdings.shelf.runs() {
        let told = &members[&shelved.run.number()];
        if told.len() >= back.limit {
            horizon = horizon.max(told.last().map_or(0, |(seq, _)| *seq));
        }
        for (seq, ordinal) in told {
            let place = shelved.run.place(shelved.run.block_of(*ordinal));
            if place == (shard, back.table) && !shelved.deaths.contains(*ordinal) {
                passed.push((*seq, Stand::Run(Address { run, ordinal: *ordinal })));
            }
        }
    }
    passed.retain(|(seq, _)| *seq >= horizon);
    passed.sort_unstable_by_key(|(seq, _)| Reverse(*seq));
    let mut found = Vec::new();
    for (_, stand) in passed {
        if found.len() == back.limit {
            break;
        }
        match stand {
            Stand::Run(address) => {
                // Groups of one hash are told apart by their names.
                let row = hand.row(holdings, address);
                let row = row.filter(|(block, index)| block.row(*index).group() == Some(&back.group));
                found.extend(row.map(|(block, index)| Found::InBlock(block, index)));
            }
            recent => found.extend(hand.recent(holdings, recent, back.bodies)),
        }
    }
    let next = (horizon > 0 && found.len() < back.limit).then_some(horizon);
    (found, next)
}
