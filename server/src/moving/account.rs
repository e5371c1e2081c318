//! An account of a move under the server, for whoever asks how far it is.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_core::store::ShardId;
use punctual_wire::{MoveState, ShardMove, ShardMoveState, StoreMove, Time};

/// What is told of a move: of the one that is under way, or of the last one.
#[derive(Default)]
pub struct Account {
    told: Mutex<Option<StoreMove>>,
    changed: Condvar,
}

impl Account {
    /// A move has begun. What is told of it is told anew.
    pub fn open(&self, from: &str, to: &str, shards: u16, advice: String) -> StoreMove {
        let shard = |shard| ShardMove {
            shard,
            state: ShardMoveState::Here,
            expected: 0,
            copied: 0,
            verified: 0,
            rows: None,
            checksum: None,
            pause_micros: None,
        };
        let told = StoreMove {
            state: MoveState::Moving,
            from: from.to_owned(),
            to: to.to_owned(),
            begun_at: Time::now(),
            ended_at: None,
            shards: (0..shards).map(shard).collect(),
            trouble: None,
            advice,
        };
        *self.lock() = Some(told.clone());
        told
    }

    pub fn look(&self) -> Option<StoreMove> {
        self.lock().clone()
    }

    /// What is being done, if there was a move.
    pub fn state(&self) -> Option<MoveState> {
        self.lock().as_ref().map(|told| told.state)
    }

    /// Something of the move is otherwise.
    pub fn change(&self, change: impl FnOnce(&mut StoreMove)) {
        if let Some(told) = self.lock().as_mut() {
            change(told);
        }
        self.changed.notify_all();
    }

    /// Something of one of its shards is otherwise.
    pub fn change_shard(&self, shard: ShardId, change: impl FnOnce(&mut ShardMove)) {
        self.change(|told| change(&mut told.shards[usize::from(shard.0)]));
    }

    /// It is over.
    pub fn close(&self, state: MoveState, advice: String) {
        self.change(|told| {
            (told.state, told.ended_at, told.trouble, told.advice) = (state, Some(Time::now()), None, advice);
        });
    }

    /// Waits as long as it is being given up, and no longer than this.
    pub fn wait_while_cancelling(&self, time: Duration) -> Option<StoreMove> {
        let is_cancelling =
            |told: &mut Option<StoreMove>| told.as_ref().is_some_and(|told| told.state == MoveState::Cancelling);
        let waited = self.changed.wait_timeout_while(self.lock(), time, is_cancelling);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<StoreMove>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
