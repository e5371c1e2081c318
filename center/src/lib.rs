//! Several nodes, one delay center: what they say to each other and agree on, without I/O.
//!
//! The store that the nodes share is the authority: it says who is there, who owns which shard and what time it is. What
//! is in here decides what follows from that, and from what the others say. The node carries it out on threads, over links;
//! the simulation does so in virtual time. Nothing in here reads a clock, draws randomness or touches a socket.
//!
//! - [`Error`] is what a caller hears instead of an answer, wherever it came from.
//! - [`Message`] is what goes over a link.
//! - [`Lending`] brings consumers of one node and deliveries of another together.
//! - [`Links`] is how it gets there, and [`Ears`] who hears it.
//! - [`Passing`] are the requests on their way to shards of other nodes.
//! - [`Card`] is what a node says of itself with each beat.
//! - [`Place`] is where a shard is, and [`Places`] what a node knows of that.
//! - [`Acts`] are who did what.
//! - [`Changes`] are those of settings that are under way, and an [`Undertaking`](changes::Undertaking) is how one is made.
//! - [`Sweeps`] are those that were begun, and what came of them.
//! - [`Planner`] says who is to have which shard, also by the word of operators, the [`Assignment`].
//! - [`Inquiry`] and [`Account`] are what one node wants to know of the work of others, and what they say.
//! - [`StoreTime`] is the one time that all nodes go by.

mod account;
mod acts;
mod assignment;
mod card;
pub mod changes;
mod error;
mod lending;
mod level;
mod links;
mod message;
mod passing;
mod place;
mod plan;
mod sweeps;
mod time;

pub use account::{
    Account, Buckets, Busy, Consumer, Consumers, Gauges, Grain, Happened, Inquiry, MICROS, Pulse, Refusals, Series,
    Slot, Spread, Timing, Work,
};
pub use acts::{Act, Acts, UnreadableActs};
pub use assignment::{Assignment, UnreadableAssignment};
pub use card::Card;
pub use changes::{Changes, TooManyDeletions, UnreadableChanges, WrittenChange};
pub use error::{Error, Outcome};
pub use lending::{Consequences, Lending};
pub use level::Levels;
pub use links::{Ears, Greeting, LinkId, Links, Peer, Unsent, Why};
pub use message::{Loan, Message};
pub use passing::{Order, Passing};
pub use place::{Asking, Place, Places};
pub use plan::{Plan, Planner};
pub use sweeps::{CannotUndo, SweepRecord, Sweeps, TooManySweeps, UnreadableSweeps};
pub use time::{Anchor, StoreTime};
