//! Moving the store under the server: `store.moving_to` says where to. It begins when the server is up, goes on after a
//! restart, and when it is done the server works on the other store.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use punctual_core::Clock;
use punctual_core::store::{ShardId, Store};
use punctual_moving::MoveError;
use punctual_moving::live::target_of;
use punctual_node::{Handle, block_on};

use super::failure;
use super::movable::Movable;
use super::place::Place;
use crate::config::{Config, StoreUrl};
use crate::failure::Failure;
use crate::stores::{Opened, SECRET, Unopened};

/// The first wait before a step is tried again, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How soon it is noticed that the server stops.
const LOOK: Duration = Duration::from_millis(50);

/// A store that is to be moved while the server runs.
pub struct LiveMove {
    pub store: Arc<Movable>,
    from: String,
    to: String,
    secret: [u8; 32],
}

impl LiveMove {
    /// Opens the store that the settings say to move into, and puts both together. A move that was under way goes on.
    pub fn prepare(config: &Config, to: &StoreUrl, home: &Opened, clock: Arc<dyn Clock>) -> Result<LiveMove, Unopened> {
        let mut other = config.clone();
        other.store.url = to.clone();
        let settings = &config.store;
        let to = Place::of(other)
            .with_password(settings.moving_to_password.clone(), settings.moving_to_password_file.clone());
        let from = Place::of(config.clone()).name;
        let opened = to.open(clock)?;
        let transit = punctual_moving::live::Transit::new(Arc::clone(&home.store) as Arc<dyn Store>, &from);
        if target_of(&*home.store).map_err(failure)?.is_some() {
            let resumed = transit.resume(Arc::clone(&opened.store) as Arc<dyn Store>, &to.name);
            resumed.map_err(|error| Unopened::Failed(Failure::Usage(error.to_string())))?;
        }
        let store = Arc::new(Movable { transit, home: Arc::clone(&home.store), to: opened.store });
        Ok(LiveMove { store, from, to: to.name, secret: home.secret })
    }

    /// Whether some shards may be in the other store already.
    pub fn is_under_way(&self) -> bool {
        self.store.transit.crossed().is_some()
    }

    /// Moves all shards in a thread of its own.
    pub fn start(self, handle: Handle, shards: u16) -> Moving {
        let store = Arc::clone(&self.store);
        let moving = thread::Builder::new().name("punctual-move".to_owned()).spawn(move || self.run(&handle, shards));
        if let Err(error) = &moving {
            tracing::error!(%error, "cannot start the thread that moves the store; it is not moved");
        }
        Moving { store, thread: moving.ok() }
    }

    fn run(&self, handle: &Handle, shards: u16) {
        let mut pause = PAUSE.0;
        loop {
            match self.try_to_move(handle, shards, &mut pause) {
                Ok(()) => {
                    let (from, to) = (&self.from, &self.to);
                    return tracing::info!(
                        from,
                        to,
                        "the store has been moved: set `store` to the new one, and remove `store.moving_to`"
                    );
                }
                Err(Trouble::Ending) => return,
                Err(Trouble::Final(error)) => {
                    return tracing::error!(error, "the store cannot be moved; the server goes on where its tasks are");
                }
                Err(Trouble::Passing(error)) => {
                    tracing::warn!(error, "moving the store has stopped for now; trying again");
                }
            }
            if !self.wait(pause) {
                return;
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Waits for a while; says whether to go on.
    fn wait(&self, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time && !self.store.transit.has_ended() {
            thread::sleep(LOOK);
        }
        !self.store.transit.has_ended()
    }

    fn try_to_move(&self, handle: &Handle, shards: u16, pause: &mut Duration) -> Result<(), Trouble> {
        let transit = &self.store.transit;
        if transit.crossed().is_none() {
            transit.begin(Arc::clone(&self.store.to) as Arc<dyn Store>, &self.to)?;
            tracing::info!(from = self.from, to = self.to, shards, "moving the store while the server runs");
        }
        for shard in (0..shards).map(ShardId) {
            if transit.crossed().is_some_and(|crossed| crossed.contains(&shard)) {
                continue;
            }
            let ahead = transit.copy_ahead(shard, &|_| {})?;
            let store = Arc::clone(&self.store);
            let handed = block_on(handle.set_aside(shard, move |tenure| store.transit.hand_over(ahead, tenure)));
            let report = handed.map_err(|error| Trouble::Passing(error.to_string()))??;
            let total = report.tables.total();
            let (rows, checksum) = (total.rows, format!("{:032x}", total.checksum));
            tracing::info!(shard = shard.0, rows, checksum, "a shard has been moved, and is the same on both sides");
            *pause = PAUSE.0;
        }
        transit.finish(&[(SECRET, &self.secret)])?;
        Ok(())
    }
}

/// Why a move does not go on.
enum Trouble {
    /// The server stops.
    Ending,
    /// It may be otherwise later.
    Passing(String),
    /// Somebody has to do something.
    Final(String),
}

impl From<MoveError> for Trouble {
    fn from(error: MoveError) -> Trouble {
        match error {
            MoveError::Ended => Trouble::Ending,
            MoveError::Store { .. }
            | MoveError::Overtaken { .. }
            | MoveError::Busy { .. }
            | MoveError::Differs { .. } => Trouble::Passing(error.to_string()),
            error => Trouble::Final(error.to_string()),
        }
    }
}

/// A move that is under way in its thread.
pub struct Moving {
    store: Arc<Movable>,
    thread: Option<JoinHandle<()>>,
}

impl Moving {
    /// Ends it, since the server stops: the next one goes on.
    pub fn end(mut self) {
        self.store.transit.end();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            _ = thread.join();
        }
    }
}
