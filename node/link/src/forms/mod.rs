//! Messages as bytes, in protobuf: what nodes of different versions can say to each other.
//!
//! Each type has its form beside it in the file of its concern, each field once. The numbers never change their meaning;
//! what is added gets the next one and must be able to be missing, and what is not known is passed over. Forms that lack
//! what they need, or say what this version has no word for, are [`Unclear`], with the place.

#[macro_use]
mod field;

mod account;
mod answer;
mod command;
mod error;
mod event;
mod message;
mod plain;
mod settings;
mod task;
mod unclear;

pub use message::{Garbled, Heard, encode, hear};
pub use unclear::Unclear;

pub(crate) use message::{Formed, MOST_MESSAGES};

#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;
