//! Bringing everything from one store into another: while no server runs (`punctual store move`), and under a server that
//! goes on (`store.moving_to`). What is copied and verified, and how, is in `punctual-moving`.

mod live;
mod movable;
mod place;
mod stopped;

pub use live::LiveMove;
pub use stopped::MoveArgs;

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

fn failure(barred: Barred) -> Failure {
    match barred {
        Barred::Store(error) => Failure::failed(error),
        barred => Failure::Usage(barred.to_string()),
    }
}
