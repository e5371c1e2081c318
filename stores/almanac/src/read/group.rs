//! Reading a group by the numbers of its rows, from the smallest on or from the greatest.

use std::cmp::Reverse;
use std::marker::PhantomData;

use punctual_core::Name;
use punctual_core::store::{Bodies, Find, FindBack, Found, Index, Page, ShardId, Table};

use super::told::Told;
use super::{BODIES, Errand, Hand, Hit, LOOKED};
use crate::address::Address;
use crate::error::ReadError;
use crate::holdings::{Holdings, Stand};
use crate::recent::SlotId;
use crate::row::group_hash;
use crate::run::Run;

/// The rows of a group that a run has, dead ones too: their numbers and ordinals, in the order of the search.
type Members = Vec<(u64, u32)>;

/// What is asked for, whichever way it goes through the numbers.
struct Asked<'a> {
    table: Table,
    group: &'a Name,
    limit: usize,
    bodies: Bodies,
    begin: u64,
}

trait Way {
    /// What rises along the way.
    type Rank: Ord;

    fn rank(seq: u64) -> Self::Rank;

    fn recent(asked: &Asked<'_>, index: &Index<SlotId>) -> impl Iterator<Item = (u64, SlotId)>;

    fn members(asked: &Asked<'_>, run: &Run, hash: u64) -> Result<Members, ReadError>;

    /// Where to begin after this number, if there can be anything.
    fn after(seq: u64) -> Option<u64>;
}

/// The smallest numbers first.
pub(super) struct Ahead;

impl Way for Ahead {
    type Rank = u64;

    fn rank(seq: u64) -> u64 {
        seq
    }

    fn recent(asked: &Asked<'_>, index: &Index<SlotId>) -> impl Iterator<Item = (u64, SlotId)> {
        index.group(asked.group, asked.begin)
    }

    fn members(asked: &Asked<'_>, run: &Run, hash: u64) -> Result<Members, ReadError> {
        run.group(hash, asked.begin, asked.limit)
    }

    fn after(seq: u64) -> Option<u64> {
        seq.checked_add(1)
    }
}

/// The greatest numbers first; where it begins is left out.
pub(super) struct Back;

impl Way for Back {
    type Rank = Reverse<u64>;

    fn rank(seq: u64) -> Reverse<u64> {
        Reverse(seq)
    }

    fn recent(asked: &Asked<'_>, index: &Index<SlotId>) -> impl Iterator<Item = (u64, SlotId)> {
        index.group_back(asked.group, asked.begin)
    }

    fn members(asked: &Asked<'_>, run: &Run, hash: u64) -> Result<Members, ReadError> {
        run.group_back(hash, asked.begin, asked.limit)
    }

    fn after(seq: u64) -> Option<u64> {
        Some(seq).filter(|seq| *seq > 0)
    }
}

pub(super) struct Group<'w, W> {
    shard: ShardId,
    hash: u64,
    asked: Asked<'w>,
    told: Told<Members>,
    /// How many rows were asked for in the pieces so far.
    looked: usize,
    /// How many bytes of bodies were found in them.
    bytes: usize,
    hits: Vec<Hit>,
    next: Option<u64>,
    way: PhantomData<W>,
}

impl<'w> Group<'w, Ahead> {
    pub fn ahead(shard: ShardId, find: &'w Find) -> Group<'w, Ahead> {
        let Find { table, ref group, from_seq, limit, bodies } = *find;
        Group::new(shard, Asked { table, group, limit, bodies, begin: from_seq })
    }
}

impl<'w> Group<'w, Back> {
    pub fn back(shard: ShardId, back: &'w FindBack) -> Group<'w, Back> {
        let FindBack { table, ref group, before_seq, limit, bodies } = *back;
        Group::new(shard, Asked { table, group, limit, bodies, begin: before_seq })
    }
}

impl<'w, W> Group<'w, W> {
    fn new(shard: ShardId, asked: Asked<'w>) -> Group<'w, W> {
        let (hash, next) = (group_hash(shard, asked.group), Some(asked.begin));
        Group {
            shard,
            hash,
            asked,
            told: Told::default(),
            looked: 0,
            bytes: 0,
            hits: Vec::new(),
            next,
            way: PhantomData,
        }
    }
}

impl<W: Way> Errand for Group<'_, W> {
    /// Goes on in pieces if a run holds more of the group than is wanted: some of that may be dead.
    fn attempt(&mut self, holdings: &mut Holdings, hand: &mut Hand<'_>) -> bool {
        if self.asked.limit == 0 {
            return true;
        }
        if !self.told.is_complete(&holdings.shelf) {
            return false;
        }
        let Group { shard, asked, told, .. } = self;
        let ((hits, next), is_whole) = hand.lacking_none(|hand| find::<W>(holdings, hand, *shard, asked, told));
        if !is_whole {
            return false;
        }
        self.looked += self.asked.limit;
        self.bytes += hits.iter().map(|hit| hit.body(self.asked.bodies)).sum::<usize>();
        self.asked.limit -= hits.len();
        self.hits.extend(hits);
        self.next = next;
        let goes_on = self.asked.limit > 0 && self.looked < LOOKED && self.bytes < BODIES;
        let Some(begin) = next.filter(|_| goes_on) else { return true };
        self.asked.begin = begin;
        self.told = Told::default();
        // There are runs to ask, since one of them has more.
        self.told.is_complete(&holdings.shelf)
    }

    fn ask(&mut self) -> Result<(), ReadError> {
        let Group { hash, ref asked, ref mut told, .. } = *self;
        told.ask(|run| W::members(asked, run, hash))
    }

    fn bring(self: Box<Self>) -> Found {
        let bodies = self.asked.bodies;
        let rows = self.hits.into_iter().map(|hit| hit.read(bodies)).collect();
        Found::Members(Page { rows, next: self.next })
    }
}

/// The rows of a group, and from which number to go on if there may be more.
fn find<W: Way>(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    asked: &Asked<'_>,
    members: &Told<Members>,
) -> (Vec<Hit>, Option<u64>) {
    let Asked { table, group, limit, bodies, .. } = *asked;
    let mut passed: Vec<(u64, Stand)> = Vec::new();
    if let Some(index) = holdings.active.table(shard, table) {
        passed.extend(W::recent(asked, index).take(limit).map(|(seq, slot)| (seq, Stand::Active(slot))));
    }
    if let Some((index, gone)) = holdings.frozen.as_mut().and_then(|frozen| frozen.table(shard, table)) {
        let still_here = W::recent(asked, index).filter(|(_, slot)| !gone.contains(*slot));
        passed.extend(still_here.take(limit).map(|(seq, slot)| (seq, Stand::Frozen(slot))));
    }
    // After this number a run may have more rows of the group than it has told.
    let mut horizon = None;
    for (run, shelved) in holdings.shelf.runs() {
        let told = members.by(shelved.run.number());
        if told.len() >= limit {
            let last = told.last().map(|(seq, _)| *seq);
            horizon = horizon.into_iter().chain(last).min_by_key(|seq| W::rank(*seq));
        }
        for (seq, ordinal) in told {
            let place = shelved.run.place(shelved.run.block_of(*ordinal));
            if place == (shard, table) && !shelved.deaths.contains(*ordinal) {
                passed.push((*seq, Stand::Run(Address { run, ordinal: *ordinal })));
            }
        }
    }
    passed.retain(|(seq, _)| horizon.is_none_or(|horizon| W::rank(*seq) <= W::rank(horizon)));
    passed.sort_unstable_by_key(|(seq, _)| W::rank(*seq));
    let (mut hits, mut bytes) = (Vec::new(), 0);
    for (seq, stand) in passed {
        let hit = match stand {
            Stand::Run(address) => {
                // Groups of one hash are told apart by their names.
                let row = hand.row(holdings, address);
                let row = row.filter(|(block, index)| block.row(*index).group() == Some(group));
                row.map(|(block, index)| Hit::InBlock(block, index))
            }
            recent => hand.recent(holdings, recent, bodies),
        };
        let Some(hit) = hit else { continue };
        bytes += hit.body(bodies);
        hits.push(hit);
        if hits.len() == limit || bytes >= BODIES {
            return (hits, W::after(seq));
        }
    }
    (hits, horizon.and_then(W::after))
}
