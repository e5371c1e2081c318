//! Facts about counts: what is on its way out counts, and what is wrong in the store is put right.

use crate::center::{Center, SHARD, name, task};
use punctual_core::store::{Look, Tally, TallyKind};
use punctual_core::{Answer, Command, Millis, Overflow, QueueSettings, Refused, ShardConfig};

/// A queue `t` that holds two and pushes out the oldest, and nothing stays in memory.
fn pushing() -> Center {
    let mut center = Center::with(ShardConfig { cache: 0, window: Millis(1 << 52), ..ShardConfig::default() });
    let settings = QueueSettings { max_length: Some(2), overflow: Overflow::DropOldest, ..QueueSettings::default() };
    center.put_queue("t", settings);
    for id in ["a", "b"] {
        center.schedule(task(id, 0));
    }
    center
}

fn schedule(id: &str) -> Command {
    let schedule = punctual_core::Schedule { task: task(id, 0), id: name(id), id_is_new: false };
    Command::Schedule(Box::new(schedule))
}

fn delete(force: bool) -> Command {
    Command::DeleteQueue { name: name("t"), force }
}

#[test]
fn what_is_pushed_out_counts_until_it_is_dead() {
    let mut center = pushing();
    center.begin(schedule("c"));
    assert_eq!(center.queue_counts("t"), (3, 0, 0), "one of them has to be read before it can be given up");
    center.settle();
    assert_eq!(center.queue_counts("t"), (2, 0, 1));
}

#[test]
fn a_queue_from_which_something_is_being_pushed_out_is_not_empty() {
    let mut center = pushing();
    let cancels = ["b", "c"].map(|id| Command::Cancel { topic: name("t"), id: name(id) });
    let [one, other] = cancels;
    let replies = center.begin_all(vec![schedule("c"), one, other, delete(false)]);
    let refused = Err(Refused::NotEmpty { name: name("t"), rows: 1 });
    assert_eq!(center.answer(replies[3]), Some(refused));
    center.settle();
    center.put_queue("t", QueueSettings::default());
    assert_eq!(center.queue_counts("t"), (0, 0, 1));
    let matching = punctual_core::Matching::Dead { topic: None, queue: None, died: punctual_core::TimeRange::ALL };
    let action = punctual_core::SweepAction::Purge;
    center
        .ask(Command::Sweep(Box::new(punctual_core::Sweep {
            matching,
            within: punctual_core::Scope::ALL,
            action,
            dry_run: false,
        })))
        .unwrap();
    let counts = center.store.tallies(SHARD).unwrap();
    assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
    center.restart();
    assert!(center.shard.mended().is_empty());
}

#[test]
fn a_forced_deletion_takes_along_what_is_being_pushed_out() {
    let mut center = pushing();
    let replies = center.begin_all(vec![schedule("c"), delete(true)]);
    center.settle();
    assert_eq!(center.answer(replies[1]), Some(Ok(Answer::Deleted(3))));
    center.restart();
    assert!(center.shard.mended().is_empty());
    assert_eq!(center.take(9).len(), 0);
}

#[test]
fn counts_that_cannot_be_right_are_put_right_when_the_shard_is_opened() {
    let mut center = Center::new();
    for id in ["a", "b", "c"] {
        center.schedule(task(id, 0));
    }
    let before = center.shard.counts();
    let gone = Tally::named(TallyKind::QueueDead, &name("gone"));
    let wrong = Tally::named(TallyKind::Waiting, &name("t"));
    center.write(vec![], vec![(gone.clone(), -1), (wrong.clone(), -7)]);
    let mended: Vec<(Tally, i64, i64)> =
        center.shard.mended().iter().map(|count| (count.tally.clone(), count.stored, count.right)).collect();
    assert_eq!(mended, [(wrong, -4, 3), (gone, -1, 0)]);
    assert_eq!(center.shard.counts(), before);
    center.restart();
    assert!(center.shard.mended().is_empty(), "the store was told");
    assert_eq!(center.shard.counts(), before);
}

#[test]
fn a_deletion_ends_also_if_a_count_says_that_something_is_left() {
    let kinds = [TallyKind::Waiting, TallyKind::History, TallyKind::QueueLeased, TallyKind::QueueDead];
    for kind in kinds {
        let mut center = Center::new();
        center.put_queue("other", QueueSettings::default());
        for number in 0..300 {
            center.schedule(task(&number.to_string(), 0));
        }
        let stale = Tally::named(kind, &name("t"));
        center.write(vec![], vec![(stale.clone(), 3)]);
        assert!(center.shard.mended().is_empty(), "nobody can tell yet");
        let of_queue = matches!(kind, TallyKind::QueueLeased | TallyKind::QueueDead);
        let command = match of_queue {
            true => delete(true),
            false => Command::DeleteTopic { name: name("t"), force: true },
        };
        assert_eq!(center.ask(command), Ok(Answer::Deleted(300)));
        let mended = center.shard.mended().iter().map(|count| (count.tally.clone(), count.stored, count.right));
        assert_eq!(mended.collect::<Vec<_>>(), [(stale.clone(), 3, 0)]);
        assert_eq!(center.store.tallies(SHARD).unwrap().iter().find(|(tally, _)| *tally == stale), None);
        center.restart();
        assert!(center.shard.mended().is_empty(), "the store was told");
    }
}

#[test]
fn what_is_being_pushed_out_dies_in_its_queue_though_its_topic_feeds_another_since() {
    let mut center = pushing();
    let [one, other] = ["b", "c"].map(|id| Command::Cancel { topic: name("t"), id: name(id) });
    let feeds = Some(vec![punctual_core::Binding::all(name("new"))]);
    let settings = Box::new(punctual_core::TopicSettings { feeds, ..Default::default() });
    center.begin_all(vec![schedule("c"), one, other, Command::PutTopic { name: name("t"), settings }]);
    center.settle();
    assert_eq!(center.queue_counts("t"), (0, 0, 1));
}

#[test]
fn what_is_being_pushed_out_stays_if_the_clock_goes_back_before_its_time() {
    let mut center = pushing();
    center.take(9);
    center.pass(10);
    for id in ["d", "e"] {
        center.schedule(task(id, 0));
    }
    center.begin(schedule("f"));
    assert_eq!(center.queue_counts("t"), (3, 2, 0));
    center.set_clock(center.now().minus(Millis(5)));
    assert_eq!(center.queue_counts("t"), (0, 2, 0), "none of them is due");
    center.pass(5);
    assert_eq!(center.queue_counts("t"), (2, 2, 1));
}
