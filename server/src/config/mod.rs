//! How the server is told what to do: defaults, a file, the environment and flags, each overriding the former.
//!
//! ```text
//! settings.rs   every setting, once: its name, meaning, default and type
//! table.rs      what a setting is, and how the list becomes a type and a table
//! value.rs      how values are written: sizes, times, lists, …
//! store_url.rs  where tasks are kept, and passwords
//! file.rs       a TOML file, with the line of each setting
//! flags.rs      the same settings as flags of the command line
//! load.rs       brings all of them together and collects whatever is wrong
//! problem.rs    what is wrong, where, and what to write instead
//! print.rs      the effective configuration; document.rs: docs/configuration.md
//! ```
//! **Invariant**: a setting's variable and flag follow from its name, and nothing else in the server reads the
//! environment. **Invariant**: all problems are told at once, and none is passed over.

mod document;
mod file;
mod flags;
mod load;
mod print;
mod problem;
mod settings;
mod store_url;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use document::markdown;
pub use flags::Overrides;
pub use load::{Effective, Sources, load, of_server, of_store};
pub use problem::nearest;
pub use settings::{Config, ConsolePart, LinksPart, StorePart};
pub use store_url::{Secret, StoreUrl};
pub use value::{Address, LogFormat, Synced};
