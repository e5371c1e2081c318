//! A long random run, compared with the model after every commit.
//!
//! The same seed gives the same run on every store and machine. Few keys, times, groups and tallies
//! make rows meet often; batches under old fences, commits that are tried again, rivals for the shards and reopenings are
//! mixed in. Two handles take turns where stores are shared.

use std::sync::Arc;

use bytes::Bytes;
use punctual_chance::Chance;
use punctual_core::store::{
    Batch, Bodies, Change, Fence, Find, FindBack, Key, Position, Refusal, Row, Scan, ScanBack, ShardId, Store, Table,
    Tally, TallyKind,
};
use punctual_core::{Name, Timestamp};

use crate::model::Model;
use crate::stage::{Difference, Outcome, Stage, at, claim, granted, life, name, same, same_rows, whole};

crate::listed![a_random_run_agrees_with_the_model];

const SHARDS: [ShardId; 3] = [ShardId(1), ShardId(2), ShardId(500)];
const TOPICS: [&str; 3] = ["orders", "Orders", "mail"];
const QUEUES: [&str; 3] = ["", "q", "orders"];
const GROUPS: [&str; 4] = ["g", "G", "customer-1", "customer-10"];

fn a_random_run_agrees_with_the_model(stage: &mut Stage<'_>) -> Outcome {
    let (seed, rounds) = (stage.subject.seed(), stage.subject.rounds());
    let chance = Chance::new(seed);
    let mut run = Run { chance, model: Model::default(), last_seq: 0, dead_fences: Vec::new(), other: None };
    for shard in SHARDS {
        run.dead_fences.push((shard, stage.own(shard)?));
        stage.own(shard)?;
    }
    for round in 1..=rounds {
        let outcome = run.round(stage, round);
        outcome.map_err(|Difference(text)| Difference(format!("seed {seed}, round {round}: {text}")))?;
    }
    Ok(())
}

struct Run {
    chance: Chance,
    model: Model,
    last_seq: u64,
    /// Fences that were in force once.
    dead_fences: Vec<(ShardId, Fence)>,
    /// Another node's handle, until the store is reopened.
    other: Option<Arc<dyn Store>>,
}

impl Run {
    fn round(&mut self, stage: &mut Stage<'_>, round: u64) -> Outcome {
        if self.chance.happens(1, 50) {
            self.change_owner(stage)?;
        }
        self.commit(stage)?;
        if round.is_multiple_of(97) {
            self.other = None;
            stage.reopen()?;
        }
        for shard in SHARDS {
            self.compare_some(stage, shard)?;
            if round.is_multiple_of(20) {
                self.compare_all(stage, shard)?;
            }
        }
        Ok(())
    }

    /// Claims a shard anew, maybe after a rival had it for a moment.
    fn change_owner(&mut self, stage: &mut Stage<'_>) -> Outcome {
        let shard = *self.chance.pick(&SHARDS);
        let old = stage.tenure(shard);
        self.dead_fences.push((shard, old.fence));
        if self.chance.happens(1, 2) {
            let rival = granted(claim(&self.other(stage), &life("rival", 1), shard, old.fence)?)?;
            same("the latest commit, as a rival hears it", rival.serial, old.serial)?;
            let batch = Batch { tallies: self.tallies(), ..stage.batch(shard, self.changes(shard)) };
            let fenced = Err(Refusal::Fenced { current: rival.fence });
            same("the answer to a deposed owner", stage.try_commit(vec![batch])?, vec![fenced])?;
            self.dead_fences.push((shard, rival.fence));
        }
        stage.own(shard).map(|_| ())
    }

    /// Another node's handle.
    fn other(&mut self, stage: &Stage<'_>) -> Arc<dyn Store> {
        Arc::clone(self.other.get_or_insert_with(|| stage.other()))
    }

    /// Commits random batches to some of the shards, now and then one under an old fence, and now and then all of them
    /// once more.
    fn commit(&mut self, stage: &mut Stage<'_>) -> Outcome {
        let (mut batches, mut expected) = (Vec::new(), Vec::new());
        for shard in SHARDS {
            if self.chance.happens(1, 3) {
                continue;
            }
            let (changes, tallies, current) = (self.changes(shard), self.tallies(), stage.fence(shard));
            if self.chance.happens(1, 10) {
                let dead: Vec<Fence> =
                    self.dead_fences.iter().filter(|(of, _)| *of == shard).map(|(_, f)| *f).collect();
                batches.push(Batch { fence: *self.chance.pick(&dead), tallies, ..stage.batch(shard, changes) });
                expected.push(Err(Refusal::Fenced { current }));
            } else {
                self.model.apply(shard, &changes, &tallies);
                batches.push(Batch { tallies, ..stage.batch(shard, changes) });
                expected.push(Ok(()));
            }
        }
        stage.number(&mut batches);
        let again = self.chance.happens(1, 4).then(|| batches.clone());
        same("the answers to a commit", stage.try_commit(batches)?, expected.clone())?;
        let Some(again) = again else { return Ok(()) };
        let store = if self.chance.happens(1, 2) { self.other(stage) } else { Arc::clone(stage.store()) };
        same("the answers to the same commit again", store.commit(again)?, expected)
    }

    /// A random change to each of a few random keys.
    fn changes(&mut self, shard: ShardId) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..self.chance.below(12) {
            let (key, settings) = (self.key(), self.chance.happens(1, 5));
            if changes.iter().any(|change| *change.key() == key) {
                continue;
            }
            let of_key = |row: &&Row| row.key == key && (row.table == Table::Settings) == settings;
            let old = self.model.rows(shard).find(of_key).cloned();
            changes.push(self.change(key, settings, old));
        }
        changes
    }

    fn change(&mut self, key: Key, settings: bool, old: Option<Row>) -> Change {
        let others = [Table::Live, Table::Live, Table::Dead, Table::History];
        let table = if settings { Table::Settings } else { *self.chance.pick(&others) };
        let (at, state) = (self.time(), self.bytes(20));
        let Some(old) = old else {
            self.last_seq += 1 + self.chance.below(300);
            let (group, body) = (self.chance.happens(1, 2).then(|| self.group()), self.bytes(100));
            let row = Row { table, key, seq: self.last_seq, at, group, state, body };
            return Change::Insert { row, replaces: None };
        };
        match self.chance.below(8) {
            0 | 1 => Change::Remove { place: old.place() },
            2 => {
                let (group, body) = (self.chance.happens(1, 2).then(|| self.group()), self.bytes(100));
                let mut seq = old.seq;
                if self.chance.happens(1, 2) {
                    self.last_seq += 1;
                    seq = self.last_seq;
                }
                let row = Row { table, key, seq, at, group, state, body };
                Change::Insert { row, replaces: Some(old.place()) }
            }
            3 => Change::Update { place: old.place(), table: old.table, at: old.at, state },
            _ => Change::Update { place: old.place(), table, at, state },
        }
    }

    fn tallies(&mut self) -> Vec<(Tally, i64)> {
        let mut tallies: Vec<(Tally, i64)> = Vec::new();
        for _ in 0..self.chance.below(4) {
            let tally = match self.chance.below(2) {
                0 => Tally::named(*self.chance.pick(&TallyKind::ALL[..6]), &name(self.word(&TOPICS))),
                _ => Tally::slot(*self.chance.pick(&TallyKind::ALL[6..]), self.chance.below(12)),
            };
            if tallies.iter().all(|(known, _)| *known != tally) {
                tallies.push((tally, self.chance.below(5).cast_signed() - 2));
            }
        }
        tallies
    }

    /// Compares a few random reads of each kind.
    fn compare_some(&mut self, stage: &Stage<'_>, shard: ShardId) -> Outcome {
        let bodies = *self.chance.pick(&[Bodies::With, Bodies::Without]);
        let (table, limit) = (*self.chance.pick(&Table::ALL), *self.chance.pick(&[0, 1, 2, 5, 10, 1_000]));
        let topic = self.chance.happens(1, 3).then(|| name(self.word(&TOPICS)));
        let from = Position { at: self.time(), seq: self.chance.below(self.last_seq + 2) };
        let from = if self.chance.happens(1, 2) { Position::START } else { from };
        let scan = Scan { table, from, until: self.time(), topic, limit, bodies };
        same_rows(format_args!("{scan:?}"), &stage.scan_of(shard, &scan)?, &self.model.scan(shard, &scan))?;

        let from_seq = if self.chance.happens(1, 2) { 0 } else { self.chance.below(self.last_seq + 2) };
        let find = Find { table, group: self.group(), from_seq, limit, bodies };
        same_rows(format_args!("{find:?}"), &stage.find_by(find.limit, shard, &find)?, &self.model.find(shard, &find))?;

        let (before, topic) = (scan.from, scan.topic.clone());
        let before = if before == Position::START { Position { at: self.time(), seq: u64::MAX } } else { before };
        let back = ScanBack { table, before, from: at(self.chance.below(20)), topic, limit, bodies };
        let got = stage.scan_back_by(back.limit, shard, &back)?;
        same_rows(format_args!("{back:?}"), &got, &self.model.scan_back(shard, &back))?;
        let before_seq = if self.chance.happens(1, 2) { u64::MAX } else { self.chance.below(self.last_seq + 2) };
        let back = FindBack { table, group: self.group(), before_seq, limit, bodies };
        let got = stage.find_back_by(back.limit, shard, &back)?;
        same_rows(format_args!("{back:?}"), &got, &self.model.find_back(shard, &back))?;

        let keys: Vec<Key> = (0..self.chance.below(6)).map(|_| self.key()).collect();
        let got = stage.get_all(shard, &keys, bodies)?;
        same(format_args!("get of {keys:?}"), got, self.model.get(shard, &keys, bodies))?;

        let known: Vec<Position> = self.model.rows(shard).map(Row::position).collect();
        let positions: Vec<Position> =
            if known.is_empty() { vec![from] } else { vec![*self.chance.pick(&known), from] };
        let got = stage.fetch_all(shard, &positions, bodies)?;
        same(format_args!("fetch of {positions:?}"), got, self.model.fetch(shard, &positions, bodies))
    }

    /// Compares everything.
    fn compare_all(&self, stage: &Stage<'_>, shard: ShardId) -> Outcome {
        for table in Table::ALL {
            let scan = whole(table);
            let got = stage.scan_of(shard, &scan)?;
            same_rows(format_args!("all rows of {table:?}"), &got, &self.model.scan(shard, &scan))?;
        }
        let keys: Vec<Key> = self.model.rows(shard).map(|row| row.key.clone()).collect();
        let got = stage.get_all(shard, &keys, Bodies::With)?;
        same("get of all keys", got, self.model.get(shard, &keys, Bodies::With))?;
        let positions: Vec<Position> = self.model.rows(shard).map(Row::position).collect();
        let got = stage.fetch_all(shard, &positions, Bodies::With)?;
        same("fetch of all positions", got, self.model.fetch(shard, &positions, Bodies::With))?;
        let mut numbers: Vec<u64> = self.model.rows(shard).map(|row| row.seq).collect();
        numbers.push(self.last_seq + 1);
        let got = stage.numbered(shard, &numbers, Bodies::With)?;
        same("all numbers", got, self.model.numbered(shard, &numbers, Bodies::With))?;
        same("the tallies", stage.tallies(shard)?, self.model.tallies(shard))
    }

    fn key(&mut self) -> Key {
        let id = self.chance.below(12).to_string();
        Key::new(self.word(&TOPICS), &id, self.word(&QUEUES))
    }

    fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.chance.index(of.len())]
    }

    fn group(&mut self) -> Name {
        name(self.word(&GROUPS))
    }

    fn time(&mut self) -> Timestamp {
        match self.chance.below(12) {
            0 => Timestamp::NEVER,
            1 => Timestamp::LAST,
            2 => at(1_700_000_000_000 + self.chance.below(5)),
            _ => at(self.chance.below(40)),
        }
    }

    fn bytes(&mut self, most: u64) -> Bytes {
        (0..self.chance.below(most)).map(|_| self.chance.below(256) as u8).collect()
    }
}
