//! An owner that has lost its shard without knowing it: whatever it is asked, it is told by the store, and believes nothing
//! of what the new owner wrote.

use crate::center::{Center, SHARD, name, task};
use punctual_core::store::{Bodies, Key, Look, Refusal, Store, StoreError};
use punctual_core::{
    Chosen, Command, Lease, Matching, Millis, QueueSettings, Request, Reschedule, RowId, Schedule, Scope, Selected,
    Shift, Sweep, SweepAction, Take, Task, TimeRange, TopicSettings, Unit,
};

const DAY: u64 = 24 * 60 * 60 * 1_000;

/// What the old owner's steps come to while it is asked for something: an error of a read, or of a commit.
#[derive(Debug, PartialEq)]
enum End {
    Read(StoreError),
    Commit(Refusal),
}

/// Lets an owner take steps until one of them fails.
fn end_of(old: &mut Center, command: Option<Command>) -> End {
    let mut requests: Vec<Request<u64>> =
        command.map(|command| Request { by: None, command, reply: 1, read_at: old.now() }).into_iter().collect();
    for _ in 0..1_000 {
        match commit_step(old, std::mem::take(&mut requests)) {
            Ok(()) => {}
            Err(end) => return end,
        }
    }
    panic!("it goes on for ever");
}

fn commit_step(old: &mut Center, requests: Vec<Request<u64>>) -> Result<(), End> {
    let output = old.shard.step(old.now(), requests, &*old.store, &mut old.board).map_err(End::Read)?;
    for answer in old.store.commit(output.batch.into_iter().collect()).unwrap() {
        answer.map_err(End::Commit)?;
    }
    old.shard.committed(output.step);
    Ok(())
}

/// What an owner hears that has been deposed by this one.
fn fenced(new: &Center) -> Refusal {
    Refusal::Fenced { current: new.shard.tenure().fence }
}

fn seventh(delay: u64) -> Task {
    Task::new(name("new"), "body").id(name("7")).after(Millis(delay)).key(name("customer"))
}

/// An owner that was deposed, and the one that came after it and made a topic, a queue and a task of which the first one
/// knows nothing.
fn deposed() -> (Center, Center) {
    let mut old = Center::new();
    old.schedule(task("known", DAY));
    let mut new = old.depose();
    new.put_topic("new", TopicSettings::default());
    new.put_queue("new", QueueSettings::default());
    new.schedule(seventh(DAY));
    (old, new)
}

/// The commands that need to know the row of `new/7`.
fn commands(row: RowId) -> Vec<Command> {
    let (topic, id) = (name("new"), name("7"));
    let selected = Selected { topic: topic.clone(), id: id.clone(), queue: None };
    let lease = Lease { key: row.key.clone(), token: 1 };
    let schedule = Schedule { task: seventh(5), id: id.clone(), id_is_new: false };
    let reschedule = Reschedule {
        topic: topic.clone(),
        id: id.clone(),
        shift: Some(Shift::In(Millis(5))),
        priority: None,
        body: None,
    };
    vec![
        Command::Cancel { topic: topic.clone(), id: id.clone() },
        Command::Schedule(Box::new(schedule)),
        Command::Reschedule(Box::new(reschedule)),
        Command::Acknowledge(lease.clone()),
        Command::Extend { lease, by: None },
        Command::Replay(selected.clone()),
        Command::Purge(selected),
        Command::Remove { row: row.clone(), token: None },
        Command::Hasten { row: row.clone() },
        Command::Take(Box::new(Take { row, consumer: name("c"), lease: None })),
    ]
}

fn seventh_row(center: &Center) -> RowId {
    let key = Key::new("new", "7", "");
    let row = center.store.get(SHARD, std::slice::from_ref(&key), Bodies::Without).unwrap().remove(0).unwrap();
    RowId { key, number: row.seq }
}

#[test]
fn whoever_asks_a_deposed_owner_for_what_the_new_one_made_is_told_by_the_read() {
    let count = commands(seventh_row(&deposed().0)).len();
    for index in 0..count {
        let (mut old, new) = deposed();
        let command = commands(seventh_row(&old)).swap_remove(index);
        let end = end_of(&mut old, Some(command.clone()));
        assert_eq!(end, End::Read(fenced(&new).into()), "{command:?}");
    }
}

#[test]
fn a_deposed_owner_does_not_sweep_what_the_new_one_made() {
    let (mut old, new) = deposed();
    let matching = Matching::Key { key: name("customer"), topic: None };
    let sweep = Sweep { matching, within: Scope::ALL, action: SweepAction::Cancel, dry_run: false };
    assert_eq!(end_of(&mut old, Some(Command::Sweep(Box::new(sweep)))), End::Read(fenced(&new).into()));
    let (mut old, new) = deposed();
    let matching = Matching::Dead { topic: None, queue: None, died: TimeRange::ALL };
    let sweep = Sweep { matching, within: Scope::ALL, action: SweepAction::Purge, dry_run: false };
    assert_eq!(end_of(&mut old, Some(Command::Sweep(Box::new(sweep)))), End::Read(fenced(&new).into()));
}

#[test]
fn a_step_that_could_not_read_is_called_off_with_what_was_asked_in_it_alone() {
    let mut old = Center::new();
    old.schedule(seventh(DAY));
    let matching = Matching::Key { key: name("customer"), topic: None };
    let sweep = Sweep { matching, within: Scope::ALL, action: SweepAction::Cancel, dry_run: false };
    let ask = |reply, command| vec![Request { by: None, command, reply, read_at: old.now() }];
    let (sweep, cancel) = (ask(1, Command::Sweep(Box::new(sweep))), ask(2, commands(seventh_row(&old)).swap_remove(0)));
    commit_step(&mut old, sweep).unwrap();
    let new = old.depose();
    assert_eq!(commit_step(&mut old, cancel), Err(End::Read(fenced(&new).into())));
    let called_off: Vec<u64> = old.shard.call_off().collect();
    assert_eq!(called_off, [2], "the sweep may have done a part");
}

#[test]
fn a_deposed_owner_is_told_when_it_counts_for_a_forecast() {
    let (mut old, new) = deposed();
    // So much later not all is counted by minute, so that rows have to be read first.
    old.tick(400 * DAY);
    let forecast = Command::Forecast { unit: Unit::Minute, slots: 1 };
    assert_eq!(end_of(&mut old, Some(forecast)), End::Read(fenced(&new).into()));
}

#[test]
fn a_deposed_owner_is_told_when_it_reads_ahead() {
    let (mut old, new) = deposed();
    old.tick(DAY);
    assert_eq!(end_of(&mut old, None), End::Read(fenced(&new).into()));
}

#[test]
fn what_a_deposed_owner_says_from_memory_is_refused_by_the_commit() {
    let from_memory = [
        Command::Forecast { unit: Unit::Minute, slots: 1 },
        Command::Total,
        Command::Topics(Chosen::After { name: None, limit: 9 }),
        Command::First { queue: name("t") },
    ];
    for command in from_memory {
        let (mut old, new) = deposed();
        assert_eq!(end_of(&mut old, Some(command.clone())), End::Commit(fenced(&new)), "{command:?}");
    }
}

#[test]
fn a_task_with_a_new_id_is_refused_by_the_commit_of_a_deposed_owner() {
    let (mut old, new) = deposed();
    let schedule = Schedule { task: seventh(5), id: name("8"), id_is_new: true };
    assert_eq!(end_of(&mut old, Some(Command::Schedule(Box::new(schedule)))), End::Commit(fenced(&new)));
    assert!(new.store.get(SHARD, &[Key::new("new", "8", "")], Bodies::Without).unwrap()[0].is_none());
}

#[test]
fn an_owner_that_was_deposed_opens_the_shard_again_and_knows_what_happened_meanwhile() {
    let (mut old, _) = deposed();
    old.restart();
    let cancel = Command::Cancel { topic: name("new"), id: name("7") };
    assert!(old.ask(cancel).is_ok());
}
