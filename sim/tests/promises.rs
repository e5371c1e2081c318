//! Seeds keep the promises, and a seed is all that a run depends on.

use punctual_sim::census::Census;
use punctual_sim::run;

const SEEDS: u64 = 120;

/// What has to happen in so many seeds, or the checks would have nothing to check.
const KINDS: [&str; 79] = [
    "acknowledged",
    "answers lost",
    "answers never seen",
    "armed again",
    "attempts that failed",
    "beats that did not count",
    "broadcasts",
    "cancels done",
    "cancels too late",
    "changes made",
    "changes that not all shards could adopt at once",
    "changes that somebody was quicker with",
    "changes whose outcome is unknown",
    "claims that were outrun",
    "claims whose answer was lost",
    "clock steps back",
    "clock steps forward",
    "commits lost by failovers",
    "commits that failed",
    "commits that failed after their effect",
    "commits that took over a second",
    "crashes",
    "created",
    "dead letters removed",
    "deletions",
    "deletions joined",
    "deletions taken back",
    "deliveries",
    "deliveries again",
    "deposed owners refused at a commit",
    "deposed owners refused at a read",
    "deposed owners that heard it by a beat",
    "draws",
    "drifts",
    "existed",
    "expired",
    "extended",
    "failovers",
    "forwards",
    "hand-overs checked to the millisecond",
    "hastened",
    "history forgotten",
    "late attempts refused",
    "late attempts that took effect",
    "late attempts that were there already",
    "leases lost",
    "levels raised",
    "looks at the time of nodes",
    "looks after what is left of changes",
    "losses noticed",
    "nodes cut off",
    "nodes that met a level beyond them",
    "nodes that the store's answers do not reach",
    "nodes that were too old to start",
    "out-of-attempts",
    "pages that stopped early",
    "pushed-out",
    "rejected",
    "released",
    "removed as cancelled",
    "removed as done",
    "removed as purged",
    "replaced",
    "replays",
    "reschedules done",
    "reschedules too late",
    "revoked",
    "settings compared",
    "shards given back",
    "shards handed on",
    "shards that changed hands",
    "slow reads",
    "stalls",
    "store's clock set back",
    "store's clock set forward",
    "sweeps audited",
    "taken",
    "tokens drawn",
    "weighings",
];

#[test]
fn a_hundred_and_twenty_seeds_keep_the_promises() {
    let mut census = Census::default();
    for seed in 0..SEEDS {
        let outcome = run(seed, false, None);
        if let Some(violation) = outcome.violation {
            panic!("seed {seed} ({:?}) breaks {}: {violation:#?}", outcome.kind, violation.promise);
        }
        census.join(&outcome.census);
    }
    for kind in KINDS {
        assert!(census.of(kind) > 0, "{kind} never happened in {SEEDS} seeds: {census}");
    }
}

#[test]
fn same_seed_same_bytes() {
    for seed in 0..12 {
        let (first, second) = (run(seed, true, None).trace, run(seed, true, None).trace);
        assert!(first.lines().count() > 100, "seed {seed} leaves a trace");
        let differs = first.lines().zip(second.lines()).enumerate().find(|(_, (one, other))| one != other);
        assert!(differs.is_none(), "seed {seed} differs at line {differs:?}");
        assert_eq!(hash(&first), hash(&second), "seed {seed} is of another length");
    }
}

#[test]
fn keeping_a_trace_changes_nothing() {
    let (with, without) = (run(3, true, None), run(3, false, None));
    assert_eq!((with.census, with.length), (without.census, without.length));
    assert!(without.trace.is_empty());
}

#[test]
fn other_seeds_give_other_runs() {
    assert_ne!(hash(&run(1, true, None).trace), hash(&run(2, true, None).trace));
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
