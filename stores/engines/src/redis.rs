//! A private Redis, alone, or with replicas of it.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use crate::engine::{Engine, text};
use crate::port::free_port;
use crate::process::{run, wait_until};
use crate::programs;
use crate::scratch::Scratch;

/// A Redis server with no data. It keeps an append-only file, so that it comes back with what it had.
pub struct Redis {
    engine: Engine,
    settings: Vec<String>,
    /// The port for encrypted connections, and where the certificate is.
    secure: Option<(u16, Scratch)>,
}

impl Redis {
    /// A server that has written each change to its file, and synced it, before it answers.
    pub fn start() -> Redis {
        Redis::start_with(&["--appendfsync", "always"])
    }

    /// A server with settings as on its command line.
    pub fn start_with(settings: &[&str]) -> Redis {
        Redis::start_at(free_port(), settings)
    }

    /// A replica of the master at a port of the loopback, which may be that of a [`Proxy`](crate::Proxy). It has all that
    /// the master has when this returns.
    pub fn replica_of(port: u16, settings: &[&str]) -> Redis {
        let replica = Redis::start_with(settings);
        replica.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
        wait_until("the replica to be in step", || replica.info("master_link_status").as_deref() == Some("up"));
        replica
    }

    /// A server that also listens for encrypted connections, with this certificate and key.
    pub fn start_encrypted(certificate: &str, key: &str) -> Redis {
        let (files, port) = (Scratch::new("redis-tls"), free_port());
        let file = |name: &str, content: &str| {
            let path = files.path().join(name);
            fs::write(&path, content).expect("the directory can be written");
            text(&path).to_owned()
        };
        let (certificate, key) = (file("certificate", certificate), file("key", key));
        let port_text = port.to_string();
        let how = ["--tls-port", &port_text, "--tls-cert-file", &certificate, "--tls-key-file", &key];
        let mut redis =
            Redis::start_with(&[&how[..], &["--tls-ca-cert-file", &certificate, "--tls-auth-clients", "no"]].concat());
        redis.secure = Some((port, files));
        redis
    }

    /// Waits until a replica has all that this master has.
    pub fn wait_for(&self, replica: &Redis) {
        let has = || replica.info("slave_repl_offset") == self.info("master_repl_offset");
        wait_until("the replica to have everything", has);
    }

    /// Makes a replica a master, at the port of the one that it takes the place of.
    pub fn take_over(&mut self, port: u16) {
        self.command(&["REPLICAOF", "NO", "ONE"]);
        // What a replica copies is in its append-only file only after that was written anew.
        let is_zero = |what: &str| self.info(what).as_deref() == Some("0");
        wait_until("the file of a former replica to be written", || {
            is_zero("aof_rewrite_in_progress") && is_zero("aof_rewrite_scheduled")
        });
        self.kill();
        self.engine.port = port;
        self.start_again();
    }

    pub(crate) fn start_at(port: u16, settings: &[&str]) -> Redis {
        let scratch = Scratch::new("redis");
        let directory = text(scratch.path()).to_owned();
        let mut all = vec!["--bind", "127.0.0.1", "--dir", &directory, "--save", "", "--appendonly", "yes"];
        // Tests are over before a replica that was cut off is given up; there is no need to wait to copy to one.
        all.extend(["--repl-diskless-sync-delay", "0"]);
        all.extend(settings);
        let settings = all.into_iter().map(str::to_owned).collect();
        let mut redis = Redis { engine: Engine::new(scratch, port), settings, secure: None };
        redis.start_again();
        redis
    }

    /// A sentinel, from the lines of its file.
    pub(crate) fn sentinel(port: u16, lines: &[String]) -> Redis {
        let scratch = Scratch::new("sentinel");
        let file = scratch.path().join("sentinel.conf");
        fs::write(&file, lines.join("\n")).expect("the directory can be written");
        let settings =
            vec![text(&file).to_owned(), "--sentinel".to_owned(), "--bind".to_owned(), "127.0.0.1".to_owned()];
        let mut sentinel = Redis { engine: Engine::new(scratch, port), settings, secure: None };
        sentinel.start_again();
        sentinel
    }

    /// Where it is.
    pub fn url(&self) -> String {
        Redis::url_at(self.engine.port)
    }

    /// The same for encrypted connections.
    pub fn secure_url(&self) -> String {
        let (port, _) = self.secure.as_ref().expect("it was started with a certificate");
        format!("rediss://localhost:{port}")
    }

    /// The same at another port, as of a [`Proxy`](crate::Proxy).
    pub fn url_at(port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }

    /// Starts it after it was killed, at the same port, and waits until it answers.
    pub fn start_again(&mut self) {
        let mut arguments = self.settings.clone();
        arguments.extend(["--port".to_owned(), self.engine.port.to_string()]);
        let port = self.engine.port;
        let program = programs::chosen("PUNCTUAL_TEST_REDIS", "redis-server").unwrap_or_else(|| "redis-server".into());
        self.engine.launch(&program, &arguments, None, || ask(port, &["PING"]) == "PONG");
    }

    /// What it says to a command.
    pub fn command(&self, words: &[&str]) -> String {
        let said = ask(self.engine.port, words);
        assert!(!said.starts_with("ERR"), "{words:?}: {said}");
        said
    }

    /// A line of what it tells about itself.
    pub fn info(&self, name: &str) -> Option<String> {
        let info = self.command(&["INFO"]);
        let found = info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
        found.map(str::to_owned)
    }
}

fn ask(port: u16, words: &[&str]) -> String {
    let port = port.to_string();
    let mut arguments = vec!["-c", r#"timeout 5 redis-cli "$@" 2>/dev/null || true"#, "ask", "-p", &port];
    arguments.extend(words);
    run(Path::new("sh"), &arguments, None).trim_end().to_owned()
}

impl Deref for Redis {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl DerefMut for Redis {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}
