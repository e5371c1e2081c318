//! The contestants: beanstalkd as Debian ships it, keeping all in memory or with a log that is synced before each
//! answer, and Punctual through its beanstalk door.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::connection::Connection;
use crate::arena::{self, Contestant, machine, text};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Punctual,
    InMemory,
    Synced,
    /// With the same log, never synced: fills faster for what does not depend on it, and takes no part itself.
    Unsynced,
}

impl Kind {
    /// Who stands in for it where only what it holds counts, not how it came there.
    pub fn filling(self) -> Kind {
        match self {
            Kind::Synced => Kind::Unsynced,
            other => other,
        }
    }

    /// Whether it has its jobs again after kill -9.
    pub fn remembers(self) -> bool {
        self != Kind::InMemory
    }
}

impl Contestant for Kind {
    type Client = Connection;

    const ALL: &'static [Kind] = &[Kind::Punctual, Kind::InMemory, Kind::Synced];

    fn name(self) -> &'static str {
        match self {
            Kind::Punctual => "punctual",
            Kind::InMemory => "beanstalkd-memory",
            Kind::Synced => "beanstalkd-synced",
            Kind::Unsynced => "beanstalkd-unsynced",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Kind::Punctual => "Punctual, synced always",
            Kind::InMemory => "beanstalkd, nothing on disk",
            Kind::Synced => "beanstalkd, synced always",
            Kind::Unsynced => "beanstalkd, never synced",
        }
    }

    fn program(self) -> Result<PathBuf, String> {
        match self {
            Kind::Punctual => arena::punctual::program(),
            Kind::InMemory | Kind::Synced | Kind::Unsynced => {
                machine::program("beanstalkd", || machine::in_path("beanstalkd"))
            }
        }
    }

    fn version_option(self) -> &'static str {
        match self {
            Kind::Punctual => "--version",
            Kind::InMemory | Kind::Synced | Kind::Unsynced => "-v",
        }
    }

    fn prepare(self, _: &Path, directory: &Path) -> io::Result<()> {
        fs::create_dir(binlog(directory))
    }

    fn command(self, program: &Path, directory: &Path, port: u16) -> Vec<String> {
        let beanstalkd = || {
            let words = [&text(program), "-l", "127.0.0.1", "-p", &port.to_string(), "-z", "1048576"];
            words.map(str::to_owned).to_vec()
        };
        match self {
            Kind::Punctual => {
                let mut words = arena::punctual::command(program, directory, machine::free_port());
                words.extend(["--beanstalk-listen".to_owned(), format!("127.0.0.1:{port}")]);
                words
            }
            Kind::InMemory => beanstalkd(),
            Kind::Synced | Kind::Unsynced => {
                let syncs = if self == Kind::Synced { "-f0" } else { "-F" };
                let mut words = beanstalkd();
                words.extend(["-b".to_owned(), text(&binlog(directory)), syncs.to_owned()]);
                words
            }
        }
    }

    async fn furnish(self, port: u16) -> io::Result<()> {
        self.is_back(port).await
    }

    /// When it can say what it holds.
    async fn is_back(self, port: u16) -> io::Result<()> {
        Connection::open(port).await?.census().await.map(drop)
    }

    async fn connect(self, port: u16) -> io::Result<Connection> {
        Connection::open(port).await
    }
}

fn binlog(directory: &Path) -> PathBuf {
    directory.join("binlog")
}
