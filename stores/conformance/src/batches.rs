//! Facts about commits: batches are whole or nothing, fences are obeyed, shards are apart.

use punctual_core::store::{
    Batch, Bodies, Change, Fence, Key, Position, Refusal, Row, ShardId, Table, Tally, TallyKind,
};

use crate::stage::{
    Difference, Outcome, SHARD, Stage, at, holds, insert, members, name, remove, row, same, same_rows, update, whole,
};

crate::listed![
    a_commit_of_nothing_is_fine,
    all_kinds_of_changes_go_in_one_batch,
    batches_may_have_thousands_of_changes,
    an_old_fence_is_refused_and_changes_nothing,
    an_old_fence_is_refused_even_without_changes,
    a_fence_that_was_never_granted_is_refused,
    a_shard_that_nobody_claimed_takes_no_commit,
    several_shards_commit_together,
    batches_of_one_shard_happen_in_their_order,
    one_refused_batch_leaves_the_others_alone,
    shards_do_not_see_each_other,
];

fn a_commit_of_nothing_is_fine(stage: &mut Stage<'_>) -> Outcome {
    same("the answers to no batch", stage.try_commit(vec![])?, vec![])?;
    stage.commit(vec![])?;
    stage.expect_rows(&[])
}

fn all_kinds_of_changes_go_in_one_batch(stage: &mut Stage<'_>) -> Outcome {
    let rows: Vec<Row> = (1..=4).map(|n| row(Table::Live, &n.to_string(), n, 100 * n)).collect();
    stage.commit(rows.iter().map(insert).collect())?;
    let later = Row { at: at(900), state: "later".into(), ..rows[0].clone() };
    let dead = Row { table: Table::Dead, at: at(50), ..rows[1].clone() };
    let replacement = Row { body: "new".into(), at: at(300), ..rows[3].clone() };
    let (new, setting) = (row(Table::Live, "5", 5, 200), row(Table::Settings, "6", 6, 0));
    stage.commit(vec![
        update(&rows[0], &later),
        update(&rows[1], &dead),
        remove(&rows[2]),
        Change::Insert { row: replacement.clone(), replaces: Some(rows[3].place()) },
        insert(&new),
        insert(&setting),
    ])?;
    stage.expect_rows(&[later, dead, replacement, new, setting])
}

fn batches_may_have_thousands_of_changes(stage: &mut Stage<'_>) -> Outcome {
    let rows: Vec<Row> = (1..=10_000).map(|n| row(Table::Live, &n.to_string(), n, n * 7_919 % 10_007)).collect();
    stage.commit_in_parts(rows.iter().map(insert).collect())?;
    stage.expect_rows(&rows)?;
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let positions: Vec<Position> = rows.iter().map(Row::position).collect();
    let got: Vec<Row> = stage.get_all(SHARD, &keys, Bodies::With)?.into_iter().flatten().collect();
    same_rows("get of all", &got, &rows)?;
    let got: Vec<Row> = stage.fetch_all(SHARD, &positions, Bodies::With)?.into_iter().flatten().collect();
    same_rows("fetch of all", &got, &rows)?;
    let done = |row: &Row| Row { table: Table::History, at: at(row.seq), state: "done".into(), ..row.clone() };
    let done: Vec<Row> = rows.iter().map(done).collect();
    stage.commit_in_parts(rows.iter().zip(&done).map(|(from, to)| update(from, to)).collect())?;
    stage.expect_rows(&done)?;
    stage.commit_in_parts(done.iter().map(remove).collect())?;
    stage.expect_rows(&[])
}

/// Some rows and tallies, and a batch that would change all of them.
struct Attempt {
    rows: Vec<Row>,
    tallies: Vec<(Tally, i64)>,
    batch: Batch,
}

impl Attempt {
    fn prepare(stage: &mut Stage<'_>) -> Result<Attempt, Difference> {
        let rows: Vec<Row> = (1..=3).map(|n| row(Table::Live, &n.to_string(), n, 100 * n)).collect();
        let tallies = vec![(Tally::named(TallyKind::Waiting, &name("orders")), 3)];
        let first = Batch { tallies: tallies.clone(), ..stage.batch(SHARD, rows.iter().map(insert).collect()) };
        stage.commit_all(vec![first])?;
        let changes = vec![
            update(&rows[0], &Row { at: at(999), state: "changed".into(), ..rows[0].clone() }),
            remove(&rows[1]),
            Change::Insert { row: Row { body: "new".into(), ..rows[2].clone() }, replaces: Some(rows[2].place()) },
            insert(&row(Table::Dead, "4", 4, 400)),
        ];
        let batch = Batch { tallies: tallies.clone(), ..stage.batch(SHARD, changes) };
        Ok(Attempt { rows, tallies, batch })
    }

    /// Requires that the batch is refused and that all stays as it was.
    fn remains_in_vain(self, stage: &mut Stage<'_>) -> Outcome {
        let current = stage.fence(SHARD);
        same("the answer", stage.try_commit(vec![self.batch])?, vec![Err(Refusal::Fenced { current })])?;
        stage.expect_rows(&self.rows)?;
        same("the tallies", stage.tallies(SHARD)?, self.tallies)
    }
}

fn an_old_fence_is_refused_and_changes_nothing(stage: &mut Stage<'_>) -> Outcome {
    let attempt = Attempt::prepare(stage)?;
    let current = stage.own(SHARD)?;
    holds("a new claim raises the fence", attempt.batch.fence < current)?;
    attempt.remains_in_vain(stage)
}

fn an_old_fence_is_refused_even_without_changes(stage: &mut Stage<'_>) -> Outcome {
    let batch = stage.batch(SHARD, vec![]);
    let current = stage.own(SHARD)?;
    same("the answer", stage.try_commit(vec![batch])?, vec![Err(Refusal::Fenced { current })])
}

fn a_fence_that_was_never_granted_is_refused(stage: &mut Stage<'_>) -> Outcome {
    let mut attempt = Attempt::prepare(stage)?;
    attempt.batch.fence.0 += 1;
    attempt.remains_in_vain(stage)
}

fn a_shard_that_nobody_claimed_takes_no_commit(stage: &mut Stage<'_>) -> Outcome {
    let shard = ShardId(9);
    for fence in [0, 1] {
        let changes = vec![insert(&row(Table::Live, "1", 1, 10))];
        let batch = Batch { shard, fence: Fence(fence), serial: 1, changes, tallies: vec![] };
        let answers = stage.try_commit(vec![batch])?;
        holds(format_args!("fence {fence} is refused, not {answers:?}"), matches!(answers[..], [Err(_)]))?;
    }
    same_rows("rows of the shard", &stage.scan_of(shard, &whole(Table::Live))?, &[])
}

/// The first, a middle and the last shard.
const SHARDS: [ShardId; 3] = [ShardId(0), SHARD, ShardId(u16::MAX)];

fn several_shards_commit_together(stage: &mut Stage<'_>) -> Outcome {
    let of = |shard: ShardId| row(Table::Live, &format!("of shard {}", shard.0), 1, u64::from(shard.0));
    for shard in SHARDS {
        stage.own(shard)?;
    }
    let batches = SHARDS.map(|shard| stage.batch(shard, vec![insert(&of(shard))]));
    stage.commit_all(batches.into())?;
    for shard in SHARDS {
        let rows = stage.scan_of(shard, &whole(Table::Live))?;
        same_rows(format_args!("rows of {shard:?}"), &rows, &[of(shard)])?;
    }
    Ok(())
}

fn batches_of_one_shard_happen_in_their_order(stage: &mut Stage<'_>) -> Outcome {
    stage.own(SHARD)?;
    let first = row(Table::Live, "1", 1, 10);
    let leased = Row { at: at(40), state: "leased".into(), ..first.clone() };
    let done = Row { table: Table::History, at: at(20), state: "done".into(), ..first.clone() };
    let steps = [insert(&first), update(&first, &leased), update(&leased, &done)];
    let batches = steps.map(|change| stage.batch(SHARD, vec![change]));
    stage.commit_all(batches.into())?;
    stage.expect_rows(&[done])
}

fn one_refused_batch_leaves_the_others_alone(stage: &mut Stage<'_>) -> Outcome {
    let new = row(Table::Live, "1", 1, 10);
    for refused in 0..SHARDS.len() {
        stage.begin_anew()?;
        for shard in SHARDS {
            stage.own(shard)?;
        }
        let batches = SHARDS.map(|shard| stage.batch(shard, vec![insert(&new)]));
        let current = stage.own(SHARDS[refused])?;
        let answers = stage.try_commit(batches.into())?;
        let mut expected = vec![Ok(()); SHARDS.len()];
        expected[refused] = Err(Refusal::Fenced { current });
        same(format_args!("the answers, number {refused} under an old fence"), answers, expected)?;
        for (index, shard) in SHARDS.into_iter().enumerate() {
            let rows = stage.scan_of(shard, &whole(Table::Live))?;
            let expected = if index == refused { &[][..] } else { std::slice::from_ref(&new) };
            same_rows(format_args!("rows of {shard:?}, number {refused} under an old fence"), &rows, expected)?;
        }
    }
    Ok(())
}

fn shards_do_not_see_each_other(stage: &mut Stage<'_>) -> Outcome {
    let other = ShardId(8);
    stage.own(other)?;
    let here = Row { group: Some(name("g")), ..row(Table::Live, "1", 1, 10) };
    let there = Row { body: "there".into(), state: "there".into(), ..here.clone() };
    let batches = vec![stage.batch(SHARD, vec![insert(&here)]), stage.batch(other, vec![insert(&there)])];
    stage.commit_all(batches)?;
    same("get here", stage.get(&here.key)?, Some(here.clone()))?;
    same(
        "get there",
        stage.get_all(other, std::slice::from_ref(&there.key), Bodies::With)?,
        vec![Some(there.clone())],
    )?;
    stage.commit(vec![remove(&here)])?;
    stage.expect_rows(&[])?;
    let find = members(Table::Live, "g");
    same_rows("find there", &stage.find_by(find.limit, other, &find)?, std::slice::from_ref(&there))?;
    same("fetch there", stage.fetch_all(other, &[there.position()], Bodies::With)?, vec![Some(there)])
}
