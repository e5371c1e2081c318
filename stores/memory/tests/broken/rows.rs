//! What can become of rows and tallies on their way into a store.

use punctual_core::store::{Batch, Bodies, Change, Key, Look, Row, ShardId, Store, StoreError, Table, Tally, Tenure};
use punctual_core::{Name, Timestamp};

use crate::cases::Breakage::*;
use crate::store::{Broken, SHARD};

impl Broken {
    pub fn bend_tallies(&self, batch: &mut Batch, tenure: Tenure) -> Result<(), StoreError> {
        let known = self.good.tallies(batch.shard)?;
        let count = |tally: &Tally| known.iter().find(|(of, _)| of == tally).map(|(_, count)| *count);
        if self.is(AppliesTalliesOfRefusedBatches) && batch.fence != tenure.fence {
            let Tenure { fence, serial } = tenure;
            let tallies = Batch { fence, serial: serial + 1, changes: vec![], ..batch.clone() };
            self.good.commit(vec![tallies])?;
        }
        if self.is(OverwritesTallies) {
            batch.tallies.iter_mut().for_each(|(tally, delta)| *delta -= count(tally).unwrap_or(0));
        }
        // Counts are kept one too high and shown one too low, so that an empty one stays.
        if self.is(ShowsEmptyTallies) {
            batch.tallies.iter_mut().for_each(|(tally, delta)| *delta += i64::from(count(tally).is_none()));
        }
        if self.is(SharesTalliesBetweenShards) && batch.shard != ShardId(8)
            || self.is(ForgetsTalliesBesideRows) && !batch.changes.is_empty()
        {
            batch.tallies.clear();
        }
        for (tally, delta) in &mut batch.tallies {
            if self.is(FoldsTallies) {
                tally.name = tally.name.as_ref().map(|name| Name::stored(&name.to_lowercase()));
            }
            if self.is(KeepsTalliesAsFloats) {
                *delta = *delta as f64 as i64;
            }
        }
        Ok(())
    }

    pub fn bend_change(&self, change: Change) -> Option<Change> {
        match change {
            Change::Remove { .. } if self.is(ForgetsRemovals) => None,
            Change::Update { place, table, at, state } => {
                let moves = table != place.table;
                if moves && (self.is(LosesTheBodyOnMove) || self.is(LosesTheGroupOnMove)) {
                    let old =
                        self.good.get(SHARD, std::slice::from_ref(&place.key), Bodies::With).unwrap().remove(0)?;
                    let row = if self.is(LosesTheBodyOnMove) { old.without_body() } else { Row { group: None, ..old } };
                    return Some(Change::Insert { row: Row { table, at, state, ..row }, replaces: Some(place) });
                }
                if self.is(PassesOverUpdatesThatMoveNothing) && !moves && at == place.position.at {
                    return None;
                }
                let at = if self.is(KeepsTheTimeOnUpdate) { place.position.at } else { at };
                Some(Change::Update { place, table, at, state })
            }
            Change::Insert { row, replaces } => {
                let row = self.bend_row(row);
                let old = replaces.as_ref();
                let seq = old.filter(|_| self.is(KeepsTheNumberOnReplacement)).map_or(row.seq, |old| old.position.seq);
                let table = old.filter(|_| self.is(KeepsTheTableOnReplacement)).map_or(row.table, |old| old.table);
                let group = match old.filter(|_| self.is(KeepsTheGroupOnReplacement)) {
                    Some(old) => old.group.clone(),
                    None => row.group.clone(),
                };
                Some(Change::Insert { row: Row { seq, table, group, ..row }, replaces })
            }
            change @ Change::Remove { .. } => Some(change),
        }
    }

    fn bend_row(&self, mut row: Row) -> Row {
        if self.is(CutsBodiesAtZero) {
            row.body.truncate(row.body.iter().position(|byte| *byte == 0).unwrap_or(row.body.len()));
        }
        if self.is(CutsBodiesAt64K) {
            row.body.truncate(64 << 10);
        }
        if self.is(CutsStatesAtZero) {
            row.state.truncate(row.state.iter().position(|byte| *byte == 0).unwrap_or(row.state.len()));
        }
        if self.is(KeepsTimesIn32Bits) && row.at <= Timestamp::LAST {
            row.at = Timestamp::from_millis(row.at.as_millis() & u64::from(u32::MAX));
        }
        if self.is(KeepsNumbersAsFloats) {
            row.seq = row.seq as f64 as u64;
        }
        if self.is(FoldsGroups) {
            row.group = row.group.map(|group| Name::stored(&group.to_lowercase()));
        }
        if self.is(GroupsTheRest) && row.table == Table::Live {
            row.group = row.group.or(Some(Name::stored("null")));
        }
        row.key = self.bend_row_key(&row.key);
        row
    }

    fn bend_row_key(&self, key: &Key) -> Key {
        let (topic, id, queue) = (key.topic(), key.id(), key.queue());
        if self.is(FoldsCase) {
            return Key::new(topic, &id.to_lowercase(), queue);
        }
        if self.is(CutsNames) {
            return Key::new(topic, &id.chars().take(60).collect::<String>(), queue);
        }
        if self.is(EscapesNames) {
            return Key::new(topic, &id.replace('\\', "\\\\"), queue);
        }
        if self.is(FillsEmptyParts) && id.is_empty() {
            return Key::new(topic, "-", queue);
        }
        if self.is(JoinsThePartsOfKeys) {
            return Key::new(key.text(), "", "");
        }
        key.clone()
    }
}
