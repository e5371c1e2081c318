//! A stage for tests of the real binary: start it, talk to it, stop it, kill it, start it again on the same data.
//!
//! ```no_run
//! let mut server = Server::start();                     // on a free port, in a directory of its own
//! let answer = server.post("/v1/tasks", &json!({ "topic": "t", "delay": "1s", "text": "hello" }));
//! assert_eq!(answer.status, 201);
//! server.kill();                                        // kill -9
//! server.start_again();                                 // the same data, flags and environment; maybe another port
//! ```
//! Where it listens is read from the line `listening on http://ADDRESS` of its output, which is stable. Everything
//! it prints is kept: [`Server::output`] has it, and a failing test shows it. Nothing outlives the test: dropping
//! a server kills it, and its directory goes with it.

#![allow(dead_code, reason = "each test uses a part of the stage")]
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod http;
mod store;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use http::{Answer, Connection};

/// How long anything may take that is not measured.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The flags of a server that keeps its tasks in the almanac whichever store the others use, for tests of its files.
pub const ALMANAC: &[&str] = &["--store", "almanac"];

/// The binary, in an environment without any of our variables.
pub fn punctual() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PUNCTUAL_") {
            command.env_remove(name);
        }
    }
    command
}

/// What a command that has ended left behind.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A server that is running, or can be started again.
pub struct Server {
    directory: TempDir,
    /// Where it keeps its tasks, as flags.
    store: Vec<String>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    running: Option<Running>,
    /// What it printed, over all of its lives.
    printed: Arc<Printed>,
    /// Shown with every request once it is set.
    pub token: Option<String>,
}

struct Running {
    child: Child,
    address: String,
}

#[derive(Default)]
struct Printed {
    lines: Mutex<Vec<String>>,
    grown: Condvar,
}

impl Server {
    /// Starts one with the defaults.
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// Starts one with further flags of `punctual serve`. `--listen`, `--data` and `--store` are set unless they are among them.
    pub fn start_with(arguments: &[&str]) -> Server {
        let mut server = Server::prepare(arguments, &[]);
        server.start_again();
        server
    }

    /// Gets one ready without starting it: to put files into its directory first.
    pub fn prepare(arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        let directory = tempfile::Builder::new().prefix("punctual-").tempdir().unwrap();
        let owned = |text: &&str| (*text).to_owned();
        let environment = environment.iter().map(|(name, value)| (owned(name), owned(value))).collect();
        let arguments: Vec<String> = arguments.iter().map(owned).collect();
        let store = if is_given(&arguments, "--store") { Vec::new() } else { store::new_place() };
        Server { directory, store, arguments, environment, running: None, printed: Arc::default(), token: None }
    }

    /// Starts it on its data and waits until it is ready.
    pub fn start_again(&mut self) {
        let from = self.printed.lines.lock().unwrap().len();
        self.spawn();
        let address = self.wait_for_output(from, |line| {
            line.strip_prefix("listening on http://")
                .or_else(|| line.strip_prefix("listening on https://"))
                .map(str::to_owned)
        });
        self.running.as_mut().unwrap().address = address;
    }

    /// Starts it and does not wait.
    pub fn spawn(&mut self) {
        assert!(self.running.is_none(), "it is running");
        let mut command = self.command();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        self.keep(child.stdout.take().unwrap());
        self.keep(child.stderr.take().unwrap());
        self.running = Some(Running { child, address: String::new() });
    }

    /// The command that starts it, as it stands.
    pub fn command(&self) -> Command {
        let mut command = punctual();
        command.arg("serve").current_dir(self.directory.path());
        if !is_given(&self.arguments, "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !is_given(&self.arguments, "--data") {
            command.arg("--data").arg(self.data());
        }
        command.args(&self.store).args(&self.arguments).envs(self.environment.iter().cloned());
        command
    }

    fn keep(&self, stream: impl Read + Send + 'static) {
        let printed = Arc::clone(&self.printed);
        thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { break };
                printed.lines.lock().unwrap().push(line);
                printed.grown.notify_all();
            }
        });
    }

    /// Waits for a line of its output, from a line on, that says something.
    fn wait_for_output<T>(&mut self, from: usize, says: impl Fn(&str) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let mut lines = self.printed.lines.lock().unwrap();
            if let Some(found) = lines.iter().skip(from).find_map(|line| says(line)) {
                return found;
            }
            lines = self.printed.grown.wait_timeout(lines, Duration::from_millis(50)).unwrap().0;
            drop(lines);
            let ended = self.running.as_mut().and_then(|running| running.child.try_wait().unwrap());
            // What it said last may still be on its way.
            if ended.is_some() {
                thread::sleep(Duration::from_millis(100));
            }
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let lines = self.printed.lines.lock().unwrap();
                if let Some(found) = lines.iter().skip(from).find_map(|line| says(line)) {
                    return found;
                }
                let said = lines.join("\n");
                // The server's end asks for the lock once more.
                drop(lines);
                panic!("it did not say what was waited for (ended: {ended:?}):\n{said}");
            }
        }
    }

    /// Waits until a line with this text has been printed.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait_for_output(0, |line| line.contains(text).then(|| line.to_owned()))
    }

    /// Everything it has printed so far, over all of its lives.
    pub fn output(&self) -> String {
        self.printed.lines.lock().unwrap().join("\n")
    }

    /// The directory it runs in, with a `punctual.toml` if the test puts one there.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Where it listens: `127.0.0.1:41234`.
    pub fn address(&self) -> &str {
        &self.running.as_ref().expect("it is running").address
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("it is running").child.id()
    }

    /// Whether it is running.
    pub fn is_running(&mut self) -> bool {
        self.running.as_mut().is_some_and(|running| running.child.try_wait().unwrap().is_none())
    }

    /// Sends it a signal by name, such as `TERM` or `HUP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status().unwrap();
        assert!(sent.success(), "kill -{name}");
    }

    /// Stops it in order, and gives its exit status.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let mut running = self.running.take().expect("it is running");
        let begun = Instant::now();
        loop {
            if let Some(status) = running.child.try_wait().unwrap() {
                return status;
            }
            if begun.elapsed() > PATIENCE {
                _ = running.child.kill();
                panic!("it did not end:\n{}", self.output());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it with -9.
    pub fn kill(&mut self) {
        let mut running = self.running.take().expect("it is running");
        running.child.kill().unwrap();
        running.child.wait().unwrap();
    }

    /// Kills it with -9 and starts it on the same data.
    pub fn crash(&mut self) {
        self.kill();
        self.start_again();
    }

    /// A connection of its own, for several requests.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address(), self.token.clone())
    }

    /// Asks once, on a connection of its own.
    pub fn get(&self, path: &str) -> Answer {
        self.connect().request("GET", path, None)
    }

    /// Sends JSON.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.connect().request("POST", path, Some(body))
    }

    /// Sends JSON by another method.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.connect().request(method, path, Some(body))
    }

    /// Deletes something.
    pub fn delete(&self, path: &str) -> Answer {
        self.connect().request("DELETE", path, None)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            _ = running.child.kill();
            _ = running.child.wait();
        }
        if thread::panicking() {
            eprintln!("--- the server said:\n{}\n---", self.output());
        }
    }
}

fn is_given(arguments: &[String], flag: &str) -> bool {
    arguments.iter().any(|argument| argument.split('=').next() == Some(flag))
}

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it did not come about: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
