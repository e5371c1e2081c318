//! Plans of several nodes on one store, beat by beat: they come to one view, and nobody takes what another one has.

#![allow(clippy::unwrap_used, reason = "all of this is a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_center::{Assignment, Card, Planner};
use punctual_chance::Chance;
use punctual_core::store::{Beat, Claim, Fence, Incarnation, Roll, ShardId, Store};
use punctual_core::{Clock, Millis, Name, Timestamp};
use punctual_memory::MemoryStore;

const LEASE: Millis = Millis(3_000);
/// The time between two beats.
const BEAT: u64 = 500;

#[derive(Default)]
struct ScenesClock(AtomicU64);

impl Clock for ScenesClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A node that does at once what its plan says.
struct Member {
    planner: Planner,
    who: Incarnation,
    card: Card,
    running: BTreeMap<ShardId, Fence>,
}

struct Scene {
    clock: Arc<ScenesClock>,
    store: MemoryStore,
    shards: u16,
    members: Vec<Member>,
    assignment: Assignment,
    lives: u64,
    /// How many shards were handed over.
    moves: usize,
}

impl Scene {
    fn new(shards: u16) -> Scene {
        let clock = Arc::new(ScenesClock::default());
        clock.0.store(1_000_000, Ordering::SeqCst);
        let store = MemoryStore::new(clock.clone());
        Scene { clock, store, shards, members: Vec::new(), assignment: Assignment::default(), lives: 0, moves: 0 }
    }

    /// A scene with these nodes, in which all is in its place.
    fn with(shards: u16, nodes: &[&str]) -> Scene {
        let mut scene = Scene::new(shards);
        nodes.iter().for_each(|node| scene.join(node));
        scene.settle();
        scene.moves = 0;
        scene
    }

    fn join(&mut self, node: &str) {
        self.lives += 1;
        let who = Incarnation { node: name(node), number: self.lives };
        let planner = Planner::new(who.clone(), self.shards);
        self.members.push(Member { planner, who, card: Card::default(), running: BTreeMap::new() });
        self.beat(self.members.len() - 1);
    }

    /// A node is gone without a word.
    fn kill(&mut self, node: &str) {
        self.members.retain(|member| *member.who.node != *node);
    }

    fn pass(&self, millis: u64) {
        self.clock.0.fetch_add(millis, Ordering::SeqCst);
    }

    fn look(&self) -> Roll {
        let who = Incarnation { node: name("onlooker"), number: 1 };
        self.store.beat(&Beat { who, address: String::new(), lease: Millis::ZERO }).unwrap()
    }

    /// A node beats, and does what its plan says.
    fn beat(&mut self, index: usize) {
        let before = self.look();
        let member = &mut self.members[index];
        let beat = Beat { who: member.who.clone(), address: member.card.to_string(), lease: LEASE };
        let roll = self.store.beat(&beat).unwrap();
        let fences = roll.shards.iter().map(|held| (held.shard, held.fence)).collect::<BTreeMap<_, _>>();
        member.running.retain(|shard, fence| fences.get(shard) == Some(fence));
        let running: BTreeSet<ShardId> = member.running.keys().copied().collect();
        let plan = member.planner.plan(&roll, &self.assignment, &running);
        for (shard, _) in &plan.claims {
            let keeper = before.keeper(*shard).map(|keeper| &keeper.who);
            assert!(keeper.is_none_or(|keeper| *keeper == member.who), "{shard} is {keeper:?}'s");
        }
        let claims = self.store.claim(&member.who, &plan.claims).unwrap();
        for ((shard, _), claim) in plan.claims.iter().zip(claims) {
            if let Claim::Granted(tenure) = claim {
                member.running.insert(*shard, tenure.fence);
            }
        }
        if let Some((shard, to)) = plan.hand_over {
            let fence = member.running.remove(&shard).expect("a node hands over what it runs");
            assert!(before.node(&to.node).is_some_and(|node| node.who == to && before.now() < node.until));
            self.store.release(shard, fence, Some(&to)).unwrap();
            self.moves += 1;
        }
    }

    /// All nodes beat once, one after the other.
    fn round(&mut self) {
        let nodes = self.members.len() as u64;
        for index in 0..self.members.len() {
            self.beat(index);
            self.pass(BEAT / nodes);
        }
    }

    /// Beats until all is in its place, and sees that it stays so.
    fn settle(&mut self) {
        let rounds = 12 + 2 * usize::from(self.shards);
        (0..rounds).for_each(|_| self.round());
        let moves = self.moves;
        let before = self.counts();
        (0..20).for_each(|_| self.round());
        assert_eq!((self.moves, self.counts()), (moves, before), "it goes to and fro");
        let all: usize = self.members.iter().map(|member| member.running.len()).sum();
        assert_eq!(all, usize::from(self.shards), "each shard is at one node: {:?}", self.counts());
    }

    fn counts(&self) -> BTreeMap<Name, usize> {
        self.members.iter().map(|member| (member.who.node.clone(), member.running.len())).collect()
    }

    fn count(&self, node: &str) -> usize {
        self.counts()[node]
    }

    fn has(&self, node: &str, shard: u16) -> bool {
        self.members.iter().any(|member| *member.who.node == *node && member.running.contains_key(&ShardId(shard)))
    }

    /// Of the nodes that take shards, none has two more than another.
    fn assert_even(&self) {
        let drained = |member: &&Member| !self.assignment.drains.contains(&member.who.node);
        let takers: Vec<usize> = self.members.iter().filter(drained).map(|member| member.running.len()).collect();
        let (least, most) = (takers.iter().min(), takers.iter().max());
        assert!(least.zip(most).is_none_or(|(least, most)| most - least <= 1), "{:?}", self.counts());
    }
}

#[test]
fn the_first_node_takes_all_at_once_and_others_get_their_part() {
    let mut scene = Scene::new(16);
    scene.join("a");
    assert_eq!(scene.count("a"), 16);
    scene.join("b");
    scene.settle();
    assert_eq!((scene.count("a"), scene.count("b"), scene.moves), (8, 8, 8));
    scene.join("c");
    scene.settle();
    scene.assert_even();
    assert_eq!(scene.moves, 8 + 5, "no more than the newcomer needs");
}

#[test]
fn one_shard_is_handed_over_in_a_beat() {
    let mut scene = Scene::with(16, &["a"]);
    scene.join("b");
    for moves in 1..=8 {
        scene.round();
        assert_eq!(scene.moves, moves);
    }
}

#[test]
fn several_who_give_to_one_do_not_give_too_much() {
    let mut scene = Scene::with(10, &["a", "b", "c"]);
    scene.join("d");
    scene.settle();
    scene.assert_even();
    assert_eq!(scene.moves, 2);
}

#[test]
fn the_shards_of_a_dead_node_are_divided_in_time_and_no_other_moves() {
    let mut scene = Scene::with(16, &["a", "b", "c"]);
    let before: Vec<BTreeSet<ShardId>> =
        scene.members[..2].iter().map(|member| member.running.keys().copied().collect()).collect();
    scene.kill("c");
    let died_at = scene.clock.now();
    while scene.members.iter().map(|member| member.running.len()).sum::<usize>() < 16 {
        scene.round();
    }
    assert!(scene.clock.now().since(died_at) < Millis(5_000), "{:?}", scene.clock.now().since(died_at));
    scene.settle();
    assert_eq!((scene.count("a"), scene.count("b"), scene.moves), (8, 8, 0));
    for (member, before) in scene.members.iter().zip(before) {
        assert!(before.iter().all(|shard| member.running.contains_key(shard)));
    }
}

#[test]
fn after_an_outage_everybody_renews_before_anybody_is_taken_for_dead() {
    let mut scene = Scene::with(12, &["a", "b", "c"]);
    scene.pass(60_000);
    // One of them is back a second before the others.
    for _ in 0..3 {
        scene.beat(0);
        scene.pass(BEAT);
    }
    assert_eq!(scene.count("a"), 4);
    scene.settle();
    assert_eq!((scene.count("a"), scene.count("b"), scene.count("c"), scene.moves), (4, 4, 4, 0));
}

#[test]
fn a_new_life_takes_what_the_former_had_and_others_their_part() {
    let mut scene = Scene::with(6, &["a", "b"]);
    scene.kill("a");
    scene.pass(LEASE.0);
    scene.join("a");
    scene.settle();
    assert_eq!((scene.count("a"), scene.count("b")), (3, 3));
}

#[test]
fn a_drained_node_gives_all_away_and_gets_nothing_until_it_is_let_back() {
    let mut scene = Scene::with(9, &["a", "b", "c"]);
    scene.assignment.drains.insert(name("b"));
    scene.settle();
    assert_eq!(scene.count("b"), 0);
    assert_eq!(scene.moves, 3);
    scene.assert_even();
    scene.kill("a");
    scene.pass(LEASE.0);
    scene.settle();
    assert_eq!((scene.count("b"), scene.count("c")), (0, 9));
    scene.assignment.drains.clear();
    scene.settle();
    scene.assert_even();
}

#[test]
fn a_drained_node_that_is_alone_keeps_what_it_has() {
    let mut scene = Scene::with(4, &["a", "b"]);
    scene.assignment.drains = [name("a"), name("b")].into();
    scene.settle();
    assert_eq!((scene.count("a"), scene.count("b"), scene.moves), (2, 2, 0));
    scene.kill("b");
    scene.pass(LEASE.0);
    scene.settle();
    assert_eq!(scene.count("a"), 4);
}

#[test]
fn a_node_that_leaves_is_given_nothing_back() {
    let mut scene = Scene::with(8, &["a", "b"]);
    scene.members[0].card.is_leaving = true;
    scene.settle();
    assert_eq!((scene.count("a"), scene.count("b"), scene.moves), (0, 8, 4));
}

#[test]
fn a_pin_wins_and_the_others_make_up_for_it() {
    let mut scene = Scene::with(8, &["a", "b"]);
    scene.assignment.pins = (0..6).map(|shard| (ShardId(shard), name("b"))).collect();
    scene.settle();
    assert!((0..6).all(|shard| scene.has("b", shard)));
    assert_eq!((scene.count("a"), scene.count("b")), (2, 6));
    scene.kill("b");
    scene.pass(LEASE.0);
    scene.settle();
    assert_eq!(scene.count("a"), 8, "a pin to a node that is not there holds nobody up");
    scene.join("b");
    scene.settle();
    assert!((0..6).all(|shard| scene.has("b", shard)));
}

#[test]
fn ten_nodes_share_a_hundred_shards_and_nothing_moves_without_need() {
    let names: Vec<String> = (0..10).map(|node| format!("n{node}")).collect();
    let mut scene = Scene::with(100, &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(scene.counts().values().all(|count| *count == 10), "{:?}", scene.counts());
    scene.kill("n3");
    let died_at = scene.clock.now();
    while scene.members.iter().map(|member| member.running.len()).sum::<usize>() < 100 {
        scene.round();
    }
    assert!(scene.clock.now().since(died_at) < Millis(5_000), "{:?}", scene.clock.now().since(died_at));
    scene.settle();
    scene.assert_even();
    assert_eq!(scene.moves, 0, "what is taken over is taken where it is wanted");
    scene.join("n3");
    scene.settle();
    scene.assert_even();
    assert_eq!(scene.moves, 10, "no more than the newcomer needs");
}

#[test]
fn nodes_that_come_go_and_are_drained_always_come_to_one_view() {
    const NODES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    for seed in 0..300 {
        let mut chance = Chance::new(seed);
        let mut scene = Scene::new(chance.between(1, 40) as u16);
        scene.join("a");
        for _ in 0..chance.between(1, 25) {
            let node = *chance.pick(&NODES);
            let is_there = scene.members.iter().any(|member| *member.who.node == *node);
            let shard = ShardId(chance.below(u64::from(scene.shards)) as u16);
            match chance.below(8) {
                0 | 1 if !is_there && scene.look().node(node).is_none_or(|old| old.until <= scene.clock.now()) => {
                    scene.join(node);
                }
                2 if is_there && scene.members.len() > 1 => scene.kill(node),
                3 => _ = scene.assignment.drains.insert(name(node)),
                4 => _ = scene.assignment.drains.remove(node),
                5 => _ = scene.assignment.pins.insert(shard, name(node)),
                6 => _ = scene.assignment.pins.remove(&shard),
                _ => scene.pass(chance.magnitude(1, 8_000)),
            }
            for _ in 0..chance.below(12) {
                let index = chance.index(scene.members.len());
                scene.beat(index);
                scene.pass(chance.below(200));
            }
        }
        scene.settle();
        if scene.members.iter().all(|member| scene.assignment.drains.contains(&member.who.node)) {
            continue;
        }
        scene.assignment.pins.clear();
        scene.settle();
        scene.assert_even();
        let drained = |member: &&Member| scene.assignment.drains.contains(&member.who.node);
        assert!(scene.members.iter().filter(drained).all(|member| member.running.is_empty()), "seed {seed}");
    }
}
