//! Clients that schedule and work on tasks all the time through both doors, whatever happens to the servers, and write down what
//! they are told. They share a queue: what comes in by one door goes out by either.

#![allow(dead_code, reason = "each test uses its part")]

mod doors;
mod ledger;
pub mod over_beanstalk;
mod over_http;
mod roaming;
#[path = "../beanstalk/wire.rs"]
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

pub use doors::{Doors, Life, OPEN_BEANSTALK, Servers};
pub use ledger::{Ledger, Told};
use over_http::Http;
use roaming::Roaming;

use crate::stage::eventually;

/// How many produce, and how many consume, through each door.
const EACH: usize = 2;

/// How long somebody has a task to himself, in milliseconds; by the beanstalk door at least.
const LEASE: u64 = 1_500;

/// Lets clients work while something is done to the servers or to what they stand on; then everything that was confirmed
/// must get done.
pub fn works_through(servers: &dyn Servers, trouble: impl FnOnce(&Ledger)) -> Ledger {
    let retry = json!({ "attempts": 0, "backoff": { "first": 0, "longest": 0 } });
    let mut operator = Roaming::<Http>::new(servers, 0);
    let made = operator.request("PUT", "/v1/queues/work", Some(&json!({ "retry": retry, "lease": LEASE })));
    made.expect("nothing is wrong yet").expect(200);
    let (ledger, over, done) = (Ledger::default(), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let _end = EndOf(&over, &done);
        let (ledger, over, done) = (&ledger, &over, &done);
        for number in 0..EACH {
            scope.spawn(move || over_http::produce(Roaming::new(servers, number), number, ledger, over));
            scope.spawn(move || over_http::consume(Roaming::new(servers, number + 1), number, ledger, done));
            scope.spawn(move || over_beanstalk::produce(Roaming::new(servers, number + 1), number, ledger, over));
            scope.spawn(move || over_beanstalk::consume(Roaming::new(servers, number), number, ledger, done));
        }
        confirms(ledger, 50);
        trouble(ledger);
        confirms(ledger, 50);
        over.store(true, Ordering::SeqCst);
        eventually("all that was confirmed is done", || {
            settle_doubts(&mut operator, ledger);
            ledger.open() == 0
        });
    });
    assert!(ledger.crossings() > 0, "what comes in by one door goes out by either");
    for (name, entry) in ledger.all() {
        let Some(place) = &entry.place else { continue };
        eventually(&format!("{name} ends as was said: {entry:?}"), || {
            let Ok(found) = operator.request("GET", place, None) else { return false };
            match entry.scheduled {
                Told::Done => found.status == 200 && is_finished(&found.json()),
                Told::NothingDone => found.status == 404,
                // Nobody works on it any more.
                Told::Unknown => [200, 404].contains(&found.status),
            }
        });
    }
    ledger
}

/// Whether somebody acknowledged a task, or deleted it when nobody had it any more, which the beanstalk door allows.
fn is_finished(task: &Value) -> bool {
    ["done", "cancelled"].iter().any(|ending| task["standing"]["ending"] == *ending)
}

/// Looks what came of deletions and burials that nobody knows the outcome of. What was buried is made ready again.
fn settle_doubts(operator: &mut Roaming<'_, Http>, ledger: &Ledger) {
    for (name, place) in ledger.doubtful() {
        let Ok(found) = operator.request("GET", &place, None) else { continue };
        if found.status != 200 {
            continue;
        }
        let task = found.json();
        if is_finished(&task) {
            ledger.acknowledged(&name);
        } else if task["standing"]["state"] == "dead" && ledger.is_doubtful(&name) {
            // Nobody has got it since it was seen to be dead, so that nobody else has buried it.
            let replay = format!("/v1/tasks/work/{}/replay", task["id"].as_str().unwrap());
            // If this fails, it is still dead when it is looked at again.
            _ = operator.request("POST", &replay, Some(&json!({})));
        }
    }
}

/// Waits until so many more tasks were confirmed.
pub fn confirms(ledger: &Ledger, more: usize) {
    let before = ledger.count(Told::Done);
    eventually("tasks are confirmed", || ledger.count(Told::Done) >= before + more);
}

/// Ends what clients do, also when the test fails.
struct EndOf<'a>(&'a AtomicBool, &'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.store(true, Ordering::SeqCst);
    }
}
