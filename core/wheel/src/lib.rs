//! A timing wheel for millions of timers, and a blocking delay queue on top of it. No dependencies, no `unsafe`.
//!
//! - [`Wheel`] has no clock and no threads: times go in as milliseconds, what is due comes out when asked for.
//! - [`DelayQueue`] adds a clock and waiting, for those who know the one of the JDK.
//!
//! ```
//! use punctual_wheel::Wheel;
//!
//! let mut wheel = Wheel::new(0);
//! let call = wheel.insert(1_200, "call");
//! wheel.insert(1_500, "tea");
//! assert_eq!(wheel.next_at(), Some(1_200));
//! assert_eq!(wheel.cancel(call), Some("call"));
//! assert_eq!(wheel.pop(2_000), Some((1_500, "tea")));
//! ```
//!
//! # How the wheel works
//! A time of 64 bits is a number of eight digits to the base 256, and the wheel has a level of 256 slots for each
//! digit. Seen from the *cursor*, a timer waits on the level of the highest digit in which its time differs, in the
//! slot of that digit. So near timers are sorted by the millisecond, and far ones only roughly:
//!
//! ```text
//!            slots of      cursor
//! level 0      1 ms     ┌────▼──┬───────┬───────┬─    ─┬───────┐
//!                       │   0   │   1   │   2   │ ...  │  255  │   all of one slot are due at one time
//!                       └───────┴───────┴───────┴─    ─┴───────┘
//! level 1    256 ms     ┌───────┬───▼───┬───────┬─    ─┬───────┐
//!                       │ past  │ below │   2   │ ...  │  255  │   ─► slot 2 is spread over level 0
//!                       └───────┴───────┴───────┴─    ─┴───────┘      once level 0 is empty
//! level 2     65 s      ┌───▼───┬───────┬───────┬─    ─┬───────┐
//!                       │ below │   1   │   2   │ ...  │  255  │
//!                       └───────┴───────┴───────┴─    ─┴───────┘
//!    ...
//! level 7      2 million years a slot, up to the last millisecond that 64 bits can tell
//! ```
//!
//! - A bit for each slot says where timers are. Finding the earliest is a matter of a few instructions, however much
//!   time lies between.
//! - Two timers of the same time are always in the same slot, and a slot keeps the order of insertion. Hence timers of
//!   the same time fire in the order of insertion, without a sequence number.
//! - Timers earlier than the cursor wait in a small sorted set beside the levels. When they get too many, the cursor
//!   moves back for them.
//! - A timer costs eight bytes beside its time and its value, and four more for its place in a slot.

mod delay_queue;
mod levels;
mod pages;
mod slab;
mod wheel;

pub use delay_queue::{Closed, DelayQueue};
pub use slab::Handle;
pub use wheel::{Advance, Wheel};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
