//! Facts about tallies: counts that change with the rows and are read without counting.

use punctual_core::store::{Batch, ShardId, Table, Tally, TallyKind};

use crate::stage::{Outcome, SHARD, Stage, insert, name, row, same};

crate::listed![
    tallies_add_up,
    a_tally_that_comes_to_zero_is_gone,
    a_tally_may_be_negative,
    tallies_are_ordered_by_kind_name_and_slot,
    large_tallies_and_slots_are_exact,
    each_shard_has_its_own_tallies,
    tallies_and_rows_change_together,
];

fn waiting(topic: &str) -> Tally {
    Tally::named(TallyKind::Waiting, &name(topic))
}

fn tallies_add_up(stage: &mut Stage<'_>) -> Outcome {
    for delta in [5, -2, 10, 1] {
        stage.count(vec![(waiting("a"), delta), (Tally::slot(TallyKind::DueDay, 20_000), 2 * delta)])?;
    }
    same("the tallies", stage.tallies(SHARD)?, vec![(waiting("a"), 14), (Tally::slot(TallyKind::DueDay, 20_000), 28)])
}

fn a_tally_that_comes_to_zero_is_gone(stage: &mut Stage<'_>) -> Outcome {
    stage.count(vec![(waiting("a"), 3), (waiting("b"), 3)])?;
    stage.count(vec![(waiting("a"), -3), (waiting("c"), 0)])?;
    same("the tallies", stage.tallies(SHARD)?, vec![(waiting("b"), 3)])?;
    stage.count(vec![(waiting("a"), 1)])?;
    same("the tallies, counted again", stage.tallies(SHARD)?, vec![(waiting("a"), 1), (waiting("b"), 3)])
}

fn a_tally_may_be_negative(stage: &mut Stage<'_>) -> Outcome {
    stage.count(vec![(waiting("a"), -3)])?;
    same("the tallies", stage.tallies(SHARD)?, vec![(waiting("a"), -3)])?;
    stage.count(vec![(waiting("a"), 5)])?;
    same("the tallies, positive again", stage.tallies(SHARD)?, vec![(waiting("a"), 2)])
}

fn tallies_are_ordered_by_kind_name_and_slot(stage: &mut Stage<'_>) -> Outcome {
    let named = TallyKind::ALL[..6]
        .iter()
        .flat_map(|kind| ["B", "a", "aa", "b", "z", "é", "注"].map(|text| Tally::named(*kind, &name(text))));
    let slots = TallyKind::ALL[6..].iter().flat_map(|kind| [0, 2, 9, 10, 11, 100].map(|slot| Tally::slot(*kind, slot)));
    let tallies: Vec<(Tally, i64)> = named.chain(slots).zip(1..).collect();
    stage.count(tallies.iter().rev().cloned().collect())?;
    same("the tallies", stage.tallies(SHARD)?, tallies)
}

fn large_tallies_and_slots_are_exact(stage: &mut Stage<'_>) -> Outcome {
    let slot = |slot| Tally::slot(TallyKind::DueMinute, slot);
    let large = [(slot(1 << 32), (1 << 53) + 1), (slot((1 << 32) + 1), -(1 << 53) - 1), (slot(1 << 47), i64::MAX)];
    stage.count(large.to_vec())?;
    same("the tallies", stage.tallies(SHARD)?, large.to_vec())
}

fn each_shard_has_its_own_tallies(stage: &mut Stage<'_>) -> Outcome {
    let other = ShardId(8);
    stage.own(other)?;
    let here = Batch { tallies: vec![(waiting("a"), 1)], ..stage.batch(SHARD, vec![]) };
    let there = Batch { tallies: vec![(waiting("a"), 10), (waiting("b"), 20)], ..stage.batch(other, vec![]) };
    stage.commit_all(vec![here, there])?;
    same("the tallies here", stage.tallies(SHARD)?, vec![(waiting("a"), 1)])?;
    let there = stage.tallies(other)?;
    same("the tallies there", there, vec![(waiting("a"), 10), (waiting("b"), 20)])
}

fn tallies_and_rows_change_together(stage: &mut Stage<'_>) -> Outcome {
    let row = row(Table::Live, "1", 1, 10);
    let batch = Batch { tallies: vec![(waiting("orders"), 1)], ..stage.batch(SHARD, vec![insert(&row)]) };
    stage.commit_all(vec![batch])?;
    stage.expect_rows(&[row])?;
    same("the tallies", stage.tallies(SHARD)?, vec![(waiting("orders"), 1)])
}
