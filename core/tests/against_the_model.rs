//! The shard beside a model that is too simple to be wrong: after any acts, both say the same.
//!
//! `PUNCTUAL_CASES` says how many cases each test draws. A failure prints its seed and the least acts
//! that lead to it; the seed is kept in `against_the_model.regressions` and tried first from then on.

mod model;
mod pair;

use pair::Pair;
use pair::plan::{Act, Plan, Room, plan};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngAlgorithm, TestRng, TestRunner};

fn config() -> ProptestConfig {
    let cases = std::env::var_os("PUNCTUAL_CASES").and_then(|cases| cases.to_str()?.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(2_000),
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

fn run(plan: &Plan) {
    let mut pair = Pair::new(plan);
    for act in &plan.acts {
        pair.act(act);
    }
    pair.act(&Act::Look);
}

fn tiny() -> impl Strategy<Value = Room> {
    prop_oneof![Just(0), Just(2_000)].prop_map(|cache| Room::Tiny { cache })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn consumers_are_served_in_the_models_order(plan in plan(Just(Room::Plain), 0..=3, true)) {
        run(&plan);
    }

    #[test]
    fn every_answer_is_the_models(plan in plan(Just(Room::Ample), 0..=0, false)) {
        run(&plan);
    }

    #[test]
    fn nothing_differs_while_batches_are_on_their_way(plan in plan(Just(Room::Ample), 1..=3, false)) {
        run(&plan);
    }

    #[test]
    fn nothing_differs_after_restarts(plan in plan(Just(Room::Ample), 0..=3, true)) {
        run(&plan);
    }

    #[test]
    fn nothing_differs_when_rows_stay_in_the_store(plan in plan(Just(Room::NoCache), 0..=3, true)) {
        run(&plan);
    }

    #[test]
    fn nothing_differs_when_everything_takes_several_steps(plan in plan(tiny(), 0..=3, true)) {
        run(&plan);
    }
}

/// The cases above differ from run to run; these do not, so that a change can be told from luck.
#[test]
fn nothing_differs_in_the_same_cases_as_always() {
    let rooms = prop_oneof![Just(Room::Plain), Just(Room::Ample), Just(Room::NoCache), tiny()];
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = ProptestConfig { failure_persistence: None, ..config() };
    let outcome = TestRunner::new_with_rng(config, rng).run(&plan(rooms, 0..=3, true), |plan| {
        run(&plan);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
