//! Moving a store while a server works on it.
//!
//! A [`Transit`] is the store that the server works on. As long as nothing is moved it passes everything on. Then its shards
//! cross over one after the other, each in two parts: the most of it is [copied](Transit::copy_ahead) while the shard is
//! in use, and it is noted which rows change meanwhile; then the shard is set aside for a moment, what has changed follows, and the shard
//! is [handed over](Transit::hand_over). Until the first one was, the move can be [given up](Transit::give_up).
//!
//! **Invariant**: which shards have crossed is noted in the source before anything is written to them in the target,
//! and from then on nothing is read or written of them in the source. So a server that is killed finds out where each is.

mod carrying;
mod course;
mod crossing;
mod tracking;
mod transit;

pub use carrying::Ahead;
pub use transit::Transit;

use punctual_core::store::Store;

use crate::marks::{self, Barred, Mark, Part};

/// A move that a server had begun and not finished, as the source notes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// Where to. Without that store, a part of the tasks may be missing.
    pub to: String,
    /// Whether shards have crossed already.
    pub has_crossed: bool,
}

/// The move of a store that a server has begun, if there is one.
pub fn under_way(store: &dyn Store) -> Result<Option<UnderWay>, Barred> {
    let mark = marks::read(store)?.mark.filter(|mark| mark.part == Part::Crossing);
    Ok(mark.map(|mark| UnderWay { to: mark.other, has_crossed: !mark.crossed.is_empty() }))
}

/// Gives up a move that a server before this one had begun and of which nothing has crossed: the store is in charge of
/// all its shards. For a server that cannot reach the other one, and has not claimed anything yet.
pub fn call_off(store: &dyn Store) -> Result<(), Barred> {
    let noted = marks::read(store)?;
    let stayed = noted.mark.as_ref().filter(|mark| mark.part == Part::Crossing && mark.is_void());
    if let Some(stayed) = stayed.map(|mark| Mark { part: Part::Stayed, ..mark.clone() }) {
        // If it is not this any more, whoever changed it is found when the shards are claimed.
        marks::write(store, &noted, Some(&stayed))?;
    }
    Ok(())
}
