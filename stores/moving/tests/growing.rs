//! Facts about dividing the shards of a store into more: whatever people could see before, they see afterwards.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use punctual_chance::Chance;
use punctual_core::division::Division;
use punctual_core::shard::Note;
use punctual_core::store::{Batch, Beat, Bodies, Change, Incarnation, Look, Row, ShardId, Store, Table, Tally, Tenure};
use punctual_core::view::TaskView;
use punctual_core::{
    Binding, Choice, Clock, Delivery, Millis, Name, OpenError, QueueSettings, Reserve, Shard, ShardConfig, Task,
    TopicSettings, Unit, shard_of, shard_of_key,
};
use punctual_memory::MemoryStore;
use punctual_moving::{Grow, GrowError, Move, MoveError, Progress, Side};
use punctual_node::{Handle, Node, NodeConfig, StartError, SystemClock, block_on};
use stage::engines::{Engines, KINDS};
use stage::{ENDLESS, Hurried, Life, Line, rows};

fn name(text: &str) -> Name {
    Name::stored(text)
}

fn start(store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, shards: u16) -> Result<Node, StartError> {
    let mut config = NodeConfig::new(name("server")).shards(shards);
    config.ownership = Millis(600);
    Node::start(config, Arc::clone(store), Arc::clone(clock))
}

fn grow(store: &dyn Store, to: u16) -> Grow<'_> {
    Grow::new(Side { store, name: "the store" }, to)
}

/// Tasks in every state: to come, ready, with a consumer, dead, finished, broadcast; some with keys. Gives what a consumer
/// still has.
fn fill(handle: &Handle, tasks: usize) -> Vec<Delivery> {
    let feeds = Some(vec![Binding::all(name("mail")), Binding::all(name("print"))]);
    block_on(handle.put_topic(&name("news"), TopicSettings { feeds, ..TopicSettings::default() })).unwrap();
    block_on(handle.put_queue(&name("slow"), QueueSettings { lease: Millis(77_000), ..QueueSettings::default() }))
        .unwrap();
    for number in 0..tasks {
        let task = |topic: &str| Task::new(name(topic), vec![7; number % 90]).id(name(&format!("{topic}-{number}")));
        let later = task("later").after(Duration::from_secs(36_000 + 3_600 * number as u64 * 24));
        block_on(handle.schedule(later.key(name(["red", "blue"][number % 2])))).unwrap();
        block_on(handle.schedule(task("now"))).unwrap();
        block_on(handle.schedule(task("news"))).unwrap();
    }
    let mut held = Vec::new();
    while held.len() < tasks / 2 {
        held.extend(reserve(handle, "now", 1));
    }
    for delivery in held.drain(..tasks / 6) {
        block_on(handle.acknowledge(delivery.lease)).unwrap();
    }
    for delivery in held.drain(..tasks / 6) {
        block_on(handle.reject(delivery.lease, Some("no".to_owned()))).unwrap();
    }
    held
}

fn reserve(handle: &Handle, queue: &str, max: usize) -> Vec<Delivery> {
    let until = handle.now().plus(Millis(200));
    // Longer than all the time that a test has pass.
    let (queues, consumer, lease) = (vec![name(queue)], name("consumer"), Some(Millis::from_hours(12)));
    block_on(handle.reserve(Reserve { queues, max, lease, until, consumer, choice: Choice::default() })).unwrap()
}

/// What people can see of a store.
#[derive(Debug, PartialEq)]
struct Seen {
    by_id: BTreeMap<(String, String), TaskView>,
    by_number: BTreeMap<u64, (String, String, Bytes)>,
    topics: String,
    queues: String,
    forecast: String,
}

const TOPICS: [&str; 3] = ["later", "now", "news"];

fn see(handle: &Handle, tasks: usize) -> Seen {
    let (mut by_id, mut by_number) = (BTreeMap::new(), BTreeMap::new());
    for (topic, number) in TOPICS.into_iter().flat_map(|topic| (0..tasks).map(move |number| (topic, number))) {
        let id = format!("{topic}-{number}");
        let task = block_on(handle.get(&name(topic), &name(&id))).unwrap().unwrap_or_else(|| panic!("{id} is gone"));
        for seq in [task.number].into_iter().chain(task.parts.iter().map(|part| part.number)) {
            let number = handle.number(&name(topic), &name(&id), seq);
            let found = block_on(handle.numbered(vec![number], Bodies::With)).unwrap().pop().flatten();
            let found = found.unwrap_or_else(|| panic!("{id} is not found by {number:?}"));
            let held = block_on(handle.numbered_held(number)).unwrap().unwrap_or_else(|| panic!("{id}: {number:?}"));
            assert_eq!(held.0, found);
            let (key, body) = (found.row.key, found.task.body);
            by_number.insert(number.0, (key.id().to_owned(), key.queue().to_owned(), body));
        }
        by_id.insert((topic.to_owned(), id), task);
    }
    let topics = block_on(handle.topics_named(TOPICS.map(name).to_vec())).unwrap();
    let queues = block_on(handle.queues_named(["now", "mail", "print", "slow"].map(name).to_vec())).unwrap();
    // The days on which something is due: which day is the first depends on when one asks.
    let mut forecast = block_on(handle.forecast(Unit::Day, 60)).unwrap();
    forecast.retain(|(_, due)| *due > 0);
    let (topics, queues, forecast) = (format!("{topics:?}"), format!("{queues:?}"), format!("{forecast:?}"));
    Seen { by_id, by_number, topics, queues, forecast }
}

/// What stands in a store, as far as it does not depend on when it was written.
#[derive(Clone, Debug, PartialEq)]
struct Image {
    rows: BTreeMap<ShardId, Vec<Row>>,
    /// Of how many shards each is one, and where its numbers go on.
    notes: BTreeMap<ShardId, (u16, u64)>,
    tallies: BTreeMap<ShardId, Vec<(Tally, i64)>>,
}

impl Image {
    fn of(store: &dyn Store, shards: u16) -> Image {
        let (mut image, mut notes) = (Image::nothing(), BTreeMap::new());
        for shard in (0..shards).map(ShardId) {
            let all: Vec<Row> = Table::ALL.into_iter().flat_map(|table| rows(store, shard, table)).collect();
            if let Some(note) = all.iter().find_map(Note::read) {
                notes.insert(shard, (note.shards(), note.bounds().0));
            }
            image.rows.insert(shard, all.into_iter().filter(|row| Note::read(row).is_none()).collect());
            image.tallies.insert(shard, store.tallies(shard).unwrap());
        }
        Image { notes, ..image }
    }

    fn nothing() -> Image {
        Image { rows: BTreeMap::new(), notes: BTreeMap::new(), tallies: BTreeMap::new() }
    }

    /// The model: the same store with so many shards.
    fn divided(&self, from: u16, to: u16) -> Image {
        let first = self.notes.values().map(|(_, rows)| *rows).max().unwrap();
        let mut divided = Image::nothing();
        for shard in (0..to).map(ShardId) {
            let parent = ShardId(shard.0 / (to / from));
            let is_here = |row: &&Row| row.table == Table::Settings || shard_of_key(&row.key, to) == shard;
            divided.rows.insert(shard, self.rows[&parent].iter().filter(is_here).cloned().collect());
            divided.notes.insert(shard, (to, first));
        }
        divided
    }
}

/// A store in memory that a server has filled and left, and what it was.
struct World {
    clock: Arc<Hurried>,
    from: u16,
    tasks: usize,
    /// Every row with its table, and every count, to begin anew with.
    rows: BTreeMap<ShardId, Vec<Row>>,
    image: Image,
    seen: Seen,
    held: Vec<Delivery>,
}

impl World {
    fn new(from: u16, tasks: usize) -> World {
        let clock = Arc::new(Hurried::default());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
        let node = start(&store, &(Arc::clone(&clock) as _), from).unwrap();
        let held = fill(&node.handle(), tasks);
        let seen = settled(&node.handle(), tasks);
        node.stop();
        let all = |shard| Table::ALL.into_iter().flat_map(|table| rows(&*store, shard, table)).collect();
        let rows = (0..from).map(ShardId).map(|shard| (shard, all(shard))).collect();
        let image = Image::of(&*store, from);
        World { clock, from, tasks, rows, image, seen, held }
    }

    /// The store as it was left.
    fn store(&self) -> Arc<dyn Store> {
        let store = MemoryStore::new(Arc::clone(&self.clock) as Arc<dyn Clock>);
        for (shard, rows) in &self.rows {
            let Tenure { fence, serial } = stage::claim(&store, *shard);
            let changes = rows.iter().cloned().map(|row| Change::Insert { row, replaces: None }).collect();
            let tallies = self.image.tallies[shard].clone();
            let batch = Batch { shard: *shard, fence, serial: serial + 1, changes, tallies };
            assert_eq!(store.commit(vec![batch]).unwrap(), [Ok(())]);
        }
        Arc::new(store)
    }

    /// Requires that a store which has grown is what it should be, to its last row.
    fn require_divided(&self, store: &dyn Store, to: u16) {
        let (image, model) = (Image::of(store, to + 1), self.image.divided(self.from, to));
        assert_eq!(image.notes, model.notes);
        for shard in (0..to).map(ShardId) {
            assert_eq!(image.rows[&shard], model.rows[&shard], "{shard:?}");
        }
        assert_eq!(image.rows[&ShardId(to)], [], "nothing is where no shard is");
        assert_eq!(sum(&image.tallies), sum(&self.image.tallies));
        let division = Division::read(&store.cluster_get(Division::KEY).unwrap().unwrap().value).unwrap();
        assert_eq!((division.shards, division.growth), (to, None));
    }

    /// Requires that a server finds everything, and gives numbers that nobody had.
    fn require_seen(&self, store: &Arc<dyn Store>, to: u16) {
        let node = start(store, &(Arc::clone(&self.clock) as _), to).unwrap();
        let handle = node.handle();
        let begun = Instant::now();
        loop {
            let seen = see(&handle, self.tasks);
            if seen == self.seen {
                break;
            }
            // What is ready is found out by and by.
            if begun.elapsed() > Duration::from_secs(10) {
                assert_eq!(seen, self.seen);
            }
            thread::sleep(Duration::from_millis(10));
        }
        for number in 0..20 {
            let id = name(&format!("{to}-{number}"));
            // Later than what was forecast.
            let task = Task::new(name("new"), "x").id(id.clone()).after(Duration::from_secs(200 * 86_400));
            let seq = block_on(handle.schedule(task)).unwrap().number;
            let number = handle.number(&name("new"), &id, seq);
            assert!(!self.seen.by_number.contains_key(&number.0), "{number:?} was given before");
            let found = block_on(handle.numbered(vec![number], Bodies::Without)).unwrap().pop().flatten();
            assert_eq!(found.unwrap().task.id, id);
        }
        node.stop();
    }
}

/// What is seen when all that is due has become ready.
fn settled(handle: &Handle, tasks: usize) -> Seen {
    let begun = Instant::now();
    let mut before = see(handle, tasks);
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = see(handle, tasks);
        if now == before {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not settle");
        before = now;
    }
}

fn sum(tallies: &BTreeMap<ShardId, Vec<(Tally, i64)>>) -> BTreeMap<Tally, i64> {
    let mut sums = BTreeMap::new();
    for (tally, count) in tallies.values().flatten() {
        *sums.entry(tally.clone()).or_default() += count;
    }
    sums.retain(|_, count| *count != 0);
    sums
}

#[test]
fn all_that_was_there_is_found_under_more_shards_again_and_again() {
    let world = World::new(2, 30);
    let store = world.store();
    for (from, to) in [(2, 4), (4, 12)] {
        let outlook = grow(&*store, to).look().unwrap();
        let grown = grow(&*store, to).run().unwrap();
        assert_eq!((outlook.from, outlook.to, grown.from, grown.to, grown.resumed), (from, to, from, to, false));
        assert!(grown.moved > 0 && grown.counted > grown.moved, "{grown}");
        assert!(outlook.rows > 0 && outlook.moving.abs_diff(grown.moved) < outlook.rows / 2, "{outlook}, {grown}");
        if from == 2 {
            world.require_divided(&*store, to);
        }
        world.require_seen(&store, to);
    }
    let node = start(&store, &(Arc::clone(&world.clock) as _), 12).unwrap();
    for delivery in &world.held {
        block_on(node.handle().acknowledge(delivery.lease.clone())).unwrap();
    }
    let mut left = 0;
    while let Some(delivery) = reserve(&node.handle(), "now", 1).pop() {
        block_on(node.handle().acknowledge(delivery.lease)).unwrap();
        left += 1;
    }
    assert_eq!(left, 15, "what was ready is handed out, and nothing else");
}

#[test]
fn a_store_of_one_shard_is_its_own_first_child() {
    let world = World::new(1, 12);
    let store = world.store();
    let grown = grow(&*store, 3).run().unwrap();
    assert!(grown.moved < grown.counted, "some stay: {grown}");
    world.require_divided(&*store, 3);
    world.require_seen(&store, 3);
}

/// What was sent on before and may have arrived is sent again under the same id, which has the number of its old shard.
#[test]
fn a_dead_letter_on_its_way_goes_on_under_the_same_id() {
    let clock = Arc::new(Hurried::default());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let node = start(&store, &(Arc::clone(&clock) as _), 2).unwrap();
    let (handle, grave) = (node.handle(), name("grave"));
    let settings = QueueSettings { dead_letter: Some(grave.clone()), ..QueueSettings::default() };
    block_on(handle.put_queue(&name("now"), settings)).unwrap();
    block_on(handle.put_topic(&grave, TopicSettings::default())).unwrap();
    block_on(handle.pause_topic(&grave, None)).unwrap();
    for number in 0..12 {
        block_on(handle.schedule(Task::new(name("now"), "x").id(name(&number.to_string())))).unwrap();
    }
    let mut rejected = 0;
    while rejected < 12 {
        for delivery in reserve(&handle, "now", 1) {
            block_on(handle.reject(delivery.lease, None)).unwrap();
            rejected += 1;
        }
    }
    block_on(handle.resume_topic(&grave)).unwrap();
    node.stop();
    grow(&*store, 6).run().unwrap();

    clock.pass(Duration::from_secs(86_400));
    let node = start(&store, &(Arc::clone(&clock) as _), 6).unwrap();
    let mut arrived = 0;
    while let Some(delivery) = reserve(&node.handle(), "grave", 1).pop() {
        let (id, journey) = delivery.id.split_once('~').unwrap();
        let (shard, _) = journey.split_once('.').unwrap();
        assert_eq!(shard, shard_of("now", id, 2).0.to_string(), "{}", delivery.id);
        arrived += 1;
    }
    assert_eq!(arrived, 12);
}

/// Kills it at its n-th call, for every n there is, and lets another one go on.
#[test]
fn killed_at_any_call_it_goes_on_and_nothing_is_lost_or_twice() {
    let world = World::new(2, 9);
    for last_counts in [false, true] {
        for calls in 0.. {
            let (store, life) = (world.store(), Life::of(calls));
            let line = Line { last_counts, ..Line::to(Arc::clone(&store), &life) };
            let first = grow(&line, 6).run();
            if !life.is_over() {
                first.unwrap();
                assert!(calls > 100, "there is something to kill: {calls} calls");
                break;
            }
            nobody_works_on_half_of_it(&world, &store);
            world.clock.pass(Duration::from_secs(10));
            match grow(&*store, 6).run() {
                // All had been said but good-bye.
                Ok(_) | Err(GrowError::Already(6)) => {}
                Err(error) => panic!("after {calls} calls: {error}"),
            }
            world.require_divided(&*store, 6);
            if calls % 16 == 0 {
                world.require_seen(&store, 6);
            }
        }
    }
}

/// Either nothing has been done yet, or all, or no server starts, and says what to do.
fn nobody_works_on_half_of_it(world: &World, store: &Arc<dyn Store>) {
    let entry = store.cluster_get(Division::KEY).unwrap();
    let division = entry.map(|entry| Division::read(&entry.value).unwrap());
    match division {
        None => assert_eq!(Image::of(&**store, 2), world.image),
        Some(Division { growth: None, .. }) => world.require_divided(&**store, 6),
        Some(_) => {
            for shards in [2, 6] {
                let refused = start(store, &(Arc::clone(&world.clock) as _), shards).map(drop).unwrap_err();
                assert_eq!(refused, StartError::Growing { to: 6 });
                assert!(refused.to_string().contains("`punctual shards grow 6` again"), "{refused}");
            }
            let other = MemoryStore::new(Arc::clone(&world.clock) as Arc<dyn Clock>);
            world.clock.pass(Duration::from_secs(10));
            let sides = [(&**store, "the store"), (&other as &dyn Store, "another")];
            let [from, to] = sides.map(|(store, name)| Side { store, name });
            let refused = Move::new(from, to).run();
            assert!(matches!(refused, Err(MoveError::NotWhole { .. })), "{refused:?}");
        }
    }
}

#[test]
fn killed_again_and_again_on_a_bad_line_it_comes_to_its_end() {
    for seed in 0..12 {
        let mut chance = Chance::new(seed);
        let (from, times) = (chance.between(1, 3) as u16, chance.between(2, 4) as u16);
        let (world, to) = (World::new(from, chance.between(6, 12) as usize), from * times);
        let (store, deaths) = (world.store(), chance.below(6));
        for death in 0.. {
            let life = Life::of(if death < deaths { chance.between(1, 150) as i64 } else { ENDLESS });
            let (last_counts, loss, chance) = (chance.percent(50), chance.below(12), Mutex::new(chance.fork()));
            let line = Line { last_counts, loss, chance, ..Line::to(Arc::clone(&store), &life) };
            let outcome = grow(&line, to).run();
            world.clock.pass(Duration::from_secs(10));
            match outcome {
                Ok(_) | Err(GrowError::Already(_)) => break,
                Err(error) => assert!(life.is_over(), "seed {seed}: {error}"),
            }
        }
        world.require_divided(&*store, to);
        world.require_seen(&store, to);
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let world = World::new(4, 6);
    let store = world.store();
    let refused = |to| grow(&*store, to).run().unwrap_err();
    assert_eq!(refused(4), GrowError::Already(4));
    assert_eq!(refused(2), GrowError::Fewer { has: 4, to: 2 });
    assert_eq!(refused(6), GrowError::NotMultiple { has: 4, to: 6 });
    assert_eq!(refused(8_192), GrowError::TooMany { to: 8_192 });
    let empty = MemoryStore::new(Arc::new(SystemClock));
    assert_eq!(grow(&empty, 4).run(), Err(GrowError::Empty("the store".to_owned())));
    assert_eq!(Image::of(&*store, 16), Image::of(&*world.store(), 16));
    assert_eq!(store.cluster_get(Division::KEY).unwrap(), None);
    world.require_seen(&store, 4);
}

#[test]
fn it_is_refused_with_the_names_of_the_servers_that_run() {
    let world = World::new(1, 6);
    let (store, is_over) = (world.store(), AtomicBool::new(false));
    let beat = |node: &str| {
        let who = Incarnation { node: name(node), number: 9 };
        store.beat(&Beat { who, address: String::new(), lease: Millis(2_000) }).unwrap();
    };
    ["east", "west"].into_iter().for_each(beat);
    let refused = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                ["east", "west"].into_iter().for_each(beat);
                thread::sleep(Duration::from_millis(5));
            }
        });
        let refused = grow(&*store, 2).run().unwrap_err();
        is_over.store(true, Ordering::SeqCst);
        refused
    });
    assert!(refused.to_string().starts_with("the store is in use by east, west, "), "{refused}");
    assert_eq!(store.cluster_get(Division::KEY).unwrap(), None, "nothing was begun");
}

/// A node that slept beyond its lease wakes up and claims a shard in the midst of it: the first one, one whose turn has
/// not come, or one that was emptied.
#[test]
fn a_server_that_wakes_up_meanwhile_can_open_nothing_and_it_goes_on_later() {
    let world = World::new(3, 9);
    for shard in (0..3).map(ShardId) {
        for wait in 0..4 {
            let (store, woken) = (world.store(), Mutex::new(None));
            let wake = |progress: Progress| {
                let mut woken = woken.lock().unwrap();
                if woken.is_none() && progress.done == wait {
                    let tenure = stage::claim(&*store, shard);
                    let config = ShardConfig { shards: 3, ..ShardConfig::default() };
                    *woken = Some(Shard::<()>::open(shard, tenure, config, world.clock.now(), &*store).map(drop));
                }
            };
            let outcome = Grow { watch: &wake, ..grow(&*store, 6) }.run();
            let opened = woken.into_inner().unwrap().unwrap();
            match opened.unwrap_err() {
                OpenError::Growing | OpenError::Shards { noted: 6, configured: 3 } => {}
                error => panic!("{shard:?}, {wait} done: {error}"),
            }
            match outcome {
                Ok(_) => {}
                Err(GrowError::Store(MoveError::Overtaken { .. })) => {
                    world.clock.pass(Duration::from_secs(10));
                    grow(&*store, 6).run().unwrap();
                }
                Err(error) => panic!("{shard:?}, {wait} done: {error}"),
            }
            world.require_divided(&*store, 6);
        }
    }
}

#[test]
fn every_store_grows_although_it_is_killed_on_the_way() {
    let engines = Engines::start();
    thread::scope(|scope| {
        for kind in KINDS {
            let engines = &engines;
            scope.spawn(move || {
                let (store, clock) = (engines.fresh(kind), Arc::new(SystemClock) as Arc<dyn Clock>);
                let node = start(&store, &clock, 2).unwrap();
                let held = fill(&node.handle(), 12);
                let seen = settled(&node.handle(), 12);
                node.stop();
                let image = Image::of(&*store, 2);
                let line = Line::to(Arc::clone(&store), &Life::of(90));
                let killed = grow(&line, 6).run();
                assert!(line.life.is_over() && killed.is_err(), "{kind}: {killed:?}");
                let grown = grow(&*store, 6).run().unwrap_or_else(|error| panic!("{kind}: {error}"));
                assert!(grown.resumed, "{kind}");
                let rows = BTreeMap::new();
                let world = World { clock: Arc::default(), from: 2, tasks: 12, rows, image, seen, held };
                world.require_divided(&*store, 6);
                world.require_seen(&store, 6);
                let node = start(&store, &clock, 6).unwrap();
                for delivery in &world.held {
                    block_on(node.handle().acknowledge(delivery.lease.clone())).unwrap();
                }
            });
        }
    });
}
