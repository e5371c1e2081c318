//! What the delay queue promises, with real threads and short delays. Nothing here depends on how fast
//! the machine is: a value may come late, but never early, and must come.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the queue under test waits for real time in real threads"
)]

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use punctual_wheel::{Closed, DelayQueue};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn a_value_is_never_early() {
    let queue = DelayQueue::new();
    for delay in [Duration::ZERO, Duration::from_micros(100), Duration::from_micros(1_900), ms(15)] {
        let put = Instant::now();
        queue.put((), delay).unwrap();
        assert_eq!(queue.take(), Some(()));
        assert!(put.elapsed() >= delay);
    }
}

#[test]
fn an_instant_is_kept_as_well_as_a_delay() {
    let queue = DelayQueue::new();
    let at = Instant::now() + ms(12);
    queue.put_at('a', at).unwrap();
    assert_eq!(queue.take(), Some('a'));
    assert!(Instant::now() >= at);
    queue.put_at('b', at - ms(5)).unwrap();
    assert_eq!(queue.poll(), Some('b'));
}

#[test]
fn values_come_in_the_order_in_which_they_become_due() {
    let queue = DelayQueue::new();
    let base = Instant::now();
    for delay in [30, 10, 20, 0] {
        queue.put_at(delay, base + ms(delay)).unwrap();
    }
    assert_eq!([(); 4].map(|()| queue.take()), [Some(0), Some(10), Some(20), Some(30)]);
}

#[test]
fn polling_does_not_wait() {
    let queue = DelayQueue::new();
    queue.put((), LONG).unwrap();
    assert_eq!(queue.poll(), None);
    assert_eq!(queue.len(), 1);
}

#[test]
fn polling_for_a_while_waits_that_long_and_gives_up() {
    let queue = DelayQueue::new();
    queue.put((), LONG).unwrap();
    let asked = Instant::now();
    assert_eq!(queue.poll_for(ms(10)), None);
    assert!(asked.elapsed() >= ms(10));
    assert_eq!(DelayQueue::<()>::new().poll_for(ms(1)), None);
}

#[test]
fn polling_for_ever_finds_a_value_that_comes_later() {
    let queue = DelayQueue::new();
    thread::scope(|scope| {
        let taker = scope.spawn(|| queue.poll_for(Duration::MAX));
        thread::sleep(ms(5));
        queue.put(1, ms(5)).unwrap();
        assert_eq!(taker.join().unwrap(), Some(1));
    });
}

#[test]
fn an_earlier_value_overtakes_the_one_that_is_waited_for() {
    let queue = DelayQueue::new();
    queue.put("later", LONG).unwrap();
    thread::scope(|scope| {
        let taker = scope.spawn(|| queue.take());
        thread::sleep(ms(5));
        queue.put("sooner", ms(1)).unwrap();
        assert_eq!(taker.join().unwrap(), Some("sooner"));
    });
}

#[test]
fn a_leader_that_gives_up_leaves_nobody_stranded() {
    let queue = DelayQueue::new();
    queue.put((), ms(40)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| queue.poll_for(ms(5)));
        thread::sleep(ms(2));
        let follower = scope.spawn(|| queue.take());
        assert_eq!(follower.join().unwrap(), Some(()));
    });
}

#[test]
fn delays_beyond_all_bounds_are_welcome() {
    let queue = DelayQueue::new();
    queue.put('z', Duration::MAX).unwrap();
    assert_eq!(queue.poll_for(ms(1)), None);
    assert_eq!(queue.close(), ['z']);
}

#[test]
fn closing_wakes_all_takers_and_returns_what_was_left() {
    let queue = DelayQueue::new();
    queue.put(2, LONG).unwrap();
    queue.put(1, ms(60_000)).unwrap();
    thread::scope(|scope| {
        let takers: Vec<_> = (0..4).map(|_| scope.spawn(|| queue.take())).collect();
        thread::sleep(ms(5));
        assert_eq!(queue.close(), [1, 2]);
        assert!(takers.into_iter().all(|taker| taker.join().unwrap().is_none()));
    });
    assert!(queue.is_empty());
    assert!(matches!(queue.put(3, ms(0)), Err(Closed(3))));
    assert_eq!((queue.take(), queue.poll(), queue.poll_for(LONG)), (None, None, None));
    assert_eq!(queue.close(), Vec::<i32>::new());
}

#[test]
fn many_threads_take_each_value_once_and_never_early() {
    const PUTTERS: u64 = 4;
    const EACH: u64 = 500;
    let queue = DelayQueue::new();
    let taken = Mutex::new(Vec::new());
    let (done, all_done) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((number, due_at)) = queue.take() {
                    assert!(Instant::now() >= due_at);
                    let mut taken = taken.lock().unwrap();
                    taken.push(number);
                    if taken.len() as u64 == PUTTERS * EACH {
                        done.send(()).unwrap();
                    }
                }
            });
        }
        let queue = &queue;
        for putter in 0..PUTTERS {
            scope.spawn(move || {
                for number in 0..EACH {
                    let delay = Duration::from_micros((putter * 7_919 + number * 104_729) % 50_000);
                    queue.put((putter * EACH + number, Instant::now() + delay), delay).unwrap();
                }
            });
        }
        // Closed in any case: takers that wait for ever would hide what went wrong.
        let arrived = all_done.recv_timeout(Duration::from_secs(60));
        assert!(queue.close().is_empty());
        arrived.unwrap();
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    assert_eq!(taken, (0..PUTTERS * EACH).collect::<Vec<_>>());
}
