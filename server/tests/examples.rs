//! The client's examples against a real server: each checks what it shows.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::path::Path;
use std::process::Command;

use stage::{Server, run};

/// Runs an example; `cargo test` for the whole workspace has built it.
fn example(name: &str) {
    let server = Server::start();
    let built = Path::new(env!("CARGO_BIN_EXE_punctual")).with_file_name("examples").join(name);
    if !built.exists() {
        let cargo = run(Command::new(env!("CARGO")).args(["build", "--package", "punctual-client", "--example", name]));
        assert!(built.exists(), "{}", cargo.stderr);
    }
    let ended = run(Command::new(built).env("PUNCTUAL_URL", format!("http://{}", server.address())));
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn an_unpaid_order_is_closed_and_a_paid_one_is_not() {
    example("unpaid_order");
}

#[test]
fn coupon_reminders_go_out_before_the_end() {
    example("coupon_reminders");
}

#[test]
fn a_card_shortens_the_time_to_the_next_feeding() {
    example("auto_feeding");
}

#[test]
fn a_broadcast_reaches_each_queue() {
    example("broadcast");
}
