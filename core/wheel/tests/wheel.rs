//! What the wheel promises, fact by fact. That it holds for any mixture of calls is shown in `model.rs`.

use punctual_wheel::Wheel;

const YEAR: u64 = 365 * 24 * 3_600_000;

fn drain<T>(wheel: &mut Wheel<T>, now: u64) -> Vec<T> {
    wheel.advance(now).map(|(_, value)| value).collect()
}

#[test]
fn nothing_fires_before_its_time() {
    for at in [1, 255, 256, 257, 65_535, 65_536, 10 * YEAR, u64::MAX] {
        let mut wheel = Wheel::new(0);
        wheel.insert(at, ());
        assert_eq!(wheel.pop(at - 1), None);
        assert_eq!(wheel.pop(at), Some((at, ())));
    }
}

#[test]
fn times_come_in_order_whatever_the_order_of_inserting() {
    let mut wheel = Wheel::new(0);
    for at in [70_000, 3, 300, 200 * YEAR, 299, u64::MAX, 0, 16_777_216] {
        wheel.insert(at, at);
    }
    assert_eq!(drain(&mut wheel, u64::MAX), [0, 3, 299, 300, 70_000, 16_777_216, 200 * YEAR, u64::MAX]);
}

#[test]
fn insert_in_past_fires_at_the_next_advance() {
    let mut wheel = Wheel::new(1_000);
    wheel.insert(10, "late");
    assert_eq!(wheel.next_at(), Some(10));
    assert_eq!(wheel.pop(1_000), Some((10, "late")));
}

#[test]
fn the_past_fires_in_the_order_of_its_times_too() {
    let mut wheel = Wheel::new(1_000);
    for (at, value) in [(1_000, 'd'), (9, 'b'), (5, 'a'), (9, 'c')] {
        wheel.insert(at, value);
    }
    assert_eq!(drain(&mut wheel, 1_000), ['a', 'b', 'c', 'd']);
}

#[test]
fn a_great_past_fires_in_order() {
    let mut wheel = Wheel::new(10 * YEAR);
    for value in 0..10_000 {
        wheel.insert(10 * YEAR - value * 1_000, value);
    }
    let expected: Vec<u64> = (0..10_000).rev().collect();
    assert_eq!(drain(&mut wheel, 10 * YEAR), expected);
}

#[test]
fn equal_times_fire_in_insertion_order_from_any_level() {
    let at = 10 * YEAR;
    let mut wheel = Wheel::new(0);
    // Each stop is closer to the time, so that the next insert meets it on a lower level.
    for (number, stop) in [at - 5 * YEAR, at - 20_000_000, at - 70_000, at - 300, at - 2].into_iter().enumerate() {
        wheel.insert(at, number);
        wheel.insert(stop, usize::MAX);
        assert_eq!(wheel.pop(stop), Some((stop, usize::MAX)));
    }
    wheel.insert(at, 5);
    assert_eq!(drain(&mut wheel, at), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_moved_timer_counts_as_inserted_when_moved() {
    let mut wheel = Wheel::new(0);
    let moved = wheel.insert(50, "moved");
    wheel.insert(50, "first");
    assert!(wheel.reschedule(moved, 50));
    wheel.insert(50, "last");
    assert_eq!(drain(&mut wheel, 50), ["first", "moved", "last"]);
}

#[test]
fn a_handle_stays_good_when_its_timer_is_moved() {
    let mut wheel = Wheel::new(0);
    let handle = wheel.insert(50, 'x');
    assert!(wheel.reschedule(handle, 5_000));
    assert_eq!(wheel.get(handle), Some((5_000, &'x')));
    assert_eq!(wheel.pop(4_999), None);
    assert!(wheel.reschedule(handle, 10));
    assert_eq!(wheel.pop(10), Some((10, 'x')));
    assert!(!wheel.reschedule(handle, 20));
    assert!(wheel.is_empty());
}

#[test]
fn a_stale_handle_cancels_nobody() {
    let mut wheel = Wheel::new(0);
    let fired = wheel.insert(1, "fired");
    wheel.pop(1);
    let cancelled = wheel.insert(2, "cancelled");
    assert_eq!(wheel.cancel(cancelled), Some("cancelled"));
    let heir = wheel.insert(3, "heir");
    for stale in [fired, cancelled] {
        assert_ne!(stale, heir);
        assert_eq!(wheel.cancel(stale), None);
        assert_eq!(wheel.get(stale), None);
        assert!(!wheel.reschedule(stale, 9));
    }
    assert_eq!(wheel.cancel(heir), Some("heir"));
}

#[test]
fn next_at_is_exact_however_far() {
    let mut wheel = Wheel::new(7);
    for at in [u64::MAX, 200 * YEAR + 3, 10 * YEAR + 1, 100_001, 300, 8] {
        wheel.insert(at, ());
        assert_eq!(wheel.next_at(), Some(at));
    }
}

#[test]
fn next_at_is_exact_after_the_earliest_is_cancelled() {
    let mut wheel = Wheel::new(0);
    let handles: Vec<_> = (0..1_000).map(|number| wheel.insert(5_000_000 + number, ())).collect();
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(wheel.next_at(), Some(5_000_000 + number as u64));
        wheel.cancel(handle);
    }
    assert_eq!(wheel.next_at(), None);
}

#[test]
fn looking_far_ahead_does_not_hinder_near_timers() {
    let mut wheel = Wheel::new(0);
    wheel.insert(200 * YEAR, 0);
    assert_eq!(wheel.next_at(), Some(200 * YEAR));
    for at in 1..1_000 {
        wheel.insert(at, at);
        assert_eq!(wheel.next_at(), Some(1));
    }
    let expected: Vec<u64> = (1..1_000).collect();
    assert_eq!(drain(&mut wheel, YEAR), expected);
    assert_eq!(wheel.next_at(), Some(200 * YEAR));
}

#[test]
fn ages_pass_over_an_empty_wheel_at_once() {
    let mut wheel = Wheel::new(0);
    assert_eq!(wheel.pop(u64::MAX), None);
    wheel.insert(5, 'a');
    assert_eq!(wheel.pop(10 * YEAR), Some((5, 'a')));
}

#[test]
fn an_earlier_now_fires_nothing_early() {
    let mut wheel = Wheel::new(0);
    wheel.insert(50, 'a');
    wheel.insert(150, 'b');
    assert_eq!(drain(&mut wheel, 100), ['a']);
    wheel.insert(90, 'c');
    assert_eq!(wheel.pop(60), None);
    assert_eq!(drain(&mut wheel, 150), ['c', 'b']);
}

#[test]
fn what_is_not_asked_for_stays() {
    let mut wheel = Wheel::new(0);
    for number in 0..10 {
        wheel.insert(100, number);
    }
    assert_eq!(wheel.advance(100).take(3).count(), 3);
    wheel.insert(100, 10);
    assert_eq!(drain(&mut wheel, 100), [3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn clearing_drops_all_and_turns_handles_stale() {
    let mut wheel = Wheel::with_capacity(500, 10);
    let handles: Vec<_> = [3, 600, 90_000].into_iter().map(|at| wheel.insert(at, at)).collect();
    wheel.clear();
    assert!(wheel.is_empty());
    assert_eq!(wheel.next_at(), None);
    wheel.insert(1, 1);
    wheel.insert(601, 601);
    assert!(handles.into_iter().all(|handle| wheel.cancel(handle).is_none()));
    assert_eq!(drain(&mut wheel, 700), [1, 601]);
}
