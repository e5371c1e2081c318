//! The shard beside a model that is too simple to be wrong: after any acts, both say the same.
//!
//! The cases are the same in every run, so that a change can be told from luck. `PUNCTUAL_CASES` says how
//! many cases each test draws, and then they are new ones each time. A failure prints its seed and the
//! least acts that lead to it; the seed is kept in `against_the_model.regressions` and tried first from then on.

use crate::pair::Pair;
use crate::pair::plan::{Act, Plan, Room, plan};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

fn config() -> ProptestConfig {
    let cases = std::env::var_os("PUNCTUAL_CASES").and_then(|cases| cases.to_str()?.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(2_000),
        rng_seed: if cases.is_some() { RngSeed::Random } else { RngSeed::Fixed(20_261_115) },
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
    fn nothing_differs_when_somebody_else_removes_history(plan in plan(Just(Room::Archived), 0..=3, true)) {
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
    fn nothing_differs_when_what_is_pushed_out_is_not_in_memory(plan in plan(Just(Room::Forgetful), 0..=3, true)) {
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
