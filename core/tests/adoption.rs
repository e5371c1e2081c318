//! Changes of settings that all shards make: each once, in the order of their numbers, whoever sends them again.

use crate::center::{Center, name, task};
use punctual_core::{
    Adjustment, Adopt, Answer, Command, Millis, QueueSettings, Refused, Reply, Subject, TopicSettings,
};

fn put_queue(lease: u64) -> Adjustment {
    let settings = QueueSettings { lease: Millis(lease), ..QueueSettings::default() };
    Adjustment::PutQueue { name: name("q"), settings: Box::new(settings) }
}

fn put_topic() -> Adjustment {
    Adjustment::PutTopic { name: name("t"), settings: Box::default() }
}

fn delete(force: bool) -> Adjustment {
    Adjustment::Delete { subject: Subject::Topic(name("t")), force }
}

fn command(number: u64, adjustment: Adjustment, to_its_end: bool) -> Command {
    Command::Adopt(Box::new(Adopt { number, adjustment, to_its_end }))
}

fn adopt(center: &mut Center, number: u64, adjustment: Adjustment) -> Reply {
    center.ask(command(number, adjustment, false))
}

fn lease(center: &mut Center) -> Millis {
    let queues = center.ask(Command::Queues(punctual_core::Chosen::Named(vec![name("q")])));
    let Ok(Answer::Queues(queues)) = queues else { panic!("{queues:?}") };
    queues[0].settings.lease
}

#[test]
fn what_comes_late_or_again_changes_nothing() {
    let mut center = Center::new();
    assert_eq!(adopt(&mut center, 7, put_queue(70)), Ok(Answer::Noted));
    for (number, then) in [(7, 70), (6, 70), (8, 80), (7, 80)] {
        assert_eq!(adopt(&mut center, number, put_queue(number * 10)), Ok(Answer::Noted));
        assert_eq!(lease(&mut center), Millis(then), "after change {number}");
    }
}

#[test]
fn what_was_adopted_is_known_after_a_restart() {
    let mut center = Center::new();
    adopt(&mut center, 7, put_queue(70)).unwrap();
    // Nothing of it is here, and it is adopted all the same.
    adopt(&mut center, 9, delete(true)).unwrap();
    center.restart();
    adopt(&mut center, 8, put_queue(80)).unwrap();
    assert_eq!(lease(&mut center), Millis(70));
    adopt(&mut center, 10, put_queue(100)).unwrap();
    assert_eq!(lease(&mut center), Millis(100));
}

#[test]
fn a_deletion_is_begun_once_and_spares_what_is_made_anew() {
    let mut center = Center::new();
    adopt(&mut center, 1, put_topic()).unwrap();
    for id in ["1", "2"] {
        center.schedule(task(id, 60_000));
    }
    assert_eq!(center.ask(command(2, delete(true), true)), Ok(Answer::Deleted(2)));
    center.schedule(task("3", 60_000));
    assert_eq!(adopt(&mut center, 2, delete(true)), Ok(Answer::Noted));
    assert_eq!(center.ask(command(2, delete(true), true)), Ok(Answer::Deleted(0)));
    assert!(center.standing("3").is_some());
}

#[test]
fn a_deletion_of_what_is_not_here_says_so_and_is_adopted() {
    let mut center = Center::new();
    assert_eq!(center.ask(command(2, delete(true), true)), Err(Refused::NoSuchTopic(name("t"))));
    assert_eq!(adopt(&mut center, 3, delete(true)), Ok(Answer::Noted));
    center.schedule(task("1", 60_000));
    assert_eq!(center.ask(command(3, delete(true), true)), Ok(Answer::Deleted(0)));
    assert!(center.standing("1").is_some(), "it came after the deletion");
}

#[test]
fn whoever_asks_for_the_end_of_a_deletion_joins_it() {
    let mut center = Center::new();
    for id in 0..600 {
        center.schedule(task(&id.to_string(), 60_000));
    }
    let begun = center.begin(command(2, delete(true), false));
    assert_eq!(center.answer(begun), Some(Ok(Answer::Noted)), "it is not held up by what is to be cleared away");
    assert_eq!(center.ask(command(2, delete(true), true)), Ok(Answer::Deleted(600)));
}

#[test]
fn what_holds_tasks_is_not_deleted_and_the_change_not_adopted() {
    let mut center = Center::new();
    center.schedule(task("1", 60_000));
    let refused = adopt(&mut center, 5, delete(false));
    assert_eq!(refused, Err(Refused::NotEmpty { name: name("t"), rows: 1 }));
    center.ask(Command::Cancel { topic: name("t"), id: name("1") }).unwrap();
    assert_eq!(adopt(&mut center, 5, delete(false)), Ok(Answer::Noted), "it is tried again");
}

#[test]
fn what_is_being_deleted_adopts_no_settings_until_it_is_gone() {
    let mut center = Center::new();
    for id in 0..600 {
        center.schedule(task(&id.to_string(), 60_000));
    }
    center.begin(command(2, delete(true), false));
    let put = center.begin(command(3, put_topic(), false));
    assert_eq!(center.answer(put), Some(Err(Refused::BeingDeleted(name("t")))));
    center.ask(command(2, delete(true), true)).unwrap();
    assert_eq!(adopt(&mut center, 3, put_topic()), Ok(Answer::Noted));
}

#[test]
fn settings_from_before_there_were_rules_for_them_are_adopted() {
    let mut center = Center::new();
    let settings = TopicSettings { ttl: Some(Millis::ZERO), ..TopicSettings::default() };
    assert!(settings.check().is_err());
    let put = Adjustment::PutTopic { name: name("t"), settings: Box::new(settings) };
    assert_eq!(adopt(&mut center, 1, put), Ok(Answer::Noted), "who writes a change down has looked at it");
}
