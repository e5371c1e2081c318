//! Facts about groups of dead letters.

use crate::center::{Center, SHARD, at, name, task};
use punctual_core::store::{Bodies, Position};
use punctual_core::view::{self, Kept, Listing, Wanted};
use punctual_core::{Command, Group, Groups, InCommon, Reason, Scope, Sieve, Task, Trait};

const HOUR: u64 = 3_600_000;

fn bury(center: &mut Center, topic: &str, id: &str, note: Option<&str>) {
    center.schedule(Task { topic: name(topic), ..task(id, 0) });
    let lease = center.take_from(topic, 1).remove(0).lease;
    center.ask(Command::Reject { lease, note: note.map(Into::into), priority: None }).unwrap();
}

fn grouped(center: &Center, by: InCommon, within: &Scope, budget: usize) -> Groups {
    let mut groups = Groups::new(center.now(), by, Kept::dead());
    groups.count(&*center.store, SHARD, within, budget).unwrap();
    groups
}

#[test]
fn dead_letters_are_counted_by_what_they_have_in_common() {
    let mut center = Center::new();
    bury(&mut center, "a", "1", Some("timeout of 10.0.3.7"));
    center.pass(30 * HOUR);
    bury(&mut center, "a", "2", Some("timeout of 10.0.3.9"));
    center.pass(2 * HOUR);
    bury(&mut center, "b", "3", Some("timeout of 10.0.3.7"));
    bury(&mut center, "b", "4", None);
    let by = InCommon { note: true, reason: true, ..InCommon::default() };
    let (groups, others) = grouped(&center, by, &Scope::ALL, 1_000).largest(1);
    let note = Some("timeout of *".to_owned());
    let [(common, Group { count, last_hour, last_day, first_at, last_at, samples })] = &groups[..] else { panic!() };
    assert_eq!(*common, Trait { topic: None, queue: None, reason: Some(Reason::Rejected), note: note.clone() });
    assert_eq!((*count, *last_hour, *last_day, others), (3, 1, 2, 1));
    assert_eq!((*first_at, *last_at), (at(0), at(32 * HOUR)));
    assert_eq!(samples.iter().map(|task| task.id.to_string()).collect::<Vec<_>>(), ["3", "2", "1"]);
    let by_topic = InCommon { topic: true, queue: true, ..InCommon::default() };
    let (groups, _) = grouped(&center, by_topic, &Scope::of(["b".to_owned()]), 1_000).largest(9);
    let [(common, group)] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!((&common.topic, &common.queue, group.count), (&Some(name("b")), &Some(name("b")), 2));
    let listed = |note: &str| {
        let listing = Listing::Kept(Kept { note: Some(note.into()), ..Kept::dead() });
        let wanted =
            Wanted { listing: &listing, within: &Scope::ALL, limit: 10, bodies: Bodies::Without, sieve: &Sieve::ALL };
        view::list(&*center.store, SHARD, wanted, Position::START, center.now()).unwrap().tasks.len()
    };
    assert_eq!((listed("timeout of *"), listed(""), listed("timeout")), (3, 1, 0), "a group can be listed");
}

#[test]
fn what_was_not_looked_at_is_told() {
    let mut center = Center::new();
    for id in 0..200 {
        bury(&mut center, "t", &id.to_string(), None);
        center.pass(1_000);
    }
    let by = InCommon { reason: true, ..InCommon::default() };
    let all = grouped(&center, by, &Scope::ALL, 1_000);
    assert_eq!((all.looked_at, all.counted_since), (200, None));
    let some = grouped(&center, by, &Scope::ALL, 100);
    assert_eq!((some.looked_at, some.counted_since), (100, Some(at(100_000))), "the latest are counted first");
    assert_eq!(some.largest(9).0[0].1.count, 100);
}

#[test]
fn who_sees_some_topics_is_not_told_of_rows_of_others() {
    let mut center = Center::new();
    for id in 0..200 {
        bury(&mut center, if id % 4 == 0 { "own" } else { "other" }, &id.to_string(), None);
        center.pass(1_000);
    }
    let own = Scope::of(["own".to_owned()]);
    let by = InCommon { reason: true, ..InCommon::default() };
    assert_eq!(grouped(&center, by, &own, 1_000).looked_at, 50);
    let some = grouped(&center, by, &own, 100);
    // As many rows were read as for who sees all, up to one of somebody else: when that died is not told to the second.
    let since = some.counted_since.unwrap();
    assert_eq!((some.looked_at, since.as_millis() % 60_000), (25, 0));
    assert!(since > at(100_000) && since <= at(160_000), "{since}");
}
