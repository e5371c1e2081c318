//! A clock that was wrong for a while: once it is right again, everything keeps the right time.

use crate::center::{Center, SHARD, at, task};
use punctual_core::store::{Look, TallyKind};
use punctual_core::{
    Answer, Command, Matching, Millis, QueueSettings, Rate, Scope, ShardConfig, Standing, Sweep, SweepAction, Swept,
    TimeRange, TopicSettings, Unit,
};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// The clock shows an hour more, and then the right time again.
fn center_whose_clock_was_wrong() -> Center {
    let mut center = Center::new();
    center.set_clock(at(HOUR));
    center.set_clock(at(0));
    center
}

#[test]
fn what_is_scheduled_after_it_keeps_the_right_time() {
    let mut center = center_whose_clock_was_wrong();
    center.schedule(task("later", 30_000));
    assert_eq!(center.schedule(task("soon", 1_000)).outcome, created(1_000));
    assert!(center.take_ids().is_empty());
    center.pass(999);
    assert!(center.take_ids().is_empty());
    center.pass(1);
    let delivery = center.take_one();
    assert_eq!((delivery.id.as_str(), delivery.until), ("soon", at(1_000 + 30_000)));
    assert_eq!(delivery.fired_at, at(1_000));
    center.pass(28_999);
    assert!(center.take_ids().is_empty());
    center.pass(1);
    assert_eq!(center.take_ids(), ["later"]);
}

fn created(due: u64) -> punctual_core::ScheduleOutcome {
    punctual_core::ScheduleOutcome::Created { due: at(due) }
}

#[test]
fn what_fired_by_it_and_was_not_handed_out_waits_for_its_time_again() {
    // With and without the rows in memory.
    for cache in [0, 64 << 20] {
        let mut center = Center::with(ShardConfig { cache, ..ShardConfig::default() });
        center.schedule(task("early", 60_000));
        center.schedule(task("far", 30 * 60_000));
        center.set_clock(at(HOUR));
        assert_eq!(center.queue_counts("t").0, 2);
        center.set_clock(at(0));
        assert_eq!(center.queue_counts("t").0, 0);
        let waiting = center.wait_for(&["t"], 10, 2 * HOUR, "c");
        assert_eq!(center.given(waiting), None, "nothing is due");
        center.pass(59_999);
        assert_eq!(center.given(waiting), None);
        center.pass(1);
        assert_eq!(center.given(waiting).unwrap()[0].id.as_str(), "early");
        center.pass(29 * 60_000 - 1);
        assert!(!center.take_ids().contains(&"far".to_owned()));
        center.pass(1);
        assert!(center.take_ids().contains(&"far".to_owned()));
    }
}

#[test]
fn what_was_promised_by_it_stays_as_it_was_told() {
    let mut center = Center::new();
    center.schedule(task("held", 0));
    center.set_clock(at(HOUR));
    let held = center.take_one();
    center.schedule(task("promised", 1_000));
    center.set_clock(at(0));
    assert_eq!(held.until, at(HOUR + 30_000));
    assert!(matches!(center.standing("held"), Some(Standing::Leased { until, .. }) if until == held.until));
    assert_eq!(center.standing("promised"), Some(Standing::Scheduled { at: at(HOUR + 1_000) }));
    assert_eq!(center.acknowledge(&held.lease), Ok(Answer::Acknowledged));
    center.pass(HOUR + 999);
    assert!(center.take_ids().is_empty());
    center.pass(1);
    assert_eq!(center.take_ids(), ["promised"]);
}

#[test]
fn a_pause_that_was_over_by_it_goes_on() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { paused_until: Some(at(60_000)), ..QueueSettings::default() });
    center.schedule(task("1", 0));
    center.set_clock(at(HOUR));
    center.set_clock(at(0));
    let waiting = center.wait_for(&["t"], 1, HOUR, "c");
    assert_eq!(center.given(waiting), None);
    center.pass(60_000);
    assert_eq!(center.given(waiting).unwrap().len(), 1);
}

#[test]
fn history_and_dead_letters_go_when_their_time_is_over() {
    let mut center = Center::new();
    center.put_topic("t", TopicSettings { history: Millis(500), ..TopicSettings::default() });
    center.schedule(task("by-the-wrong-clock", 0));
    center.set_clock(at(HOUR));
    let delivery = center.take_one();
    center.acknowledge(&delivery.lease).unwrap();
    center.pass(500);
    assert_eq!(center.standing("by-the-wrong-clock"), None);
    center.set_clock(at(0));
    center.schedule(task("by-the-right-one", 0));
    let delivery = center.take_one();
    center.acknowledge(&delivery.lease).unwrap();
    center.pass(499);
    assert!(center.standing("by-the-right-one").is_some());
    center.pass(1);
    assert_eq!(center.standing("by-the-right-one"), None);
}

#[test]
fn a_rate_goes_on_at_its_pace() {
    let mut center = Center::new();
    let rate = Some(Rate { per_second: 1, burst: 1 });
    center.put_queue("t", QueueSettings { rate, ..QueueSettings::default() });
    center.schedule(task("1", 0));
    center.schedule(task("2", 0));
    center.set_clock(at(HOUR));
    assert_eq!(center.take_ids(), ["1"]);
    center.set_clock(at(0));
    let waiting = center.wait_for(&["t"], 1, HOUR, "c");
    center.pass(1_000);
    assert_eq!(center.given(waiting).unwrap().len(), 1);
}

#[test]
fn a_sweep_reaches_what_died_in_the_future() {
    let mut center = Center::new();
    center.schedule(task("1", 0));
    center.set_clock(at(HOUR));
    let lease = center.take_one().lease;
    center.ask(Command::Reject { lease, note: None, priority: None }).unwrap();
    center.set_clock(at(0));
    let matching = Matching::Dead { topic: None, queue: None, died: TimeRange::ALL };
    let sweep = Sweep { matching, within: Scope::ALL, action: SweepAction::Purge, dry_run: false };
    let swept = Swept { matched: 1, changed: 1, too_late: 0, no_room: 0 };
    assert_eq!(center.ask(Command::Sweep(Box::new(sweep))), Ok(Answer::Swept(swept)));
    assert_eq!(center.standing("1"), None);
}

/// How many minutes are counted in the store.
fn minutes(center: &Center) -> usize {
    let tallies = center.store.tallies(SHARD).unwrap();
    tallies.into_iter().filter(|(tally, count)| tally.kind == TallyKind::DueMinute && *count != 0).count()
}

#[test]
fn minutes_are_counted_no_further_than_before() {
    for restarts in [false, true] {
        let mut center = Center::new();
        for day in 0..400 {
            center.schedule(task(&day.to_string(), day * DAY + 1));
        }
        let before = minutes(&center);
        assert!(before < 70, "{before}");
        center.put_queue("t", QueueSettings { paused_until: Some(at(1_000_000 * DAY)), ..QueueSettings::default() });
        center.set_clock(at(36_500 * DAY));
        // It is answered when all is counted.
        center.ask(Command::Forecast { unit: Unit::Minute, slots: 1 }).unwrap();
        assert_eq!(minutes(&center), 400);
        if restarts {
            center.restart_at(at(0));
        } else {
            center.set_clock(at(0));
        }
        // What is counted is written with the next change.
        center.schedule(task("one-more", 500 * DAY));
        assert_eq!(minutes(&center), before);
        let forecast = center.ask(Command::Forecast { unit: Unit::Minute, slots: 1 }).unwrap();
        assert!(matches!(forecast, Answer::Forecast(slots) if slots[0].1 == 1));
    }
}

#[test]
fn a_forecast_by_hours_reaches_60_days() {
    let mut center = Center::new();
    center.schedule(task("1", 1_439 * HOUR));
    let forecast = center.ask(Command::Forecast { unit: Unit::Hour, slots: 1_440 }).unwrap();
    let Answer::Forecast(slots) = forecast else { panic!("{forecast:?}") };
    assert_eq!(slots.iter().filter(|(_, due)| *due == 1).count(), 1);
}
