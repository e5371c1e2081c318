//! What a commit weighs before it is written: how long its record is, and how much larger recent rows become by it.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use punctual_core::Name;
use punctual_core::store::{Batch, Change, Key, Place, ShardId};

use crate::blocks::Blocks;
use crate::holdings::{Holdings, Stand};
use crate::payload::{BATCH_HEAD, TALLY_HEAD};
use crate::retell::CHANGE_HEAD;
use crate::row::{HEAD, KeyText};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    /// About how long its record is.
    pub bytes: u64,
    /// By how much more telling all recent rows again takes afterwards.
    pub growth: i64,
}

impl Holdings {
    /// Weighs batches that are to be committed together.
    pub fn weigh(&self, batches: &[Batch], blocks: &Blocks) -> Weight {
        let mut weight = Weight::default();
        let telling = self.active.rows().telling();
        // What rows weigh that an earlier change of the same commit has left: the holdings do not know of it yet.
        let mut changed: HashMap<u64, Left, FixedState> = HashMap::default();
        for batch in batches {
            for change in &batch.changes {
                let (key, table, place) = match change {
                    Change::Insert { row, replaces } => (&row.key, row.table, replaces.as_ref()),
                    Change::Update { place, .. } | Change::Remove { place } => (&place.key, place.table, Some(place)),
                };
                let hash = KeyText::of(key).hash(batch.shard, table);
                let before = match (changed.get(&hash), place) {
                    (Some(left), _) => *left,
                    (None, Some(place)) => self.left_at(batch.shard, hash, place, blocks),
                    (None, None) => Left::default(),
                };
                let (record, after) = match change {
                    Change::Insert { row, replaces } => {
                        let bytes = length(&row.key, row.group.as_ref(), row.state.len()) + row.body.len() as u64;
                        let place = replaces.as_ref().map_or(0, place_length);
                        (bytes + place, Left { told: telling.of(bytes), body: row.body.len() as u64 })
                    }
                    Change::Update { place, state, .. } => {
                        let bytes = length(&place.key, place.group.as_ref(), state.len());
                        (bytes, Left { told: telling.of(bytes + before.body), ..before })
                    }
                    Change::Remove { place } => (place_length(place), Left::default()),
                };
                weight.bytes += record + CHANGE_HEAD;
                weight.growth += after.told as i64 - before.told as i64;
                changed.insert(hash, after);
            }
            let tally = |name: Option<&Name>| TALLY_HEAD + name.map_or(0, |name| name.len() as u64);
            weight.bytes += batch.tallies.iter().map(|(of, _)| tally(of.name.as_ref())).sum::<u64>() + BATCH_HEAD;
        }
        weight
    }

    /// What the row at a place weighs among recent rows: nothing if it is in a run, or not there at all.
    fn left_at(&self, shard: ShardId, hash: u64, place: &Place, blocks: &Blocks) -> Left {
        let at = (place.table, place.position);
        let of = |stand: Stand| {
            let bytes = self.recent_row(stand).0;
            let told = self.active.rows().telling().of(bytes.bytes().len() as u64);
            Left { told, body: bytes.body().len() as u64 }
        };
        match self.locate(shard, hash, KeyText::of(&place.key), at, blocks) {
            Ok(stand @ (Stand::Active(_) | Stand::Frozen(_))) => of(stand),
            Ok(Stand::Run(_)) | Err(_) => Left::default(),
        }
    }
}

/// What a row takes among recent ones.
#[derive(Clone, Copy, Default)]
struct Left {
    told: u64,
    /// How much of it is its body, which stays as it is when the row changes.
    body: u64,
}

/// How long a row is in its stored form, without its body.
fn length(key: &Key, group: Option<&Name>, state: usize) -> u64 {
    let key = key.topic().len() + key.id().len() + key.queue().len();
    (HEAD + key + group.map_or(0, |group| group.len()) + state) as u64
}

fn place_length(place: &Place) -> u64 {
    length(&place.key, place.group.as_ref(), 0)
}
