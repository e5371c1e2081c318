//! A check that cannot fail is none: each kind of lie is told on purpose, and the auditor notices.

use std::ops::Range;

use punctual_core::Millis;
use punctual_sim::auditor::Promise;
use punctual_sim::profile::Kind;
use punctual_sim::{Sabotage, kind_of, run};

/// Only in every fourth run anything is wrong with the clocks.
const CLOCK_SEEDS: Range<u64> = 0..160;

/// Seeds in which nodes take shards from each other, or the store goes back.
fn of_many_owners() -> impl Iterator<Item = u64> {
    let many = |seed: &u64| matches!(kind_of(*seed), Kind::Contention | Kind::Failover | Kind::Everything);
    (0..400).filter(many)
}

/// Seeds in which any of several nodes takes any request.
fn of_many_nodes() -> impl Iterator<Item = u64> {
    (0..900).filter(|seed| kind_of(*seed) == Kind::Center)
}

/// Seeds in which nodes go by the store's clock.
fn of_one_clock() -> impl Iterator<Item = u64> {
    let shared = |seed: &u64| matches!(kind_of(*seed), Kind::Contention | Kind::Center);
    (0..600).filter(shared)
}

/// Runs some seeds with a lie. Some have to notice it, and none may blame anything else.
fn is_noticed_as(sabotage: Sabotage, promises: &[Promise]) {
    is_noticed_in(0..40, 5, sabotage, promises);
}

fn is_noticed_in(seeds: impl Iterator<Item = u64>, often: usize, sabotage: Sabotage, promises: &[Promise]) {
    let mut noticed = 0;
    for seed in seeds {
        if let Some(violation) = run(seed, false, Some(sabotage)).violation {
            assert!(promises.contains(&violation.promise), "seed {seed} blames {violation:#?}");
            noticed += 1;
            if noticed == often {
                return;
            }
        }
    }
    panic!("{sabotage:?} was noticed in only {noticed} seeds");
}

#[test]
fn a_commit_that_is_forgotten_is_noticed() {
    // What is lost also makes answers untrue, which may be noticed first.
    let promises = [Promise::NothingIsLost, Promise::SameIdIsOneTask, Promise::CertainAnswers];
    is_noticed_as(Sabotage::ForgetCommit { after: 20 }, &promises);
}

#[test]
fn tallies_that_are_forgotten_are_noticed() {
    is_noticed_as(Sabotage::ForgetTallies, &[Promise::BooksAgree]);
}

#[test]
fn a_shard_that_is_told_a_later_time_is_noticed() {
    is_noticed_as(Sabotage::EarlyClock { by: Millis(1) }, &[Promise::NeverEarly]);
}

#[test]
fn a_clock_that_is_wrong_for_a_moment_and_believed_is_noticed() {
    is_noticed_in(CLOCK_SEEDS, 5, Sabotage::NoDoubt, &[Promise::NeverEarly]);
}

#[test]
fn a_shard_that_hears_of_commits_while_it_reads_is_noticed() {
    // What it forgets then comes back from what it has read: old rows, of which anything may come.
    let promises = [Promise::NothingIsLost, Promise::CertainAnswers, Promise::KeepsWorking];
    is_noticed_in(0..160, 5, Sabotage::Interrupts, &promises);
}

#[test]
fn a_shard_that_does_not_go_back_with_its_clock_is_noticed() {
    is_noticed_in(CLOCK_SEEDS, 5, Sabotage::LatchedTime, &[Promise::NeverEarly]);
}

#[test]
fn a_hand_over_that_is_a_millisecond_late_is_noticed() {
    is_noticed_as(Sabotage::LateTimers { by: 1 }, &[Promise::AnyTime, Promise::Bounded]);
}

#[test]
fn a_second_holder_is_noticed() {
    is_noticed_as(Sabotage::SecondHolder, &[Promise::OneHolder]);
}

#[test]
fn a_cancel_that_did_not_happen_is_noticed() {
    is_noticed_as(Sabotage::UntrueCancel, &[Promise::CertainAnswers]);
}

#[test]
fn a_removal_that_did_not_happen_is_noticed() {
    is_noticed_as(Sabotage::UntrueRemove, &[Promise::CertainAnswers]);
}

#[test]
fn a_removal_by_somebody_who_lost_the_lease_is_noticed() {
    is_noticed_as(Sabotage::StolenRemove, &[Promise::OneHolder]);
}

#[test]
fn a_taken_row_that_is_said_not_to_be_there_is_noticed() {
    is_noticed_as(Sabotage::DeniedTake, &[Promise::NothingIsLost]);
}

#[test]
fn a_task_that_is_new_twice_is_noticed() {
    is_noticed_as(Sabotage::AlwaysNew, &[Promise::SameIdIsOneTask]);
}

#[test]
fn a_shard_that_takes_all_into_memory_is_noticed() {
    is_noticed_as(Sabotage::GreedyShards, &[Promise::Bounded]);
}

#[test]
fn old_news_of_a_deposed_node_are_noticed() {
    let promises = [Promise::OneHolder, Promise::CertainAnswers, Promise::SameIdIsOneTask, Promise::NothingIsLost];
    is_noticed_in(of_many_owners(), 3, Sabotage::UnfencedAnswers, &promises);
}

#[test]
fn reads_of_a_deposed_owner_that_come_through_are_noticed() {
    // It meets rows that it cannot know of.
    is_noticed_in(of_many_owners(), 3, Sabotage::UnfencedReads, &[Promise::KeepsWorking]);
}

#[test]
fn commits_of_a_deposed_owner_that_come_through_are_noticed() {
    let promises = [Promise::OneHolder, Promise::CertainAnswers, Promise::NothingIsLost, Promise::KeepsWorking];
    is_noticed_in(of_many_owners(), 3, Sabotage::UnfencedCommits, &promises);
}

#[test]
fn a_commit_that_happens_twice_is_noticed() {
    let promises = [Promise::KeepsWorking, Promise::BooksAgree, Promise::CertainAnswers, Promise::SameIdIsOneTask];
    is_noticed_in(of_many_owners(), 5, Sabotage::CommitsTwice, &promises);
}

#[test]
fn a_refusal_of_what_has_happened_is_noticed() {
    is_noticed_in(of_many_owners(), 3, Sabotage::HastyRefusals, &[Promise::CertainAnswers]);
}

#[test]
fn a_store_that_goes_back_as_if_nothing_were_missing_is_noticed() {
    let promises = [
        Promise::NothingIsLost,
        Promise::CertainAnswers,
        Promise::SameIdIsOneTask,
        Promise::OneHolder,
        Promise::BooksAgree,
        Promise::KeepsWorking,
    ];
    is_noticed_in(of_many_owners(), 5, Sabotage::UnnoticedLoss, &promises);
}

#[test]
fn a_store_that_loses_more_than_the_last_moments_is_noticed() {
    let promises = [
        Promise::NothingIsLost,
        Promise::CertainAnswers,
        Promise::SameIdIsOneTask,
        Promise::OneHolder,
        Promise::BooksAgree,
    ];
    is_noticed_in(of_many_owners(), 5, Sabotage::DeeperLoss, &promises);
}

#[test]
fn a_loss_that_nobody_is_told_of_is_noticed() {
    is_noticed_in(of_many_owners(), 5, Sabotage::SilentLoss, &[Promise::NothingIsLost]);
}

#[test]
fn a_fence_that_is_granted_twice_is_noticed() {
    is_noticed_in(of_many_owners(), 3, Sabotage::CountedFences, &[Promise::OneHolder]);
}

#[test]
fn a_claim_that_is_granted_to_who_was_outrun_is_noticed() {
    is_noticed_in(of_many_owners(), 3, Sabotage::BlindClaims, &[Promise::OneHolder]);
}

#[test]
fn a_node_that_judges_leases_by_its_own_clock_is_noticed() {
    is_noticed_in(of_many_owners(), 3, Sabotage::OwnClock, &[Promise::OwnersInPeace]);
}

#[test]
fn two_nodes_of_one_name_that_depose_each_other_are_noticed() {
    is_noticed_in(of_many_owners(), 3, Sabotage::EagerTwin, &[Promise::OwnersInPeace]);
}

#[test]
fn a_read_that_stops_early_and_does_not_say_so_is_noticed() {
    // A shard that waits for what it is never shown may also wait in circles.
    let promises =
        [Promise::NothingIsLost, Promise::BooksAgree, Promise::CertainAnswers, Promise::Bounded, Promise::KeepsWorking];
    is_noticed_as(Sabotage::EndsEarly, &promises);
}

#[test]
fn nodes_that_go_by_their_machines_clocks_are_noticed() {
    is_noticed_in(of_one_clock(), 5, Sabotage::MachineTime, &[Promise::NeverEarly, Promise::AnyTime]);
}

#[test]
fn nodes_that_go_by_the_latest_that_the_stores_clock_can_show_are_noticed() {
    is_noticed_in(of_one_clock(), 5, Sabotage::LatestTime, &[Promise::NeverEarly]);
}

#[test]
fn lengths_of_time_that_begin_too_soon_are_noticed() {
    is_noticed_in(of_one_clock(), 5, Sabotage::ShortLengths, &[Promise::NeverEarly]);
}

#[test]
fn a_store_whose_clock_steps_and_is_believed_at_once_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::NoDoubt, &[Promise::NeverEarly]);
}

#[test]
fn a_commit_that_never_reached_the_store_and_is_said_to_be_done_is_noticed() {
    // The commits after it do not fit, and a loss is noticed that never was.
    let promises = [Promise::CertainAnswers, Promise::NothingIsLost, Promise::KeepsWorking];
    is_noticed_in(of_many_nodes(), 5, Sabotage::DoneUnreached, &promises);
}

#[test]
fn a_change_that_one_shard_does_not_hear_of_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::HalfChanges, &[Promise::SettingsAgree]);
}

#[test]
fn a_change_that_is_replaced_before_all_shards_have_it_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::HastyChanges, &[Promise::SettingsAgree]);
}

#[test]
fn a_change_that_nobody_finishes_or_strikes_off_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::LeavesChanges, &[Promise::SettingsAgree]);
}

#[test]
fn a_change_that_undoes_what_somebody_else_was_quicker_with_is_noticed() {
    is_noticed_in(of_many_nodes(), 2, Sabotage::DecidesOnce, &[Promise::SettingsAgree]);
}

#[test]
fn a_number_of_a_change_that_is_given_again_by_a_store_that_went_back_is_noticed() {
    is_noticed_in(of_many_nodes(), 2, Sabotage::CountedChanges, &[Promise::SettingsAgree]);
}

#[test]
fn a_revision_that_is_given_again_by_a_store_that_went_back_is_noticed() {
    is_noticed_in(of_many_nodes(), 3, Sabotage::CountedRevisions, &[Promise::SettingsAgree]);
}

#[test]
fn a_level_that_rises_before_all_can_read_it_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::EagerLevels, &[Promise::Readable]);
}

#[test]
fn a_node_that_works_at_a_level_beyond_it_is_noticed() {
    is_noticed_in(of_many_nodes(), 3, Sabotage::OldReaders, &[Promise::Readable]);
}

#[test]
fn nodes_that_keep_rates_each_by_itself_are_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::OwnRates, &[Promise::RatesHold]);
}

#[test]
fn a_home_shard_that_grants_more_than_the_rate_allows_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::GenerousHome, &[Promise::RatesHold]);
}

#[test]
fn a_broken_link_that_is_said_to_have_carried_nothing_is_noticed() {
    is_noticed_in(of_many_nodes(), 3, Sabotage::BrokenIsUnsent, &[Promise::OnlyOnce, Promise::CertainAnswers]);
}

#[test]
fn a_node_that_says_done_of_a_shard_that_it_does_not_have_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::DoneUnseen, &[Promise::CertainAnswers]);
}

#[test]
fn a_request_that_is_done_and_denied_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::DoneAndDenied, &[Promise::OnlyOnce, Promise::CertainAnswers]);
}

#[test]
fn a_request_that_is_passed_on_twice_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::SecondHop, &[Promise::OneHop]);
}

#[test]
fn a_node_that_takes_up_a_round_which_it_has_denied_is_noticed() {
    is_noticed_in(of_many_nodes(), 3, Sabotage::IgnoresRounds, &[Promise::InOrder]);
}

#[test]
fn a_node_that_claims_what_another_one_has_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::GreedyPlan, &[Promise::OwnersInPeace]);
}

#[test]
fn a_consumer_that_is_lent_and_stays_in_line_is_noticed() {
    // When it is served for the second time, it may not be known any more who that was.
    is_noticed_in(of_many_nodes(), 5, Sabotage::ServedTwice, &[Promise::OneTicket, Promise::CertainAnswers]);
}

#[test]
fn a_consumer_that_gets_lost_when_it_is_lent_is_noticed() {
    is_noticed_in(of_many_nodes(), 5, Sabotage::ForgottenLoans, &[Promise::NothingIsLost, Promise::KeepsWorking]);
}
