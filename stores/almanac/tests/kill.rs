//! A real process that is killed with SIGKILL under load, again and again, on one real directory.
//!
//! ```text
//! child:   open, claim ──► commit ──► "done 17" ──► commit ──► "done 18" ──► comm╳
//! parent:                     what was confirmed ◄─────────────────────┘   kill -9, open, compare
//! ```
//! A commit may also be an entry of the cluster that is written. All of them follow from a seed, so what there is after so many of them is known to both sides without
//! a word. After each kill there must be what was confirmed, or that and the one commit on its way.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use punctual_almanac::{Almanac, Config, Directory, SyncPolicy, Tending};
use punctual_chance::Chance;
use punctual_core::Clock;
use punctual_core::store::{Batch, Store};

use crate::stage::model::Model;
use crate::stage::work::Work;
use crate::stage::{ManualClock, claim, tiny};

/// What tells a process that it is the child: directory, seed, first commit, milliseconds between syncs.
const ORDERS: &str = "PUNCTUAL_KILL_CHILD";

/// One test at a time: a process that is just being started has, for a moment, what the other test has
/// open, and with it the lock on its directory.
static TURN: Mutex<()> = Mutex::new(());

/// All commits, one after the other, and what they lead to.
struct Story {
    work: Work,
    chance: Chance,
    /// What there is after so many commits.
    model: Model,
    commits: u64,
}

/// What is written next.
enum Deed {
    Commit(Vec<Batch>),
    Put { key: &'static str, seen: u64, value: Bytes, revision: u64 },
}

impl Story {
    fn new(seed: u64) -> Story {
        Story { work: Work::new(60, 12 << 10), chance: Chance::new(seed), model: Model::default(), commits: 0 }
    }

    fn next(&mut self) -> Deed {
        self.commits += 1;
        if self.chance.happens(1, 5) {
            let (key, value) = self.work.entry(&mut self.chance);
            let (seen, revision) = self.model.put(key, &value, ManualClock::default().micros());
            return Deed::Put { key, seen, value, revision };
        }
        let batches = (0..1 + self.chance.below(3)).map(|_| {
            let shard = *self.chance.pick(&self.work.shards);
            let batch = self.work.batch(shard, &self.model, &mut self.chance);
            self.model.apply(&batch);
            batch
        });
        Deed::Commit(batches.collect())
    }

    fn go_on_to(&mut self, commits: u64) {
        while self.commits < commits {
            self.next();
        }
    }
}

fn open(directory: &Path, sync: SyncPolicy) -> Almanac {
    let disk = Directory::open(directory).unwrap();
    // The journal is what makes runs come often.
    let config = Config { memory: 2 << 20, tending: Tending::Thread, sync, ..tiny() };
    Almanac::open(Arc::new(disk), config, Arc::new(ManualClock::default())).unwrap()
}

/// A child that the parent listens to, and what it has said.
struct Writer {
    child: Child,
    lines: BufReader<ChildStdout>,
    said: Said,
}

#[derive(Default)]
struct Said {
    fences: BTreeMap<u16, u64>,
    /// How many commits were confirmed, those of the children before it included.
    done: Option<u64>,
}

impl Writer {
    fn start(directory: &Path, seed: u64, from: u64, sync: SyncPolicy) -> Writer {
        let every = if let SyncPolicy::Every(every) = sync { every.as_millis() } else { 0 };
        let orders = format!("{}\n{seed}\n{from}\n{every}", directory.display());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::the_child_that_is_killed", "--exact", "--ignored", "--nocapture"])
            .env(ORDERS, orders)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Writer { child, lines, said: Said::default() }
    }

    fn wait_for(&mut self, word: &str) {
        while let Some(line) = self.hear() {
            if line == word {
                return;
            }
        }
        panic!("the child ended before it said {word:?}");
    }

    fn kill(mut self) -> Said {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.code().is_none(), "the child ended by itself, with {status}");
        while self.hear().is_some() {}
        self.said
    }

    /// The next line. What means nothing comes from the test harness.
    fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
            ["fence", shard, fence] => {
                self.said.fences.insert(shard.parse().unwrap(), fence.parse().unwrap());
            }
            ["done", commits] => {
                let commits = commits.parse().unwrap();
                assert!(self.said.done.is_none_or(|before| before + 1 == commits), "{commits} came out of turn");
                self.said.done = Some(commits);
            }
            _ => {}
        }
        line.ends_with('\n').then(|| line.trim_end().to_owned())
    }
}

/// Kills so many writers on one directory, and makes sure after each that what it was told is there.
fn kill(times: usize, seed: u64, sync: SyncPolicy) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(!seed);
    let mut story = Story::new(seed);
    let mut fences: BTreeMap<u16, u64> = BTreeMap::new();
    let (mut whole, mut lost, mut runs) = (0, 0, 0);
    for round in 0..times {
        let before = story.commits;
        let mut writer = Writer::start(directory.path(), seed, before, sync);
        writer.wait_for("opening");
        if round % 10 == 9 {
            // While it opens.
            std::thread::sleep(Duration::from_micros(chance.below(3_000)));
        } else {
            writer.wait_for("opened");
            std::thread::sleep(Duration::from_micros(5_000 + chance.below(95_000)));
        }
        let said = writer.kill();
        for (shard, fence) in said.fences {
            assert!(
                fences.insert(shard, fence).is_none_or(|old| old < fence),
                "kill {round}: {shard} had {fence} before"
            );
        }
        if round % 3 == 2 {
            // What the kill has left is opened by a process that is killed in its turn.
            let mut opener = Writer::start(directory.path(), seed, u64::MAX, sync);
            opener.wait_for("opening");
            std::thread::sleep(Duration::from_micros(chance.below(2_000)));
            opener.kill();
        }

        runs = runs.max(last_run(directory.path()));
        let almanac = open(directory.path(), sync);
        story.go_on_to(said.done.unwrap_or(before));
        let found = Model::read(&almanac, &story.work.shards, &story.work.keys).unwrap();
        if found != story.model {
            let what = found.differences(&story.model);
            story.next();
            assert!(
                found == story.model,
                "seed {seed}, kill {round}, after {} commits {what}\nwith the commit on its way, {}",
                story.commits - 1,
                found.differences(&story.model)
            );
            whole += 1;
        } else {
            lost += 1;
        }
        story.model.compare(&almanac, &story.work.shards, &story.work.keys, &story.work.groups, &mut chance);
    }
    let commits = story.commits;
    println!("{times} kills: {commits} commits, {runs} runs; the commit on its way was there {whole} times");
    assert!(commits > 2 * times as u64 && runs > times as u64 / 4, "only {commits} commits and {runs} runs");
    assert!(lost > 0, "the kills came at many moments");
}

/// The number of the latest run.
fn last_run(directory: &Path) -> u64 {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let number = |name: std::ffi::OsString| u64::from_str_radix(name.to_str()?.strip_prefix("run-")?, 16).ok();
    names.filter_map(number).max().unwrap_or(0)
}

#[test]
fn fifty_kills_take_nothing_that_was_confirmed() {
    kill(50, 1, SyncPolicy::Always);
}

#[test]
fn a_kill_takes_nothing_either_if_syncs_come_later_than_commits() {
    kill(20, 2, SyncPolicy::Every(Duration::from_millis(5)));
}

/// Not a test: what the tests above start as a process of its own.
#[test]
#[ignore = "it is started by the tests that kill it"]
fn the_child_that_is_killed() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let [directory, seed, from, every] = orders.split('\n').collect::<Vec<_>>()[..] else { panic!("{orders}") };
    let (seed, from, every): (u64, u64, u64) = (seed.parse().unwrap(), from.parse().unwrap(), every.parse().unwrap());
    let sync = if every == 0 { SyncPolicy::Always } else { SyncPolicy::Every(Duration::from_millis(every)) };
    let mut out = std::io::stdout().lock();
    // One write for each line: the parent gets it whole or not at all.
    let mut say = |line: String| out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();

    let mut story = Story::new(seed);
    story.go_on_to(if from == u64::MAX { 0 } else { from });
    say("\nopening".to_owned());
    let almanac = open(Path::new(directory), sync);
    if from < u64::MAX {
        for shard in story.work.shards.clone() {
            let tenure = claim(&almanac, shard).unwrap();
            story.work.tenures.insert(shard, tenure);
            say(format!("fence {} {}", shard.0, tenure.fence.0));
        }
    }
    say("opened".to_owned());
    if from == u64::MAX {
        std::thread::sleep(Duration::from_secs(60));
    }
    loop {
        match story.next() {
            Deed::Commit(batches) => {
                assert!(almanac.commit(batches).unwrap().iter().all(Result::is_ok), "the writer owns its shards");
            }
            Deed::Put { key, seen, value, revision } => {
                assert_eq!(almanac.cluster_put(key, seen, &value), Ok(Ok(revision)));
            }
        }
        say(format!("done {}", story.commits));
    }
}
