//! The node's one board, on which consumers wait, and the thread that sends those away whose time is over.
//!
//! Whoever waits does so by a clock that nobody sets: a step of the wall clock neither cuts a wait short nor draws it out.
//! Shards come to the board in their steps. The board has a thread of its own, so that nobody waits
//! longer because a shard is busy, or not here.

use std::sync::{Arc, PoisonError};

use punctual_core::store::ShardId;
use punctual_core::{Answer, Board, Clock, Reserve, Ticket, Timestamp};
use tokio::sync::oneshot;

use crate::caller::{Caller, Outcome, Served};
use crate::error::Error;
use crate::inbox::sleep_until;
use crate::shared::Shared;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::turn::Duty;

pub(crate) struct SharedBoard {
    posted: Mutex<Posted>,
    bell: Condvar,
}

pub(crate) struct Posted {
    pub waiting: Board<Caller>,
    /// When the board's thread wakes by itself.
    wakes_at: Timestamp,
    /// Why nobody may wait any more.
    closed: Option<Error>,
}

impl SharedBoard {
    pub fn new() -> SharedBoard {
        let posted = Posted { waiting: Board::default(), wakes_at: Timestamp::NEVER, closed: None };
        SharedBoard { posted: Mutex::new(posted), bell: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Posted> {
        lock(&self.posted)
    }
}

impl Shared {
    /// Lets a consumer wait, who may have to take a turn of a shard that looks what it has.
    pub fn post(
        self: &Arc<Shared>,
        mut reserve: Reserve,
        consumer: oneshot::Sender<Served>,
    ) -> Result<(Ticket, Option<Duty>), Error> {
        reserve.until = deadline(reserve.until, &*self.clock);
        let until = reserve.until;
        let mut board = self.board.lock();
        if let Some(error) = &board.closed {
            return Err(error.clone());
        }
        let posted = board.waiting.post(reserve, Caller::Consumer { sender: consumer, hold: None, span: self.span() });
        let mut over = Vec::new();
        if posted.ask.is_empty() {
            let now = time(&*self.clock);
            if until <= now {
                over = board.waiting.expire(now);
            }
        }
        let is_sooner = over.is_empty() && until < board.wakes_at;
        drop(board);
        if is_sooner {
            self.board.bell.notify_one();
        }
        let mut duty = None;
        for shard in &posted.ask {
            duty = Duty::of(self.inbox(*shard).look(), self, *shard);
        }
        self.send_away(over);
        Ok((posted.ticket, duty))
    }

    /// A shard is here and will look what it has.
    pub fn expect_shard(&self, shard: ShardId) {
        self.board.lock().waiting.expect(shard);
    }

    /// A shard is not here any more.
    pub fn forget_shard(&self, shard: ShardId) {
        let mut board = self.board.lock();
        board.waiting.forget_shard(shard);
        let over = board.waiting.expire(time(&*self.clock));
        drop(board);
        self.send_away(over);
    }

    /// Takes everybody off the board, and nobody is put on it any more.
    pub fn close_board(&self, why: &Error, last_word: impl Fn() -> Outcome) {
        let mut board = self.board.lock();
        board.closed.get_or_insert_with(|| why.clone());
        let waiting = board.waiting.withdraw_all();
        drop(board);
        self.board.bell.notify_one();
        for caller in waiting {
            self.answer(caller, last_word());
        }
    }

    fn send_away(&self, over: Vec<Caller>) {
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

/// What the board's thread does.
pub(crate) fn look_after(shared: &Arc<Shared>) {
    let mut board = shared.board.lock();
    while board.closed.is_none() {
        let now = time(&*shared.clock);
        let over = board.waiting.expire(now);
        if !over.is_empty() {
            drop(board);
            shared.send_away(over);
            board = shared.board.lock();
            continue;
        }
        board.wakes_at = board.waiting.next_deadline_after(now);
        let bell = &shared.board.bell;
        let wait = sleep_until(board.wakes_at, shared.clock.steady_micros());
        // Somebody has to look at the wall clock now and then, so that a step of it is noticed while all others sleep.
        let wait = wait.map_or(shared.config.recheck, |wait| wait.min(shared.config.recheck));
        board = bell.wait_timeout(board, wait).unwrap_or_else(PoisonError::into_inner).0;
        _ = shared.clock.now();
    }
}
