//! Facts about reads: what the owner is shown and when it is refused, many things at once, many shards at once.

use std::sync::Arc;

use punctual_core::Timestamp;
use punctual_core::store::{
    Bodies, Fence, Find, FindBack, Found, Key, Page, Position, Refusal, Row, Scan, ScanBack, ShardId, Store, Table,
    Tally, TallyKind, Tenure, Want,
};

use crate::stage::{
    Difference, Outcome, SHARD, Stage, claim, granted, holds, insert, life, members, name, row, same, whole,
};

crate::listed![
    a_read_under_an_old_fence_is_refused,
    a_read_of_a_shard_that_nobody_claimed_is_refused,
    a_read_under_a_serial_that_the_store_has_not_reached_is_lost,
    a_read_under_an_earlier_serial_sees_what_came_after_it,
    the_owner_reads_all_that_was_confirmed,
    a_read_answers_wants_of_every_kind_in_their_order,
    a_look_over_several_shards_answers_in_order,
    a_look_at_a_shard_that_nobody_claimed_finds_nothing,
    of_thousands_that_are_asked_for_those_that_are_there_come,
    who_wants_nothing_gets_nothing,
];

/// What can be wanted, one of each kind.
struct Wishes {
    keys: [Key; 2],
    positions: [Position; 2],
    numbers: [u64; 3],
    scan: Scan,
    back: ScanBack,
    find: Find,
    find_back: FindBack,
}

impl Wishes {
    fn new() -> Wishes {
        let before = Position { at: Timestamp::NEVER, seq: u64::MAX };
        let (table, limit, bodies) = (Table::Live, 2, Bodies::Without);
        Wishes {
            keys: [Key::new("orders", "none", ""), Key::new("orders", "2", "")],
            positions: [rows()[2].position(), Position { seq: 9, ..rows()[2].position() }],
            numbers: [3, 77, 1],
            scan: Scan { limit, ..whole(Table::Live) },
            back: ScanBack { table, before, from: Timestamp::ZERO, topic: None, limit, bodies },
            find: Find { limit: 9, ..members(Table::Live, "g") },
            find_back: FindBack { table, group: name("g"), before_seq: u64::MAX, limit: 1, bodies },
        }
    }

    fn wants(&self) -> Vec<Want<'_>> {
        vec![
            Want::Tallies,
            Want::Keys(&self.keys, Bodies::With),
            Want::Scan(&self.scan),
            Want::Numbers(&self.numbers, Bodies::Without),
            Want::ScanBack(&self.back),
            Want::Positions(&self.positions, Bodies::With),
            Want::Find(&self.find),
            Want::FindBack(&self.find_back),
            Want::Keys(&self.keys, Bodies::Without),
        ]
    }
}

/// Three rows, of which the first and the last share a group.
fn rows() -> [Row; 3] {
    let group = |seq: u64| (seq != 2).then(|| name("g"));
    [1, 2, 3].map(|seq| Row { group: group(seq), ..row(Table::Live, &seq.to_string(), seq, 10 * seq) })
}

/// What [`Wishes`] come to if [`rows`] are there; where pages go on is for the store to say.
fn granted_wishes() -> Vec<Found> {
    let [one, two, three] = rows();
    let bare = |row: &Row| row.clone().without_body();
    let span = |rows: Vec<Row>| Found::Span(Page { rows, next: None });
    let group = |rows: Vec<Row>| Found::Members(Page { rows, next: None });
    vec![
        Found::Tallies(vec![(tally(), 3)]),
        Found::Each(vec![None, Some(two.clone())]),
        span(vec![one.clone(), two.clone()]),
        Found::Each(vec![Some(bare(&three)), None, Some(bare(&one))]),
        span(vec![bare(&three), bare(&two)]),
        Found::Each(vec![Some(three.clone()), None]),
        group(vec![one, three.clone()]),
        group(vec![bare(&three)]),
        Found::Each(vec![None, Some(bare(&two))]),
    ]
}

fn tally() -> Tally {
    Tally::named(TallyKind::Waiting, &name("orders"))
}

fn without_cursors(found: Vec<Found>) -> Vec<Found> {
    let strip = |found: Found| match found {
        Found::Span(page) => Found::Span(Page { next: None, ..page }),
        Found::Members(page) => Found::Members(Page { next: None, ..page }),
        other => other,
    };
    found.into_iter().map(strip).collect()
}

fn fill(stage: &mut Stage<'_>) -> Outcome {
    stage.commit(rows().iter().map(insert).collect())?;
    stage.count(vec![(tally(), 3)])
}

fn a_read_under_an_old_fence_is_refused(stage: &mut Stage<'_>) -> Outcome {
    fill(stage)?;
    let (old, there) = (stage.tenure(SHARD), stage.other());
    let new = granted(claim(&there, &life("b", 1), SHARD, old.fence)?)?;
    let refused = Refusal::Fenced { current: new.fence };
    let wishes = Wishes::new();
    for store in [stage.store(), &there] {
        for want in wishes.wants() {
            let answer = store.read(SHARD, old, &[want]);
            same(format_args!("{want:?}"), answer, Err(refused.clone().into()))?;
        }
        same("all of it", store.read(SHARD, old, &wishes.wants()), Err(refused.clone().into()))?;
        same("nothing", store.read(SHARD, old, &[]), Err(refused.clone().into()))?;
        let unknown = Tenure { fence: Fence(new.fence.0 + 1), ..new };
        let answer = store.read(SHARD, unknown, &wishes.wants());
        same("under a fence that was never granted", answer, Err(refused.clone().into()))?;
        let found = store.read(SHARD, new, &wishes.wants())?;
        same("for the new owner", without_cursors(found), granted_wishes())?;
    }
    Ok(())
}

fn a_read_of_a_shard_that_nobody_claimed_is_refused(stage: &mut Stage<'_>) -> Outcome {
    let refused = Refusal::Fenced { current: Fence::default() };
    for fence in [0, 1] {
        let tenure = Tenure { fence: Fence(fence), serial: 0 };
        let answer = stage.store().read(ShardId(9), tenure, &[Want::Tallies]);
        same(format_args!("under fence {fence}"), answer, Err(refused.clone().into()))?;
    }
    Ok(())
}

fn a_read_under_a_serial_that_the_store_has_not_reached_is_lost(stage: &mut Stage<'_>) -> Outcome {
    fill(stage)?;
    let tenure = stage.tenure(SHARD);
    for more in [1, 2, 1_000] {
        let expected = tenure.serial + more;
        let lost = Refusal::Lost { expected, found: tenure.serial };
        let ahead = Tenure { serial: expected, ..tenure };
        for wants in [&[Want::Tallies][..], &[]] {
            let answer = stage.store().read(SHARD, ahead, wants);
            same(format_args!("a read by one who was confirmed {expected}"), answer, Err(lost.clone().into()))?;
        }
    }
    let old = Tenure { serial: tenure.serial + 1, ..tenure };
    let current = stage.own(SHARD)?;
    let answer = stage.store().read(SHARD, old, &[]);
    same("and under an old fence", answer, Err(Refusal::Fenced { current }.into()))
}

fn a_read_under_an_earlier_serial_sees_what_came_after_it(stage: &mut Stage<'_>) -> Outcome {
    let first = stage.tenure(SHARD);
    fill(stage)?;
    let found = stage.store().read(SHARD, first, &Wishes::new().wants())?;
    same("a read by one who was not told yet", without_cursors(found), granted_wishes())
}

fn the_owner_reads_all_that_was_confirmed(stage: &mut Stage<'_>) -> Outcome {
    let there = stage.other();
    for seq in 1..=30 {
        let new = row(Table::Live, &seq.to_string(), seq, seq);
        stage.commit(vec![insert(&new)])?;
        for store in [stage.store(), &there] {
            let found = store.read(SHARD, stage.tenure(SHARD), &[Want::Numbers(&[seq], Bodies::With)])?;
            same("the row that was just committed", found, vec![Found::Each(vec![Some(new.clone())])])?;
        }
    }
    Ok(())
}

fn a_read_answers_wants_of_every_kind_in_their_order(stage: &mut Stage<'_>) -> Outcome {
    fill(stage)?;
    let wishes = Wishes::new();
    let found = stage.store().read(SHARD, stage.tenure(SHARD), &wishes.wants())?;
    same("the owner's read", without_cursors(found), granted_wishes())?;
    let turned: Vec<Want<'_>> = wishes.wants().into_iter().rev().collect();
    let found = stage.store().read(SHARD, stage.tenure(SHARD), &turned)?;
    same("the other way round", without_cursors(found), granted_wishes().into_iter().rev().collect())?;
    let wants: Vec<_> = wishes.wants().into_iter().map(|want| (SHARD, want)).collect();
    same("a look", without_cursors(stage.store().look(&wants)?), granted_wishes())
}

fn a_look_over_several_shards_answers_in_order(stage: &mut Stage<'_>) -> Outcome {
    let shards = [0, 300, 2, u16::MAX, 30].map(ShardId);
    let of = |shard: ShardId| row(Table::Live, &format!("of {}", shard.0), 1, u64::from(shard.0));
    for shard in shards {
        stage.own(shard)?;
    }
    let batches = shards.map(|shard| stage.batch(shard, vec![insert(&of(shard))]));
    stage.commit_all(batches.into())?;
    let scan = Scan { limit: 9, ..whole(Table::Live) };
    // Each twice, in another order than they were written and than they are numbered, and one that is empty.
    let order = [shards[3], SHARD, shards[0], shards[4], shards[1], shards[2], shards[0], shards[3]];
    let wants: Vec<_> = order.iter().flat_map(|shard| [(*shard, Want::Scan(&scan)), (*shard, Want::Tallies)]).collect();
    let found = without_cursors(stage.store().look(&wants)?);
    let page = |shard: ShardId| Page { rows: if shard == SHARD { vec![] } else { vec![of(shard)] }, next: None };
    let expected = order.iter().flat_map(|shard| [Found::Span(page(*shard)), Found::Tallies(vec![])]).collect();
    same("what was seen", found, expected)
}

fn a_look_at_a_shard_that_nobody_claimed_finds_nothing(stage: &mut Stage<'_>) -> Outcome {
    fill(stage)?;
    let (wishes, shard) = (Wishes::new(), ShardId(9));
    let wants: Vec<_> = wishes.wants().into_iter().map(|want| (shard, want)).collect();
    for found in stage.store().look(&wants)? {
        let is_empty = match &found {
            Found::Each(rows) => rows.iter().all(Option::is_none),
            Found::Span(page) => page.rows.is_empty(),
            Found::Members(page) => page.rows.is_empty(),
            Found::Tallies(tallies) => tallies.is_empty(),
        };
        holds(format_args!("there is nothing, not {found:?}"), is_empty)?;
    }
    Ok(())
}

/// How many are asked for, and every how many-th is there.
const MANY: u64 = 2_000;
const RARE: u64 = 97;

fn of_thousands_that_are_asked_for_those_that_are_there_come(stage: &mut Stage<'_>) -> Outcome {
    let any: Vec<Row> = (1..=MANY).map(|n| row(Table::Live, &format!("task-{n}"), n, n * 7_919 % 10_007)).collect();
    let is_there = |row: &Row| row.seq.is_multiple_of(RARE);
    stage.commit(any.iter().filter(|row| is_there(row)).map(insert).collect())?;
    let keys: Vec<Key> = any.iter().map(|row| row.key.clone()).collect();
    let positions: Vec<Position> = any.iter().map(Row::position).collect();
    let numbers: Vec<u64> = any.iter().map(|row| row.seq).collect();
    let wants = [
        Want::Keys(&keys, Bodies::With),
        Want::Positions(&positions, Bodies::With),
        Want::Numbers(&numbers, Bodies::With),
    ];
    let expected: Vec<Option<Row>> = any.iter().map(|row| is_there(row).then(|| row.clone())).collect();
    let found = stage.store().read(SHARD, stage.tenure(SHARD), &wants)?;
    same("the number of answers", found.len(), wants.len())?;
    for (found, want) in found.into_iter().zip(["keys", "positions", "numbers"]) {
        let (rows, known) = (found.each(), expected.len());
        same(format_args!("how many {want} are answered"), rows.len(), known)?;
        let wrong = rows.iter().zip(&expected).position(|(row, expected)| row != expected);
        holds(format_args!("all {want} are answered right, also number {wrong:?}"), wrong.is_none())?;
    }
    Ok(())
}

fn who_wants_nothing_gets_nothing(stage: &mut Stage<'_>) -> Outcome {
    let store: &Arc<dyn Store> = stage.store();
    same("a read of nothing", store.read(SHARD, stage.tenure(SHARD), &[])?, vec![])?;
    same("a look at nothing", store.look(&[])?, vec![])?;
    let empty =
        [Want::Keys(&[], Bodies::With), Want::Positions(&[], Bodies::With), Want::Numbers(&[], Bodies::Without)];
    let found: Result<Vec<Found>, Difference> = Ok(store.read(SHARD, stage.tenure(SHARD), &empty)?);
    same("a read of no keys, no positions and no numbers", found?, vec![Found::Each(vec![]); 3])
}
