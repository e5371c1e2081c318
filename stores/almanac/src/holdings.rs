//! What the almanac knows: recent rows, the layer that is being merged into a run, the runs.
//!
//! ```text
//! active ──freeze──► frozen ──adopt──► run on the shelf
//! ```
//! A row stands in exactly one of them. Changes come as the payloads of the journal's records, the
//! same way when they are committed and when the journal is replayed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use punctual_core::store::{Entry, Fence, Members, Position, ShardId, Table, Tally};

use crate::address::Address;
use crate::blocks::Blocks;
use crate::error::ReadError;
use crate::manifest::{Manifest, Tallies};
use crate::payload::{self, Malformed, Statement};
use crate::recent::{Body, Frozen, Recent, SlotId};
use crate::retell::Telling;
use crate::row::{KeyText, StoredRow};
use crate::shelf::Shelf;

pub(crate) struct Holdings {
    pub active: Recent,
    pub frozen: Option<Frozen>,
    /// An empty layer, to become the active one at the next freeze.
    pub spare: Option<Recent>,
    pub shelf: Shelf,
    /// The tallies as of the moment up to which all is in runs.
    pub tallies: Arc<Tallies>,
    /// The highest fence that was ever granted for each shard, as the journal knows it.
    pub fences: BTreeMap<ShardId, Fence>,
    /// The entries of the cluster, as the journal knows them.
    pub entries: BTreeMap<String, Entry>,
    /// Who is there and owns what; empty until the journal was read.
    pub members: Members,
}

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    Active(SlotId),
    Frozen(SlotId),
    Run(Address),
}

/// Why changes could not be applied.
#[derive(Debug)]
pub(crate) enum ApplyError {
    Malformed,
    /// A change names a row that is not there.
    Astray(String),
    Read(ReadError),
}

impl From<Malformed> for ApplyError {
    fn from(Malformed: Malformed) -> ApplyError {
        ApplyError::Malformed
    }
}

impl Holdings {
    /// What a manifest says, with the runs that it names; the journal is still to be applied.
    pub fn begin(manifest: &Manifest, shelf: Shelf, telling: Telling) -> Holdings {
        Holdings {
            active: Recent::new(telling),
            frozen: None,
            spare: None,
            shelf,
            tallies: Arc::clone(&manifest.tallies),
            fences: manifest.fences.iter().copied().collect(),
            entries: manifest.entries.iter().cloned().collect(),
            members: Members::default(),
        }
    }

    /// Applies what a record says.
    pub fn apply(&mut self, payload: &[u8], blocks: &Blocks) -> Result<(), ApplyError> {
        payload::read(payload, |event| match event {
            Statement::Claim(shard, fence) => {
                self.fences.insert(shard, fence);
                Ok(())
            }
            Statement::Entry(key, revision, value) => {
                self.enter(key, revision, value);
                Ok(())
            }
            Statement::Insert(shard, row) => {
                self.insert(shard, row);
                Ok(())
            }
            Statement::Replace(shard, place, row) => {
                self.remove(shard, place, blocks)?;
                self.insert(shard, row);
                Ok(())
            }
            Statement::Update(shard, row, table, position) => self.update(shard, row, (table, position), blocks),
            Statement::Remove(shard, place) => self.remove(shard, place, blocks),
            Statement::Tally(shard, tally, delta) => {
                self.active.count(shard, tally, delta);
                Ok(())
            }
        })
    }

    /// An entry of the cluster is as the journal says from now on.
    pub fn enter(&mut self, key: &str, revision: u64, value: &[u8]) {
        self.entries.insert(key.to_owned(), Entry { revision, value: Bytes::copy_from_slice(value) });
    }

    /// Puts a frozen layer back: what is left of it becomes recent again, together with what came since.
    pub fn thaw(&mut self) {
        let Some(frozen) = self.frozen.take() else { return };
        let rows = frozen.layer().rows();
        for slot in rows.filled().filter(|slot| !frozen.gone().contains(*slot)) {
            let (row, body) = rows.row(slot);
            self.active.insert(rows.shard(slot), rows.hash(slot), row, row.body(), body);
        }
        for ((shard, tally), delta) in rows.tallies() {
            self.active.count(*shard, tally.clone(), *delta);
        }
    }

    /// How many bytes recent rows have at least; bodies that are elsewhere do not count.
    pub fn living(&self) -> u64 {
        self.active.rows().living() + self.frozen.as_ref().map_or(0, Frozen::living)
    }

    /// How many bytes telling all recent rows again takes at most.
    pub fn to_tell(&self) -> u64 {
        self.active.rows().to_tell() + self.frozen.as_ref().map_or(0, Frozen::to_tell)
    }

    /// All tallies of a shard that are not zero, in order.
    pub fn tallies(&self, shard: ShardId) -> Vec<(Tally, i64)> {
        let mut sums: BTreeMap<Tally, i64> = BTreeMap::new();
        let frozen = self.frozen.as_ref().map(|frozen| frozen.layer().rows().tallies());
        let layers = [Some(&*self.tallies), frozen, Some(self.active.rows().tallies())];
        for ((of, tally), count) in layers.into_iter().flatten().flatten() {
            if *of == shard {
                *sums.entry(tally.clone()).or_insert(0) += count;
            }
        }
        sums.into_iter().filter(|(_, sum)| *sum != 0).collect()
    }

    /// Where the row of a key stands among the recent ones.
    pub fn find_recent(&self, hash: u64, key: KeyText<'_>, shard: ShardId, table: Table) -> Option<Stand> {
        let active = || self.active.find(hash, key, shard, table).map(Stand::Active);
        let frozen = || self.frozen.as_ref()?.find(hash, key, shard, table).map(Stand::Frozen);
        active().or_else(frozen)
    }

    pub fn insert(&mut self, shard: ShardId, row: StoredRow<'_>) {
        let hash = row.key().hash(shard, row.table());
        self.active.insert(shard, hash, row, row.body(), Body::Here);
    }

    pub fn update(
        &mut self,
        shard: ShardId,
        row: StoredRow<'_>,
        before: (Table, Position),
        blocks: &Blocks,
    ) -> Result<(), ApplyError> {
        let hash = row.key().hash(shard, row.table());
        match self.locate(shard, hash, row.key(), before, blocks)? {
            Stand::Active(slot) => self.active.update(shard, slot, row, before),
            Stand::Frozen(slot) => {
                let frozen = self.frozen.as_mut().expect("the row was found there");
                frozen.remove(slot);
                // The frozen layer's bytes go when it has become a run, so the body comes along.
                let (old, body) = frozen.layer().rows().row(slot);
                self.active.insert(shard, hash, row, old.body(), body);
            }
            Stand::Run(address) => {
                self.shelf.kill(hash, address);
                // The body stays there and is not read: it is copied when the row moves to a run again.
                self.active.insert(shard, hash, row, &[], Body::Borrowed(address));
            }
        }
        Ok(())
    }

    pub fn remove(&mut self, shard: ShardId, place: StoredRow<'_>, blocks: &Blocks) -> Result<(), ApplyError> {
        let hash = place.key().hash(shard, place.table());
        match self.locate(shard, hash, place.key(), (place.table(), place.position()), blocks)? {
            Stand::Active(slot) => self.active.remove(shard, slot),
            Stand::Frozen(slot) => self.frozen.as_mut().expect("the row was found there").remove(slot),
            Stand::Run(address) => self.shelf.kill(hash, address),
        }
        Ok(())
    }

    /// Where the row stands that is to change.
    ///
    /// The row is there, since the caller says so. So if only one row of the runs can be it, by the
    /// fingerprint of its key and by its position, it is the one, and nothing has to be read.
    pub fn locate(
        &self,
        shard: ShardId,
        hash: u64,
        key: KeyText<'_>,
        (table, position): (Table, Position),
        blocks: &Blocks,
    ) -> Result<Stand, ApplyError> {
        if let Some(stand) = self.find_recent(hash, key, shard, table) {
            self.check(stand, shard, table, position)?;
            return Ok(stand);
        }
        let mut candidates = self.shelf.at(hash, shard, table, position);
        let Some(first) = candidates.next() else { return Err(astray(shard, key, table, position)) };
        let Some(second) = candidates.next() else { return Ok(Stand::Run(first)) };
        for address in [first, second].into_iter().chain(candidates) {
            let run = &self.shelf.get(address.run).expect("a candidate is on the shelf").run;
            let (block, index) = blocks.load_row(run, address.ordinal).map_err(ApplyError::Read)?;
            let row = block.row(index);
            if row.has_key(key) && row.position() == position {
                return Ok(Stand::Run(address));
            }
        }
        Err(astray(shard, key, table, position))
    }

    /// Makes sure that a recent row is where the caller says.
    fn check(&self, stand: Stand, shard: ShardId, table: Table, position: Position) -> Result<(), ApplyError> {
        let row = self.recent_row(stand).0;
        if (row.table(), row.position()) == (table, position) {
            return Ok(());
        }
        Err(astray(shard, row.key(), table, position))
    }

    /// A recent row, and where its body is.
    pub fn recent_row(&self, stand: Stand) -> (StoredRow<'_>, Body) {
        match stand {
            Stand::Active(slot) => self.active.rows().row(slot),
            Stand::Frozen(slot) => self.frozen.as_ref().expect("the row was found there").layer().rows().row(slot),
            Stand::Run(_) => unreachable!("a row of a run is not a recent one"),
        }
    }
}

pub(crate) fn astray(shard: ShardId, key: KeyText<'_>, table: Table, position: Position) -> ApplyError {
    let key = String::from_utf8_lossy(key.text).into_owned();
    ApplyError::Astray(format!("{shard} has no row {key:?} at {position:?} in {table:?}, though a change says so"))
}
