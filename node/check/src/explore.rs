//! Running a scene through many interleavings.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

/// The same interleavings each time, so that nobody meets those of another's change.
const SEED: u64 = 46;

/// How many interleavings are tried by each way of choosing them; `SCHEDULES` says otherwise.
const SCHEDULES: usize = 250;

/// Between how few switches of threads a fault is looked for with certainty in the long run.
const DEPTHS: [usize; 3] = [2, 3, 5];

/// More than a scene needs: who takes so many steps goes round in circles.
const STEPS: usize = 20_000;

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    config
}

/// Holds a scene to what it says, whoever is slow: in interleavings by chance, and in those where few threads are kept from
/// running for long.
pub fn always(scene: impl Fn() + Copy + Send + Sync + 'static) {
    let schedules = env::var("SCHEDULES").map_or(SCHEDULES, |number| number.parse().unwrap());
    run(RandomScheduler::new_from_seed(SEED, schedules), scene);
    for depth in DEPTHS {
        run(PctScheduler::new_from_seed(SEED, depth, schedules), scene);
    }
}

fn run(scheduler: impl Scheduler + 'static, scene: impl Fn() + Send + Sync + 'static) {
    Runner::new(scheduler, config()).run(scene);
}

/// A scene in which something is broken on purpose: the checker must come upon it, and say this.
pub fn found(symptom: &str, scene: impl Fn() + Copy + Send + Sync + 'static) {
    let outcome = catch_unwind(AssertUnwindSafe(|| always(scene)));
    let why = outcome.expect_err("it was not found");
    let why = why.downcast_ref::<String>().map(String::as_str).or(why.downcast_ref::<&str>().copied()).unwrap();
    assert!(why.contains(symptom), "it was found as something else: {why}");
}
