//! Lists across shards: each shard gives its tasks in order, and they are merged page by page.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use punctual_core::Timestamp;
use punctual_core::store::{Position, ShardId, Store, StoreError};
use punctual_core::view::{self, Listed, Listing, PAGE_BYTES, TaskView, Wanted};

/// Where a list goes on: one position for each shard, `None` where it is at its end. As text it can
/// travel through a door and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(Vec<Option<Position>>);

/// One page of a list over all shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPage {
    /// The tasks, maybe fewer than asked for even if there are more.
    pub tasks: Vec<TaskView>,
    /// Where to go on; `None` if that was all.
    pub next: Option<Cursor>,
    /// How many rows of topics in the scope were looked at.
    pub looked_at: u64,
    /// How many rows were read for that, whosever they are. Nobody is told who may not see them all.
    pub cost: u64,
}

/// A text that is not a [`Cursor`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor: send the one that came with the previous page, or start the list again")]
pub struct BadCursor;

impl Cursor {
    pub(crate) fn start(listing: &Listing, shards: u16) -> Cursor {
        Cursor(vec![Some(listing.start()); usize::from(shards)])
    }

    pub(crate) fn shards(&self) -> usize {
        self.0.len()
    }

    /// The shards that are not at their end, and where they go on.
    pub(crate) fn open(&self) -> impl Iterator<Item = (ShardId, Position)> {
        (0..).map(ShardId).zip(&self.0).filter_map(|(shard, from)| Some((shard, (*from)?)))
    }
}

impl fmt::Display for Cursor {
    /// `at.seq` for each shard, `-` where it is at its end, with `_` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, position) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "_" })?;
            match position {
                Some(position) => write!(f, "{}.{}", position.at.as_millis(), position.seq)?,
                None => f.write_str("-")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Cursor, BadCursor> {
        let position = |part: &str| {
            if part == "-" {
                return Ok(None);
            }
            let (at, seq) = part.split_once('.').ok_or(BadCursor)?;
            let at = Timestamp::from_millis(at.parse().map_err(|_| BadCursor)?);
            Ok(Some(Position { at, seq: seq.parse().map_err(|_| BadCursor)? }))
        };
        text.split('_').map(position).collect::<Result<_, _>>().map(Cursor)
    }
}

/// How many rows are looked at for one page, of all shards together, as long as nothing is found.
const LOOK: u64 = 65_536;
/// How many rows a read counts for at least: one that finds little has looked at many.
const LEAST: u64 = 64;

/// Where what is with consumers stands in a shard, as the shard says, and up to how many it was to say.
pub(crate) type KnownLeases = (Vec<Position>, usize);

/// What one shard has for a page.
struct Part {
    shard: usize,
    listed: Listed,
}

/// The order of tasks of all shards, first to last: the shard's number decides where nothing else does.
type Order = (Rank, usize);

/// A position as a number that rises in the direction of the list.
type Rank = (u64, u64);

/// Reads one page. Of shards whose leases are known, no other rows are looked at.
pub(crate) fn list(
    store: &dyn Store,
    wanted: Wanted<'_>,
    cursor: &Cursor,
    leases: &BTreeMap<ShardId, KnownLeases>,
    now: Timestamp,
) -> Result<TaskPage, StoreError> {
    let Wanted { listing, limit, .. } = wanted;
    let budget = LOOK / cursor.0.len().max(1) as u64;
    let (mut parts, mut looked_at, mut cost) = (Vec::new(), 0, 0);
    for (shard, from) in cursor.0.iter().enumerate() {
        if let Some(from) = *from {
            let id = ShardId(shard as u16);
            let listed = match leases.get(&id) {
                Some((positions, limit)) => view::leased(store, id, wanted, (positions, *limit), now)?,
                None => list_shard(store, wanted, id, from, now, budget)?,
            };
            looked_at += listed.looked_at;
            cost += listed.cost;
            parts.push(Part { shard, listed });
        }
    }
    // What a shard has not shown yet comes after this, so what comes after this has to wait.
    let frontier = parts.iter().filter_map(|part| part.frontier(listing)).min();
    let mut next: Vec<Option<Position>> = vec![None; cursor.0.len()];
    let mut tasks: Vec<(Order, TaskView)> = Vec::new();
    for part in parts {
        next[part.shard] = part.listed.next;
        tasks.extend(part.listed.tasks.into_iter().map(|task| ((order(listing, &task), part.shard), task)));
    }
    tasks.sort_by_key(|(order, _)| *order);
    let within = frontier.map_or(tasks.len(), |frontier| tasks.partition_point(|(order, _)| *order < frontier));
    let rest = tasks.split_off(within.min(limit.max(1)).min(fitting(&tasks)));
    // A shard goes on with the first of its tasks that found no room.
    for ((_, shard), task) in rest.iter().rev() {
        next[*shard] = Some(listing.with(task.position));
    }
    let more = next.iter().any(Option::is_some);
    let tasks = tasks.into_iter().map(|(_, task)| task).collect();
    Ok(TaskPage { tasks, next: more.then_some(Cursor(next)), looked_at, cost })
}

/// How many of the first tasks one page has room for: each shard has filled one by itself. At least one has room.
fn fitting(tasks: &[(Order, TaskView)]) -> usize {
    let mut length = 0;
    let is_over = |(_, task): &(Order, TaskView)| {
        length += task.written();
        length > PAGE_BYTES
    };
    tasks.iter().position(is_over).map_or(tasks.len(), |over| over.max(1))
}

fn list_shard(
    store: &dyn Store,
    wanted: Wanted<'_>,
    shard: ShardId,
    from: Position,
    now: Timestamp,
    budget: u64,
) -> Result<Listed, StoreError> {
    let mut listed = view::list(store, shard, wanted, from, now)?;
    // Tasks of a key are numbered, and a number does not say where it stands among those of other
    // shards. So at least one task is needed; nothing but its own deliveries stands between. Other lists go on for a
    // while, so that a rare thing among many does not cost a request for each stretch without it.
    while let (true, Some(from)) = (listed.tasks.is_empty(), listed.next) {
        if !wanted.listing.goes_by_number() && listed.cost >= budget {
            break;
        }
        let further = view::list(store, shard, wanted, from, now)?;
        // One that finds nothing may have looked at many in the store.
        let cost = listed.cost + further.cost.max(LEAST);
        listed = Listed { looked_at: listed.looked_at + further.looked_at, cost, ..further };
    }
    Ok(listed)
}

/// Where a task stands among all: by its time, or for a key by when it was scheduled.
fn order(listing: &Listing, task: &TaskView) -> Rank {
    let at = if listing.goes_by_number() { task.scheduled_at } else { task.position.at };
    rank(listing, Position { at, ..task.position })
}

fn rank(listing: &Listing, position: Position) -> Rank {
    let rank = (position.at.as_millis(), position.seq);
    if listing.is_backward() { (u64::MAX - rank.0, u64::MAX - rank.1) } else { rank }
}

/// What comes right after this.
fn beyond((at, seq): Rank) -> Rank {
    (at, seq.saturating_add(1))
}

impl Part {
    /// What comes after this may not be shown yet; `None` if the shard has shown all it has.
    fn frontier(&self, listing: &Listing) -> Option<Order> {
        let next = self.listed.next?;
        let frontier = match self.listed.tasks.last() {
            Some(last) if listing.goes_by_number() => beyond(order(listing, last)),
            // A list that goes backward goes on before the position, so what stands there was shown.
            _ if listing.is_backward() => beyond(rank(listing, next)),
            _ => rank(listing, next),
        };
        Some((frontier, self.shard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_from_its_text() {
        let position = |at, seq| Some(Position { at: Timestamp::from_millis(at), seq });
        let cursor = Cursor(vec![position(7, 9), None, position(0, 0)]);
        assert_eq!(cursor.to_string(), "7.9_-_0.0");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "7", "7.x", "7.9_", "_"] {
            assert_eq!(text.parse::<Cursor>(), Err(BadCursor), "{text}");
        }
    }
}
