//! Several stints at once. Most of our tests wait, for a lease to end or for a server that was killed to be back, so that one after
//! the other they leave most of a machine idle, and a run takes twice as long.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::so_far;
use crate::stint::Stint;

/// Stints of which each is to be done once.
type Pool = Mutex<VecDeque<Stint>>;

/// Runs tests on two lanes, from both ends: the long ones are at the beginning. Beside them, and only when they leave the
/// processor idle, the chores, one after the other. Says whether all went well, once all have ended.
pub fn run(tests: Vec<Stint>, chores: Vec<Stint>) -> bool {
    let (tests, chores) = (Mutex::new(VecDeque::from(tests)), Mutex::new(VecDeque::from(chores)));
    let failed = thread::scope(|scope| {
        let lanes = [
            scope.spawn(|| work_off(&tests, VecDeque::pop_front)),
            scope.spawn(|| work_off(&tests, VecDeque::pop_back)),
            scope.spawn(|| work_off(&chores, VecDeque::pop_front)),
        ];
        lanes.into_iter().flat_map(|lane| lane.join().expect("a lane does not panic")).collect::<Vec<_>>()
    });
    for (label, said) in &failed {
        println!("\nwhat failed in `{label}`:\n{}", essence(said));
    }
    failed.is_empty()
}

/// Does stints until none is left; gives those that failed, with what they said.
fn work_off(pool: &Pool, next: fn(&mut VecDeque<Stint>) -> Option<Stint>) -> Vec<(String, String)> {
    let mut failed = Vec::new();
    loop {
        let stint = next(&mut pool.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(stint) = stint else { return failed };
        let ended = stint.run();
        let (word, seconds) = (if ended.is_well { "took" } else { "FAILED after" }, ended.took.as_secs());
        // One call, so that no other lane comes in between.
        println!("\n[{}] {word} {seconds} s: {}\n{}", so_far(), stint.label, ended.said);
        if !ended.is_well {
            failed.push((stint.label, ended.said));
        }
    }
}

/// What is worth telling once more at the end of a long log: what failed tests had to say, and what hung.
fn essence(said: &str) -> String {
    let mut is_failure = false;
    let is_worth_it = |line: &&str| {
        is_failure = line.starts_with("---- ") || (is_failure && *line != "failures:");
        is_failure
            || ["has been running for over", "it was killed", "it ended with", "error"]
                .iter()
                .any(|word| line.contains(word))
    };
    said.lines().filter(is_worth_it).collect::<Vec<_>>().join("\n")
}
