//! What a store knows of the moves it is part of: one entry of the cluster, changed by compare-and-set.
//!
//! ```text
//! source:  (none) ──► Leaving ──► Left            target:  (none) ──────────► Arriving ──► Arrived
//!             ▲          │                                    └─► Emptying ──────┘
//!             └──────────┘ a server took the source up again
//! ```
//! A server that is moved while it runs has marks of its own, since the rows of both stores count then: `Crossing`, with the
//! shards that are over there, and `Receiving`; and `Stayed`, if it was given up before the first shard had crossed.
//!
//! A mover notes `Leaving` before it claims, and a server looks after it has claimed. So of the two one learns of the
//! other: either the mover finds the server's shards, or the server takes the note back, and the mover's last word,
//! which makes `Left` of the very `Leaving` that it wrote, is refused.

use punctual_core::Timestamp;
use punctual_core::store::{Store, StoreError};
use serde::{Deserialize, Serialize};

/// The key of the entry.
pub const KEY: &str = "move";

/// What a store knows of the move it is part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Which move it is; the same in both stores.
    pub id: String,
    /// What the store is in it.
    pub part: Part,
    /// The other store, without secrets.
    pub other: String,
    /// Since when, in milliseconds since 1970.
    pub at: u64,
    /// The shards that are in the other one already, as ranges, if the store is moved while it is in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crossed: Vec<(u16, u16)>,
}

/// What a store is in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It is being copied, and nothing changes it meanwhile.
    Leaving,
    /// All that it has is in the other one, which is in charge.
    Left,
    /// What was here before is of no use any more and is being deleted, to make room for what comes.
    Emptying,
    /// It is being copied into.
    Arriving,
    /// All of the other one is here.
    Arrived,
    /// It was copied into, and the move was taken back: the other one is in charge.
    Abandoned,
    /// Its shards go over to the other one, one after the other, while a server works on both.
    Crossing,
    /// It takes the shards of the other one.
    Receiving,
    /// Its shards were to cross over, and the move was given up before the first one had: what the other one has of them is
    /// of no use.
    Stayed,
}

impl Mark {
    /// Whether the server that owns the store's shards may let another move begin: none is under way, or none of which
    /// anything has come.
    pub(crate) fn is_void(&self) -> bool {
        match self.part {
            Part::Arrived | Part::Leaving | Part::Stayed => true,
            Part::Crossing => self.crossed.is_empty(),
            Part::Left | Part::Emptying | Part::Arriving | Part::Abandoned | Part::Receiving => false,
        }
    }
}

/// A mark and the revision of its entry; zero if there never was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    pub mark: Option<Mark>,
    pub revision: u64,
}

/// Why a mark could not be read.
#[derive(Debug)]
pub(crate) enum Unread {
    Store(StoreError),
    Unreadable(String),
}

impl From<StoreError> for Unread {
    fn from(error: StoreError) -> Unread {
        Unread::Store(error)
    }
}

/// Reads the mark.
pub(crate) fn read(store: &dyn Store) -> Result<Noted, Unread> {
    let Some(entry) = store.cluster_get(KEY)? else { return Ok(Noted { mark: None, revision: 0 }) };
    // An entry cannot be removed: one that says nothing stands for none.
    let mark = if entry.value.is_empty() { Ok(None) } else { serde_json::from_slice(&entry.value).map(Some) };
    let mark = mark.map_err(|error| Unread::Unreadable(error.to_string()))?;
    Ok(Noted { mark, revision: entry.revision })
}

/// Writes the mark if it is still what was seen; nothing comes back if it is not. One that is there already counts as
/// written, since an answer may have been lost: ids are drawn, so nobody else writes the same.
pub(crate) fn write(store: &dyn Store, seen: &Noted, mark: Option<&Mark>) -> Result<Option<Noted>, Unread> {
    let value = mark.map_or(Vec::new(), |mark| serde_json::to_vec(mark).expect("a mark is text and numbers"));
    if let Ok(revision) = store.cluster_put(KEY, seen.revision, &value)? {
        return Ok(Some(Noted { mark: mark.cloned(), revision }));
    }
    let now = read(store)?;
    Ok((now.mark.as_ref() == mark).then_some(now))
}

/// Why a server must not work on a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Barred {
    /// Its tasks are elsewhere by now.
    #[error(
        "this store was moved to {to}, and its tasks are there now: set `store` to that one. docs/moving.md says how to \
         come back"
    )]
    Left {
        /// Where to.
        to: String,
        /// When.
        at: Timestamp,
    },
    /// Not all that is to come is there yet.
    #[error(
        "a move from {from} into this store is not finished: run the same `punctual store move` again, it continues"
    )]
    Arriving {
        /// Where from.
        from: String,
    },
    /// What is there is a copy that is not in charge.
    #[error("this store holds a copy of {from}, which is in charge again since the move was taken back: use {from}")]
    Abandoned {
        /// Where from.
        from: String,
    },
    /// Some of its shards are elsewhere by now.
    #[error(
        "this store is being moved to {to} by the server that runs on it: start that server again, and it continues the move"
    )]
    Crossing {
        /// Where to.
        to: String,
    },
    /// Some of the shards of another store are here by now.
    #[error(
        "{from} is being moved into this store while a server runs on it: start the server on {from}, it continues the move"
    )]
    Receiving {
        /// Where from.
        from: String,
    },
    /// What was noted cannot be read.
    #[error("this store has a note of a move that this version cannot read ({0}): use the version that began it")]
    Unreadable(String),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a server may work on a store. Asked before it begins to, so that it is refused early.
pub fn check(store: &dyn Store) -> Result<(), Barred> {
    verdict(&read(store)?).map(drop)
}

/// The same for a server that has claimed its shards and has not answered anybody yet: a move that was under way and was given up
/// is void from now on, since the store will change.
pub fn take_up(store: &dyn Store) -> Result<(), Barred> {
    loop {
        let noted = read(store)?;
        if !verdict(&noted)? || write(store, &noted, None)?.is_some() {
            return Ok(());
        }
    }
}

impl From<Unread> for Barred {
    fn from(unread: Unread) -> Barred {
        match unread {
            Unread::Store(error) => Barred::Store(error),
            Unread::Unreadable(why) => Barred::Unreadable(why),
        }
    }
}

/// Whether the mark has to be taken back by a server that works on the store.
fn verdict(noted: &Noted) -> Result<bool, Barred> {
    let Some(mark) = &noted.mark else { return Ok(false) };
    let other = mark.other.clone();
    match mark.part {
        Part::Arrived | Part::Stayed => Ok(false),
        Part::Leaving => Ok(true),
        Part::Left => Err(Barred::Left { to: other, at: Timestamp::from_millis(mark.at) }),
        Part::Emptying | Part::Arriving => Err(Barred::Arriving { from: other }),
        Part::Abandoned => Err(Barred::Abandoned { from: other }),
        Part::Crossing => Err(Barred::Crossing { to: other }),
        Part::Receiving => Err(Barred::Receiving { from: other }),
    }
}
