//! What kind of run a seed gives: how long, how large, and what goes wrong in it.

use punctual_chance::Chance;
use punctual_core::{Millis, ShardConfig};

use crate::clock::Moment;

/// The kinds of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Nothing goes wrong but consumers and clients; hand-overs are exact to the millisecond.
    Calm,
    /// Nodes die and come back.
    Crashes,
    /// Commits and reads are slow, fail, fail after their effect; the store is away at times.
    SlowStore,
    /// The node's clock is set forward and back, drifts, stands still.
    ClockChaos,
    /// One topic is flooded; the others must not notice.
    Flood,
    /// Delays up to centuries.
    Years,
    /// Several nodes take the shards from each other; some have the same name, or wrong clocks.
    Contention,
    /// The store goes back to an older state; commits come late and twice.
    Failover,
    /// All of it at once.
    Everything,
    /// Three to five nodes with links, of which any takes any request; nodes come and go, and shards are handed over.
    Center,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Calm,
        Kind::Crashes,
        Kind::SlowStore,
        Kind::ClockChaos,
        Kind::Flood,
        Kind::Years,
        Kind::Contention,
        Kind::Failover,
        Kind::Everything,
        Kind::Center,
    ];
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A node dies.
    Crash,
    /// A node does nothing for a while.
    Stall,
    /// A node's clock is set back.
    ClockBack,
    /// A node's clock is set forward.
    ClockForward,
    /// A node's clock is far ahead for a moment.
    ClockBlip,
    /// A node's clock runs fast or slow.
    Drift,
    /// A commit fails.
    FailedCommit,
    /// The store does not answer for a while.
    Cut,
    /// Commits take long for a while.
    Slow,
    /// Reads take long for a while, and a shard is in the middle of a step meanwhile.
    SlowReads,
    /// A read fails.
    FailedRead,
    /// A node gives a shard back, or hands it on.
    Release,
    /// A commit reaches the store more than once, or after it was given up.
    Repeat,
    /// The store goes back to an older state.
    FailOver,
    /// A link breaks.
    BreakLink,
    /// Nothing gets from one node to another, and maybe not back.
    CutWay,
    /// What gets from one node to another takes long.
    SlowWay,
    /// A node does not reach the store, or is not reached by its answers.
    CutOff,
    /// The store's clock is set.
    StoreClock,
    /// A node stops as it should: it gives its shards to others.
    Leave,
    /// An operator drains a node or pins a shard.
    Assign,
}

/// A run, as the seed wants it.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The kind of run.
    pub kind: Kind,
    /// How many shards there are.
    pub shards: u16,
    /// How many nodes there are.
    pub nodes: usize,
    /// Whether the first two of them have the same name.
    pub twins: bool,
    /// Whether there are links, so that clients may ask any node.
    pub linked: bool,
    /// Whether nodes go by the plan; else everybody takes what is free, and lets go as it likes.
    pub planned: bool,
    /// Whether nodes are of several versions, and of others when they start anew.
    pub mixed: bool,
    /// Whether nodes go by the store's clock; else each goes by its own.
    pub one_clock: bool,
    /// How long clients act and things go wrong.
    pub length: Moment,
    /// How many things clients do.
    pub acts: u64,
    /// The longest delay that is usual.
    pub longest_delay: u64,
    /// How many tasks flood one topic, all due at once.
    pub flood: u64,
    /// How many tasks are scheduled for a far future.
    pub hoard: u64,
    /// How many rows a read looks at before it stops and says where.
    pub looks: usize,
    /// How long commits take, from and to.
    pub commit: (Moment, Moment),
    /// How many steps of a shard may be on their way to the store.
    pub depth: usize,
    /// How many things go wrong, and which.
    pub faults: (u64, Vec<Fault>),
    /// How many answers of a hundred get lost on their way to the client.
    pub lost_answers: u64,
    /// Nothing delays a hand-over, so none may be late.
    pub exact: bool,
    /// How long to wait at the end for all that is due.
    pub drain: Moment,
    /// How each shard works.
    pub config: ShardConfig,
}

/// How far the store's clock may be ahead of what nodes know of it: as it is in servers that share a store.
const CLOCK_WIDTH: Millis = Millis(1_000);

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

impl Profile {
    /// The run of a seed.
    pub fn draw(rng: &mut Chance) -> Profile {
        let kind = *rng.pick(&Kind::ALL);
        Profile::of(kind, rng)
    }

    /// A run of a kind.
    pub fn of(kind: Kind, rng: &mut Chance) -> Profile {
        let mut profile = Profile::plain(kind, rng);
        let some = rng.between(3, 12);
        match kind {
            Kind::Calm => {}
            Kind::Crashes => {
                profile.faults =
                    (some, vec![Fault::Crash, Fault::Crash, Fault::Stall, Fault::FailedCommit, Fault::SlowReads])
            }
            Kind::SlowStore => {
                profile.commit = (0, rng.magnitude(5, 2_000));
                profile.faults =
                    (some, vec![Fault::FailedCommit, Fault::Cut, Fault::Slow, Fault::SlowReads, Fault::FailedRead]);
                profile.faults.1.extend([Fault::Repeat, Fault::Repeat]);
            }
            Kind::ClockChaos => {
                let clock = vec![
                    Fault::ClockBack,
                    Fault::ClockForward,
                    Fault::ClockBlip,
                    Fault::ClockBlip,
                    Fault::Drift,
                    Fault::Stall,
                    Fault::Crash,
                    Fault::SlowReads,
                ];
                profile.faults = (some, clock);
            }
            Kind::Flood => {
                profile.flood = rng.between(200, 1_500);
                profile.length = rng.between(MINUTE, 10 * MINUTE);
            }
            Kind::Years => {
                profile.length = rng.between(YEAR, 20 * YEAR);
                profile.longest_delay = rng.between(YEAR, 300 * YEAR);
                profile.drain = 1_000 * YEAR;
                profile.hoard = rng.between(0, 500);
            }
            Kind::Contention => {
                profile.nodes = rng.between(2, 3) as usize;
                profile.twins = rng.percent(30);
                profile.length = rng.between(2 * MINUTE, 20 * MINUTE);
                profile.longest_delay = 5 * MINUTE;
                profile.faults = (
                    2 * some,
                    vec![
                        Fault::Stall,
                        Fault::Stall,
                        Fault::Stall,
                        Fault::Release,
                        Fault::Crash,
                        Fault::FailedCommit,
                        Fault::Slow,
                        Fault::SlowReads,
                        Fault::Repeat,
                        Fault::ClockBack,
                        Fault::ClockForward,
                    ],
                );
            }
            Kind::Failover => {
                profile.nodes = rng.between(1, 2) as usize;
                profile.length = rng.between(2 * MINUTE, 20 * MINUTE);
                profile.longest_delay = 5 * MINUTE;
                let faults = [Fault::FailOver, Fault::FailOver, Fault::FailOver, Fault::Repeat, Fault::Repeat];
                let others = [Fault::Crash, Fault::Stall, Fault::Slow, Fault::SlowReads, Fault::FailedCommit];
                profile.faults = (2 * some, [faults, others].concat());
            }
            Kind::Everything => {
                profile.nodes = rng.between(1, 2) as usize;
                profile.length = rng.between(2 * MINUTE, HOUR);
                profile.commit = (0, rng.magnitude(1, 500));
                let all = vec![
                    Fault::Crash,
                    Fault::Stall,
                    Fault::ClockBack,
                    Fault::ClockForward,
                    Fault::ClockBlip,
                    Fault::Drift,
                    Fault::FailedCommit,
                    Fault::Cut,
                    Fault::Slow,
                    Fault::SlowReads,
                    Fault::FailedRead,
                    Fault::Release,
                    Fault::Repeat,
                    Fault::FailOver,
                ];
                profile.twins = profile.nodes == 2 && rng.percent(10);
                profile.faults = (2 * some, all);
            }
            Kind::Center => {
                profile.nodes = rng.between(3, 5) as usize;
                profile.shards = *rng.pick(&[3, 5, 8, 12]);
                (profile.linked, profile.planned, profile.one_clock) = (true, true, true);
                profile.length = rng.between(2 * MINUTE, 20 * MINUTE);
                profile.longest_delay = 5 * MINUTE;
                let links = [Fault::BreakLink, Fault::BreakLink, Fault::CutWay, Fault::CutWay, Fault::SlowWay];
                let nodes = [Fault::Crash, Fault::Stall, Fault::Leave, Fault::Leave, Fault::Assign];
                let others = [Fault::Slow, Fault::SlowReads, Fault::FailedCommit, Fault::Repeat, Fault::Cut];
                let clocks = [Fault::ClockBack, Fault::ClockForward];
                let ways = [Fault::CutOff, Fault::CutOff];
                profile.faults = (4 * some, [&links[..], &nodes, &others, &clocks, &ways].concat());
                let last = if rng.percent(30) { Fault::FailOver } else { Fault::StoreClock };
                profile.faults.1.extend([last, last]);
                profile.mixed = rng.percent(60);
            }
        }
        if profile.nodes > 1 && !profile.planned && rng.percent(50) {
            profile.linked = true;
            profile.faults.1.extend([Fault::BreakLink, Fault::CutWay, Fault::SlowWay]);
        }
        let is_shared = matches!(kind, Kind::Contention | Kind::Failover | Kind::Everything);
        if is_shared && rng.percent(40) {
            profile.one_clock = true;
            profile.faults.1.push(Fault::CutOff);
            // Fences and tokens follow the store's clock, so a store may go back, or its clock, and not both at once.
            if !profile.faults.1.contains(&Fault::FailOver) {
                profile.faults.1.push(Fault::StoreClock);
            }
        }
        if profile.one_clock {
            profile.config.clock_width = CLOCK_WIDTH;
        }
        if !profile.faults.1.is_empty() {
            profile.exact = false;
            profile.depth = rng.between(1, 4) as usize;
            profile.lost_answers = rng.between(0, 15);
        }
        profile
    }

    fn plain(kind: Kind, rng: &mut Chance) -> Profile {
        Profile {
            kind,
            shards: *rng.pick(&[1, 1, 2, 3, 4]),
            nodes: 1,
            twins: false,
            linked: false,
            planned: false,
            mixed: false,
            one_clock: false,
            length: rng.between(5 * MINUTE, 6 * HOUR),
            acts: rng.between(50, 500),
            longest_delay: rng.magnitude(10_000, 2 * DAY),
            flood: 0,
            hoard: if rng.percent(20) { rng.between(100, 1_000) } else { 0 },
            looks: if rng.percent(30) { rng.magnitude(1, 50) as usize } else { usize::MAX },
            commit: (0, rng.between(0, 20)),
            depth: usize::MAX,
            faults: (0, Vec::new()),
            lost_answers: 0,
            exact: true,
            drain: 3 * DAY,
            config: config(rng),
        }
    }
}

/// Small sizes, so that what is rare in life (full slices, little room) is usual here.
fn config(rng: &mut Chance) -> ShardConfig {
    ShardConfig {
        window: Millis(rng.magnitude(2, 120_000)),
        slice: rng.magnitude(1, 200) as usize,
        timers: rng.magnitude(1, 500) as usize,
        fires: rng.magnitude(1, 200) as usize,
        hand_outs: rng.magnitude(1, 200) as usize,
        cache: rng.magnitude(400, 200_000) as usize,
        seed: rng.draw(),
        ..ShardConfig::default()
    }
}
