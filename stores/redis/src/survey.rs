//! How many rows the parts of each shard have, for `punctual store`.

use punctual_core::store::{ShardId, StoreError};
use punctual_database::ShardContents;
use redis::cmd;

use crate::RedisStore;
use crate::scripts;
use crate::servers::Call;
use crate::value::{list, number, odd};

/// How many rows the parts of a shard have, at one moment.
pub(crate) struct Sizes {
    shard: ShardId,
    serial: u64,
    /// In the orders of time of the tables.
    ordered: [u64; 4],
    names: u64,
    rows: u64,
    bodies: u64,
    groups: u64,
}

impl Sizes {
    /// What is wrong, if anything is.
    pub(crate) fn damage(&self) -> Option<String> {
        let Sizes { names, rows, bodies, groups, .. } = self;
        let ordered: u64 = self.ordered.iter().sum();
        let is_well = ordered == *rows && names == rows && bodies <= rows && groups <= rows;
        (!is_well).then(|| {
            format!(
                "shard {}: {rows} rows, of which {ordered} are in the order of time and {names} have a name; {bodies} bodies \
                 lie apart, {groups} are in groups",
                self.shard.0
            )
        })
    }

    pub(crate) fn contents(&self) -> ShardContents {
        ShardContents { shard: self.shard, serial: self.serial, rows: self.ordered }
    }
}

/// Those of all shards that were ever claimed, in order.
pub(crate) fn sizes(store: &RedisStore) -> Result<Vec<Sizes>, StoreError> {
    let strange = || odd("a survey");
    let mut members = cmd("SMEMBERS");
    members.arg(store.keys.shared("shards"));
    let shards = list(store.servers.call_one(store.shared(members), store.servers.deadline())?).ok_or_else(strange)?;
    let mut shards: Vec<ShardId> = shards.iter().filter_map(number).map(ShardId).collect();
    shards.sort();
    let look = |shard: ShardId| {
        let command = scripts::sizes().on(&store.keys.shard(shard));
        let call = Call { slot: store.keys.slot(shard), command, may_repeat: true, writes: false };
        let sizes = list(store.servers.call_one(call, store.servers.deadline())?).ok_or_else(strange)?;
        let sizes: Vec<u64> = sizes.iter().filter_map(number).collect();
        let [serial, live, dead, history, settings, names, rows, bodies, groups] = sizes[..] else {
            return Err(strange());
        };
        Ok(Sizes { shard, serial, ordered: [live, dead, history, settings], names, rows, bodies, groups })
    };
    shards.into_iter().map(look).collect()
}
