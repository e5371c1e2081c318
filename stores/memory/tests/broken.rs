//! The suite is worth something: it fails for each of these broken stores, and names the fact.
#![allow(clippy::unwrap_used, reason = "it is a test")]

mod bench;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bench::TestClock;
use punctual_conformance::Subject;
use punctual_core::store::{
    Batch, Bodies, Change, Claim, Fence, Fenced, Find, FindBack, Key, Owner, Position, Row, Scan, ScanBack, ShardId,
    Store, StoreError, Table, Tally,
};
use punctual_core::{Millis, Name, Timestamp};
use punctual_memory::MemoryStore;

/// One way for a store to be wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Breakage {
    AdmitsEveryFence,
    RefusesTheWholeCommitForOneFence,
    AppliesTalliesOfRefusedBatches,
    FreesShardsNever,
    IgnoresNodeNames,
    ForgetsEverythingWhenReopened,
    ForgetsCommitsWhenReopened,
    ForgetsRemovals,
    KeepsTheTimeOnUpdate,
    LosesTheBodyOnMove,
    GivesBodiesUnasked,
    CutsBodiesAtZero,
    FoldsCase,
    ScansWithoutOrder,
    ScansByTextOfTheNumber,
    ScansAfterTheCursor,
    ScansThroughTheEnd,
    ScansRowsWithoutATime,
    ScansAllTopics,
    LimitsBeforeFilteringTopics,
    ScansWithoutLimit,
    FindsInTimeOrder,
    FindsInAllTables,
    FindsFromTheBeginning,
    ScansBackInTimeOrder,
    ScansBackTheEarliest,
    ScansBackThroughItsPosition,
    ScansBackPastItsEnd,
    ScansBackAllTopics,
    FindsBackInTimeOrder,
    GetsSettings,
    GetsLiveRowsOnly,
    GetsOnlyWhatIsThere,
    FetchesByNumberAlone,
    NumbersOfLiveRowsOnly,
    OverwritesTallies,
    ShowsEmptyTallies,
    SharesTalliesBetweenShards,
}

use Breakage::*;

/// Each breakage, and a fact that must be reported for it.
const CASES: [(Breakage, &str); 38] = [
    (AdmitsEveryFence, "an_old_fence_is_refused_and_changes_nothing"),
    (RefusesTheWholeCommitForOneFence, "one_refused_batch_leaves_the_others_alone"),
    (AppliesTalliesOfRefusedBatches, "an_old_fence_is_refused_and_changes_nothing"),
    (FreesShardsNever, "a_shard_is_free_when_its_lease_is_over"),
    (IgnoresNodeNames, "a_held_shard_is_refused_with_its_owner"),
    (ForgetsEverythingWhenReopened, "fences_rise_also_when_the_store_is_reopened"),
    (ForgetsCommitsWhenReopened, "a_live_row_is_found_by_key_by_position_and_by_time"),
    (ForgetsRemovals, "a_removed_row_is_gone_from_every_read"),
    (KeepsTheTimeOnUpdate, "an_update_changes_time_and_state_and_keeps_the_rest"),
    (LosesTheBodyOnMove, "a_row_moves_between_the_tables_with_all_it_has"),
    (GivesBodiesUnasked, "reads_without_bodies_give_all_but_the_bodies"),
    (CutsBodiesAtZero, "bodies_of_any_bytes_are_kept"),
    (FoldsCase, "names_that_look_alike_are_different_keys"),
    (ScansWithoutOrder, "a_scan_is_ordered_by_time_and_then_by_number"),
    (ScansByTextOfTheNumber, "a_scan_is_ordered_by_time_and_then_by_number"),
    (ScansAfterTheCursor, "a_scan_begins_with_its_position"),
    (ScansThroughTheEnd, "a_scan_stops_before_its_end"),
    (ScansRowsWithoutATime, "rows_without_a_time_are_left_out_of_scans_only"),
    (ScansAllTopics, "a_scan_of_a_topic_gives_its_rows_only"),
    (LimitsBeforeFilteringTopics, "the_limit_of_a_scan_counts_only_rows_of_its_topic"),
    (ScansWithoutLimit, "a_scan_gives_at_most_its_limit"),
    (FindsInTimeOrder, "a_group_is_found_in_the_order_of_the_numbers"),
    (FindsInAllTables, "a_group_is_found_table_by_table"),
    (FindsFromTheBeginning, "a_find_begins_with_its_number_and_gives_at_most_its_limit"),
    (ScansBackInTimeOrder, "a_scan_back_gives_the_latest_rows_first"),
    (ScansBackTheEarliest, "a_scan_back_gives_at_most_its_limit"),
    (ScansBackThroughItsPosition, "a_scan_back_begins_before_its_position_and_ends_with_its_time"),
    (ScansBackPastItsEnd, "a_scan_back_begins_before_its_position_and_ends_with_its_time"),
    (ScansBackAllTopics, "a_scan_back_of_a_topic_gives_its_rows_only"),
    (FindsBackInTimeOrder, "a_find_back_gives_the_greatest_numbers_first"),
    (GetsSettings, "settings_and_other_rows_may_share_a_key"),
    (GetsLiveRowsOnly, "get_finds_a_row_in_whichever_table_has_it"),
    (GetsOnlyWhatIsThere, "get_answers_in_the_order_of_the_keys"),
    (FetchesByNumberAlone, "fetch_finds_only_live_rows_and_only_at_their_exact_position"),
    (NumbersOfLiveRowsOnly, "numbered_answers_in_the_order_of_the_numbers_from_whichever_table"),
    (OverwritesTallies, "tallies_add_up"),
    (ShowsEmptyTallies, "a_tally_that_comes_to_zero_is_gone"),
    (SharesTalliesBetweenShards, "each_shard_has_its_own_tallies"),
];

/// A good store with one thing wrong.
struct Broken {
    breakage: Breakage,
    good: MemoryStore,
    /// The fences in force, for a store that swaps them under an outdated writer.
    fences: Mutex<HashMap<ShardId, Fence>>,
}

impl Broken {
    fn is(&self, breakage: Breakage) -> bool {
        self.breakage == breakage
    }

    fn bend(&self, change: Change) -> Option<Change> {
        match change {
            Change::Remove { .. } if self.is(ForgetsRemovals) => None,
            Change::Update { place, table, state, .. } if self.is(KeepsTheTimeOnUpdate) => {
                Some(Change::Update { at: place.position.at, place, table, state })
            }
            Change::Update { place, table, at, state } if self.is(LosesTheBodyOnMove) && table != place.table => {
                let keys = std::slice::from_ref(&place.key);
                let old = self.good.get(SHARD, keys, Bodies::Without).unwrap().remove(0)?;
                Some(Change::Insert { row: Row { table, at, state, ..old }, replaces: Some(place) })
            }
            Change::Insert { row, replaces } if self.is(CutsBodiesAtZero) => {
                let end = row.body.iter().position(|byte| *byte == 0).unwrap_or(row.body.len());
                Some(Change::Insert { row: Row { body: row.body.slice(..end), ..row }, replaces })
            }
            Change::Insert { row, replaces } if self.is(FoldsCase) => {
                let key = Key::new(row.key.topic(), &row.key.id().to_lowercase(), row.key.queue());
                Some(Change::Insert { row: Row { key, ..row }, replaces })
            }
            change => Some(change),
        }
    }
}

/// The shard on which the suite works most of the time.
const SHARD: ShardId = ShardId(7);

impl Store for Broken {
    fn claim(&self, shard: ShardId, node: &Name, lease: Millis) -> Result<Claim, StoreError> {
        let lease = if self.is(FreesShardsNever) { Millis::from_hours(1_000) } else { lease };
        let node = if self.is(IgnoresNodeNames) { &Name::new("anybody").unwrap() } else { node };
        let claim = self.good.claim(shard, node, lease)?;
        if let Claim::Granted(fence) = claim {
            self.fences.lock().unwrap().insert(shard, fence);
        }
        Ok(claim)
    }

    fn renew(&self, shard: ShardId, fence: Fence, lease: Millis) -> Result<(), StoreError> {
        self.good.renew(shard, fence, lease)
    }

    fn release(&self, shard: ShardId, fence: Fence) -> Result<(), StoreError> {
        self.good.release(shard, fence)
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.good.owners()
    }

    fn get(&self, shard: ShardId, keys: &[Key], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let bodies = if self.is(GivesBodiesUnasked) { Bodies::With } else { bodies };
        let mut rows = self.good.get(shard, keys, bodies)?;
        match self.breakage {
            GetsSettings => {
                let settings = self.good.scan(shard, &all(Table::Settings))?;
                for (key, row) in keys.iter().zip(&mut rows) {
                    *row = row.take().or_else(|| settings.iter().find(|setting| setting.key == *key).cloned());
                }
            }
            GetsLiveRowsOnly => {
                rows.iter_mut().for_each(|row| *row = row.take().filter(|row| row.table == Table::Live))
            }
            GetsOnlyWhatIsThere => rows.retain(Option::is_some),
            _ => {}
        }
        Ok(rows)
    }

    fn fetch(&self, shard: ShardId, positions: &[Position], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        if !self.is(FetchesByNumberAlone) {
            return self.good.fetch(shard, positions, bodies);
        }
        let rows = self.good.scan(shard, &Scan { bodies, ..all(Table::Live) })?;
        Ok(positions.iter().map(|position| rows.iter().find(|row| row.seq == position.seq).cloned()).collect())
    }

    fn numbered(&self, shard: ShardId, numbers: &[u64], bodies: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
        let mut rows = self.good.numbered(shard, numbers, bodies)?;
        if self.is(NumbersOfLiveRowsOnly) {
            rows.iter_mut().for_each(|row| *row = row.take().filter(|row| row.table == Table::Live));
        }
        Ok(rows)
    }

    fn scan(&self, shard: ShardId, scan: &Scan) -> Result<Vec<Row>, StoreError> {
        let mut scan = scan.clone();
        match self.breakage {
            ScansAfterTheCursor => scan.from = scan.from.next(),
            ScansThroughTheEnd if scan.until < Timestamp::LAST => scan.until = scan.until.plus(Millis(1)),
            ScansAllTopics => scan.topic = None,
            ScansWithoutLimit => scan.limit = usize::MAX,
            LimitsBeforeFilteringTopics => {
                let rows = self.good.scan(shard, &Scan { topic: None, ..scan.clone() })?;
                let wanted = |row: &Row| scan.topic.as_deref().is_none_or(|topic| row.key.topic() == topic);
                return Ok(rows.into_iter().filter(wanted).collect());
            }
            _ => {}
        }
        let mut rows = self.good.scan(shard, &scan)?;
        match self.breakage {
            ScansWithoutOrder => rows.sort_by(|a, b| a.key.cmp(&b.key)),
            ScansByTextOfTheNumber => rows.sort_by_key(|row| (row.at, row.seq.to_string())),
            ScansRowsWithoutATime if scan.table == Table::Live => {
                let never = Find {
                    table: Table::Live,
                    group: Name::new("g").unwrap(),
                    from_seq: 0,
                    limit: 9,
                    bodies: scan.bodies,
                };
                rows.extend(self.good.find(shard, &never)?.into_iter().filter(|row| row.at == Timestamp::NEVER));
            }
            _ => {}
        }
        Ok(rows)
    }

    fn find(&self, shard: ShardId, find: &Find) -> Result<Vec<Row>, StoreError> {
        let mut find = find.clone();
        if self.is(FindsFromTheBeginning) {
            find.from_seq = 0;
        }
        let mut rows = self.good.find(shard, &find)?;
        if self.is(FindsInTimeOrder) {
            rows.sort_by_key(Row::position);
        }
        if self.is(FindsInAllTables) {
            for table in Table::ALL.into_iter().filter(|table| *table != find.table) {
                rows.extend(self.good.find(shard, &Find { table, ..find.clone() })?);
            }
            rows.sort_by_key(|row| row.seq);
        }
        Ok(rows)
    }

    fn scan_back(&self, shard: ShardId, back: &ScanBack) -> Result<Vec<Row>, StoreError> {
        let mut back = back.clone();
        match self.breakage {
            ScansBackThroughItsPosition => back.before = back.before.next(),
            ScansBackAllTopics => back.topic = None,
            ScansBackPastItsEnd => back.from = Timestamp::ZERO,
            _ => {}
        }
        if self.is(ScansBackTheEarliest) {
            let earliest = self.good.scan_back(shard, &ScanBack { limit: usize::MAX, ..back.clone() })?;
            return Ok(earliest.into_iter().rev().take(back.limit).rev().collect());
        }
        let mut rows = self.good.scan_back(shard, &back)?;
        if self.is(ScansBackInTimeOrder) {
            rows.reverse();
        }
        Ok(rows)
    }

    fn find_back(&self, shard: ShardId, back: &FindBack) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.good.find_back(shard, back)?;
        if self.is(FindsBackInTimeOrder) {
            rows.sort_by_key(|row| std::cmp::Reverse(row.position()));
        }
        Ok(rows)
    }

    fn tallies(&self, shard: ShardId) -> Result<Vec<(Tally, i64)>, StoreError> {
        match self.breakage {
            SharesTalliesBetweenShards => self.good.tallies(ShardId(8)),
            ShowsEmptyTallies => {
                let mut tallies = self.good.tallies(shard)?;
                tallies.iter_mut().for_each(|(_, count)| *count -= 1);
                Ok(tallies)
            }
            _ => self.good.tallies(shard),
        }
    }

    fn commit(&self, mut batches: Vec<Batch>) -> Result<Vec<Result<(), Fenced>>, StoreError> {
        for batch in &mut batches {
            let changes = std::mem::take(&mut batch.changes);
            batch.changes = changes.into_iter().filter_map(|change| self.bend(change)).collect();
            let current = self.fences.lock().unwrap().get(&batch.shard).copied();
            match (self.breakage, current) {
                (AdmitsEveryFence, Some(fence)) => batch.fence = fence,
                (AppliesTalliesOfRefusedBatches, Some(fence)) if fence != batch.fence => {
                    let tallies = Batch { fence, changes: vec![], ..batch.clone() };
                    self.good.commit(vec![tallies])?;
                }
                (RefusesTheWholeCommitForOneFence, Some(current)) if current != batch.fence => {
                    return Ok(vec![Err(Fenced { current }); batches.len()]);
                }
                (OverwritesTallies, _) => {
                    let known = self.good.tallies(batch.shard)?;
                    for (tally, delta) in &mut batch.tallies {
                        *delta -= known.iter().find(|(of, _)| of == tally).map_or(0, |(_, count)| *count);
                    }
                }
                // Counts are kept one too high and shown one too low, so that an empty one stays.
                (ShowsEmptyTallies, _) => {
                    let known = self.good.tallies(batch.shard)?;
                    for (tally, delta) in &mut batch.tallies {
                        *delta += i64::from(known.iter().all(|(of, _)| of != tally));
                    }
                }
                (SharesTalliesBetweenShards, _) if batch.shard != ShardId(8) => batch.tallies.clear(),
                _ => {}
            }
        }
        self.good.commit(batches)
    }
}

fn all(table: Table) -> Scan {
    let (from, until) = (Position::START, Timestamp::NEVER);
    Scan { table, from, until, topic: None, limit: usize::MAX, bodies: Bodies::With }
}

struct Wrong {
    breakage: Breakage,
    clock: Arc<TestClock>,
    newest: Mutex<Option<Arc<Broken>>>,
}

impl Subject for Wrong {
    fn fresh(&self) -> Arc<dyn Store> {
        let good = MemoryStore::new(self.clock.clone());
        if self.breakage == ForgetsCommitsWhenReopened {
            good.hold();
        }
        let store = Arc::new(Broken { breakage: self.breakage, good, fences: Mutex::default() });
        *self.newest.lock().unwrap() = Some(Arc::clone(&store));
        store
    }

    fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        match self.breakage {
            ForgetsEverythingWhenReopened => return self.fresh(),
            ForgetsCommitsWhenReopened => self.newest.lock().unwrap().as_ref().unwrap().good.crash(),
            _ => {}
        }
        store
    }

    fn pass(&self, time: Millis) {
        self.clock.pass(time);
    }

    fn rounds(&self) -> u64 {
        200
    }
}

#[test]
fn the_suite_fails_for_every_broken_store_and_names_the_fact() {
    for (breakage, fact) in CASES {
        let failures =
            punctual_conformance::examine(&Wrong { breakage, clock: Arc::default(), newest: Mutex::default() });
        let facts: Vec<&str> = failures.iter().map(|failure| failure.fact).collect();
        assert!(facts.contains(&fact), "{breakage:?} is not noticed by {fact}, only by {facts:?}");
        println!("{breakage:?}: {} facts fail", facts.len());
    }
}
