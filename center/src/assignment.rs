//! What operators have said about who is to have which shard: an entry of the cluster, changed by compare-and-set.
//!
//! Its text has a line for each word of theirs, after one that names the form:
//! ```text
//! assignment 1
//! drain NODE
//! pin SHARD NODE
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use punctual_core::Name;
use punctual_core::store::ShardId;

/// The first line: another form has another number.
const FORM: &str = "assignment 1";

/// What operators have said about who is to have which shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Nodes that are to give their shards to others.
    pub drains: BTreeSet<Name>,
    /// Shards that are to be at a node, as long as it is there and is not drained.
    pub pins: BTreeMap<ShardId, Name>,
}

/// The entry was written by a newer version, or by something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what the store says of drains and pins cannot be read: {0:?}")]
pub struct UnreadableAssignment(String);

impl Assignment {
    /// The key of the entry.
    pub const KEY: &str = "assignment";

    /// Reads the entry.
    pub fn read(bytes: &[u8]) -> Result<Assignment, UnreadableAssignment> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if first != FORM {
            return Err(UnreadableAssignment(first.to_owned()));
        }
        let mut assignment = Assignment::default();
        for line in lines {
            assignment.take_in(line).ok_or_else(|| UnreadableAssignment(line.to_owned()))?;
        }
        Ok(assignment)
    }

    fn take_in(&mut self, line: &str) -> Option<()> {
        match line.split_once(' ')? {
            ("drain", node) => _ = self.drains.insert(Name::new(node).ok()?),
            ("pin", pin) => {
                let (shard, node) = pin.split_once(' ')?;
                self.pins.insert(ShardId(shard.parse().ok()?), Name::new(node).ok()?);
            }
            _ => return None,
        }
        Some(())
    }

    /// The entry as it is written.
    pub fn write(&self) -> String {
        let mut text = format!("{FORM}\n");
        let drains = self.drains.iter().try_for_each(|node| writeln!(text, "drain {node}"));
        let pins = self.pins.iter().try_for_each(|(shard, node)| writeln!(text, "pin {} {node}", shard.0));
        drains.and(pins).expect("a string takes all that is written");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_read_as_it_was_written() {
        let name = |text| Name::new(text).unwrap();
        let full = Assignment {
            drains: [name("a"), name("注文")].into(),
            pins: [(ShardId(7), name("b")), (ShardId(65_535), name("c-d"))].into(),
        };
        for assignment in [full, Assignment::default()] {
            assert_eq!(Assignment::read(assignment.write().as_bytes()), Ok(assignment));
        }
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        for text in
            ["", "assignment 2\n", "assignment 1\nfloat a\n", "assignment 1\npin x a\n", "assignment 1\ndrain\n"]
        {
            assert!(Assignment::read(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
