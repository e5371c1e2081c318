//! What a move did.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::sum::{Sum, Sums};

/// What a move did.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Which move it was, as both stores note it.
    pub id: String,
    /// Where from.
    pub from: String,
    /// Where to.
    pub to: String,
    /// Whether it went on with one that had ended before its time.
    pub resumed: bool,
    /// All rows, which are the same on both sides.
    pub total: Sum,
    /// How many of them were written this time.
    pub copied: u64,
    /// How many entries of the cluster there are.
    pub entries: usize,
    /// How long it took this time.
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub took: Duration,
    /// Shard by shard.
    pub shards: Vec<ShardReport>,
}

/// What was done to one shard.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ShardReport {
    /// Its number.
    pub shard: u16,
    /// What its tables have, on both sides.
    pub tables: Sums,
    /// How many rows were written this time.
    pub copied: u64,
    /// How many counts are kept beside them.
    pub counts: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { from, to, total, copied, entries, took, shards, .. } = self;
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (copied, shards) = (counted(*copied, "row"), counted(shards.len() as u64, "shard"));
        writeln!(f, "moved {from} to {to}: {total}, the same on both sides")?;
        write!(
            f,
            "{copied} written and all read back in {:.1} s; {shards}, {entries} of the cluster's entries",
            took.as_secs_f64()
        )
    }
}

fn in_seconds<S: Serializer>(took: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(took.as_secs_f64())
}
