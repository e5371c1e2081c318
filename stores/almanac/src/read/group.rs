//! Reading a group by the numbers of its rows, from the smallest on or from the greatest.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use punctual_core::Name;
use punctual_core::store::{Bodies, Find, FindBack, Index, Row, ShardId, StoreError, Table};

use super::{Found, Hand, Reader};
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
struct Ahead;

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
struct Back;

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

impl Reader<'_> {
    pub fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        let Find { table, ref group, from_seq, limit, bodies } = *find;
        self.search::<Ahead>(shard, Asked { table, group, limit, bodies, begin: from_seq })
    }

    pub fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        let FindBack { table, ref group, before_seq, limit, bodies } = *back;
        self.search::<Back>(shard, Asked { table, group, limit, bodies, begin: before_seq })
    }

    /// Goes on in pieces if a run holds more of the group than is wanted: some of that may be dead.
    fn search<W: Way>(&self, shard: ShardId, mut asked: Asked<'_>) -> Result<Vec<Row>, StoreError> {
        let hash = group_hash(shard, asked.group);
        let mut rows = Vec::new();
        while asked.limit > 0 {
            let (found, next) = self.attempt_asking(
                |run| W::members(&asked, run, hash),
                |holdings, hand, members| find::<W>(holdings, hand, shard, &asked, members),
            )?;
            asked.limit -= found.len();
            rows.extend(found.into_iter().map(|found| found.read(asked.bodies)));
            match next {
                Some(begin) => asked.begin = begin,
                None => break,
            }
        }
        Ok(rows)
    }
}

/// The rows of a group, and from which number to go on if a run has more of it than was asked.
fn find<W: Way>(
    holdings: &mut Holdings,
    hand: &mut Hand<'_>,
    shard: ShardId,
    asked: &Asked<'_>,
    members: &BTreeMap<u64, Members>,
) -> (Vec<Found>, Option<u64>) {
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
        let told = &members[&shelved.run.number()];
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
    let mut found = Vec::new();
    for (_, stand) in passed {
        if found.len() == limit {
            break;
        }
        match stand {
            Stand::Run(address) => {
                // Groups of one hash are told apart by their names.
                let row = hand.row(holdings, address);
                let row = row.filter(|(block, index)| block.row(*index).group() == Some(group));
                found.extend(row.map(|(block, index)| Found::InBlock(block, index)));
            }
            recent => found.extend(hand.recent(holdings, recent, bodies)),
        }
    }
    let next = horizon.filter(|_| found.len() < limit).and_then(W::after);
    (found, next)
}
