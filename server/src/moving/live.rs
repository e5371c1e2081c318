//! Moving the store under the server, for whoever asks for it: begins, says how far it is, gives up. A move that an earlier
//! life of the server had begun goes on by itself.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_core::Clock;
use punctual_http::{MoveRefused, Mover};
use punctual_moving::MoveError;
use punctual_node::Handle;
use punctual_wire::{MoveState, MoveStore, ShardMoveState, StoreMove};

use super::account::Account;
use super::drive::Drive;
use super::movable::Movable;
use super::place::Place;
use crate::config::Config;
use crate::failure::Failure;
use crate::stores::Unopened;

/// How long somebody who gives a move up is kept waiting for its end.
const LAST_WORD: Duration = Duration::from_secs(20);

/// The server, as far as moving its store is concerned.
pub struct LiveMover {
    pub config: Config,
    pub store: Arc<Movable>,
    pub clock: Arc<dyn Clock>,
    pub handle: Handle,
    pub shards: u16,
    /// Vouches for leases.
    pub secret: [u8; 32],
    pub state: Driven,
}

/// The thread that moves it, and what it says.
#[derive(Default)]
pub struct Driven {
    account: Arc<Account>,
    is_ending: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held while a move begins: there is one at a time.
    beginning: Mutex<()>,
}

impl LiveMover {
    /// Goes on with a move that the store is in already.
    pub fn go_on(&self, to: &Place) {
        let advice = "the move goes on after a restart. Until it is done, both stores are needed".to_owned();
        _ = self.drive(to, advice);
    }

    /// Ends what is under way, since the server stops: the next one goes on.
    pub fn end(&self) {
        self.state.is_ending.store(true, Ordering::SeqCst);
        self.store.transit.halt();
        let thread = self.state.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A thread that panicked has said so.
        _ = thread.map(JoinHandle::join);
    }

    fn from(&self) -> String {
        Place::of(self.config.clone()).name
    }

    /// Opens the other store, and puts both together.
    fn set_out(&self, to: &Place, afresh: bool) -> Result<(), MoveRefused> {
        let other = to.open(Arc::clone(&self.clock)).map_err(|unopened| unopenable(to, unopened))?;
        let begun = self.store.transit.begin(other.store, &to.name, afresh);
        begun.map_err(|error| MoveRefused::Unusable(unusable(&error)))?;
        self.store.set_other(other.face);
        Ok(())
    }

    /// Lets a thread move all shards.
    fn drive(&self, to: &Place, advice: String) -> StoreMove {
        let from = self.from();
        tracing::info!(from, to = to.name, shards = self.shards, "moving the store while the server runs");
        let told = self.state.account.open(&from, &to.name, self.shards, advice);
        let drive = Drive {
            store: Arc::clone(&self.store),
            account: Arc::clone(&self.state.account),
            handle: self.handle.clone(),
            shards: self.shards,
            secret: self.secret,
            is_ending: Arc::clone(&self.state.is_ending),
            last_advice: to.advice(&from),
        };
        let thread = thread::Builder::new().name("punctual-move".to_owned()).spawn(move || drive.run());
        match thread {
            Ok(thread) => *self.state.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread),
            Err(error) => {
                tracing::error!(%error, "cannot start the thread that moves the store; a restart tries again");
                let trouble = format!("the system gives no thread ({error}): restart the server");
                self.state.account.change(|told| told.trouble = Some(trouble));
            }
        }
        told
    }
}

impl Mover for LiveMover {
    fn begin(&self, wanted: &MoveStore) -> Result<StoreMove, MoveRefused> {
        let to = target(&wanted.to, &self.config)?;
        let beginning = self.state.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = self.look() {
            match told.state {
                MoveState::Moving if told.to == to.name => return Ok(told),
                MoveState::Moving | MoveState::Cancelling => {
                    return Err(MoveRefused::UnderWay(format!("the store is being moved to {} already", told.to)));
                }
                MoveState::Moved => {
                    let why = format!("the store has been moved to {}: restart the server on that one first", told.to);
                    return Err(MoveRefused::UnderWay(why));
                }
                MoveState::Cancelled => self.store.transit.go_on(),
            }
        }
        if let Some(other) = self.handle.others().first() {
            let why = format!(
                "server {other} works on this store too, and a move under a server needs it to be alone: stop the others first"
            );
            return Err(MoveRefused::Unusable(why));
        }
        self.set_out(&to, wanted.afresh)?;
        let mut advice =
            "until it is done, both stores are needed. A server that is restarted meanwhile goes on by itself"
                .to_owned();
        if to.config.store.url.has_password() {
            advice +=
                ", if it finds the password in PUNCTUAL_STORE_MOVING_TO_PASSWORD or `store.moving_to_password_file`";
        }
        let told = self.drive(&to, advice);
        drop(beginning);
        Ok(told)
    }

    fn look(&self) -> Option<StoreMove> {
        self.state.account.look()
    }

    fn cancel(&self) -> Result<StoreMove, MoveRefused> {
        let too_late = |told: &StoreMove| {
            let moved = told.shards.iter().filter(|shard| shard.state == ShardMoveState::Moved).count();
            let (shards, to) = (told.shards.len(), &told.to);
            let what =
                format!("{moved} of {shards} shards are in {to} already: let it finish, and move back if you have to");
            MoveRefused::TooLate(what)
        };
        let told = self.look().ok_or(MoveRefused::NoMove)?;
        match told.state {
            MoveState::Cancelled => return Ok(told),
            MoveState::Moved => return Err(too_late(&told)),
            MoveState::Moving if told.shards.iter().any(|shard| shard.state == ShardMoveState::Moved) => {
                return Err(too_late(&told));
            }
            MoveState::Moving => self.state.account.change(|told| told.state = MoveState::Cancelling),
            MoveState::Cancelling => {}
        }
        self.store.transit.halt();
        match self.state.account.wait_while_cancelling(LAST_WORD) {
            Some(told) if matches!(told.state, MoveState::Moving | MoveState::Moved) => Err(too_late(&told)),
            told => told.ok_or(MoveRefused::NoMove),
        }
    }
}

/// The store that somebody wants to move into.
fn target(text: &str, config: &Config) -> Result<Place, MoveRefused> {
    let is_complete =
        text.contains("://") || text.strip_prefix("almanac:").is_some_and(|path| Path::new(path).is_absolute());
    if !is_complete {
        let forms = "write the URL of a database, or `almanac:/PATH` for a data directory on the server's machine";
        return Err(MoveRefused::Invalid(forms.to_owned()));
    }
    match Place::read(text, config) {
        Ok(place) => Ok(place.into_target(&config.store, None)),
        Err(Failure::Usage(why) | Failure::Failed(why)) => Err(MoveRefused::Invalid(why)),
    }
}

fn unopenable(to: &Place, unopened: Unopened) -> MoveRefused {
    match unopened.into_failure() {
        Failure::Usage(why) => MoveRefused::Invalid(why),
        Failure::Failed(why) => MoveRefused::Unusable(format!("{} cannot be opened: {why}", to.name)),
    }
}

/// Why it did not begin; the same may be said again.
fn unusable(error: &MoveError) -> String {
    match error {
        MoveError::Store { place, error } => format!("{place}: {error}. Nothing was begun"),
        error => error.to_string(),
    }
}
