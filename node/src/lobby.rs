//! The lobby: the board on which consumers wait, and the usher who sends home those whose time is over.
//!
//! Whoever waits does so by a clock that nobody sets: a step of the wall clock neither cuts a wait short nor draws it out.
//! Shards come to the board in their steps. The usher is a thread of its own, so that nobody waits
//! longer because a shard is busy, or not here.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use punctual_core::store::ShardId;
use punctual_core::{Answer, Board, Clock, Reserve, Ticket, Timestamp};
use tokio::sync::oneshot;

use crate::caller::{Caller, Handed, Outcome};
use crate::error::Error;
use crate::inbox::sleep_until;
use crate::lock::lock;
use crate::shared::Shared;
use crate::turn::Duty;

pub(crate) struct Lobby {
    room: Mutex<Room>,
    bell: Condvar,
}

pub(crate) struct Room {
    pub board: Board<Caller>,
    usher_wakes: Timestamp,
    /// Why nobody may come in any more.
    closed: Option<Error>,
}

impl Lobby {
    pub fn new() -> Lobby {
        let room = Room { board: Board::default(), usher_wakes: Timestamp::NEVER, closed: None };
        Lobby { room: Mutex::new(room), bell: Condvar::new() }
    }

    pub fn room(&self) -> MutexGuard<'_, Room> {
        lock(&self.room)
    }
}

impl Shared {
    /// Lets a consumer wait, who may have to take a turn of a shard that looks what it has.
    pub fn post(
        self: &Arc<Shared>,
        mut reserve: Reserve,
        consumer: oneshot::Sender<Handed>,
    ) -> Result<(Ticket, Option<Duty>), Error> {
        reserve.until = deadline(reserve.until, &*self.clock);
        let until = reserve.until;
        let mut room = self.lobby.room();
        if let Some(error) = &room.closed {
            return Err(error.clone());
        }
        let posted = room.board.post(reserve, Caller::Consumer { sender: consumer, hold: None });
        let mut over = Vec::new();
        if posted.ask.is_empty() {
            let now = time(&*self.clock);
            if until <= now {
                over = room.board.expire(now);
            }
        }
        let call_usher = over.is_empty() && until < room.usher_wakes;
        drop(room);
        if call_usher {
            self.lobby.bell.notify_one();
        }
        let mut duty = None;
        for shard in &posted.ask {
            duty = Duty::of(self.inbox(*shard).look(), self, *shard);
        }
        self.send_home(over);
        Ok((posted.ticket, duty))
    }

    /// A shard is here and will look what it has.
    pub fn expect_shard(&self, shard: ShardId) {
        self.lobby.room().board.expect(shard);
    }

    /// A shard is not here any more.
    pub fn forget_shard(&self, shard: ShardId) {
        let mut room = self.lobby.room();
        room.board.forget_shard(shard);
        let over = room.board.expire(time(&*self.clock));
        drop(room);
        self.send_home(over);
    }

    /// Takes everybody off the board, and nobody comes in any more.
    pub fn close_lobby(&self, why: &Error, last_word: impl Fn() -> Outcome) {
        let mut room = self.lobby.room();
        room.closed.get_or_insert_with(|| why.clone());
        let waiting = room.board.withdraw_all();
        drop(room);
        self.lobby.bell.notify_one();
        for caller in waiting {
            self.answer(caller, last_word());
        }
    }

    fn send_home(&self, over: Vec<Caller>) {
        for caller in over {
            self.answer(caller, Ok(Answer::Reserved(Vec::new())));
        }
    }
}

/// The time by which consumers wait.
pub(crate) fn time(clock: &dyn Clock) -> Timestamp {
    Timestamp::from_millis(clock.steady_micros() / 1_000)
}

/// The end of a wait until an instant of the wall clock, by the clock by which consumers wait; never too soon.
fn deadline(until: Timestamp, clock: &dyn Clock) -> Timestamp {
    if until == Timestamp::NEVER {
        return until;
    }
    // The wall clock first: should it take a while until the other is read, the wait is so much longer.
    match (until.as_millis() * 1_000).saturating_sub(clock.micros()) {
        0 => time(clock),
        left => Timestamp::from_millis((clock.steady_micros() + left).div_ceil(1_000)),
    }
}

/// What the usher does.
pub(crate) fn usher(shared: &Arc<Shared>) {
    let mut room = shared.lobby.room();
    while room.closed.is_none() {
        let now = time(&*shared.clock);
        let over = room.board.expire(now);
        if !over.is_empty() {
            drop(room);
            shared.send_home(over);
            room = shared.lobby.room();
            continue;
        }
        room.usher_wakes = room.board.next_deadline_after(now);
        let bell = &shared.lobby.bell;
        let wait = sleep_until(room.usher_wakes, shared.clock.steady_micros());
        // Somebody has to look at the wall clock now and then, so that a step of it is noticed while all others sleep.
        let wait = wait.map_or(shared.config.recheck, |wait| wait.min(shared.config.recheck));
        room = bell.wait_timeout(room, wait).unwrap_or_else(PoisonError::into_inner).0;
        _ = shared.clock.now();
    }
}
