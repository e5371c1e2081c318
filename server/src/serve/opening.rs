//! Opening the store, and waiting for one that is not there yet, or has gone before the server has started: where everything
//! is started together, a database often comes up after those who use it. If the store was being moved when the server ended, also
//! the one it was moved into.

use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_core::Name;
use punctual_moving::live::{UnderWay, call_off, under_way};
use punctual_wire::Span;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::signals::Signals;
use crate::failure::Failure;
use crate::moving::{self, Movable, Place};
use crate::stores::{Opened, Opening, Storage, Unopened, chosen, roll, users};

/// How long to wait before the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// Opens the store; `None` if a signal says to stop before it could be reached.
pub fn open(
    storage: &dyn Storage,
    opening: &Opening<'_>,
    runtime: &Runtime,
    signals: &mut Signals,
) -> Result<Option<Opened>, Failure> {
    until_reached(opening.config.store.wait, runtime, signals, || storage.open(opening))
}

/// Tries something for which the store has to be reached, until it is; `None` if a signal says to stop before.
pub fn until_reached<T>(
    wait: Span,
    runtime: &Runtime,
    signals: &mut Signals,
    attempt: impl Fn() -> Result<T, Unopened>,
) -> Result<Option<T>, Failure> {
    let begun = Instant::now();
    let mut told = String::new();
    loop {
        let why = match attempt() {
            Ok(done) => return Ok(Some(done)),
            Err(Unopened::Failed(failure)) => return Err(failure),
            Err(Unopened::Away(why)) => why,
        };
        if begun.elapsed() + PAUSE > wait.as_duration() {
            return Err(gave_up(&why, wait));
        }
        if told != why {
            tracing::warn!(why, "the store cannot be reached yet; trying again for `store.wait` ({wait})");
            told = why;
        }
        let stop = runtime.block_on(async { timeout(PAUSE, signals.next_stop()).await });
        if let Ok(signal) = stop {
            tracing::info!(signal, "stopping: the store was not reached, and nothing was started");
            return Ok(None);
        }
    }
}

/// Takes up a move that an earlier life of the server had begun; says where to, if there was one. `None` if a signal says to
/// stop before the other store could be reached.
///
/// As long as no shard has crossed, the server does not need the other store, and starts without it: the move is given up then.
pub fn resume(
    store: &Movable,
    opening: &Opening<'_>,
    runtime: &Runtime,
    signals: &mut Signals,
) -> Result<Option<Option<Place>>, Failure> {
    let Some(UnderWay { to, has_crossed }) = under_way(&*store.home).map_err(moving::failure)? else {
        return Ok(Some(None));
    };
    keep_out_of(store, &opening.config.node.name, &to)?;
    let mut place = Place::read(&to, opening.config)?.into_target(&opening.config.store, None);
    if !has_crossed {
        place.config.store.wait = Span(0);
    }
    match open_other(store, &place, opening, runtime, signals) {
        Ok(is_open) => Ok(is_open.then_some(Some(place))),
        Err(failure) if has_crossed => Err(Failure::Failed(format!(
            "the store is being moved to {to}, and shards of it are there already, but the move does not go on: {failure}. If a \
             password was given when it was begun, give it by PUNCTUAL_STORE_MOVING_TO_PASSWORD or \
             `store.moving_to_password_file`"
        ))),
        Err(failure) => {
            tracing::error!(to, %failure, "the store was about to be moved, which is given up: nothing was moved yet, and the other store cannot be used");
            call_off(&*store.home).map_err(moving::failure)?;
            Ok(Some(None))
        }
    }
}

/// Opens the other store, and puts both together; says whether that was done before a signal said to stop.
fn open_other(
    store: &Movable,
    place: &Place,
    opening: &Opening<'_>,
    runtime: &Runtime,
    signals: &mut Signals,
) -> Result<bool, Failure> {
    let other = Opening { config: &place.config, clock: Arc::clone(&opening.clock), is_forced: false };
    let Some(opened) = open(chosen(&place.config)?, &other, runtime, signals)? else { return Ok(false) };
    store.transit.resume(opened.store, &place.name).map_err(Failure::failed)?;
    store.set_other(opened.face);
    Ok(true)
}

/// Refuses to take up a move that another server carries out.
fn keep_out_of(store: &Movable, me: &Name, to: &str) -> Result<(), Failure> {
    let users = users(&roll(&*store.home)?);
    match users.iter().find(|user| *user != me.as_str()) {
        Some(other) => Err(Failure::Failed(format!(
            "the store is being moved to {to} under server {other}: start this one on the other store when that is over"
        ))),
        None => Ok(()),
    }
}

fn gave_up(why: &str, wait: Span) -> Failure {
    Failure::Failed(format!("the store cannot be reached: {why}; gave up after `store.wait` ({wait})"))
}
