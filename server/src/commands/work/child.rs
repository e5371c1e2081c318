//! One command at work on one delivery: what it is given, how it is stopped, what its end means.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual_client::{Failure as Undone, Job};
use punctual_wire::Delivery;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, Command};

use super::stop::{Call, Stop};

/// The exit code for data that cannot be worked on, as in sysexits.h.
const DATA_ERROR: i32 = 65;

/// The exit codes by which a shell, `env` and the like say that the command cannot be run, or is not there.
const NOT_THERE: [i32; 2] = [126, 127];

/// How long the rest of stderr is waited for after the command has ended. Something that it left
/// running may hold it open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What to run, and how its end is understood.
#[derive(Debug)]
pub struct Orders {
    program: String,
    arguments: Vec<String>,
    /// Stdout is taken by JSON, so the command's goes to stderr.
    stdout_is_taken: bool,
    reject_codes: Vec<u8>,
    /// Whether a command has ended in a way that shows that it is there.
    has_run: AtomicBool,
    /// How many deliveries were given back although nothing was wrong with them.
    pub given_back: Arc<AtomicU64>,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The last line it wrote to stderr, if it did not go well.
    pub note: Option<String>,
}

impl Orders {
    pub fn new(command: &[String], stdout_is_taken: bool, reject_codes: Vec<u8>) -> Orders {
        let (program, arguments) = command
            .split_first()
            .map_or((String::new(), Vec::new()), |(program, arguments)| (program.clone(), arguments.to_vec()));
        let has_run = AtomicBool::new(false);
        Orders { program, arguments, stdout_is_taken, reject_codes, has_run, given_back: Arc::default() }
    }

    /// Whether the command could be run, as far as can be told before. Nothing is taken for one that is not there.
    pub fn look_for_program(&self) -> io::Result<()> {
        if self.program.contains('/') {
            return may_run(Path::new(&self.program));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).any(|directory| may_run(&directory.join(&self.program)).is_ok());
        if found { Ok(()) } else { Err(io::Error::new(io::ErrorKind::NotFound, "it is not in PATH")) }
    }

    /// Why no command will run, if that is what this end says: what should run it says that it is not there, and none
    /// has run before. Later the same exit code is an ordinary failure, of one delivery.
    pub fn hopeless(&self, ended: &Ended) -> Option<String> {
        let code = ended.code.filter(|code| NOT_THERE.contains(code));
        match code {
            Some(code) if !self.has_run.load(Ordering::Relaxed) => {
                let said = ended.note.as_deref().unwrap_or("which means that the command was not found");
                Some(format!("exit code {code}, {said}"))
            }
            _ => {
                self.has_run.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// What becomes of the delivery. A command that was killed because the worker stops has not failed.
    pub fn judge(&self, ended: &Ended, stopping: bool) -> (&'static str, Result<(), Undone>) {
        let said = |otherwise: String| ended.note.clone().unwrap_or(otherwise);
        match (ended.code, ended.signal) {
            (Some(0), _) => ("done", Ok(())),
            (Some(code), _) if code == DATA_ERROR || self.reject_codes.iter().any(|one| i32::from(*one) == code) => {
                ("rejected", Err(Undone::reject(said(format!("exit code {code}")))))
            }
            (Some(code), _) => ("failed", Err(Undone::retry(said(format!("exit code {code}"))))),
            (None, Some(_)) if stopping => {
                self.given_back.fetch_add(1, Ordering::Relaxed);
                ("given_back", Err(Undone::retry_after(Duration::ZERO).because("the worker is stopping")))
            }
            (None, Some(signal)) => ("failed", Err(Undone::retry(format!("killed by signal {signal}")))),
            (None, None) => ("failed", Err(Undone::retry(said("it could not be started".into())))),
        }
    }
}

/// Whether a command will not start for any delivery: it is not there, must not be run, or is nothing that runs.
pub fn is_hopeless(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | PermissionDenied | NotADirectory | IsADirectory)
        || error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error())
}

/// Whether a file is there and may be run by somebody.
fn may_run(file: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(file)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

/// A command at work.
pub struct Child {
    process: tokio::process::Child,
    group: Group,
}

/// The command and all that it started. Whoever drops it while it runs kills it.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // It may have ended a moment ago.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Child {
    /// Starts the command in a group of its own, so that Ctrl-C reaches the worker first.
    pub fn start(job: &Job, orders: &Orders) -> io::Result<Child> {
        let mut command = Command::new(&orders.program);
        command.args(&orders.arguments).envs(environment(job));
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        if orders.stdout_is_taken {
            command.stdout(io::stderr());
        }
        let process = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        Ok(Child { group: Group(id.and_then(Pid::from_raw)), process })
    }

    /// Feeds it the body and waits for its end; passes on what the worker is told meanwhile.
    pub async fn wait(mut self, job: &Job, stop: &Stop) -> Ended {
        let stdin = self.process.stdin.take();
        let body = job.bytes().to_vec();
        let feeding = tokio::spawn(async move {
            if let Some(mut stdin) = stdin {
                // A command need not read its body.
                let _ = stdin.write_all(&body).await;
            }
        });
        let echo = self.process.stderr.take().map(|stderr| tokio::spawn(echo(stderr)));
        let (mut calls, mut lost) = (stop.calls(), Box::pin(job.lease_lost()));
        let mut is_lost = false;
        let status = loop {
            tokio::select! {
                status = self.process.wait() => break status,
                call = calls.next() => match call {
                    Call::Terminate => self.group.signal(Signal::TERM),
                    Call::Kill => self.group.signal(Signal::KILL),
                },
                () = &mut lost, if !is_lost => {
                    is_lost = true;
                    self.group.signal(Signal::TERM);
                }
            }
        };
        // What it left running is not ours to kill.
        self.group.0 = None;
        feeding.abort();
        let last_line = match echo {
            Some(echo) => tokio::time::timeout(LAST_WORDS, echo).await.ok().and_then(Result::ok).flatten(),
            None => None,
        };
        ended(status, last_line)
    }
}

fn ended(status: io::Result<ExitStatus>, last_line: Option<String>) -> Ended {
    match status {
        Ok(status) if status.success() => Ended { code: Some(0), signal: None, note: None },
        Ok(status) => Ended { code: status.code(), signal: status.signal(), note: last_line },
        Err(error) => Ended { code: None, signal: None, note: Some(error.to_string()) },
    }
}

/// Passes stderr on as it comes, and keeps its last line.
async fn echo(stderr: ChildStderr) -> Option<String> {
    let mut reader = BufReader::new(stderr);
    let mut last = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last,
            Ok(_) => {
                let _ = io::Write::write_all(&mut io::stderr(), &line);
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                last = Some(text).filter(|text| !text.is_empty()).or(last);
            }
        }
    }
}

/// What the command is told about the delivery.
fn environment(delivery: &Delivery) -> Vec<(String, String)> {
    let mut all = vec![
        ("PUNCTUAL_TOPIC".into(), delivery.topic.clone()),
        ("PUNCTUAL_ID".into(), delivery.id.clone()),
        ("PUNCTUAL_QUEUE".into(), delivery.queue.clone()),
        ("PUNCTUAL_ATTEMPT".into(), delivery.attempt.to_string()),
        ("PUNCTUAL_DUE".into(), delivery.due.to_string()),
    ];
    let optional = [("PUNCTUAL_KEY", &delivery.key), ("PUNCTUAL_ROUTING_KEY", &delivery.routing_key)];
    all.extend(optional.into_iter().filter_map(|(name, value)| Some((name.into(), value.clone()?))));
    for (name, value) in &delivery.headers {
        if ["traceparent", "tracestate"].iter().any(|trace| name.eq_ignore_ascii_case(trace)) {
            all.push((name.to_ascii_uppercase(), value.clone()));
        }
        all.push((format!("PUNCTUAL_HEADER_{}", variable(name)), value.clone()));
    }
    // The environment cannot hold a zero byte.
    all.retain(|(_, value)| !value.contains('\0'));
    all
}

/// The name of a header as part of the name of a variable.
fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    fn delivery() -> Delivery {
        let json = r#"{"topic":"t","id":"i","queue":"q","text":"hello","headers":{"x-Sub.ject":"Hi","traceparent":"00-ab"},
            "key":"k","priority":1,"attempt":2,"scheduled_at":0,"due":1000,"fired_at":1000,"lease":"l","until":9}"#;
        serde_json::from_str(json).unwrap()
    }

    fn end(code: Option<i32>, signal: Option<i32>) -> Ended {
        Ended { code, signal, note: None }
    }

    #[test]
    fn the_command_learns_all_about_the_delivery() {
        let told = environment(&delivery());
        for (name, value) in [
            ("PUNCTUAL_TOPIC", "t"),
            ("PUNCTUAL_ID", "i"),
            ("PUNCTUAL_QUEUE", "q"),
            ("PUNCTUAL_ATTEMPT", "2"),
            ("PUNCTUAL_KEY", "k"),
            ("PUNCTUAL_DUE", "1970-01-01T00:00:01.000Z"),
            ("PUNCTUAL_HEADER_X_SUB_JECT", "Hi"),
            ("TRACEPARENT", "00-ab"),
        ] {
            assert!(told.contains(&(name.into(), value.into())), "{name} is missing in {told:?}");
        }
        assert!(!told.iter().any(|(name, _)| name == "PUNCTUAL_ROUTING_KEY"));
    }

    #[test]
    fn the_exit_code_decides() {
        let orders = Orders::new(&["x".into()], false, vec![3]);
        let outcome = |code, signal| orders.judge(&end(code, signal), false).0;
        assert_eq!(outcome(Some(0), None), "done");
        assert_eq!(outcome(Some(65), None), "rejected");
        assert_eq!(outcome(Some(3), None), "rejected");
        assert_eq!(outcome(Some(75), None), "failed");
        assert_eq!(outcome(Some(1), None), "failed");
        assert_eq!(outcome(None, Some(9)), "failed");
    }

    #[test]
    fn a_shell_that_does_not_find_the_command_is_believed_until_one_has_run() {
        let orders = Orders::new(&["sh".into()], false, Vec::new());
        assert!(orders.hopeless(&end(Some(127), None)).is_some_and(|why| why.contains("127")));
        assert_eq!(orders.hopeless(&end(Some(1), None)), None);
        assert_eq!(orders.hopeless(&end(Some(127), None)), None, "it has run, so this one delivery has failed");
    }

    #[test]
    fn a_command_is_looked_for_before_anything_is_taken() {
        let look = |program: &str| Orders::new(&[program.into()], false, Vec::new()).look_for_program();
        assert!(look("sh").is_ok() && look("/bin/sh").is_ok());
        assert!(look("no-such-command-anywhere").is_err_and(|error| error.to_string().contains("PATH")));
        assert!(look("/no/such/file").is_err() && look("/etc").is_err() && look("/etc/passwd").is_err());
    }

    #[test]
    fn a_command_that_dies_because_the_worker_stops_has_not_failed() {
        let orders = Orders::new(&["x".into()], false, Vec::new());
        let (outcome, result) = orders.judge(&end(None, Some(15)), true);
        assert_eq!(outcome, "given_back");
        assert_eq!(result, Err(Undone::retry_after(Duration::ZERO).because("the worker is stopping")));
        assert_eq!(orders.judge(&end(Some(0), None), true).0, "done");
    }

    #[test]
    fn the_last_words_are_the_note_of_a_rejection() {
        let orders = Orders::new(&["x".into()], false, Vec::new());
        let ended = Ended { code: Some(65), signal: None, note: Some("no such order".into()) };
        assert_eq!(orders.judge(&ended, false).1, Err(Undone::reject("no such order")));
    }
}
