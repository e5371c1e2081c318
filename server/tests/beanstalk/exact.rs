//! What is asked for in seconds is never over before that, and what is left of it is told as beanstalkd tells it.

use std::thread;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::peer;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn no_timeout_is_over_too_soon() {
    let server = peer::punctual();
    let early: usize = thread::scope(|scope| {
        let wait = |number: u64| {
            let mut client = Client::of(&server);
            scope.spawn(move || {
                // Not all at the same place of a millisecond.
                thread::sleep(Duration::from_micros(37 * number));
                let tries = (0..3).map(|_| {
                    let begun = Instant::now();
                    assert_eq!(client.say("reserve-with-timeout 1"), "TIMED_OUT");
                    begun.elapsed()
                });
                tries.filter(|took| *took < SECOND).count()
            })
        };
        (0..70).map(wait).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(early, 0, "of 210");
}

#[test]
fn no_job_comes_back_before_its_time() {
    let server = peer::punctual();
    let (mut holder, mut other) = (Client::of(&server), Client::of(&server));
    let mut begun: Vec<(u64, Instant)> = Vec::new();
    // Delayed by a second, and then held for one.
    for number in 0..150 {
        let at = Instant::now();
        begun.push((holder.put(1, 1, &number.to_string()), at));
    }
    for round in ["delay", "time to run"] {
        let reserver = if round == "delay" { &mut holder } else { &mut other };
        for _ in 0..begun.len() {
            let (at, answer) = loop {
                let at = Instant::now();
                let answer = reserver.say("reserve");
                // Whoever holds a job with a second to run is in its last second all the time.
                if answer != "DEADLINE_SOON" {
                    break (at, answer);
                }
                thread::sleep(Duration::from_millis(1));
            };
            let id: u64 = answer.split(' ').nth(1).unwrap().parse().unwrap();
            let before = begun.iter_mut().find(|(known, _)| *known == id).unwrap();
            let took = before.1.elapsed();
            assert!(took >= SECOND, "{round} of a second: {took:?}");
            before.1 = at;
        }
    }
}

fn seconds(text: &str) -> u64 {
    text.parse().unwrap()
}

#[test]
fn what_is_left_of_ten_seconds_is_less_than_ten() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    for _ in 0..20 {
        let id = client.put(10, 10, "x");
        assert!(seconds(&client.line(&format!("stats-job {id}"), "time-left")) < 10, "of its delay");
        assert_eq!(client.say(&format!("kick-job {id}")), "KICKED");
        client.say("reserve");
        assert!(seconds(&client.line(&format!("stats-job {id}"), "time-left")) < 10, "of its time to run");
        assert_eq!(client.say("pause-tube default 10"), "PAUSED");
        assert!(seconds(&client.line("stats-tube default", "pause-time-left")) < 10, "of the pause");
        client.say("pause-tube default 0");
        client.say(&format!("delete {id}"));
    }
}
