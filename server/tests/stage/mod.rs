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
pub mod sweeps;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use http::{Answer, Connection};

/// How long anything may take that is not measured.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The flags of a server that keeps its tasks in the almanac whichever store the others use, for tests of its files.
pub const ALMANAC: &[&str] = &["--store", "almanac"];

/// The flags of a server with one shard: within one, a queue has one order, and all that is ready fits into one answer.
pub const ONE_SHARD: &[&str] = &["--node-shards", "1"];

/// The binary, in an environment without any of our variables: the one that was built for the test, unless
/// `PUNCTUAL_TEST_BINARY` names another one.
pub fn punctual() -> Command {
    let named = std::env::var_os("PUNCTUAL_TEST_BINARY");
    undisturbed(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_punctual").into()).as_ref())
}

/// A program in an environment without any of our variables.
fn undisturbed(program: &Path) -> Command {
    let mut command = Command::new(program);
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

/// A command that asks this server, in its directory.
pub fn command(server: &Server) -> Command {
    let mut command = punctual();
    command.args(["--url", &format!("http://{}", server.address())]).current_dir(server.directory());
    command
}

/// A command that works on what this server works on, beside it: on its data, and on its store.
pub fn beside(server: &Server) -> Command {
    let mut command = punctual();
    for pair in server.store.chunks(2) {
        command.env(format!("PUNCTUAL_{}", pair[0][2..].replace('-', "_").to_uppercase()), &pair[1]);
    }
    command.env("PUNCTUAL_DATA", server.data()).current_dir(server.directory());
    command
}

/// Runs a command that asks this server and must end with this code.
#[track_caller]
pub fn ends(server: &Server, code: i32, arguments: &[&str]) -> Ended {
    let ended = run(command(server).args(arguments));
    assert_eq!(ended.code, Some(code), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
    ended
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
    /// Another build of the server, to be started instead.
    pub program: Option<PathBuf>,
}

struct Running {
    child: Child,
    address: String,
    /// They end with its output.
    readers: [JoinHandle<()>; 2],
}

impl Running {
    /// It has ended, and all that it said has been read.
    fn hear_out(self) {
        self.readers.into_iter().for_each(|reader| reader.join().unwrap());
    }
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
        Server {
            directory,
            store,
            arguments,
            environment,
            running: None,
            printed: Arc::default(),
            token: None,
            program: None,
        }
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
        let readers = [self.keep(child.stdout.take().unwrap()), self.keep(child.stderr.take().unwrap())];
        self.running = Some(Running { child, address: String::new(), readers });
    }

    /// The command that starts it, as it stands.
    pub fn command(&self) -> Command {
        let mut command = self.program.as_deref().map_or_else(punctual, undisturbed);
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

    fn keep(&self, stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let printed = Arc::clone(&self.printed);
        thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { break };
                printed.lines.lock().unwrap().push(line);
                printed.grown.notify_all();
            }
        })
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

    /// Checks that it says something. What it has said already may still be on its way here.
    #[track_caller]
    pub fn says(&self, text: &str) {
        let begun = Instant::now();
        while !self.output().contains(text) {
            assert!(begun.elapsed() < PATIENCE, "it did not say {text:?}:\n{}", self.output());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything that was read of what it has printed, over all of its lives.
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

    /// Where its beanstalk door is, in its present life.
    pub fn beanstalk_address(&self) -> String {
        let mut found = None;
        eventually("the beanstalk door is open", || {
            let output = self.output();
            let present = output.rsplit("listening on http://").next().unwrap_or_default();
            found = present.lines().find_map(|line| line.strip_prefix("listening on beanstalk://").map(str::to_owned));
            found.is_some()
        });
        found.unwrap()
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
                running.hear_out();
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
        running.hear_out();
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
