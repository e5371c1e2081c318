//! The node's one board, on which consumers wait, and the thread that sends those away whose time is over.
//!
//! Whoever waits does so by a clock that nobody sets: a step of the wall clock neither cuts a wait short nor draws it out.
//! Shards come to the board in their steps. The board has a thread of its own, so that nobody waits
//! longer because a shard is busy, or not here.

use std::sync::{Arc, PoisonError};

use punctual_center::Lending;
use punctual_core::store::ShardId;
use punctual_core::{Answer, Board, Clock, Reserve, Ticket, Timestamp};
use tokio::sync::oneshot;

use crate::caller::{Caller, Outcome, Served};
use crate::error::Error;
use crate::inbox::sleep_until;
use crate::lending::Aftermath;
use crate::shared::Shared;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::turn::Duty;

pub(crate) struct SharedBoard {
    posted: Mutex<Posted>,
    bell: Condvar,
}

pub(crate) struct Posted {
    pub waiting: Board<Caller>,
    /// Who of them is lent to other nodes, and who comes from those.
    pub lending: Lending<Caller>,
    /// When the board's thread wakes by itself.
    pub wakes_at: Timestamp,
    /// Why nobody may wait any more.
    closed: Option<Error>,
}

impl SharedBoard {
    /// The board of a node that is alone on its store, or one of several.
    pub fn new(is_alone: bool) -> SharedBoard {
        let (mut waiting, lending) = (Board::default(), Lending::default());
        if !is_alone {
            waiting.share_rates();
        }
        let posted = Posted { waiting, lending, wakes_at: Timestamp::NEVER, closed: None };
        SharedBoard { posted: Mutex::new(posted), bell: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Posted> {
        lock(&self.posted)
    }

    /// Whether nobody may wait any more.
    pub fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    /// Wakes the board's thread.
    pub fn ring(&self) {
        self.bell.notify_one();
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
        let (mut over, mut after) = (Vec::new(), Aftermath::default());
        if posted.ask.is_empty() || !board.lending.is_alone() {
            let now = time(&*self.clock);
            after = board.see_to_lending(self, now);
            if until <= now {
                over = board.waiting.expire(now);
            }
        }
        let is_sooner = over.is_empty() && until < board.wakes_at;
        drop(board);
        if is_sooner {
            self.board.ring();
        }
        self.clear_up(after);
        let mut duty = None;
        for shard in &posted.ask {
            duty = Duty::of(self.inbox(*shard).look(), self, *shard);
        }
        self.send_away(over);
        Ok((posted.ticket, duty))
    }

    /// Takes a consumer off the board, and calls it back if it is lent; says whether it was there.
    pub fn withdraw(&self, ticket: Ticket) -> bool {
        let mut board = self.board.lock();
        let withdrawn = board.waiting.withdraw(ticket);
        let mut after = Aftermath::default();
        if !board.lending.is_alone() {
            board.lending.withdrawn(ticket);
            after = board.see_to_lending(self, time(&*self.clock));
        }
        drop(board);
        self.clear_up(after);
        withdrawn.is_some()
    }

    /// A shard is here and will look what it has.
    pub fn expect_shard(&self, shard: ShardId) {
        self.board.lock().waiting.expect(shard);
    }

    /// A shard is not here any more.
    pub fn forget_shard(&self, shard: ShardId) {
        self.entrances.forget_shard(shard);
        let mut board = self.board.lock();
        board.waiting.forget_shard(shard);
        let now = time(&*self.clock);
        let after = board.see_to_lending(self, now);
        let over = board.waiting.expire(now);
        drop(board);
        self.clear_up(after);
        self.send_away(over);
    }

    /// Takes everybody off the board, and nobody is put on it any more.
    pub fn close_board(&self, why: &Error, last_word: impl Fn() -> Outcome) {
        let mut board = self.board.lock();
        board.closed.get_or_insert_with(|| why.clone());
        let waiting = board.waiting.withdraw_all();
        drop(board);
        self.board.ring();
        for caller in waiting {
            self.answer(caller, last_word());
        }
    }

    pub fn send_away(&self, over: Vec<Caller>) {
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
        let after = board.see_to_lending(shared, now);
        let over = board.waiting.expire(now);
        if !over.is_empty() || !after.is_empty() {
            drop(board);
            shared.clear_up(after);
            shared.send_away(over);
            board = shared.board.lock();
            continue;
        }
        board.wakes_at = board.waiting.next_deadline_after(now).min(board.lending.wakes_at());
        let bell = &shared.board.bell;
        let wait = sleep_until(board.wakes_at, shared.clock.steady_micros());
        // Somebody has to look at the wall clock now and then, so that a step of it is noticed while all others sleep.
        let wait = wait.map_or(shared.config.recheck, |wait| wait.min(shared.config.recheck));
        board = bell.wait_timeout(board, wait).unwrap_or_else(PoisonError::into_inner).0;
        _ = shared.clock.now();
    }
}
