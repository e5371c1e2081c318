//! Administrators of several nodes change settings at the same time, on real shards, and sleep or die at any point: all
//! shards agree in the end, and the order of numbers is the order of effects.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use punctual_center::changes::{End, KnownChanges, Next, Undertaking, Verdict, is_gone, rows_gone, told};
use punctual_center::{Changes, Error, Outcome};
use punctual_chance::Chance;
use punctual_core::shard::StoredSettings;
use punctual_core::store::{Beat, Claim, Incarnation, ShardId, Store};
use punctual_core::view::settings_of;
use punctual_core::{
    Adjustment, Adopt, Board, Clock, Command, Millis, Name, QueueSettings, Reply, Request, Schedule, Shard,
    ShardConfig, Subject, Task, Timestamp,
};
use punctual_memory::MemoryStore;

const SHARDS: u16 = 3;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000)
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The shards, and the store that all nodes share.
struct World {
    store: MemoryStore,
    shards: Vec<Shard<u64>>,
    board: Board<u64>,
    replies: u64,
    /// The changes that were written down, by their numbers.
    written: BTreeMap<u64, Adjustment>,
    /// Deletions that were taken back, since a shard refused them.
    taken_back: BTreeSet<u64>,
    /// Deletions that somebody was told are over.
    told: BTreeSet<u64>,
}

impl World {
    fn new() -> World {
        let store = MemoryStore::new(Arc::new(Still));
        let mut world = World {
            store,
            shards: Vec::new(),
            board: Board::default(),
            replies: 0,
            written: BTreeMap::new(),
            taken_back: BTreeSet::new(),
            told: BTreeSet::new(),
        };
        for shard in 0..SHARDS {
            let opened = world.open(ShardId(shard));
            world.shards.push(opened);
        }
        world
    }

    fn open(&self, shard: ShardId) -> Shard<u64> {
        let who = Incarnation { node: name("node"), number: 1 };
        let beat = Beat { who: who.clone(), address: String::new(), lease: Millis(1_000) };
        let fence = self.store.beat(&beat).unwrap().fence(shard);
        let [Claim::Granted(tenure)] = self.store.claim(&who, &[(shard, fence)]).unwrap()[..] else {
            panic!("nobody else claims")
        };
        let config = ShardConfig { shards: SHARDS, ..ShardConfig::default() };
        Shard::open(shard, tenure, config, Still.now(), &self.store).unwrap()
    }

    fn restart(&mut self, shard: u16) {
        self.shards[usize::from(shard)] = self.open(ShardId(shard));
    }

    /// One step of a shard, with a command or to go on with what it has begun.
    fn step(&mut self, shard: u16, command: Option<Command>) -> Option<Reply> {
        self.replies += 1;
        let request = |command| Request { by: None, command, reply: self.replies, read_at: Still.now() };
        let requests = command.into_iter().map(request).collect();
        let stepping = &mut self.shards[usize::from(shard)];
        let output = stepping.step(Still.now(), requests, &self.store, &mut self.board).unwrap();
        assert!(self.store.commit(output.batch.into_iter().collect()).unwrap().iter().all(Result::is_ok));
        stepping.committed(output.step);
        output.answers.into_iter().find(|(reply, _)| *reply == self.replies).map(|(_, reply)| reply)
    }

    fn seen(&self) -> (u64, Changes) {
        let entry = self.store.cluster_get(Changes::KEY).unwrap();
        entry.map_or((0, Changes::default()), |entry| (entry.revision, Changes::read(&entry.value).unwrap()))
    }

    /// Writes the entry, if it is still at this revision; gives the new one.
    fn write(&mut self, seen: u64, changes: &Changes) -> Option<u64> {
        let before = self.seen().1;
        let written = self.store.cluster_put(Changes::KEY, seen, &changes.lay()).unwrap().ok();
        if let (Some(old), Some(new), Some(_)) = (before.under_way(), changes.under_way(), written)
            && old.otherwise.as_ref() == Some(&new.adjustment)
        {
            self.taken_back.insert(old.number);
        }
        if let Some(change) = changes.under_way().filter(|_| written.is_some()) {
            self.written.insert(change.number, change.adjustment.clone());
        }
        written
    }
}

/// Somebody who changes settings, and what it is about to do.
#[derive(Default)]
struct Administrator {
    known: KnownChanges,
    busy: Option<Busy>,
}

struct Busy {
    undertaking: Undertaking,
    step: Next,
    /// What is wanted.
    wish: Option<Adjustment>,
    /// The deletion that is struck off.
    deletion: Option<Adopt>,
    /// What shards have said so far, one after the other.
    outcomes: Vec<Outcome>,
}

impl Busy {
    fn with((undertaking, step): (Undertaking, Next), wish: Option<Adjustment>) -> Busy {
        Busy { undertaking, step, wish, deletion: None, outcomes: Vec::new() }
    }

    fn at(self, step: Next) -> Option<Busy> {
        Some(Busy { step, outcomes: Vec::new(), ..self })
    }
}

impl Administrator {
    /// One that is about to finish what others left; of several deletions that are under way it ends one.
    fn tidier() -> Administrator {
        Administrator { busy: Some(Busy::with(Undertaking::tidy(), None)), ..Administrator::default() }
    }

    /// Does one thing of what it is about, or begins something else.
    fn go_on(&mut self, world: &mut World, chance: &mut Chance) {
        let Some(busy) = self.busy.take() else {
            let wish = drawn(chance);
            self.busy = Some(Busy::with(Undertaking::make(wish.subject()), Some(wish)));
            return;
        };
        self.busy = self.do_next(busy, world);
    }

    fn do_next(&mut self, mut busy: Busy, world: &mut World) -> Option<Busy> {
        match busy.step.clone() {
            Next::Look | Next::Read => {
                let known = self.known.quiet().filter(|_| busy.step == Next::Look);
                let read = || self.known.read(world.store.cluster_get(Changes::KEY).unwrap().as_ref()).unwrap();
                let step = busy.undertaking.looked(known.unwrap_or_else(read));
                busy.at(step)
            }
            Next::Decide => {
                let wish = busy.wish.clone().unwrap();
                let otherwise = matches!(wish, Adjustment::Delete { force: false, .. }).then(|| put(&wish, 1));
                let step = busy.undertaking.decided(wish, otherwise, 0);
                busy.at(step)
            }
            Next::Adopt(adopt, revision) => {
                let shard = busy.outcomes.len() as u16;
                let reply = world.step(shard, Some(Command::Adopt(Box::new(adopt)))).unwrap();
                busy.outcomes.push(reply.map_err(Error::from));
                if shard + 1 < SHARDS {
                    return Some(busy);
                }
                let verdict = Verdict::of(&busy.outcomes);
                if verdict == Verdict::Adopted {
                    self.known.adopted(revision);
                }
                let step = busy.undertaking.adopted(verdict, 0);
                busy.at(step)
            }
            Next::Write(seen, changes) => {
                let written = world.write(seen.revision, &changes);
                let seen = written.map(|revision| self.known.written(&seen, changes, revision));
                if seen.is_none() {
                    self.known.forget();
                }
                let step = busy.undertaking.written(seen);
                busy.at(step)
            }
            Next::Over(End::Deleting(deletion)) => Administrator::watch(world, &deletion),
            Next::Over(End::Tidied(_, deletions)) => {
                deletions.first().and_then(|deletion| Administrator::watch(world, deletion))
            }
            Next::Over(end) => {
                if let Some(deletion) = busy.deletion
                    && told(&deletion, Ok(0), &Ok(end)).is_ok()
                {
                    world.told.insert(deletion.number);
                }
                None
            }
        }
    }

    /// Waits for the end of a deletion, and strikes it off.
    fn watch(world: &mut World, deletion: &Adopt) -> Option<Busy> {
        let mut ask = |shard| world.step(shard, Some(Command::Adopt(Box::new(deletion.clone()))));
        let outcomes: Option<Vec<Outcome>> =
            (0..SHARDS).map(|shard| ask(shard).map(|reply| reply.map_err(Error::from))).collect();
        let is_over = outcomes.and_then(|outcomes| rows_gone(&outcomes)).is_some_and(|ended| is_gone(&ended));
        let strikes_off =
            || Busy { deletion: Some(deletion.clone()), ..Busy::with(Undertaking::strike_off(deletion.number), None) };
        is_over.then(strikes_off)
    }
}

/// A queue's settings as the draw says, under the name that another change has.
fn put(of: &Adjustment, lease: u64) -> Adjustment {
    let settings = QueueSettings { lease: Millis(lease), ..QueueSettings::default() };
    Adjustment::PutQueue { name: of.subject().name().clone(), settings: Box::new(settings) }
}

fn drawn(chance: &mut Chance) -> Adjustment {
    let subject = Subject::Queue(name(chance.pick::<&str>(&["a", "b", "c"])));
    let delete = Adjustment::Delete { subject, force: chance.percent(50) };
    if chance.percent(40) { delete } else { put(&delete, chance.between(1, 1_000)) }
}

/// A task that is due at once: it stands in the queue of its topic's name, which comes to be by it.
fn due(chance: &mut Chance) -> Command {
    let id = name(&chance.draw().to_string());
    let topic = name(chance.pick::<&str>(&["a", "b", "c"]));
    Command::Schedule(Box::new(Schedule { task: Task::new(topic, "body"), id, id_is_new: true }))
}

fn settings(world: &World) -> Vec<StoredSettings> {
    (0..SHARDS).map(|shard| settings_of(&world.store, ShardId(shard)).unwrap()).collect()
}

/// Lets several administrators change settings at once, and then one of them finish what the others left.
fn run(seed: u64) -> (World, bool) {
    let mut chance = Chance::new(seed);
    let mut world = World::new();
    let mut administrators: Vec<Administrator> = (0..3).map(|_| Administrator::default()).collect();
    let uses = chance.percent(50);
    for _ in 0..chance.between(20, 200) {
        match chance.below(20) {
            0 => *administrators.last_mut().unwrap() = Administrator::default(),
            1 => world.restart(chance.below(u64::from(SHARDS)) as u16),
            2 if uses => {
                let task = due(&mut chance);
                world.step(chance.below(u64::from(SHARDS)) as u16, Some(task));
            }
            3 => _ = world.step(chance.below(u64::from(SHARDS)) as u16, None),
            _ => {
                let index = chance.index(administrators.len());
                administrators[index].go_on(&mut world, &mut chance);
            }
        }
    }
    // Those who slept go on after another one has finished everything, which then does so once more.
    let mut tidiers: Vec<Administrator> = (0..8).map(|_| Administrator::tidier()).collect();
    administrators.push(Administrator::tidier());
    for administrator in administrators.iter_mut().rev().chain(&mut tidiers) {
        for _ in 0..100 {
            if administrator.busy.is_none() {
                break;
            }
            administrator.go_on(&mut world, &mut chance);
            (0..SHARDS).for_each(|shard| _ = world.step(shard, None));
        }
        assert!(administrator.busy.is_none(), "seed {seed}: it does not come to an end");
    }
    (world, uses)
}

#[test]
fn all_shards_agree_in_the_end_on_what_was_written_last() {
    for seed in 0..2_000 {
        let (world, uses) = run(seed);
        let settings = settings(&world);
        assert_eq!(world.seen().1.under_way(), None, "seed {seed}");
        if uses {
            // Queues also come to be by use, in one shard. Where one was put after that, all have it.
            continue;
        }
        assert!(settings.iter().all(|shard| *shard == settings[0]), "seed {seed}: {settings:#?}");
        let mut expected = StoredSettings::default();
        for adjustment in world.written.values() {
            match adjustment {
                Adjustment::PutQueue { name, settings } => {
                    _ = expected.queues.insert(name.clone(), (**settings).clone())
                }
                Adjustment::Delete { subject, .. } => _ = expected.queues.remove(subject.name()),
                Adjustment::PutTopic { .. } => unreachable!("only queues are drawn"),
            }
        }
        assert_eq!(settings[0], expected, "seed {seed}: the order of numbers is the order of effects");
    }
}

#[test]
fn what_was_put_last_is_the_same_everywhere_although_queues_come_to_be_by_use() {
    let mut compared = 0;
    for seed in 0..2_000 {
        let (world, _) = run(seed);
        let settings = settings(&world);
        let mut last: BTreeMap<Name, &Adjustment> = BTreeMap::new();
        for adjustment in world.written.values() {
            last.insert(adjustment.subject().name().clone(), adjustment);
        }
        for (name, adjustment) in last {
            if let Adjustment::PutQueue { settings: put, .. } = adjustment {
                compared += 1;
                assert!(
                    settings.iter().all(|shard| shard.queues.get(&name) == Some(put)),
                    "seed {seed}: {settings:#?}"
                );
            }
        }
    }
    assert!(compared > 1_000, "much was put last: {compared}");
}

#[test]
fn who_hears_that_a_deletion_is_over_hears_the_truth() {
    let (mut told, mut taken_back) = (0, 0);
    for seed in 0..2_000 {
        let (world, _) = run(seed);
        assert!(world.told.is_disjoint(&world.taken_back), "seed {seed}: {:?}", world.written);
        (told, taken_back) = (told + world.told.len(), taken_back + world.taken_back.len());
    }
    assert!(told > 1_000 && taken_back > 50, "{told} were told, {taken_back} were taken back");
}
