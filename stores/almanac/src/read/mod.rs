//! Reading: recent rows and runs brought together.
//!
//! The holdings are locked only to find out which rows are meant, never while the disk is read: an
//! attempt that lacks blocks names them, they are loaded without the lock, and it is made again. So
//! what a read gives is what there was at one moment, and commits do not wait for the disk of readers.

mod back;
mod numbered;

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use punctual_core::store::{Bodies, Find, Key, Position, Row, Scan, ShardId, StoreError, Table};

use crate::address::Address;
use crate::blocks::Blocks;
use crate::holdings::{Holdings, Stand};
use crate::lock::lock;
use crate::recent::{Body, Rows, SlotId};
use crate::row::{KeyText, group_hash};
use crate::run::{Block, Run};
use crate::shelf::Shelved;

/// How many blocks a scan takes in before it gives what it has and goes on from there.
const MOST_BLOCKS: usize = 1_024;

/// Reads from the holdings and the runs that they name.
pub(crate) struct Reader<'a> {
    pub holdings: &'a Mutex<Holdings>,
    pub blocks: &'a Blocks,
}

/// A row that was found, to be copied out when the lock is free again.
enum Found {
    Row(Row),
    InBlock(Arc<Block>, usize),
    /// A recent row whose body is in a run.
    Borrowed(Row, Arc<Block>, usize),
}

impl Found {
    fn read(self, bodies: Bodies) -> Row {
        match self {
            Found::Row(row) => row,
            Found::InBlock(block, index) => block.row(index).read(bodies),
            Found::Borrowed(row, block, index) => {
                Row { body: bytes::Bytes::copy_from_slice(block.row(index).body()), ..row }
            }
        }
    }
}

/// The blocks that a read has at hand, and those it lacks.
struct Hand<'a> {
    cache: &'a Blocks,
    held: BTreeMap<(u64, usize), Arc<Block>>,
    missing: Vec<(Arc<Run>, usize)>,
}

impl Hand<'_> {
    fn block(&mut self, run: &Arc<Run>, block: usize) -> Option<Arc<Block>> {
        if let Some(held) = self.held.get(&(run.number(), block)) {
            return Some(Arc::clone(held));
        }
        match self.cache.get(run, block) {
            Some(cached) => {
                self.held.insert((run.number(), block), Arc::clone(&cached));
                Some(cached)
            }
            None => {
                self.missing.push((Arc::clone(run), block));
                None
            }
        }
    }

    /// The row at an address.
    fn row(&mut self, holdings: &Holdings, address: Address) -> Option<(Arc<Block>, usize)> {
        let run = &holdings.shelf.get(address.run).expect("an address names a run on the shelf").run;
        let (block, index) = run.locate(address.ordinal);
        Some((self.block(run, block)?, index))
    }

    /// A recent row, with its body if that is wanted; `None` if the body's block is missing.
    fn recent(&mut self, holdings: &Holdings, stand: Stand, bodies: Bodies) -> Option<Found> {
        let (row, body) = holdings.recent_row(stand);
        match (bodies, body) {
            (Bodies::With, Body::Borrowed(address)) => {
                let (block, index) = self.row(holdings, address)?;
                Some(Found::Borrowed(row.read(Bodies::Without), block, index))
            }
            _ => Some(Found::Row(row.read(bodies))),
        }
    }
}

impl<'a> Reader<'a> {
    pub fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let keys: Vec<(u64, KeyText<'_>)> =
            keys.iter().map(KeyText::of).map(|key| (key.hash(shard, Table::Live), key)).collect();
        let found = self.attempt(|holdings, hand| {
            // Many cold lines of memory are waited for at once here, and one by one below.
            holdings.shelf.keys().warm(keys.iter().map(|(hash, _)| *hash));
            keys.iter().map(|(hash, key)| get(holdings, hand, shard, *hash, *key, bodies)).collect::<Vec<_>>()
        })?;
        Ok(found.into_iter().map(|found| found.map(|found| found.read(bodies))).collect())
    }

    pub fn fetch(
        &self,
        shard: ShardId,
        positions: &[Position],
        bodies: Bodies,
    ) -> Result<Vec<Option<Row>>, StoreError> {
        let found = self.attempt(|holdings, hand| {
            positions.iter().map(|position| fetch(holdings, hand, shard, *position, bodies)).collect::<Vec<_>>()
        })?;
        Ok(found.into_iter().map(|found| found.map(|found| found.read(bodies))).collect())
    }

    /// Reads in time order. A scan for one topic may pass over very many rows of others; then it
    /// goes on in pieces, and each piece is what there was at one moment.
    pub fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let mut scan = scan.clone();
        while scan.limit > 0 && scan.from.at < scan.until {
            let (found, next) = self.attempt(|holdings, hand| self::scan(holdings, hand, shard, &scan))?;
            scan.limit -= found.len();
            rows.extend(found.into_iter().map(|found| found.read(scan.bodies)));
            match next {
                Some(next) => scan.from = next,
                None => break,
            }
        }
        Ok(rows)
    }

    /// Reads a group, in pieces as well if a run holds more of it than is wanted.
    pub fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let mut find = find.clone();
        while find.limit > 0 {
            let (found, next) = self.find_piece(shard, &find)?;
            find.limit -= found.len();
            rows.extend(found.into_iter().map(|found| found.read(find.bodies)));
            match next {
                Some(next) => find.from_seq = next,
                None => break,
            }
        }
        Ok(rows)
    }

    fn find_piece(&self, shard: ShardId, find: &Find) -> Result<(Vec<Found>, Option<u64>), StoreError> {
        let hash = group_hash(shard, &find.group);
        let mut members: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
        loop {
            // What a run says of a group never changes, so it is asked without the lock.
            let runs: Vec<Arc<Run>> =
                lock(self.holdings).shelf.runs().map(|(_, shelved)| Arc::clone(&shelved.run)).collect();
            for run in runs {
                if let Entry::Vacant(unasked) = members.entry(run.number()) {
                    unasked.insert(run.group(hash, find.from_seq, find.limit)?);
                }
            }
            let found = self.attempt(|holdings, hand| {
                let known = holdings.shelf.runs().all(|(_, shelved)| members.contains_key(&shelved.run.number()));
                known.then(|| self::find(holdings, hand, shard, find, &members))
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// Makes attempts until one lacks nothing.
    fn attempt<T>(&self, mut attempt: impl FnMut(&mut Holdings, &mut Hand<'a>) -> T) -> Result<T, StoreError> {
        let mut hand = Hand { cache: self.blocks, held: BTreeMap::new(), missing: Vec::new() };
        let mut unreadable = None;
        loop {
            let result = attempt(&mut lock(self.holdings), &mut hand);
            if hand.missing.is_empty() {
                return Ok(result);
            }
            for (run, block) in std::mem::take(&mut hand.missing) {
                if hand.held.contains_key(&(run.number(), block)) {
                    continue;
                }
                match self.blocks.load(&run, block) {
                    Ok(loaded) => _ = hand.held.insert((run.number(), block), loaded),
                    // The rows of the block may all have died meanwhile and its room given back;
                    // the next attempt does not ask for it any more.
                    Err(_) if unreadable != Some((run.number(), block)) && self.is_gone(&run, block) => {
                        unreadable = Some((run.number(), block));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn is_gone(&self, run: &Run, block: usize) -> bool {
        let holdings = lock(self.holdings);
        let shelved = holdings.shelf.runs().find(|(_, shelved)| shelved.run.number() == run.number());
        shelved.is_none_or(|(_, shelved)| shelved.is_dead(block))
    }
}

fn get(
    holdings: &Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    hash: u64,
    key: KeyText<'_>,
    bodies: Bodies,
) -> Option<Found> {
    if let Some(stand) = holdings.find_recent(hash, key, shard, Table::Live) {
        return hand.recent(holdings, stand, bodies);
    }
    for address in holdings.shelf.candidates(hash) {
        let Some((block, index)) = hand.row(holdings, address) else { continue };
        let run = &holdings.shelf.get(address.run).expect("a candidate is on the shelf").run;
        let (of, table) = run.place(run.block_of(address.ordinal));
        if of == shard && table != Table::Settings && block.row(index).has_key(key) {
            return Some(Found::InBlock(block, index));
        }
    }
    None
}

fn fetch(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    position: Position,
    bodies: Bodies,
) -> Option<Found> {
    let active = holdings.active.table(shard, Table::Live).and_then(|index| index.get(position)).map(Stand::Active);
    let frozen =
        holdings.frozen.as_mut().and_then(|frozen| frozen.get(shard, Table::Live, position)).map(Stand::Frozen);
    if let Some(stand) = active.or(frozen) {
        return hand.recent(holdings, stand, bodies);
    }
    for (_, shelved) in holdings.shelf.runs() {
        if !shelved.run.seqs(shard).is_some_and(|seqs| seqs.contains(&position.seq)) {
            continue;
        }
        let blocks = shelved.run.blocks_from(shard, Table::Live, position);
        if blocks.is_empty() || shelved.is_dead(blocks.start) {
            continue;
        }
        let Some(block) = hand.block(&shelved.run, blocks.start) else { continue };
        if let Ok(index) = block.search(position)
            && !shelved.deaths.contains(shelved.run.ordinals(blocks.start).start + index as u32)
        {
            return Some(Found::InBlock(block, index));
        }
    }
    None
}

/// Where a row is that a scan has come by.
#[derive(Clone, Copy)]
enum Passed {
    Recent(Stand),
    /// In which of the blocks that the scan has taken, and which row there.
    InBlock(u32, u32),
}

/// The rows that a scan finds, and where to go on if it took in as much as it may.
///
/// Blocks are taken in the order of their first positions. All rows before the first position of
/// the next block are known then: once these are enough, the scan is done.
fn scan(holdings: &mut Holdings, hand: &mut Hand<'_>, shard: ShardId, scan: &Scan) -> (Vec<Found>, Option<Position>) {
    let mut pass = Pass { scan, rows: scan_recent(holdings, shard, scan), taken: Vec::new(), bound: None };
    let mut ahead = BlocksAhead::new(holdings, shard, scan);
    let mut missed = 0;
    let next = loop {
        let Some(start) = ahead.next_start().filter(|start| start.at < scan.until && !pass.has_enough(*start)) else {
            break None;
        };
        if pass.taken.len() >= MOST_BLOCKS {
            break Some(start);
        }
        // While blocks are missing, those are named that will be needed too, to be loaded together.
        if missed >= scan.limit && start > scan.from {
            break None;
        }
        let (shelved, number) = ahead.take();
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
        rows.retain(|(position, _)| *position < next);
    }
    if rows.len() > scan.limit {
        rows.select_nth_unstable_by_key(scan.limit - 1, |(position, _)| *position);
        rows.truncate(scan.limit);
    }
    rows.sort_unstable_by_key(|(position, _)| *position);
    let done = rows.len() == scan.limit;
    let found = rows.into_iter().filter_map(|(_, passed)| match passed {
        Passed::Recent(stand) => hand.recent(holdings, stand, scan.bodies),
        Passed::InBlock(block, row) => Some(Found::InBlock(Arc::clone(&taken[block as usize]), row as usize)),
    });
    (found.collect(), next.filter(|_| !done))
}

/// What a scan has taken in.
struct Pass<'a> {
    scan: &'a Scan,
    rows: Vec<(Position, Passed)>,
    taken: Vec<Arc<Block>>,
    /// A position up to which there are enough rows; none after it is needed.
    bound: Option<Position>,
}

impl Pass<'_> {
    /// Whether there are enough rows before this position.
    fn has_enough(&mut self, start: Position) -> bool {
        let limit = self.scan.limit;
        if self.rows.len() < limit {
            return false;
        }
        // More rows only bring the bound forward, so an old one is right; it is looked for anew when
        // enough has been added to make that worth while.
        let worth = |bound: Position| bound >= start && self.rows.len() > limit + limit / 4;
        if self.bound.is_none_or(worth) {
            self.bound = Some(self.rows.select_nth_unstable_by_key(limit - 1, |(position, _)| *position).1.0);
            self.rows.truncate(limit);
        }
        self.bound.is_some_and(|bound| bound < start)
    }

    /// Takes in the living rows of a block that the scan wants.
    fn take(&mut self, shelved: &Shelved, number: usize, block: Arc<Block>) {
        let first = shelved.run.ordinals(number).start;
        let all_alive = shelved.deaths.is_empty();
        let topic = self.scan.topic.as_ref().map(|topic| topic.as_bytes());
        let begin = block.search(self.scan.from).unwrap_or_else(|index| index);
        let own = self.taken.len() as u32;
        for index in begin..block.rows() {
            let row = block.row(index);
            let position = row.position();
            if position.at >= self.scan.until || self.bound.is_some_and(|bound| position > bound) {
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
fn scan_recent(holdings: &mut Holdings, shard: ShardId, scan: &Scan) -> Vec<(Position, Passed)> {
    let Holdings { active, frozen, .. } = holdings;
    let mut passed = Vec::new();
    let rows = Arc::clone(active.rows());
    if let Some(index) = active.table(shard, scan.table) {
        let in_time = index.range(scan.from, scan.until);
        passed.extend(wanted(in_time, &rows, scan).map(|(at, slot)| (at, Passed::Recent(Stand::Active(slot)))));
    }
    if let Some(frozen) = frozen {
        let rows = Arc::clone(frozen.layer().rows());
        let in_time = frozen.range(shard, scan.table, scan.from, scan.until);
        passed.extend(wanted(in_time, &rows, scan).map(|(at, slot)| (at, Passed::Recent(Stand::Frozen(slot)))));
    }
    passed
}

/// Those of a layer's rows that a scan wants, as many as it can need.
fn wanted(
    in_time: impl Iterator<Item = (Position, SlotId)>,
    rows: &Rows,
    scan: &Scan,
) -> impl Iterator<Item = (Position, SlotId)> {
    let topic = scan.topic.as_ref().map(|topic| topic.as_bytes());
    in_time.filter(move |(_, slot)| topic.is_none_or(|topic| rows.row(*slot).0.topic() == topic)).take(scan.limit)
}

/// The blocks of all runs that a scan has still to look at, by their first positions.
struct BlocksAhead<'a> {
    runs: Vec<(&'a Shelved, Range<usize>)>,
    heap: BinaryHeap<Reverse<(Position, usize)>>,
}

impl<'a> BlocksAhead<'a> {
    fn new(holdings: &'a Holdings, shard: ShardId, scan: &Scan) -> BlocksAhead<'a> {
        let mut ahead = BlocksAhead { runs: Vec::new(), heap: BinaryHeap::new() };
        for (_, shelved) in holdings.shelf.runs() {
            ahead.runs.push((shelved, shelved.run.blocks_from(shard, scan.table, scan.from)));
            ahead.push(ahead.runs.len() - 1);
        }
        ahead
    }

    fn next_start(&self) -> Option<Position> {
        self.heap.peek().map(|Reverse((start, _))| *start)
    }

    /// Takes the next block.
    fn take(&mut self) -> (&'a Shelved, usize) {
        let Reverse((_, index)) = self.heap.pop().expect("the caller has looked");
        let (shelved, blocks) = &mut self.runs[index];
        let (shelved, number) = (*shelved, blocks.start);
        blocks.start += 1;
        self.push(index);
        (shelved, number)
    }

    /// Enters a run's next block that has a living row.
    fn push(&mut self, index: usize) {
        let (shelved, blocks) = &mut self.runs[index];
        blocks.start = shelved.first_living(blocks.clone());
        if blocks.start < blocks.end {
            self.heap.push(Reverse((shelved.run.first_position(blocks.start), index)));
        }
    }
}

/// The rows of a group, and where to go on if a run has more of it than was asked.
fn find(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    find: &Find,
    members: &BTreeMap<u64, Vec<(u64, u32)>>,
) -> (Vec<Found>, Option<u64>) {
    let mut passed: Vec<(u64, Stand)> = Vec::new();
    if let Some(index) = holdings.active.table(shard, find.table) {
        let active = index.group(&find.group, find.from_seq).take(find.limit);
        passed.extend(active.map(|(seq, slot)| (seq, Stand::Active(slot))));
    }
    if let Some(frozen) = &holdings.frozen {
        let frozen = frozen.group(shard, find.table, &find.group, find.from_seq).take(find.limit);
        passed.extend(frozen.map(|(seq, slot)| (seq, Stand::Frozen(slot))));
    }
    // Beyond this number a run may have more rows of the group than it has told.
    let mut horizon = u64::MAX;
    for (run, shelved) in holdings.shelf.runs() {
        let told = &members[&shelved.run.number()];
        if told.len() >= find.limit {
            horizon = horizon.min(told.last().map_or(u64::MAX, |(seq, _)| *seq));
        }
        for (seq, ordinal) in told {
            let place = shelved.run.place(shelved.run.block_of(*ordinal));
            if place == (shard, find.table) && !shelved.deaths.contains(*ordinal) {
                passed.push((*seq, Stand::Run(Address { run, ordinal: *ordinal })));
            }
        }
    }
    passed.retain(|(seq, _)| *seq <= horizon);
    passed.sort_unstable_by_key(|(seq, _)| *seq);
    let mut found = Vec::new();
    for (_, stand) in passed {
        if found.len() == find.limit {
            break;
        }
        match stand {
            Stand::Run(address) => {
                // Groups of one hash are told apart by their names.
                let row = hand.row(holdings, address);
                let row = row.filter(|(block, index)| block.row(*index).group() == Some(&find.group));
                found.extend(row.map(|(block, index)| Found::InBlock(block, index)));
            }
            recent => found.extend(hand.recent(holdings, recent, find.bodies)),
        }
    }
    let next = (horizon < u64::MAX && found.len() < find.limit).then(|| horizon + 1);
    (found, next)
}
