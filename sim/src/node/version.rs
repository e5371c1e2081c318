//! The version of a node, as far as it matters to others: which levels of what is stored it can read and write, and what it
//! knows of the one in force.

use punctual_center::Levels;

use crate::ownership::LEASE;

/// The version of a node.
#[derive(Debug)]
pub struct Version {
    /// The highest level that it can.
    pub highest: u32,
    /// Whether the level in force can rise.
    pub levels: Levels,
    /// The level in force, as far as it knows: what it writes.
    pub in_force: u32,
    /// The revision of the entry that said so.
    pub revision: u64,
}

impl Version {
    /// One that can all levels up to this one, and knows of none in force.
    pub fn new(highest: u32) -> Version {
        Version { highest, levels: Levels::new(1..=highest, LEASE), in_force: 1, revision: 0 }
    }
}
