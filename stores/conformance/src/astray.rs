//! Facts about batches that are not about the rows that are there: refused, each by itself, and nothing of it happens.

use punctual_core::store::{Batch, Change, Place, Position, Refusal, Row, ShardId, Table, Tally, TallyKind};

use crate::stage::{Outcome, SHARD, Stage, at, holds, insert, name, remove, row, same, same_rows, update, whole};

crate::listed![
    a_batch_that_is_astray_is_refused_and_changes_nothing,
    a_batch_that_is_astray_leaves_the_other_shards_alone,
    what_comes_after_a_batch_that_is_astray_is_lost,
];

/// The rows that are there.
fn there() -> [Row; 3] {
    [row(Table::Live, "live", 1, 100), row(Table::Dead, "dead", 2, 200), row(Table::History, "done", 3, 300)]
}

/// A row that is not there.
fn absent() -> Row {
    row(Table::Live, "absent", 9, 100)
}

/// Changes that do not fit what is there, each with what is wrong about it.
fn wrong() -> Vec<(&'static str, Change)> {
    let [live, dead, done] = there();
    let moved = |row: &Row| Row { state: "moved".into(), at: at(900), ..row.clone() };
    let elsewhere = |row: &Row| Place { position: Position { at: at(111), seq: row.seq }, ..row.place() };
    let among = |table, row: &Row| Place { table, ..row.place() };
    let to = |place, row: &Row| Change::Update { place, table: row.table, at: at(900), state: "moved".into() };
    let taken = |of: &Row| insert(&Row { key: of.key.clone(), ..row(Table::Live, "", 50, 500) });
    let number = |of: &Row| insert(&row(Table::Live, "new", of.seq, 500));
    let instead = |place: Place| Change::Insert {
        row: Row { key: place.key.clone(), body: "new".into(), ..row(Table::Live, "", 51, 510) },
        replaces: Some(place),
    };
    vec![
        ("an update of a row that is not there", update(&absent(), &moved(&absent()))),
        ("an update of a row at another time", to(elsewhere(&live), &live)),
        ("an update of a row of another table", to(among(Table::Live, &dead), &dead)),
        ("an update of a row of another table still", to(among(Table::Dead, &done), &done)),
        ("a removal of a row that is not there", remove(&absent())),
        ("a removal of a row at another time", Change::Remove { place: elsewhere(&dead) }),
        ("a removal of a row of another table", Change::Remove { place: among(Table::History, &live) }),
        ("an insert under the key of a live row", taken(&live)),
        ("an insert under the key of a dead row", taken(&dead)),
        ("an insert under the key of a finished row", taken(&done)),
        ("an insert under the number of a live row", number(&live)),
        ("an insert under the number of a finished row", number(&done)),
        ("an insert in the place of a row that is not there", instead(absent().place())),
        ("an insert in the place of a row at another time", instead(elsewhere(&live))),
    ]
}

fn tally() -> Tally {
    Tally::named(TallyKind::Waiting, &name("orders"))
}

/// A batch with a wrong change among good ones.
fn astray(stage: &Stage<'_>, wrong: Change) -> Batch {
    let [live, _, done] = there();
    let mut changes =
        vec![insert(&row(Table::Live, "good", 60, 600)), wrong, insert(&row(Table::Dead, "better", 61, 610))];
    // Rows that are there change too, unless the wrong change is about them.
    for row in [live, done] {
        let number = |place: &Place| place.position.seq == row.seq || place.key == row.key;
        let named = match &changes[1] {
            Change::Insert { row: new, replaces } => {
                new.seq == row.seq || new.key == row.key || replaces.as_ref().is_some_and(number)
            }
            Change::Update { place, .. } | Change::Remove { place } => number(place),
        };
        if !named {
            changes.push(update(&row, &Row { state: "changed".into(), ..row.clone() }));
        }
    }
    Batch { tallies: vec![(tally(), 1)], ..stage.batch(SHARD, changes) }
}

/// Requires that the answer says that the batch is astray.
fn is_astray(what: &str, answer: &Result<(), Refusal>) -> Outcome {
    holds(format_args!("{what} is astray, not {answer:?}"), matches!(answer, Err(Refusal::Astray(_))))
}

fn a_batch_that_is_astray_is_refused_and_changes_nothing(stage: &mut Stage<'_>) -> Outcome {
    if !stage.subject.tells_astray() {
        return Ok(());
    }
    stage.commit(there().iter().map(insert).collect())?;
    for (what, wrong) in wrong() {
        let batch = astray(stage, wrong);
        let answers = stage.try_commit(vec![batch])?;
        same("the number of answers", answers.len(), 1)?;
        is_astray(what, &answers[0])?;
        stage.expect_rows(&there()).map_err(|difference| difference.after(what))?;
        same(format_args!("the tallies after {what}"), stage.tallies(SHARD)?, vec![])?;
    }
    // The place in the chain is still free.
    let new = row(Table::Live, "good", 60, 600);
    stage.commit(vec![insert(&new)])?;
    let [live, dead, done] = there();
    stage.expect_rows(&[live, dead, done, new])
}

fn a_batch_that_is_astray_leaves_the_other_shards_alone(stage: &mut Stage<'_>) -> Outcome {
    if !stage.subject.tells_astray() {
        return Ok(());
    }
    let shards = [ShardId(2), SHARD, ShardId(300)];
    let new = row(Table::Live, "good", 60, 600);
    for wrong in 0..shards.len() {
        stage.begin_anew()?;
        for shard in shards {
            stage.own(shard)?;
        }
        let change = |index| if index == wrong { remove(&absent()) } else { insert(&new) };
        let batches = shards.iter().enumerate().map(|(index, shard)| stage.batch(*shard, vec![change(index)]));
        let batches = batches.collect();
        let answers = stage.try_commit(batches)?;
        same("the number of answers", answers.len(), shards.len())?;
        for (index, shard) in shards.into_iter().enumerate() {
            let rows = stage.scan_of(shard, &whole(Table::Live))?;
            if index == wrong {
                is_astray("the removal of a row that is not there", &answers[index])?;
                same_rows("the rows of the shard that was astray", &rows, &[])?;
            } else {
                same("the answer to the others", answers[index].clone(), Ok(()))?;
                same_rows("the rows of the others", &rows, std::slice::from_ref(&new))?;
            }
        }
    }
    Ok(())
}

fn what_comes_after_a_batch_that_is_astray_is_lost(stage: &mut Stage<'_>) -> Outcome {
    if !stage.subject.tells_astray() {
        return Ok(());
    }
    let new = row(Table::Live, "1", 1, 10);
    let changes = [insert(&new), remove(&absent()), insert(&row(Table::Live, "2", 2, 20))];
    let batches = changes.map(|change| stage.batch(SHARD, vec![change])).into();
    let answers = stage.try_commit(batches)?;
    same("the number of answers", answers.len(), 3)?;
    same("the answer to the first", answers[0].clone(), Ok(()))?;
    is_astray("the second", &answers[1])?;
    same("the answer to the third", answers[2].clone(), Err(Refusal::Lost { expected: 2, found: 1 }))?;
    stage.expect_rows(&[new])
}
