//! The beanstalk door beside the real beanstalkd: the same conversations with both, compared byte by byte; and
//! third parties' clients; and what only Punctual has: other doors to the same jobs, crashes that lose nothing.
//!
//! Punctual also hears every script byte by byte, and those marked `pipelined` in one write: the same must come out.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod client;
mod clients;
mod conversation;
mod crashes;
mod exact;
mod hostile;
mod leaving;
mod normal;
mod other_doors;
mod peer;
mod random;
mod script;
#[path = "../stage/mod.rs"]
mod stage;
mod transcript;
mod wire;

use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use conversation::converse;
use peer::Beanstalkd;
use script::Script;
use transcript::Transcript;
use wire::Manner;

/// What beanstalkd says. Now and then it ends by itself in the middle, and is asked once more.
fn beanstalkds(script: &Script) -> Transcript {
    for _ in 0..3 {
        let mut peer = Beanstalkd::start(script.is_durable);
        let said = panic::catch_unwind(AssertUnwindSafe(|| converse(script, &mut peer, Manner::Plain)));
        match peer.ended_within(if said.is_ok() { Duration::ZERO } else { Duration::from_secs(1) }) {
            None => return said.unwrap_or_else(|wrong| panic::resume_unwind(wrong)),
            Some(status) => eprintln!("beanstalkd has ended by itself: {status}"),
        }
    }
    panic!("beanstalkd ends by itself every time");
}

/// Has the conversation with both.
fn agree(text: &str) {
    let script = Script::parse(text);
    let mut manners = vec![Manner::Plain];
    if !script.is_whole {
        manners.push(Manner::ByteByByte);
    }
    if script.is_pipelined {
        manners.push(Manner::Pipelined);
    }
    let script = &script;
    thread::scope(|scope| {
        let theirs = scope.spawn(|| beanstalkds(script));
        let ours = |manner| scope.spawn(move || converse(script, &mut peer::punctual(), manner));
        let ours: Vec<_> = manners.into_iter().map(|manner| (manner, ours(manner))).collect();
        let theirs = theirs.join().unwrap();
        for (manner, ours) in ours {
            ours.join().unwrap().must_be(&theirs, &format!("{manner:?}"));
        }
    });
}

#[test]
fn what_nobody_thought_of_is_answered_alike() {
    for seed in 0..4 {
        eprintln!("seed {seed}");
        agree(&random::commands(seed, 600));
    }
}

#[test]
fn what_nobody_thought_of_in_one_write_is_answered_alike() {
    for seed in 0..4 {
        eprintln!("seed {seed}");
        agree(&random::bursts(seed, 100));
    }
}

#[test]
fn noise_is_answered_alike() {
    agree(&random::noise(0, 1_000));
}

/// A test for each script: `file => the fact that it shows`.
macro_rules! conversations {
    ($($file:ident => $fact:ident,)*) => {
        $(
            #[test]
            fn $fact() {
                agree(include_str!(concat!("scripts/", stringify!($file), ".talk")));
            }
        )*

        #[test]
        fn every_script_is_a_test() {
            let scripts = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/beanstalk/scripts")).unwrap();
            let tested = [$(concat!(stringify!($file), ".talk")),*];
            for script in scripts {
                let name = script.unwrap().file_name();
                assert!(tested.iter().any(|tested| name == *tested), "{name:?} is not in the list");
            }
        }
    };
}

conversations! {
    words => a_command_is_known_by_its_first_bytes,
    lines => a_line_has_at_most_222_bytes,
    numbers => numbers_are_read_as_there,
    numbers_of_c => the_numbers_of_kick_and_of_timeouts_are_read_as_c_reads_them,
    names => a_tube_name_has_1_to_200_allowed_bytes,
    put => a_job_may_hold_anything_up_to_the_limit,
    put_whole => a_job_of_the_limit_is_taken_and_one_of_a_byte_more_is_not,
    priorities => the_smallest_priority_comes_first_and_then_the_smallest_id,
    life => a_job_counts_what_happens_to_it,
    whose => a_reserved_job_is_its_holders,
    ttr => a_job_is_ready_again_when_its_time_to_run_is_over,
    late => who_comes_late_may_delete_a_job_that_nobody_has,
    deadline_soon => a_holder_is_warned_in_the_last_second,
    deadline_waiting => who_waits_is_warned_too,
    waiting => who_waits_longest_is_served_first,
    together => jobs_that_are_ready_together_go_to_whoever_waits_longest,
    leaving => who_leaves_while_waiting_takes_nothing_along,
    close => what_a_closed_connection_held_is_ready_at_once,
    delay => a_delayed_job_is_ready_after_its_delay,
    kick => the_buried_are_kicked_in_the_order_of_burying,
    peek => peeking_shows_the_head_of_the_used_tube,
    reserve_job => a_job_can_be_reserved_by_its_id,
    pause => a_paused_tube_hands_nothing_out,
    tubes => a_tube_is_there_while_it_is_used_or_watched_or_holds_a_job,
    stats => every_command_is_counted,
    stats_people => producers_workers_and_waiting_ones_are_counted,
    drain => who_is_told_to_drain_takes_no_jobs,
    pipelined => commands_are_answered_in_their_order,
    blocked => a_waiting_reserve_holds_up_what_follows_it,
    restart => jobs_outlive_a_restart,
    kill => jobs_outlive_kill_9,
}
