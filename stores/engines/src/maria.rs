//! A private MariaDB.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::engine::{Engine, text};
use crate::port::free_port;
use crate::process::run;
use crate::programs;
use crate::scratch::Scratch;

/// A MariaDB server with an empty database `punctual`, whose user `root` needs no password.
pub struct Maria {
    engine: Engine,
    settings: Vec<String>,
}

impl Maria {
    /// A server for tests. It does not sync: what a killed server has written is in the system's hands and stays.
    pub fn start() -> Maria {
        Maria::start_with(&["innodb_flush_method=nosync"])
    }

    /// A server with settings, each as `name=value`.
    pub fn start_with(settings: &[&str]) -> Maria {
        Maria::start_with_files(settings, &[])
    }

    /// The same, with files in its data directory that the settings may name, such as certificates.
    pub fn start_with_files(settings: &[&str], files: &[(&str, &[u8])]) -> Maria {
        let scratch = Scratch::new("maria");
        run(Path::new("cp"), &["-a", text(&TEMPLATE.path().join("data")), text(scratch.path())], None);
        for (name, content) in files {
            fs::write(scratch.path().join("data").join(name), content).expect("the data directory can be written");
        }
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut maria = Maria { engine: Engine::new(scratch, free_port()), settings };
        maria.start_again();
        maria.sql("CREATE DATABASE punctual");
        maria
    }

    /// Where it listens, for the user `root` and the database `punctual`.
    pub fn url(&self) -> String {
        Maria::url_at(self.engine.port)
    }

    /// The same at another port, as of a [`Proxy`](crate::Proxy).
    pub fn url_at(port: u16) -> String {
        format!("mysql://root@127.0.0.1:{port}/punctual")
    }

    /// The unix socket where it listens.
    pub fn socket(&self) -> String {
        text(&self.engine.scratch.path().join("socket")).to_owned()
    }

    /// Starts it after it was killed, at the same port, and waits until it takes connections.
    pub fn start_again(&mut self) {
        let own = |name: &str| text(&self.engine.scratch.path().join(name)).to_owned();
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            // Root may only run it by saying so; anybody else runs it as oneself.
            "--user=root".to_owned(),
            format!("--datadir={}", own("data")),
            format!("--port={}", self.engine.port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--socket={}", own("socket")),
            format!("--pid-file={}", own("pid")),
        ];
        arguments.extend(self.settings.iter().map(|setting| format!("--{setting}")));
        let socket = self.socket();
        self.engine.launch(&tool("mariadbd"), &arguments, None, || {
            let mut asked = Command::new("mariadb-admin");
            asked.args(["--no-defaults", "--user=root", "--socket", &socket, "--silent", "ping"]);
            asked.output().is_ok_and(|output| output.status.success())
        });
    }

    /// What statements say: a line for each row, with tabs between the columns.
    pub fn sql(&self, statements: &str) -> String {
        let socket = self.socket();
        let how =
            ["--no-defaults", "--user=root", "--socket", &socket, "--batch", "--skip-column-names", "-e", statements];
        run(Path::new("mariadb"), &how, None).trim_end().to_owned()
    }
}

impl Deref for Maria {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl DerefMut for Maria {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

/// A program of the server that `PUNCTUAL_TEST_MARIA` names, or of the one that is installed.
fn tool(name: &str) -> PathBuf {
    programs::chosen("PUNCTUAL_TEST_MARIA", name).unwrap_or_else(|| name.into())
}

/// An empty data directory, which is copied for each server.
static TEMPLATE: LazyLock<Scratch> = LazyLock::new(|| {
    let scratch = Scratch::new("maria-template");
    let data = format!("--datadir={}", text(&scratch.path().join("data")));
    let how = ["--no-defaults", "--user=root", &data, "--auth-root-authentication-method=normal", "--skip-test-db"];
    run(&tool("mariadb-install-db"), &how, None);
    scratch
});
