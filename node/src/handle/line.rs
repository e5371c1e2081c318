//! What stands in a queue, in its order, and who holds what of it, over all shards.
//!
//! A shard says where its rows stand, which it knows without reading; the rows themselves are read from the store.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use punctual_core::store::{Bodies, Position, ShardId, Store};
use punctual_core::view::{self, TaskView, Wanted};
use punctual_core::{
    Command, Holder, Holders, InLine, Line, Lined, Name, Order, Scope, Stage, Standing, Timestamp, Told,
};

use super::Handle;
use crate::error::Error;
use crate::listing::{BadCursor, Cursor, KnownLeases};

/// Where the line of a queue goes on: after this delivery. As text it can travel through a door and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCursor {
    after: InLine,
    shard: ShardId,
}

impl fmt::Display for LineCursor {
    /// `priority.at.seq.shard`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InLine { priority, position } = self.after;
        write!(f, "{priority}.{}.{}.{}", position.at.as_millis(), position.seq, self.shard.0)
    }
}

impl FromStr for LineCursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<LineCursor, BadCursor> {
        fn read<T: FromStr>(part: &str) -> Result<T, BadCursor> {
            part.parse().map_err(|_| BadCursor)
        }
        let parts: Vec<&str> = text.split('.').collect();
        let [priority, at, seq, shard] = parts[..] else { return Err(BadCursor) };
        let position = Position { at: Timestamp::from_millis(read(at)?), seq: read(seq)? };
        Ok(LineCursor { after: InLine { priority: read(priority)?, position }, shard: ShardId(read(shard)?) })
    }
}

/// One page of what stands in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePage {
    /// The deliveries, maybe fewer than asked for even if there are more.
    pub deliveries: Vec<TaskView>,
    /// Where to go on; `None` if that was all.
    pub next: Option<LineCursor>,
    /// How many more are with a consumer that are not known to the line yet: they were handed out before their shard was opened.
    pub unknown: u64,
}

/// Who holds deliveries, over all shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllHolders {
    /// By name and queue.
    pub holders: Vec<Holder>,
    /// How many deliveries are with consumers that are not among them.
    pub unknown: u64,
}

impl Handle {
    /// Looks at what stands in a queue, in its order, so many at most. Over several shards the order is that of each, put
    /// together as well as their times tell.
    pub async fn line(
        &self,
        queue: &Name,
        stage: Stage,
        after: Option<LineCursor>,
        limit: usize,
    ) -> Result<LinePage, Error> {
        let from = after.map_or(InLine::START, |cursor| cursor.after);
        // One more than is wanted tells whether there are more, and another one may be what the last page ended with.
        let line = Line { queue: queue.clone(), stage, from, limit: limit.saturating_add(2) };
        let lines: Vec<Lined> = self.counted(self.look_all(Command::Line(Box::new(line))).await)?;
        let unknown = lines.iter().map(|lined| lined.unknown).sum();
        let order = lines.iter().find(|lined| !lined.entries.is_empty()).map_or(Order::Due, |lined| lined.order);
        let rank = |(shard, entry): &(ShardId, InLine)| (entry.rank(order), *shard);
        let shards = (0..).map(ShardId).zip(lines);
        let mut entries: Vec<(ShardId, InLine)> =
            shards.flat_map(|(shard, lined)| lined.entries.into_iter().map(move |entry| (shard, entry))).collect();
        entries.sort_by_key(rank);
        if let Some(LineCursor { after, shard }) = after {
            let last = rank(&(shard, after));
            entries.retain(|entry| rank(entry) > last);
        }
        let is_more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| is_more).map(|(shard, after)| LineCursor { after: *after, shard: *shard });
        let deliveries = self.read_line(entries, stage).await?;
        Ok(LinePage { deliveries, next, unknown })
    }

    /// The rows that stand in a line. What has come to stand elsewhere since is left out.
    async fn read_line(&self, entries: Vec<(ShardId, InLine)>, stage: Stage) -> Result<Vec<TaskView>, Error> {
        let now = self.now();
        let read = move |store: &dyn Store| {
            let mut found: BTreeMap<(ShardId, u64), TaskView> = BTreeMap::new();
            let mut by_shard: BTreeMap<ShardId, Vec<u64>> = BTreeMap::new();
            entries.iter().for_each(|(shard, entry)| by_shard.entry(*shard).or_default().push(entry.position.seq));
            for (shard, numbers) in by_shard {
                let rows = view::numbered(store, shard, &numbers, Bodies::Without, now)?;
                let rows = numbers.into_iter().zip(rows).filter_map(|(number, row)| Some((number, row?.task)));
                found.extend(rows.map(|(number, task)| ((shard, number), task)));
            }
            let is_there = |task: &TaskView| match task.delivery.standing {
                Standing::Ready { .. } => stage == Stage::Ready,
                Standing::Leased { .. } => stage == Stage::Leased,
                _ => false,
            };
            let row = |(shard, entry): &(ShardId, InLine)| found.remove(&(*shard, entry.position.seq));
            Ok(entries.iter().filter_map(row).filter(is_there).collect())
        };
        self.counted(self.read(read).await)
    }

    /// Where what is with consumers stands, of the shards that have all of it at hand, if a list is of that. Of the others, and
    /// of those that do not answer, it has to be searched for in the store.
    pub(super) async fn known_leases(&self, wanted: Wanted<'_>, cursor: &Cursor) -> BTreeMap<ShardId, KnownLeases> {
        let limit = wanted.look_at_leases();
        let command = |(shard, from)| Some((shard, Command::Leases(Box::new(wanted.listing.leases(from, limit)?))));
        let commands: Vec<(ShardId, Command)> = cursor.open().filter_map(command).collect();
        if commands.is_empty() {
            return BTreeMap::new();
        }
        let shards: Vec<ShardId> = commands.iter().map(|(shard, _)| *shard).collect();
        let outcomes = self.ask_several(commands).await.into_iter().map(|outcome| outcome.map(Lined::by));
        let known = |(shard, lined): (ShardId, Result<Lined, Error>)| {
            let lined = lined.ok().filter(|lined| lined.unknown == 0)?;
            Some((shard, (lined.entries.iter().map(|entry| entry.position).collect(), limit)))
        };
        shards.into_iter().zip(outcomes).filter_map(known).collect()
    }

    /// Who holds deliveries of a queue, or of any in a scope.
    pub async fn holders(&self, within: &Scope, queue: Option<&Name>) -> Result<AllHolders, Error> {
        let command = Command::Holders { queue: queue.cloned(), within: within.clone() };
        let shards: Vec<Holders> = self.counted(self.look_all(command).await)?;
        let unknown = shards.iter().map(|shard| shard.unknown).sum();
        let mut all: BTreeMap<(Name, Name), Holder> = BTreeMap::new();
        for holder in shards.into_iter().flat_map(|shard| shard.holders) {
            let held = all.entry((holder.name.clone(), holder.queue.clone()));
            held.and_modify(|known| known.add(&holder)).or_insert(holder);
        }
        Ok(AllHolders { holders: all.into_values().collect(), unknown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_a_line_comes_back_from_its_text() {
        let position = Position { at: Timestamp::from_millis(7), seq: 9 };
        let cursor = LineCursor { after: InLine { priority: 3, position }, shard: ShardId(2) };
        assert_eq!((cursor.to_string().as_str(), cursor.to_string().parse()), ("3.7.9.2", Ok(cursor)));
        for text in ["", "1.2.3", "1.2.3.4.5", "1.2.3.x", "-1.2.3.4", "1.2.3.70000"] {
            assert_eq!(text.parse::<LineCursor>(), Err(BadCursor), "{text}");
        }
    }
}
