//! Looks at every byte of a run, for the check tool: not only whether checksums are right, but
//! whether all parts tell of the same rows.

use punctual_core::store::{Position, ShardId, Table};
use roaring::RoaringBitmap;

use crate::error::{Damage, ReadError};
use crate::row::{group_hash, numbers_hash};

use super::groups::GroupEntry;
use super::key_section::{fingerprint_of, partition_of};
use super::{Block, KeySection, Run, STRETCHES};

impl Run {
    /// All damage that there is. Blocks that are wholly dead may have been given back to the disk
    /// and are left out; `progress` is told how many bytes were looked at since it was last called.
    pub fn check(&self, is_dead_block: impl Fn(usize) -> bool, progress: impl FnMut(u64)) -> Vec<Damage> {
        let seen = Seen { hashes: vec![None; self.rows() as usize], ..Seen::default() };
        let mut check = Check { run: self, seen, found: Vec::new(), progress };
        for block in 0..self.blocks() {
            if !is_dead_block(block) {
                check.block(block);
            }
        }
        check.keys();
        check.groups();
        check.found
    }
}

/// What the rows say that the other parts should say too.
#[derive(Default)]
struct Seen {
    /// The hash of each row's key; none for rows of blocks that could not be looked at.
    hashes: Vec<Option<u64>>,
    groups: Vec<GroupEntry>,
}

struct Check<'a, P> {
    run: &'a Run,
    seen: Seen,
    found: Vec<Damage>,
    progress: P,
}

impl<P: FnMut(u64)> Check<'_, P> {
    fn block(&mut self, number: usize) {
        let entry = self.run.index.entry(number);
        match self.run.read_block(number) {
            Ok(block) => self.rows(number, &block),
            Err(error) => self.failed(entry.offset, error),
        }
        (self.progress)(u64::from(entry.length));
    }

    fn rows(&mut self, number: usize, block: &Block) {
        let entry = *self.run.index.entry(number);
        let (shard, table) = entry.place();
        let mut last: Option<Position> = None;
        for (row, ordinal) in self.run.ordinals(number).enumerate() {
            let row = block.row(row);
            let position = row.position();
            if row.table() != table {
                self.damaged(entry.offset, format!("row {ordinal} is not in the table that the block index names"));
            }
            if last.map_or(position != entry.first, |last| position <= last) {
                self.damaged(entry.offset, format!("row {ordinal} is not in order"));
            }
            if table == Table::Live && !self.run.seqs(shard).is_some_and(|seqs| seqs.contains(&position.seq)) {
                self.damaged(entry.offset, format!("the list of shards leaves out the number of row {ordinal}"));
            }
            self.seen.hashes[ordinal as usize] = Some(row.key().hash(shard, table));
            if table != Table::Settings && self.run.names_numbers() {
                self.seen.groups.push((numbers_hash(shard), position.seq, ordinal));
            }
            self.seen.groups.extend(row.group().map(|group| (group_hash(shard, group), position.seq, ordinal)));
            last = Some(position);
        }
        self.next_block(number, (shard, table), last);
    }

    /// Whether the next block begins behind the last row of this one.
    fn next_block(&mut self, number: usize, place: (ShardId, Table), last: Option<Position>) {
        if number + 1 < self.run.blocks() {
            let next = *self.run.index.entry(number + 1);
            if next.place() == place && Some(next.first) <= last {
                self.damaged(next.offset, "a data block starts before the previous one ends".into());
            }
        }
    }

    fn keys(&mut self) {
        let run = self.run;
        let section = match run.keys() {
            Ok(section) => section,
            Err(error) => return self.failed(run.footer.keys, error),
        };
        let mut named = RoaringBitmap::new();
        for stretch in 0..STRETCHES {
            let offset = section.offset_of(stretch);
            let entries = match section.stretch(stretch) {
                Ok(entries) => entries,
                Err(error) => {
                    self.failed(offset, error);
                    continue;
                }
            };
            for partition in KeySection::partitions(stretch) {
                for (fingerprint, ordinal) in entries.partition(partition) {
                    let Some(hash) = self.seen.hashes.get(ordinal as usize) else {
                        self.damaged(offset, format!("the keys name row {ordinal}, which does not exist"));
                        continue;
                    };
                    let same = |hash: u64| (partition_of(hash), fingerprint_of(hash)) == (partition, fingerprint);
                    if !named.insert(ordinal) || !hash.is_none_or(same) {
                        self.damaged(offset, format!("the keys have row {ordinal} in the wrong place"));
                    }
                }
            }
            (self.progress)(section.keys_in(stretch) as u64 * 8);
        }
        if named.len() != u64::from(run.rows()) && self.found.is_empty() {
            self.damaged(run.footer.keys, "the keys do not name all rows".into());
        }
    }

    fn groups(&mut self) {
        let (run, groups) = (self.run, &self.run.groups);
        let mut stored: Vec<GroupEntry> = Vec::new();
        let mut whole = true;
        for page in 0..groups.pages() {
            let (offset, length) = (groups.page_offset(page), groups.page_offset(page + 1) - groups.page_offset(page));
            match groups.read_pages(&run.file, page..page + 1) {
                Ok(entries) => {
                    let (hash, seq, _) = entries[0];
                    if groups.first(page) != (hash, seq) {
                        self.damaged(offset, "a group page does not start as the group index says".into());
                    }
                    if entries.iter().any(|(hash, ..)| !groups.may_have(*hash)) {
                        self.damaged(offset, "the group filter leaves out a group".into());
                    }
                    stored.extend(entries);
                }
                Err(error) => {
                    whole = false;
                    self.failed(offset, error);
                }
            }
            (self.progress)(length);
        }
        if !stored.is_sorted() {
            self.damaged(run.footer.groups, "the group pages are not in order".into());
        }
        // Of rows that could not be looked at nothing can be said; nor of pages that could not be read.
        stored.retain(|(.., ordinal)| self.seen.hashes.get(*ordinal as usize).is_none_or(Option::is_some));
        self.seen.groups.sort_unstable();
        if whole && stored != self.seen.groups {
            self.damaged(run.footer.groups, "the group pages do not match the rows".into());
        }
    }

    fn failed(&mut self, offset: u64, error: ReadError) {
        let damage = match error {
            ReadError::Damaged(damage) => damage,
            ReadError::Io { error, .. } => self.run.file.damage(offset, format!("it cannot be read: {error}")),
        };
        self.found.push(damage);
    }

    fn damaged(&mut self, offset: u64, what: String) {
        self.found.push(self.run.file.damage(offset, what));
    }
}
