//! Bringing everything from one store into another: while no server runs (`stopped.rs`), and under a server that
//! goes on (`live.rs`, `drive.rs`). What is copied and verified, and how, is in `punctual-moving`.

mod account;
mod args;
mod drive;
mod live;
mod movable;
mod place;
mod stopped;

pub use args::MoveArgs;
pub use live::{Driven, LiveMover};
pub use movable::Movable;
pub use place::Place;
pub use stopped::progress_bar;

use punctual_core::store::Store;
use punctual_moving::marks::{self, Barred};

use crate::failure::Failure;

/// Whether a server may begin to work on a store.
pub fn check(store: &dyn Store) -> Result<(), Failure> {
    marks::check(store).map_err(failure)
}

/// The same once it has claimed its shards, and has not answered anybody: a move that was given up is void from now on.
pub fn take_up(store: &dyn Store) -> Result<(), Failure> {
    marks::take_up(store).map_err(failure)
}

pub fn failure(barred: Barred) -> Failure {
    match barred {
        Barred::Store(error) => Failure::failed(error),
        barred => Failure::Usage(barred.to_string()),
    }
}
