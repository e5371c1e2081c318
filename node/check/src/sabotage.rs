//! What is broken on purpose, to see that the checker finds it.

use punctual_node::sync::checked::mute;

use crate::aside::under_load;
use crate::callers::two_callers;
use crate::consumers::two_consumers;
use crate::explore::found;
use crate::handing::under_way;
use crate::lending::one_leaves;
use crate::other::Other;
use crate::stage::{CALLERS, RUNNERS, Stage, schedule};
use crate::stopping::stop_under_way;

#[test]
fn an_inbox_whose_bell_is_not_heard_is_found() {
    found("deadlock", || {
        mute("inbox/mod.rs");
        two_callers(RUNNERS);
    });
    found("deadlock", || {
        mute("inbox/mod.rs");
        two_consumers(CALLERS);
    });
}

#[test]
fn a_shard_that_is_set_aside_without_hearing_of_its_answers_is_found() {
    found("deadlock", || {
        mute("inbox/mod.rs");
        under_load(CALLERS);
    });
}

#[test]
fn a_committer_whose_bell_is_not_heard_is_found() {
    found("deadlock", || {
        mute("committer.rs");
        two_callers(RUNNERS);
    });
}

#[test]
fn a_board_whose_bell_is_not_heard_is_found() {
    found("deadlock", || {
        mute("board.rs");
        stop_under_way(RUNNERS);
    });
}

#[test]
fn requests_passed_on_whose_bell_is_not_heard_are_found() {
    found("deadlock", || {
        mute("peers.rs");
        under_way(RUNNERS, &Other::new());
    });
}

#[test]
fn a_link_that_loses_what_it_took_is_found() {
    found("somebody is kept waiting", || under_way(RUNNERS, &Other::forgetful()));
    found("has neither been got nor gone back", || one_leaves(RUNNERS, &Other::forgetful()));
}

#[test]
fn errands_whose_bell_is_not_heard_are_found() {
    found("deadlock", || {
        mute("errands.rs");
        stop_under_way(RUNNERS);
    });
}

#[test]
fn a_store_that_answers_before_it_has_synced_is_found() {
    found("was confirmed and is not durable", || {
        let stage = Stage::new(CALLERS);
        stage.store.hold();
        let book = stage.book();
        let answer = schedule(&stage.handle, "a");
        stage.store.crash();
        book.confirms("a", &answer);
    });
}
