//! A server's process: started so that it cannot outlive ours, killed, stopped and looked at together with its children.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

/// How long a server may take to start or to end on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts a program, as another user if we are root and a user is given. Its output goes to a file.
    pub(crate) fn start(program: &Path, arguments: &[String], user: Option<&str>, log: &Path) -> Process {
        let log = fs::File::options().create(true).append(true).open(log).expect("the log can be written");
        let mut command = as_user(user);
        command.arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file can be shared")).stderr(log);
        Process { child: spawn(command) }
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("our own child can be asked").is_some()
    }

    /// Ends it and its children at once, as a loss of power would.
    pub(crate) fn kill(&mut self) {
        let family = self.family();
        for pid in &family {
            signal(*pid, Signal::KILL);
        }
        let _ = self.child.wait();
        wait_until("its children to end", || family.iter().all(|pid| has_ended(*pid)));
    }

    /// Stops it and its children where they are.
    pub(crate) fn pause(&self) {
        let family = self.family();
        family.iter().for_each(|pid| signal(*pid, Signal::STOP));
        // A thread that has a processor goes on until it next looks.
        wait_until("its threads to stand still", || family.iter().all(|pid| stands_still(*pid)));
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.family().into_iter().for_each(|pid| signal(pid, Signal::CONT));
    }

    /// The processor time that it and its children, also those that have ended, have used.
    pub(crate) fn cpu(&self) -> Duration {
        self.family().into_iter().map(cpu_of).sum()
    }

    /// It, and then its children and theirs.
    fn family(&self) -> Vec<u32> {
        let mut family = vec![self.child.id()];
        let mut next = 0;
        while let Some(pid) = family.get(next).copied() {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            next += 1;
        }
        family
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Begins a command that ends with our process, as another user if we are root and a user is given.
fn as_user(user: Option<&str>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user.filter(|_| geteuid().is_root()) {
        command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--init-groups"]);
    }
    command.arg("--");
    command
}

/// Runs a program to its end and gives what it printed.
pub(crate) fn run(program: &Path, arguments: &[&str], user: Option<&str>) -> String {
    let output = as_user(user).arg(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("setpriv, of the package util-linux, is needed: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {arguments:?} failed: {said}", program.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits for something that comes soon.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a child from a thread that lives as long as the process: the system ends the child with the thread that
/// started it, and a test's own thread ends before those that share a server with it.
fn spawn(command: Command) -> Child {
    type Order = (Command, Sender<Child>);
    static ORDERS: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
        let (orders, taken) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in taken {
                let child = command.spawn();
                let child = child.unwrap_or_else(|error| panic!("setpriv, of util-linux, is needed: {error}"));
                let _ = answer.send(child);
            }
        });
        Mutex::new(orders)
    });
    let (answer, child) = channel();
    ORDERS.lock().expect("nothing panics under it").send((command, answer)).expect("the thread takes orders for ever");
    child.recv().expect("the program could be started")
}

/// One that has ended meanwhile needs no signal.
fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether no thread of a process goes on.
fn stands_still(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| stat_of(&thread.path()).into_iter().next());
    states.all(|state| ["T", "Z", "X"].contains(&&*state))
}

/// An orphan that nobody has buried yet has ended too.
fn has_ended(pid: u32) -> bool {
    stat(pid).first().is_none_or(|state| state == "Z")
}

fn cpu_of(pid: u32) -> Duration {
    // Own times, and those of the children that were waited for.
    let ticks: u64 = stat(pid).iter().skip(11).take(4).filter_map(|word| word.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// What the system says of a process, beginning with its state: the name before that stands in brackets and may hold
/// anything.
fn stat(pid: u32) -> Vec<String> {
    stat_of(Path::new(&format!("/proc/{pid}")))
}

fn stat_of(place: &Path) -> Vec<String> {
    let stat = fs::read_to_string(place.join("stat")).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
