//! What waits to be written on a link: laid out as the frame that it will be, bounded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual_center::Why;
use tokio::sync::Notify;

use crate::forms::{Formed, MOST_MESSAGES};
use crate::frame::{self, HEAD};
use crate::settings::Room;

/// A buffer that has grown beyond this for once is not kept.
const KEPT: usize = 1 << 20;

/// What waits on one link.
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    room: Room,
    /// There is something to write, or nothing more to come.
    pub(crate) changed: Notify,
}

struct Waiting {
    bundle: Bundle,
    pong: Option<[u8; 8]>,
    mood: Mood,
}

/// Messages on their way, as a frame that lacks its seal.
pub(crate) struct Bundle {
    pub(crate) frame: Vec<u8>,
    pub(crate) messages: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Open,
    /// What waits is written, and then the link is closed.
    Closing,
    Closed,
}

/// What the writer has to do next.
pub(crate) enum Next {
    Pong([u8; 8]),
    Messages(Bundle),
    Nothing,
    /// Hang up.
    End,
}

impl Bundle {
    fn empty() -> Bundle {
        Bundle { frame: frame::blank(), messages: 0 }
    }
}

impl Outbox {
    pub(crate) fn new(room: Room) -> Outbox {
        let waiting = Waiting { bundle: Bundle::empty(), pong: None, mood: Mood::Open };
        let room = Room { messages: room.messages.min(MOST_MESSAGES), ..room };
        Outbox { waiting: Mutex::new(waiting), room, changed: Notify::new() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one more message, or says why not. For one that no frame can hold there is never room.
    pub(crate) fn put(&self, message: &Formed) -> Result<(), Why> {
        let mut waiting = self.waiting();
        if waiting.mood != Mood::Open {
            return Err(Why::Gone);
        }
        if message.bytes() > frame::LONGEST {
            return Err(Why::Full);
        }
        let bundle = &mut waiting.bundle;
        let bytes = bundle.frame.len() - HEAD + message.bytes();
        if bundle.messages > 0 && (bundle.messages == self.room.messages || bytes > self.room.bytes) {
            return Err(Why::Full);
        }
        message.append_to(&mut bundle.frame);
        bundle.messages += 1;
        if bundle.messages == 1 {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Whether so much waits that what can be left out should be.
    pub(crate) fn is_congested(&self) -> bool {
        let bundle = &self.waiting().bundle;
        bundle.frame.len() > self.room.bytes / 4 || bundle.messages > self.room.messages / 4
    }

    /// Sends a ping back.
    pub(crate) fn pong(&self, ping: [u8; 8]) {
        self.waiting().pong = Some(ping);
        self.changed.notify_one();
    }

    /// Takes out what is to be written next; the buffer of what was written before serves again.
    pub(crate) fn next(&self, spare: &mut Vec<u8>) -> Next {
        let mut waiting = self.waiting();
        if let Some(ping) = waiting.pong.take() {
            return Next::Pong(ping);
        }
        if waiting.mood == Mood::Closed {
            return Next::End;
        }
        if waiting.bundle.messages > 0 {
            let empty = Bundle { frame: cleared(std::mem::take(spare)), messages: 0 };
            return Next::Messages(std::mem::replace(&mut waiting.bundle, empty));
        }
        if waiting.mood == Mood::Closing { Next::End } else { Next::Nothing }
    }

    /// Takes no more; what waits is written, and then the link is closed.
    pub(crate) fn finish(&self) {
        let mut waiting = self.waiting();
        if waiting.mood == Mood::Open {
            waiting.mood = Mood::Closing;
        }
        self.changed.notify_one();
    }

    /// Takes no more, and nothing of what waits is written.
    pub(crate) fn close(&self) {
        self.waiting().mood = Mood::Closed;
        self.changed.notify_one();
    }

    /// What waits, after the end.
    pub(crate) fn rest(&self) -> Bundle {
        std::mem::replace(&mut self.waiting().bundle, Bundle::empty())
    }
}

fn cleared(mut spare: Vec<u8>) -> Vec<u8> {
    if spare.capacity() < HEAD || spare.capacity() > KEPT {
        return frame::blank();
    }
    spare.clear();
    spare.resize(HEAD, 0);
    spare
}
