//! A private PostgreSQL.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::engine::{Engine, text};
use crate::port::free_port;
use crate::process::run;
use crate::programs;
use crate::scratch::Scratch;

/// PostgreSQL refuses to run as root, so that root runs it as this user, whom its package has made.
const USER: Option<&str> = Some("postgres");

/// A PostgreSQL server with an empty database `postgres`, whose superuser `postgres` needs no password.
pub struct Postgres {
    engine: Engine,
    settings: Vec<String>,
}

impl Postgres {
    /// A server for tests. It does not sync: what a killed server has written is in the system's hands and stays.
    pub fn start() -> Postgres {
        Postgres::start_with(&["fsync=off"])
    }

    /// A server with settings of `postgresql.conf`, each as `name=value`.
    pub fn start_with(settings: &[&str]) -> Postgres {
        Postgres::start_with_files(settings, &[])
    }

    /// The same, with files in its data directory that the settings may name, such as certificates.
    pub fn start_with_files(settings: &[&str], files: &[(&str, &[u8])]) -> Postgres {
        let scratch = Scratch::new("postgres");
        own(scratch.path());
        run(Path::new("cp"), &["-a", text(&TEMPLATE.path().join("data")), text(scratch.path())], USER);
        for (name, content) in files {
            let file = scratch.path().join("data").join(name);
            fs::write(&file, content).expect("the data directory can be written");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our own file");
            own(&file);
        }
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut postgres = Postgres { engine: Engine::new(scratch, free_port()), settings };
        postgres.start_again();
        postgres
    }

    /// Where it listens, for the superuser and the database `postgres`.
    pub fn url(&self) -> String {
        Postgres::url_at(self.engine.port)
    }

    /// The same for another user and another database.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.engine.port)
    }

    /// The same at another port, as of a [`Proxy`](crate::Proxy).
    pub fn url_at(port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    /// Starts it after it was killed, at the same port, and waits until it takes connections.
    pub fn start_again(&mut self) {
        let mut arguments = vec!["-D".to_owned(), text(&self.engine.scratch.path().join("data")).to_owned()];
        let place = [
            format!("port={}", self.engine.port),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", text(self.engine.scratch.path())),
        ];
        for setting in place.iter().chain(&self.settings) {
            arguments.extend(["-c".to_owned(), setting.clone()]);
        }
        let port = self.engine.port.to_string();
        self.engine.launch(&tool("postgres"), &arguments, USER, || {
            let mut asked = Command::new(tool("pg_isready"));
            asked.args(["-q", "-h", "127.0.0.1", "-p", &port]);
            asked.status().is_ok_and(|status| status.success())
        });
    }

    /// What a statement says: a line for each row, with `|` between the columns.
    pub fn sql(&self, statement: &str) -> String {
        self.sql_in("postgres", statement)
    }

    /// The same in another database.
    pub fn sql_in(&self, database: &str, statement: &str) -> String {
        let url = self.url_of("postgres", database);
        run(&tool("psql"), &["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", statement], None)
            .trim_end()
            .to_owned()
    }
}

impl Deref for Postgres {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl DerefMut for Postgres {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

/// An empty data directory, which is copied for each server: that is ten times as fast as making one.
static TEMPLATE: LazyLock<Scratch> = LazyLock::new(|| {
    let scratch = Scratch::new("postgres-template");
    own(scratch.path());
    let data = scratch.path().join("data");
    let how = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D", text(&data)];
    run(&tool("initdb"), &how, USER);
    scratch
});

/// A program of the PostgreSQL that `PUNCTUAL_TEST_POSTGRES` names, or of the newest that is installed.
fn tool(name: &str) -> PathBuf {
    if let Some(chosen) = programs::chosen("PUNCTUAL_TEST_POSTGRES", name) {
        return chosen;
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.exists());
    found.max().unwrap_or_else(|| name.into())
}

fn own(path: &Path) {
    let Some(user) = USER.filter(|_| rustix::process::geteuid().is_root()) else { return };
    let id = |flag: &str| run(Path::new("id"), &[flag, user], None).trim().parse().expect("an id is a number");
    chown(path, Some(id("-u")), Some(id("-g"))).expect("root may give a file away");
}
