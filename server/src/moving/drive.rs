//! The thread that moves the store: shard after shard, again after trouble, until it is done, given up, or the server stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::store::ShardId;
use punctual_moving::{MoveError, Progress};
use punctual_node::{Handle, block_on};
use punctual_wire::{MoveState, ShardMoveState};

use super::account::Account;
use super::movable::Movable;
use crate::stores::SECRET;

/// The first wait before it is tried again, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How soon it is noticed that it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// What it takes to move a store under a server.
pub struct Drive {
    pub store: Arc<Movable>,
    pub account: Arc<Account>,
    pub handle: Handle,
    pub shards: u16,
    /// Vouches for leases, and goes along.
    pub secret: [u8; 32],
    /// Whether the server stops.
    pub is_ending: Arc<AtomicBool>,
    /// What the operator has to do when it is done.
    pub last_advice: String,
}

/// Why it does not go on.
enum Stop {
    /// Somebody wants it to end.
    Halted,
    /// It may be otherwise later.
    Trouble(String),
}

impl From<MoveError> for Stop {
    fn from(error: MoveError) -> Stop {
        match error {
            MoveError::Halted => Stop::Halted,
            error => Stop::Trouble(error.to_string()),
        }
    }
}

impl Drive {
    /// Moves all shards. A server that stops leaves the rest to the next one.
    pub fn run(&self) {
        let mut pause = PAUSE.0;
        while !self.is_ending.load(Ordering::SeqCst) {
            match self.go_on(&mut pause) {
                Ok(()) => return,
                Err(Stop::Halted) => continue,
                Err(Stop::Trouble(why)) => {
                    tracing::warn!(why, "moving the store has stopped for now; trying again");
                    self.account.change(|told| told.trouble = Some(why));
                }
            }
            self.wait(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Moves what is left, or gives it up if that is wanted.
    fn go_on(&self, pause: &mut Duration) -> Result<(), Stop> {
        let transit = &self.store.transit;
        if self.account.state() == Some(MoveState::Cancelling) {
            return self.give_up();
        }
        for shard in (0..self.shards).map(ShardId) {
            if transit.crossed().is_some_and(|crossed| crossed.contains(&shard)) {
                self.account.change_shard(shard, |told| told.state = ShardMoveState::Moved);
                continue;
            }
            self.move_shard(shard)?;
            *pause = PAUSE.0;
        }
        transit.finish(&[(SECRET, &self.secret)])?;
        self.account.close(MoveState::Moved, self.last_advice.clone());
        let told = self.account.look();
        let (from, to) = told.as_ref().map_or(("", ""), |told| (&told.from, &told.to));
        tracing::info!(from, to, "the store has been moved: {}", self.last_advice);
        Ok(())
    }

    fn move_shard(&self, shard: ShardId) -> Result<(), Stop> {
        let transit = &self.store.transit;
        self.account.change_shard(shard, |told| told.state = ShardMoveState::Copying);
        let watch = |progress: Progress| {
            let Progress { expected, copied, verified, .. } = progress;
            self.account
                .change_shard(shard, |told| (told.expected, told.copied, told.verified) = (expected, copied, verified));
        };
        let ahead = transit.copy_ahead(shard, &watch)?;
        if transit.is_halted() {
            return Err(Stop::Halted);
        }
        self.account.change_shard(shard, |told| told.state = ShardMoveState::HandingOver);
        let (store, begun) = (Arc::clone(&self.store), Instant::now());
        let handed = block_on(self.handle.set_aside(shard, move |tenure| store.transit.hand_over(ahead, tenure)));
        let pause = begun.elapsed();
        let handed = handed.map_err(|error| Stop::Trouble(error.to_string())).and_then(|handed| Ok(handed?));
        let report = handed.inspect_err(|_| {
            self.account.change_shard(shard, |told| told.state = ShardMoveState::Here);
        })?;
        let total = report.tables.total();
        let (rows, checksum) = (total.rows, format!("{:032x}", total.checksum));
        let millis = pause.as_millis() as u64;
        tracing::info!(
            shard = shard.0,
            rows,
            checksum,
            pause_ms = millis,
            "a shard has been moved, and is the same on both sides"
        );
        self.account.change(|told| told.trouble = None);
        self.account.change_shard(shard, |told| {
            told.state = ShardMoveState::Moved;
            (told.rows, told.checksum) = (Some(rows), Some(checksum));
            told.pause_micros = Some(pause.as_micros() as u64);
        });
        Ok(())
    }

    /// Leaves everything where it is, if nothing has been moved.
    fn give_up(&self) -> Result<(), Stop> {
        match self.store.transit.give_up() {
            Ok(()) => {
                let to = self.account.look().map_or(String::new(), |told| told.to);
                tracing::info!(to, "the move of the store was given up: everything is where it was");
                let advice = format!("everything is where it was; what was copied into {to} is of no use any more");
                self.account.close(MoveState::Cancelled, advice);
                Ok(())
            }
            Err(MoveError::TooLate { .. }) => {
                self.store.transit.go_on();
                self.account.change(|told| told.state = MoveState::Moving);
                Err(Stop::Halted)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a while, or until it is to end.
    fn wait(&self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time && !self.store.transit.is_halted() {
            thread::sleep(LOOK);
        }
    }
}
