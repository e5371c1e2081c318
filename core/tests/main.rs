//! Facts about the shard and what is around it.
//!
//! All of it is one executable: what every file takes along, the shard above all, is built once.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod adoption;
mod against_the_model;
mod attempts;
mod broadcast;
mod center;
mod clock;
mod corners;
mod counts;
mod dead_groups;
mod dead_letters;
mod deletions;
mod deposed;
mod durations;
mod events;
mod leases;
mod life;
mod lines;
mod many;
mod model;
mod note;
mod numbered;
mod order;
mod pair;
mod rules;
mod settings;
mod sweeping;
mod sweeps;
mod sweeps_and_others;
