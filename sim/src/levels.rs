//! Levels of what is stored: nodes of older and newer versions among each other. The level in force rises when all can read it,
//! and a node that cannot does not start, or stops when it meets it.

use punctual_center::Levels;
use punctual_core::store::{Roll, ShardId, Store};

use crate::Sabotage;
use crate::auditor::Promise;
use crate::say;
use crate::world::World;

/// The highest level that any version knows.
const NEWEST: u32 = 3;

impl World {
    /// The versions that nodes have at first.
    pub(crate) fn choose_versions(&mut self) {
        if !self.profile.mixed {
            return;
        }
        for node in &mut self.nodes {
            node.version.highest = self.rng.between(1, 2) as u32;
        }
    }

    /// A node is to start. Now and then it is another version than before; says whether that can work here.
    pub(crate) fn may_start(&mut self, index: usize) -> bool {
        if !self.profile.mixed {
            return true;
        }
        let level = self.level_in_force();
        let highest = &mut self.nodes[index].version.highest;
        match self.rng.below(10) {
            0..4 => *highest = (*highest + 1).min(NEWEST),
            4 => *highest = (*highest - 1).max(1),
            _ => {}
        }
        if *highest >= level || self.sabotage == Some(Sabotage::OldReaders) {
            return true;
        }
        say!(self.trace, "* node {index} is too old for level {level}, and is upgraded");
        self.census.count("nodes that were too old to start");
        *highest = level;
        false
    }

    /// Looks at the level after a beat. A node that cannot work at it stops; says whether it goes on.
    pub(crate) fn mind_level(&mut self, index: usize, roll: &Roll) -> bool {
        if !self.profile.mixed {
            return true;
        }
        let revision = roll.revision(Levels::KEY);
        if self.nodes[index].version.revision != revision {
            let Ok(entry) = self.reached(index).cluster_get(Levels::KEY) else { return true };
            let level = Levels::read(entry.as_ref()).expect("only levels are written there");
            if !self.can_work_at(index, level) {
                return false;
            }
            let revision = entry.map_or(0, |entry| entry.revision);
            let version = &mut self.nodes[index].version;
            if let Some(known) = Levels::restore(version.in_force, level) {
                self.census.count("levels put in force again");
                self.put_level(index, revision, known);
                return true;
            }
            (version.in_force, version.revision) = (level.min(version.highest), revision);
        }
        let version = &mut self.nodes[index].version;
        let mut level = version.levels.rise(version.in_force, roll);
        if self.sabotage == Some(Sabotage::EagerLevels) {
            level = Some(version.highest).filter(|highest| *highest > version.in_force);
        }
        if let Some(level) = level {
            self.census.count("levels raised");
            self.check_rise(index, roll, level);
            self.put_level(index, revision, level);
        }
        true
    }

    fn put_level(&mut self, index: usize, seen: u64, level: u32) {
        let before = self.level_in_force();
        _ = self.reached(index).cluster_put(Levels::KEY, seen, level.to_string().as_bytes());
        let after = self.level_in_force();
        if after != before {
            say!(self.trace, "* node {index} puts level {after} in force, after {before}");
        }
        if after < before {
            self.auditor.accuse(Promise::Readable, "", format!("the level falls from {before} to {after}"));
        }
    }

    /// All nodes that are there can read what is to be in force.
    fn check_rise(&mut self, index: usize, roll: &Roll, level: u32) {
        let is_old = |present: &punctual_core::store::Present| {
            let meant = |node: &&crate::node::SimulatedNode| node.up && node.membership.who == present.who;
            self.nodes.iter().find(meant).is_some_and(|node| node.version.highest < level)
        };
        let old = roll.there().find(|present| is_old(present)).map(|present| present.who.node.clone());
        if let Some(node) = old {
            let what = format!("node {index} raises the level to {level}, which {node} cannot read");
            self.auditor.accuse(Promise::Readable, "", what);
        }
    }

    /// Whether a node can work at a level; if not, it stops.
    fn can_work_at(&mut self, index: usize, level: u32) -> bool {
        let can = self.nodes[index].version.levels.can(level) || self.sabotage == Some(Sabotage::OldReaders);
        if !can {
            self.census.count("nodes that met a level beyond them");
            self.crash(index);
        }
        can
    }

    /// A node has claimed a shard: it opens it only if it can read the level in force, since others have written there at no
    /// higher one. Says whether it goes on.
    pub(crate) fn may_open(&mut self, index: usize) -> bool {
        if !self.profile.mixed {
            return true;
        }
        let Ok(entry) = self.reached(index).cluster_get(Levels::KEY) else { return false };
        let level = Levels::read(entry.as_ref()).expect("only levels are written there");
        self.can_work_at(index, level)
    }

    /// A node writes something in a shard, at the level that it knows to be in force.
    pub(crate) fn wrote_at_level(&mut self, index: usize, shard: ShardId) {
        let level = self.nodes[index].version.in_force;
        let written = self.levels.entry(shard).or_insert(level);
        *written = level.max(*written);
    }

    /// A node has opened a shard: it can read what is there.
    pub(crate) fn check_readable(&mut self, index: usize, shard: ShardId) {
        let (written, highest) = (self.levels.get(&shard).copied().unwrap_or(1), self.nodes[index].version.highest);
        if written > highest {
            let what =
                format!("node {index} opens shard {}, which has level {written}, and can read {highest}", shard.0);
            self.auditor.accuse(Promise::Readable, "", what);
        }
    }

    fn level_in_force(&self) -> u32 {
        let entry = self.store.memory().cluster_get(Levels::KEY).ok().flatten();
        Levels::read(entry.as_ref()).expect("only levels are written there")
    }
}
