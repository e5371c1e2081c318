//! A database that tasks can be kept in.

use std::fmt;

use punctual_core::store::{Store, StoreError};

use crate::{Config, Contents, OpenError, Status};

/// A store in a database. As a text it says where it is, and what a confirmation is worth there.
pub trait Database: Store + fmt::Display + Sized + 'static {
    /// What is known of it before it is reached.
    const KIND: Kind;

    /// Connects, and makes the layout or brings it up to date: one attempt.
    fn open(config: Config) -> Result<Self, OpenError>;

    /// Connects to a store that is there and of this version, and changes nothing.
    fn attach(config: Config) -> Result<Self, OpenError>;

    /// The same, and everything is seen as it is at one moment, whatever others do meanwhile: for who compares much with
    /// much. Nothing if the database cannot do that.
    fn freeze(_: Config) -> Result<Option<Self>, OpenError> {
        Ok(None)
    }

    /// Makes the layout or brings it up to date. Who does so at the same time waits, or is told to come again.
    fn migrate(config: &Config) -> Result<Migrated, OpenError>;

    /// How it goes. Waits for nothing.
    fn status(&self) -> Status;

    /// What somebody should know who trusts it with tasks, and what to do about it.
    fn warnings(&self) -> Vec<String>;

    /// The damage that only the database itself can see: a line for each. Reads everything, and changes nothing.
    fn check(&self) -> Result<Vec<String>, StoreError>;

    /// What is there. Counts all rows, which takes as long as it takes.
    fn contents(&self) -> Result<Contents, StoreError>;
}

/// What is known of a database before it is reached.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name for people.
    pub name: &'static str,
    /// Its name for machines.
    pub word: &'static str,
    /// What its URLs begin with.
    pub schemes: &'static [&'static str],
    /// How to write its URL.
    pub form: &'static str,
    /// Which settings it has that not every database has, by their names in [`Config`].
    pub settings: &'static [&'static str],
    /// What makes a backup of it.
    pub backup: &'static str,
}

/// From which version of the layout to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version that was there; nothing was, if none.
    pub from: Option<u32>,
    /// The version that is there now.
    pub to: u32,
}
